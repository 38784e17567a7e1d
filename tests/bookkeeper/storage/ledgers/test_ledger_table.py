"""Which ledgers are here, which are gone, and what the next checkpoint writes of both."""

from __future__ import annotations

from array import array

from bookkeeper.ids import LedgerId
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.ledgers.known_ledgers import KnownLedgers
from bookkeeper.storage.ledgers.ledger_table import LedgerTable


def table(*ledger_ids: int) -> LedgerTable:
    made = LedgerTable(KnownLedgers(), resident_max=100)
    for ledger_id in ledger_ids:
        made.add(LedgerDescriptor(LedgerId(ledger_id)))
    return made


def test_changes_are_taken_once_and_new_ones_are_for_the_next_checkpoint() -> None:
    ledgers = table(1, 2)
    first = ledgers.take_changes()
    assert sorted(first.ledgers) == [1, 2] and first.dropped == []
    ledgers.changed(ledgers.ledgers[2])
    ledgers.changed(ledgers.ledgers[2])
    assert list(ledgers.take_changes().ledgers) == [2]
    assert ledgers.take_changes().ledgers == {}


def test_a_dropped_ledger_is_remembered_and_not_written_any_more() -> None:
    ledgers = table(1, 2)
    ledgers.drop(LedgerId(1))
    assert list(ledgers.ledgers) == [2] and 1 in ledgers.dropped
    taken = ledgers.take_changes()
    assert list(taken.ledgers) == [2] and taken.dropped == [(1, 1)]


def test_of_ids_that_are_never_given_out_again_those_that_are_here_stay() -> None:
    ledgers = table(3, 5, 9)
    ledgers.drop_unseen([(1, 6), (9, 9), (20, 20)])
    assert ledgers.take_changes().dropped == [(1, 2), (4, 4), (6, 6), (20, 20)]
    assert sorted(ledgers.ledgers) == [3, 5, 9]
    ledgers.drop_unseen([(1, 2), (20, 20)])
    assert ledgers.take_changes().dropped == [], "that was known"


def test_what_a_failed_checkpoint_had_taken_is_written_by_the_next_one() -> None:
    ledgers = table(1, 2, 3)
    ledgers.drop(LedgerId(3))
    one = ledgers.ledgers[1]
    one.index.tail.extend(0, array("q", [4096]))
    taken = ledgers.take_changes()
    one.index.freeze()
    one.index.tail.extend(1, array("q", [5000]))
    ledgers.drop(LedgerId(2))
    ledgers.give_back(taken)
    again = ledgers.take_changes()
    assert list(again.ledgers) == [1] and again.dropped == [(3, 3), (2, 2)], "older before newer"
    assert list(one.index.tail.places) == [4096, 5000] and one.index.frozen is None


def test_an_id_that_was_never_here_waits_for_a_checkpoint_to_be_dropped_durably() -> None:
    ledgers = table(1, 2)
    ledgers.drop(LedgerId(1))
    assert not ledgers.is_drop_pending(1), "the journal has it"
    ledgers.drop_unseen([(3, 9)])
    assert [each for each in range(12) if ledgers.is_drop_pending(each)] == [*range(3, 10)]
    taken = ledgers.take_changes()
    assert ledgers.is_drop_pending(5)
    ledgers.give_back(taken)
    assert ledgers.is_drop_pending(5)
    ledgers.take_changes()
    ledgers.covered()
    assert not ledgers.is_drop_pending(5)
