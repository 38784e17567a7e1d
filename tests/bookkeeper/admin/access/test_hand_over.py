"""``bk access hand-over``."""

from __future__ import annotations

from bookkeeper import BookKeeper
from bookkeeper.access import Resource
from bookkeeper.ids import LedgerId
from bookkeeper.real import run
from tests.bookkeeper.admin.commands import bk

BOB, EVE = Resource.parse("ledgers:bob"), Resource.parse("ledgers:eve")
ONE = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)


def test_ledgers_get_another_owner_and_the_history_says_so(embedded: str) -> None:
    for _ in range(2):
        assert bk("ledger", "append", "-m", embedded, "--size", 10, "--count", 5, *ONE).status == 0
    assert "2 ledgers handed over to ledgers:bob" in bk("access", "hand-over", "-m", embedded, "ledgers:bob", 0, 1).out
    listed = bk("access", "list", "-m", embedded, "--json").document
    assert [each["what"] for each in listed["changes"]] == ["hand-over ledgers:bob 0, 1"]
    shown = bk("access", "usage", "-m", embedded, "--count", "--json").document
    assert [(each["who"], each["bytes_kept"]) for each in shown["owners"]] == [("bob", 100)]
    bk("access", "hand-over", "-m", embedded, "ledgers:eve", 1, 7).refused("nothing was changed", "no ledger 7")
    bk("access", "hand-over", "-m", embedded, "cluster", 1).refused("owns no ledger")


def test_ledgers_that_are_gone_leave_the_record(embedded: str) -> None:
    async def recorded() -> dict[LedgerId, Resource]:
        async with BookKeeper.connect(embedded) as client:
            return await client.metadata_store.ledger_owners.handed_over()

    for _ in range(2):
        assert bk("ledger", "append", "-m", embedded, "--size", 10, "--count", 5, *ONE).status == 0
    assert bk("access", "hand-over", "-m", embedded, "ledgers:bob", 0, 1).status == 0
    assert bk("ledger", "delete", "-m", embedded, "0", "--yes", "--grace", "0").status == 0
    assert run(recorded()) == {0: BOB, 1: BOB}
    assert bk("access", "hand-over", "-m", embedded, "ledgers:eve", 1).status == 0
    assert run(recorded()) == {1: EVE}


def test_a_ledger_that_can_be_brought_back_keeps_its_new_owner(embedded: str) -> None:
    """Cause: it left the record as if it were gone for good, and was its former owner's again where it was copied to
    after it had been brought back."""

    async def recorded() -> dict[LedgerId, Resource]:
        async with BookKeeper.connect(embedded) as client:
            return await client.metadata_store.ledger_owners.handed_over()

    for _ in range(2):
        assert bk("ledger", "append", "-m", embedded, "--size", 10, "--count", 5, *ONE).status == 0
    assert bk("access", "hand-over", "-m", embedded, "ledgers:bob", 0, 1).status == 0
    assert bk("ledger", "delete", "-m", embedded, "0", "--yes").status == 0
    assert bk("access", "hand-over", "-m", embedded, "ledgers:eve", 1).status == 0
    assert run(recorded()) == {0: BOB, 1: EVE}
    bk("access", "hand-over", "-m", embedded, "ledgers:eve", 0).refused("nothing was changed", "no ledger 0")
