"""What a bookie knows of a ledger: records that carry it, rows that keep it, adds that come twice."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper import codec
from bookkeeper.codec import RECORD_HEADER
from bookkeeper.errors import CorruptionError, UnauthorizedError
from bookkeeper.ids import LedgerId
from bookkeeper.storage.index.ledger_descriptor import (
    LedgerDescriptor,
    StateRecordKind,
    apply_state,
    decode_row,
    dropped_row,
    explicit_lac_body,
    find_rows,
    row_at,
    same_payload,
    state_record,
)

L = LedgerId(7)
KEY = b"k" * 20


def entry_of(kind: StateRecordKind, body: bytes = b"", lac: int = -1) -> bytes:
    """The entry inside a state record."""
    return state_record(L, kind, body, lac)[RECORD_HEADER:]


def add(entry_id: int, payload: bytes, lac: int, digest: int = 3) -> bytes:
    """An entry as a client sends it."""
    return codec.encode_adds(2, L, entry_id, [payload], lac, 0, KEY, digest)[0][28:]


RECORDS = {
    StateRecordKind.KEY: entry_of(StateRecordKind.KEY, KEY),
    StateRecordKind.FENCED: entry_of(StateRecordKind.FENCED, KEY),
    StateRecordKind.FORCED: entry_of(StateRecordKind.FORCED),
    StateRecordKind.EXPLICIT_LAC: entry_of(StateRecordKind.EXPLICIT_LAC, explicit_lac_body(KEY, b"opaque"), lac=5),
    StateRecordKind.LIMBO: entry_of(StateRecordKind.LIMBO),
}


@pytest.mark.rule("K31")
def test_each_record_replays_on_its_own_in_any_order_any_number_of_times() -> None:
    expected = LedgerDescriptor(L, KEY, fenced=True, limbo=True, lac=5, explicit_lac=5, explicit_blob=b"opaque")
    for order in itertools.permutations(RECORDS):
        state = LedgerDescriptor(L)
        for kind in (*order, *order):
            apply_state(state, kind, RECORDS[kind])
        assert state == expected


@pytest.mark.rule("K31", "B3")
@pytest.mark.parametrize("kind", [StateRecordKind.KEY, StateRecordKind.FENCED, StateRecordKind.EXPLICIT_LAC])
def test_a_record_of_a_ledger_that_was_never_seen_brings_its_key(kind: StateRecordKind) -> None:
    state = LedgerDescriptor(L)
    apply_state(state, kind, RECORDS[kind])
    state.check_key(KEY)
    assert state.fenced is (kind is StateRecordKind.FENCED)
    with pytest.raises(UnauthorizedError, match="ledger 7"):
        state.check_key(b"x" * 20)


def test_no_record_takes_a_key_or_a_fence_away_and_later_kinds_are_passed_over() -> None:
    state = LedgerDescriptor(L)
    apply_state(state, StateRecordKind.FENCED, RECORDS[StateRecordKind.FENCED])
    apply_state(state, StateRecordKind.KEY, entry_of(StateRecordKind.KEY, b"x" * 20))
    apply_state(state, -0x7777, RECORDS[StateRecordKind.KEY])
    assert (state.key, state.fenced) == (KEY, True)


def test_a_ledger_without_a_key_takes_any() -> None:
    LedgerDescriptor(L).check_key(b"anything")


@pytest.mark.rule("B8")
def test_the_last_add_confirmed_and_the_explicit_one_never_fall() -> None:
    state = LedgerDescriptor(L)
    state.note_entries(3, 4, 2, 100)
    state.raise_explicit_lac(4, b"four")
    state.raise_explicit_lac(3, b"three")
    state.note_entries(0, 1, 0, 50)
    assert (state.lac, state.explicit_lac, state.explicit_blob) == (4, 4, b"four")
    assert (state.first_entry, state.last_entry, state.size) == (0, 4, 150)
    state.raise_explicit_lac(4, b"four again")
    assert state.explicit_blob == b"four again"


STATES = st.builds(
    LedgerDescriptor,
    st.integers(0, 2**63 - 1).map(LedgerId),
    key=st.none() | st.binary(min_size=20, max_size=20),
    fenced=st.booleans(),
    limbo=st.booleans(),
    lac=st.integers(-1, 2**63 - 1),
    first_entry=st.integers(-1, 2**63 - 1),
    last_entry=st.integers(-1, 2**63 - 1),
    size=st.integers(0, 2**63 - 1),
)


RANGES = st.lists(st.integers(0, 2**63 - 1), min_size=2, max_size=2).map(lambda ends: (min(ends), max(ends)))


@given(st.lists(STATES | RANGES, max_size=5), st.none() | st.binary(max_size=36), st.data())
def test_rows_come_back_and_rows_that_are_cut_are_damage(
    rows: list[LedgerDescriptor | tuple[int, int]], blob: bytes | None, data: st.DataObject
) -> None:
    for row in rows:
        if isinstance(row, LedgerDescriptor) and blob is not None:
            row.explicit_lac, row.explicit_blob = 9, blob
    encoded = [row.encode() if isinstance(row, LedgerDescriptor) else dropped_row(*row) for row in rows]
    whole = b"".join(encoded)
    found = find_rows(whole)
    decoded = [decode_row(row_at(whole, offset)) for offset in found.offsets]
    ledgers = [row for row in rows if isinstance(row, LedgerDescriptor)]
    assert decoded == ledgers and list(found.ledger_ids) == [row.ledger_id for row in ledgers]
    assert found.dropped == [row for row in rows if not isinstance(row, LedgerDescriptor)]
    ends = set(itertools.accumulate(map(len, encoded), initial=0))
    cut = data.draw(st.integers(0, len(whole)))
    if cut not in ends:
        with pytest.raises(CorruptionError, match="cut short"):
            find_rows(whole[:cut])


@pytest.mark.rule("B6")
def test_the_same_add_is_told_from_another_one_of_the_same_id() -> None:
    stored = add(4, b"payload" * 10, lac=2)
    assert same_payload(stored, bytes(stored))
    assert same_payload(stored, add(4, b"payload" * 10, lac=3)), "sent again by a recovery, with another LAC"
    assert not same_payload(stored, add(4, b"Payload" * 9 + b"payloaD", lac=2))
    assert not same_payload(stored, add(4, b"payload" * 9 + b"payloaD", lac=3))
    assert not same_payload(stored, add(4, b"payload" * 10 + b"!", lac=2))


def test_a_ledger_knows_its_first_and_last_entry_in_whatever_order_they_came() -> None:
    state = LedgerDescriptor(LedgerId(7))
    for first, last in ((5, 6), (0, 1), (3, 9), (2, 2)):
        state.note_entries(first, last, -1, 10)
    assert (state.first_entry, state.last_entry, state.size) == (0, 9, 40)
