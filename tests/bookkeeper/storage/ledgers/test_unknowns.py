"""What a disk cannot answer for is unknown, never denied."""

from __future__ import annotations

import pytest

from bookkeeper.errors import CorruptionError
from bookkeeper.ids import LedgerId
from bookkeeper.storage.ledgers.unknowns import PLACES_MAX, Unknowns


def new_ledgers_concerned(unknowns: Unknowns) -> bool:
    return unknowns.concern_new_ledgers


def test_of_a_sound_disk_nothing_is_unknown() -> None:
    unknowns = Unknowns(None, [])
    assert not unknowns.has(1) and not unknowns.in_limbo(1) and not unknowns.concern_new_ledgers
    unknowns.narrow([LedgerId(1)])
    assert not unknowns.has(1)


@pytest.mark.rule("B9", "B5")
def test_limbo_concerns_every_ledger_until_it_is_narrowed_or_ended() -> None:
    unknowns = Unknowns("a log is missing", [])
    assert unknowns.has(1) and unknowns.in_limbo(7)
    assert new_ledgers_concerned(unknowns)
    unknowns.end_limbo(LedgerId(7))
    assert not unknowns.in_limbo(7) and unknowns.in_limbo(1)
    unknowns.narrow([LedgerId(1)])
    assert unknowns.in_limbo(1) and not unknowns.in_limbo(2)
    assert not new_ledgers_concerned(unknowns)
    unknowns.end_limbo(None)
    assert not unknowns.in_limbo(1)


@pytest.mark.rule("B5")
def test_doubt_makes_negatives_unknown_and_no_fence() -> None:
    unknowns = Unknowns(None, [])
    unknowns.doubt({4})
    assert unknowns.has(4) and not unknowns.in_limbo(4) and not unknowns.has(5)


@pytest.mark.rule("K19", "P12")
def test_index_damage_concerns_every_negative_and_is_named_once() -> None:
    unknowns = Unknowns(None, ["/l/1.log at 5: 3 bytes"])
    for _ in range(2):
        unknowns.found_index_damage(CorruptionError("/l/1.index at 8: a page"))
    unknowns.quarantine(["/l/1.log at 5: 3 bytes"])
    assert unknowns.index_damaged and unknowns.has(1) and not unknowns.in_limbo(1)
    assert unknowns.quarantined == ["/l/1.log at 5: 3 bytes", "/l/1.index at 8: a page"]
    unknowns.quarantined.clear()
    assert unknowns.quarantined, "what was handed out is a copy"


@pytest.mark.rule("G4")
def test_damaged_places_are_a_hundred_at_most_and_end_with_limbo() -> None:
    unknowns = Unknowns("a loss", ["old"])
    unknowns.quarantine([f"place {number}" for number in range(2 * PLACES_MAX)])
    unknowns.quarantine(["place 199"])
    assert unknowns.quarantined == [f"place {number}" for number in range(PLACES_MAX, 2 * PLACES_MAX)]
    unknowns.end_limbo(None)
    assert unknowns.quarantined == []


@pytest.mark.rule("K30", "B5")
def test_which_entries_of_a_suspect_are_here_is_unknown_until_it_is_settled_and_it_is_not_in_limbo() -> None:
    unknowns = Unknowns(None, ())
    assert unknowns.suspect([3, 4]) and not unknowns.suspect([3]) and unknowns.suspects == {3, 4}
    assert unknowns.may_lack(3) and not unknowns.in_limbo(3) and not unknowns.may_lack(5)
    assert not unknowns.has(3), "the index knows what was here"
    assert unknowns.suspect([3], unindexed=True) and unknowns.has(3) and unknowns.unindexed == {3}
    assert not unknowns.concern_new_ledgers
    assert unknowns.settle(3, unknowns.suspicion(3)) and unknowns.settle(99, unknowns.suspicion(99))
    assert not unknowns.may_lack(3) and unknowns.suspects == {4} and not unknowns.unindexed


@pytest.mark.rule("K30", "B5")
def test_damage_that_is_found_while_a_copy_is_read_is_a_suspicion_of_its_own() -> None:
    unknowns = Unknowns(None, ())
    unknowns.suspect([3])
    read_since = unknowns.suspicion(3)
    assert not unknowns.suspect([3]), "it is none that is new"
    assert not unknowns.settle(3, read_since) and unknowns.may_lack(3)
    assert unknowns.settle(3, unknowns.suspicion(3)) and not unknowns.may_lack(3)
