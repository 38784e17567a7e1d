"""Ledgers from index segments and records: newer on top of older."""

from __future__ import annotations

import pytest

from bookkeeper.codec import record, scan_records
from bookkeeper.ids import IdRanges
from bookkeeper.storage.index.entry_index import Extent
from bookkeeper.storage.index.index_segment import IndexSegment
from bookkeeper.storage.ledger_descriptor import LedgerDescriptor, StateRecordKind, state_record
from bookkeeper.storage.start.replayed_ledgers import ReplayedLedgers
from tests.bookkeeper.storage.workload import KEY, lid, make_entry


def applied(ledgers: ReplayedLedgers, *records: bytes, base: int = 1000) -> None:
    data = b"".join(records)
    ledgers.apply(data, scan_records(data, 0, len(data)), base)


def segment(states: list[LedgerDescriptor | tuple[int, int]], *extents: Extent) -> IndexSegment:
    return IndexSegment(1, list(extents), states)


def test_records_give_places_and_what_is_known_of_a_ledger() -> None:
    ledgers = ReplayedLedgers()
    first = state_record(7, StateRecordKind.KEY, KEY)
    applied(ledgers, first, record(make_entry(7, 0)), record(make_entry(7, 1, lac=0)))
    state = ledgers.states[7]
    assert (state.key, state.last_entry, state.lac, ledgers.news) == (KEY, 1, 0, {7})
    assert state.index.get_recent(0) == 1000 + len(first) and state.index.get_recent(1) > state.index.get_recent(0)


@pytest.mark.rule("M6", "B3")
def test_a_deleted_ledger_stays_deleted_whatever_comes_after_it() -> None:
    ledgers = ReplayedLedgers()
    applied(ledgers, record(make_entry(7, 0)), state_record(7, StateRecordKind.DROPPED), record(make_entry(7, 1)))
    assert 7 not in ledgers.states and 7 in ledgers.dropped and ledgers.news == {7}
    ledgers.add_segment(segment([LedgerDescriptor(lid(8), KEY), LedgerDescriptor(lid(9), KEY)]))
    ledgers.add_segment(segment([(8, 20)]))
    assert not ledgers.states and ledgers.dropped.covers(7, 20)


def test_what_segments_say_is_no_news_and_a_later_row_keeps_the_extents_of_earlier_ones() -> None:
    ledgers = ReplayedLedgers()
    extent = Extent(7, 0, 3, 3, 1, 4096, 0)
    ledgers.add_segment(segment([LedgerDescriptor(lid(7), KEY)], extent))
    ledgers.add_segment(segment([LedgerDescriptor(lid(7), KEY, fenced=True)]))
    assert ledgers.states[7].fenced and ledgers.states[7].index.extents == (extent,) and ledgers.news == set()


@pytest.mark.rule("K19", "M6")
def test_a_rebuild_forgets_everything_but_what_is_deleted() -> None:
    ledgers, dropped = ReplayedLedgers(), IdRanges()
    ledgers.add_segment(segment([LedgerDescriptor(lid(7), KEY), (8, 8)]))
    dropped.add(9)
    ledgers.begin_anew(dropped)
    assert not ledgers.states and 8 not in ledgers.dropped and 9 in ledgers.dropped
