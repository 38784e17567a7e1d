"""``bk ledger delete``, ``undelete`` and ``list --deleted``."""

from __future__ import annotations

import pytest

from tests.bookkeeper.admin.commands import bk

ONE = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)


@pytest.fixture
def ledger(embedded: str) -> int:
    said = bk("ledger", "append", "-m", embedded, *ONE, stdin=b"a\nb\n")
    return int(said.out)


@pytest.mark.rule("G8")
def test_a_deleted_ledger_is_listed_and_comes_back(embedded: str, ledger: int) -> None:
    said = bk("ledger", "delete", ledger, "-m", embedded, "--yes")
    assert (said.status, said.out) == (
        0,
        f"ledger {ledger} is deleted; `bk ledger undelete {ledger}` brings it back within 1 day\n",
    )
    bk("ledger", "read", ledger, "-m", embedded).refused(f"there is no ledger {ledger}")
    (row,) = bk("ledger", "list", "--deleted", "-m", embedded, "--json").document
    assert (row["ledger"], row["state"], row["last_entry"], row["length"]) == (ledger, "CLOSED", 1, 2)
    assert row["until_ms"] - row["deleted_ms"] == 24 * 3600 * 1000
    shown = bk("ledger", "list", "--deleted", "-m", embedded).out
    assert "1 deleted ledger" in shown and "until" in shown
    said = bk("ledger", "undelete", ledger, "-m", embedded)
    assert (said.status, said.out) == (0, f"ledger {ledger} is back; its last entry is 1\nevery copy is there\n")
    assert bk("ledger", "read", ledger, "-m", embedded).out == "a\nb\n"
    assert bk("ledger", "list", "--deleted", "-m", embedded, "--json").document == []
    bk("ledger", "undelete", ledger, "-m", embedded).refused("cannot be brought back: it is not deleted")


@pytest.mark.rule("G8")
def test_without_grace_it_is_gone_also_if_it_was_deleted_before(embedded: str, ledger: int) -> None:
    bk("ledger", "delete", ledger, "-m", embedded, "--yes")
    said = bk("ledger", "delete", ledger, "-m", embedded, "--yes", "--grace", 0)
    assert (said.status, said.out) == (0, f"ledger {ledger} is deleted for ever\n")
    bk("ledger", "undelete", ledger, "-m", embedded).refused("the time for that is over")
    bk("ledger", "delete", ledger, "-m", embedded, "--yes", "--grace", -1).refused("--grace", status=2)


def test_programs_get_a_document(embedded: str, ledger: int) -> None:
    bk("ledger", "delete", ledger, "-m", embedded, "--yes", "--grace", 60)
    said = bk("ledger", "undelete", ledger, "-m", embedded, "--json")
    assert said.document == {"ledger": ledger, "last_entry": 1, "incomplete_copies": []}
