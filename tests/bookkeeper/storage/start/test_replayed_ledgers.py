"""Ledgers from index segments and records: newer on top of older."""

from __future__ import annotations

import pytest

from bookkeeper.codec import record, scan_records
from bookkeeper.ids import IdRanges
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor, StateRecordKind, dropped_row, state_record
from bookkeeper.storage.index.segment_table import SegmentTable
from bookkeeper.storage.start.replayed_ledgers import ReplayedLedgers
from tests.bookkeeper.storage.workload import KEY, lid, make_entry


def applied(ledgers: ReplayedLedgers, *records: bytes, base: int = 1000) -> None:
    data = b"".join(records)
    ledgers.apply(data, scan_records(data, 0, len(data)), base)


def segment(number: int, states: list[LedgerDescriptor], *dropped: tuple[int, int]) -> SegmentTable:
    rows = [*(state.encode() for state in states), *(dropped_row(*each) for each in dropped)]
    return SegmentTable(number, b"", b"".join(rows))


def test_records_give_places_and_what_is_known_of_a_ledger() -> None:
    ledgers = ReplayedLedgers()
    first = state_record(7, StateRecordKind.KEY, KEY)
    applied(ledgers, first, record(make_entry(7, 0)), record(make_entry(7, 1, lac=0)))
    state = ledgers.states[7]
    assert (state.key, state.last_entry, state.lac, ledgers.news) == (KEY, 1, 0, {7})
    assert state.index.get_recent(0) == 1000 + len(first) and state.index.get_recent(1) > state.index.get_recent(0)


def test_records_of_many_ledgers_in_one_group_are_as_if_they_came_one_by_one() -> None:
    """Interleaved, with holes, repeats, far strays and an older entry among them."""
    ids = [(7, 3), (8, 0), (7, 4), (9, 5), (7, 9), (8, 1), (7, 4), (7, 9000), (8, 0), (9, 6), (7, 1)]
    records = [record(make_entry(ledger_id, entry_id, lac=entry_id - 1)) for ledger_id, entry_id in ids]
    together, single = ReplayedLedgers(), ReplayedLedgers()
    applied(together, *records)
    at = 1000
    for each in records:
        applied(single, each, base=at)
        at += len(each)
    assert together.states.resident == single.states.resident and together.news == single.news == {7, 8, 9}
    for ledger_id, entry_id in ids:
        one, other = (found.states[ledger_id].index.get_recent(entry_id) for found in (together, single))
        assert one == other != 0


@pytest.mark.rule("M6", "B3")
def test_a_deleted_ledger_stays_deleted_whatever_comes_after_it() -> None:
    ledgers = ReplayedLedgers()
    applied(ledgers, record(make_entry(7, 0)), state_record(7, StateRecordKind.DROPPED), record(make_entry(7, 1)))
    assert 7 not in ledgers.states and 7 in ledgers.dropped and ledgers.news == {7}
    ledgers.states.add_table(segment(1, [LedgerDescriptor(lid(8), KEY), LedgerDescriptor(lid(9), KEY)]))
    ledgers.states.add_table(segment(2, [], (8, 20)))
    assert not list(ledgers.states) and ledgers.dropped.covers(7, 20)


def test_what_segments_say_is_no_news_and_records_come_on_top_of_it() -> None:
    ledgers = ReplayedLedgers()
    ledgers.states.add_table(segment(1, [LedgerDescriptor(lid(7), KEY, fenced=True, last_entry=4, first_entry=0)]))
    assert ledgers.news == set() and not ledgers.states.resident
    applied(ledgers, record(make_entry(7, 5)))
    state = ledgers.states.resident[7]
    assert (state.fenced, state.key, state.first_entry, state.last_entry) == (True, KEY, 0, 5) and ledgers.news == {7}


@pytest.mark.rule("K19", "M6")
def test_a_rebuild_forgets_everything_but_what_is_deleted() -> None:
    ledgers, dropped = ReplayedLedgers(), IdRanges()
    ledgers.states.add_table(segment(1, [LedgerDescriptor(lid(7), KEY)], (8, 8)))
    dropped.add(9)
    ledgers.begin_anew(dropped)
    assert not list(ledgers.states) and 8 not in ledgers.dropped and 9 in ledgers.dropped
