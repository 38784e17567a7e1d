"""The only legal ways in which a ledger's metadata changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.errors import InvariantError, LedgerClosedError, LedgerFencedError, MetadataFormatError
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.metadata import Fragment, LedgerMetadata, LedgerState, broken_rule, with_ensemble
from bookkeeper.ledger.quorum import QuorumSpec

SPEC = QuorumSpec(ensemble_size=3, write_quorum=3, ack_quorum=2)


def bookies(names: str) -> tuple[BookieId, ...]:
    return tuple(BookieId(name) for name in names.split())


OPEN = LedgerMetadata.create(SPEC, bookies("b1 b2 b3"), password=b"secret", custom={"k": b"v"}, creator_token=7)
IN_RECOVERY = OPEN.begin_recovery()
CLOSED = OPEN.close(4, 50)


@pytest.mark.rule("M2")
def test_a_closed_ledger_takes_no_change_but_repair() -> None:
    changes: list[Callable[[], LedgerMetadata]] = [
        lambda: CLOSED.change_ensemble(5, bookies("b1 b2 b4")),
        lambda: CLOSED.begin_recovery(),
        lambda: CLOSED.close(3, 40),
        lambda: CLOSED.close(4, 51),
        lambda: CLOSED.close_recovered(5, 60),
    ]
    for change in changes:
        with pytest.raises(LedgerClosedError):
            change()


@pytest.mark.rule("R13")
def test_the_writer_closes_only_what_is_open_and_finds_its_own_close() -> None:
    assert CLOSED.close(4, 50) is CLOSED
    with pytest.raises(LedgerFencedError):
        IN_RECOVERY.close(4, 50)


@pytest.mark.rule("R1")
def test_a_recovery_that_is_under_way_is_joined() -> None:
    assert IN_RECOVERY.state is LedgerState.IN_RECOVERY
    assert IN_RECOVERY.begin_recovery() == IN_RECOVERY


@pytest.mark.rule("R10")
def test_a_recovery_closes_only_what_is_in_recovery() -> None:
    assert IN_RECOVERY.close_recovered(-1, 0).is_closed
    with pytest.raises(InvariantError, match="R10"):
        OPEN.close_recovered(4, 50)


@pytest.mark.rule("R4", "R9")
def test_a_recovery_changes_only_the_last_fragment() -> None:
    two = OPEN.change_ensemble(5, bookies("b1 b2 b4")).begin_recovery()
    tail = with_ensemble(two.fragments, 7, bookies("b1 b5 b4"))
    assert [f.first_entry for f in two.close_recovered(9, 90, tail).fragments] == [0, 5, 7]
    earlier = (Fragment(EntryId(0), bookies("b9 b2 b3")), *tail[1:])
    with pytest.raises(InvariantError, match="R4"):
        two.close_recovered(9, 90, earlier)


@pytest.mark.rule("W5")
def test_a_new_ensemble_replaces_the_fragment_that_begins_there_or_follows_it() -> None:
    replaced = OPEN.change_ensemble(0, bookies("b1 b4 b3"))
    assert replaced.fragments == (Fragment(EntryId(0), bookies("b1 b4 b3")),)
    appended = replaced.change_ensemble(3, bookies("b1 b4 b5"))
    assert [f.first_entry for f in appended.fragments] == [0, 3]
    with pytest.raises(InvariantError, match="W5"):
        appended.change_ensemble(2, bookies("b1 b4 b6"))
    with pytest.raises(LedgerFencedError):
        IN_RECOVERY.change_ensemble(3, bookies("b1 b4 b5"))


@pytest.mark.rule("M4")
@pytest.mark.parametrize(
    "fragments",
    [
        (),
        (Fragment(EntryId(1), bookies("b1 b2 b3")),),
        (Fragment(EntryId(0), bookies("b1 b2")),),
        (Fragment(EntryId(0), bookies("b1 b2 b2")),),
        (Fragment(EntryId(0), bookies("b1 b2 b3")), Fragment(EntryId(0), bookies("b1 b2 b4"))),
        (
            Fragment(EntryId(0), bookies("b1 b2 b3")),
            Fragment(EntryId(5), bookies("b1 b2 b4")),
            Fragment(EntryId(4), bookies("b1 b2 b5")),
        ),
    ],
)
def test_malformed_fragments_are_refused(fragments: tuple[Fragment, ...]) -> None:
    with pytest.raises(MetadataFormatError, match="the metadata of a ledger make no sense"):
        replace(OPEN, fragments=fragments)


@pytest.mark.rule("M4")
def test_a_ledger_cannot_end_before_its_last_fragment_begins() -> None:
    two = OPEN.change_ensemble(5, bookies("b1 b2 b4"))
    assert two.close(4, 10).last_entry == 4
    with pytest.raises(MetadataFormatError):
        two.close(3, 10)
    with pytest.raises(MetadataFormatError):
        replace(OPEN, last_entry=EntryId(3))
    with pytest.raises(MetadataFormatError):
        replace(CLOSED, length=-1)


@pytest.mark.rule("M3")
def test_repair_swaps_a_bookie_and_nothing_else() -> None:
    two = OPEN.change_ensemble(5, bookies("b1 b2 b4")).close(9, 90)
    mended = two.swap_bookie(0, BookieId("b3"), BookieId("b9"))
    assert mended.fragments[0].ensemble == bookies("b1 b2 b9")
    assert replace(mended, fragments=two.fragments) == two
    assert broken_rule(two, mended) == ""
    for first, old, new in ((1, "b1", "b9"), (0, "b8", "b9"), (0, "b1", "b2")):
        with pytest.raises(MetadataFormatError):
            two.swap_bookie(first, BookieId(old), BookieId(new))


def test_repair_leaves_a_fragment_alone_that_may_still_grow() -> None:
    with pytest.raises(LedgerFencedError, match="may still grow"):
        OPEN.swap_bookie(0, BookieId("b1"), BookieId("b9"))
    assert OPEN.change_ensemble(5, bookies("b1 b2 b4")).swap_bookie(0, BookieId("b1"), BookieId("b9")).fragments


@pytest.mark.rule("M2", "M3", "W5")
def test_what_must_not_follow_is_named() -> None:
    assert broken_rule(CLOSED, OPEN).startswith("M2")
    assert broken_rule(CLOSED, replace(CLOSED, last_entry=EntryId(5))).startswith("M3")
    assert broken_rule(OPEN, replace(OPEN, password=b"other")).startswith("Q5/M3")
    two = OPEN.change_ensemble(5, bookies("b1 b2 b4"))
    assert broken_rule(two, OPEN).startswith("W5")
    assert broken_rule(two.close(9, 9), replace(two.close(9, 9), fragments=OPEN.fragments)).startswith("M3")


@pytest.mark.rule("M7")
def test_what_we_do_not_know_survives_every_change() -> None:
    kept = replace(OPEN, unknown=b"\x7a\x01\x02", format_version=2)
    for changed in (
        kept.change_ensemble(1, bookies("b1 b2 b4")),
        kept.begin_recovery().close_recovered(3, 4),
        kept.close(3, 4).swap_bookie(0, BookieId("b1"), BookieId("b4")),
    ):
        assert (changed.unknown, changed.format_version, changed.custom) == (b"\x7a\x01\x02", 2, {"k": b"v"})


def test_a_password_is_not_shown() -> None:
    assert "secret" not in repr(OPEN)


@pytest.mark.rule("Q1")
@given(st.lists(st.integers(1, 60), unique=True, max_size=5), st.integers(0, 70))
def test_an_entry_belongs_to_the_last_fragment_that_begins_at_or_before_it(firsts: list[int], entry: int) -> None:
    ledger = OPEN
    for n, first in enumerate(sorted(firsts)):
        ledger = ledger.change_ensemble(first, bookies(f"b1 b2 c{n}"))
    assert ledger.fragment_of(entry) == [f for f in ledger.fragments if f.first_entry <= entry][-1]
    assert ledger.write_set(entry) == SPEC.write_set(entry, ledger.fragment_of(entry).ensemble)
    ends = [ledger.fragment_end(i) for i in range(len(ledger.fragments))]
    assert ends == [*(f.first_entry - 1 for f in ledger.fragments[1:]), None]
    assert ledger.close(80, 0).fragment_end(len(ledger.fragments) - 1) == 80
