"""The rows of a segment as they are in the file, found by ledger."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.errors import CorruptionError
from bookkeeper.ids import LedgerId
from bookkeeper.storage.index.entry_index import Extent
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor, decode_row, dropped_row, find_rows, row_at
from bookkeeper.storage.index.segment_table import SegmentTable, extent_row

KEY = b"k" * 20


def state(number: int, key: bytes | None = KEY, blob: bytes | None = None, lac: int = -1) -> LedgerDescriptor:
    made = LedgerDescriptor(LedgerId(number), key, lac=lac)
    if blob is not None:
        made.raise_explicit_lac(max(lac, 0), blob)
    return made


def rows_of(extents: list[Extent]) -> bytes:
    return b"".join(extent_row(e.ledger_id, e.first, e.count, e.present, e.offset, e.crc) for e in extents)


@given(st.lists(st.sampled_from([5, 6, 300, 2**62]), max_size=30), st.randoms(use_true_random=False))
def test_extents_are_found_by_ledger_in_whatever_order_ledgers_were_written(
    ledgers: list[int], rng: random.Random
) -> None:
    """Those of one ledger stay in their order, and all come in the order of their pages."""
    extents = [Extent(ledger, at, 3, 2, 9, 4096 + 24 * at, at) for at, ledger in enumerate(ledgers)]
    table = SegmentTable(9, rows_of(extents))
    for ledger in (4, 5, 6, 7, 300, 2**62, 2**62 + 1):
        assert table.extents(ledger) == [extent for extent in extents if extent.ledger_id == ledger]
        assert (ledger in table) is (ledger in ledgers) and table.state(ledger) is None
    assert list(table.all_extents()) == extents
    shuffled = rng.sample(extents, len(extents))
    assert list(SegmentTable(9, rows_of(shuffled)).all_extents()) == extents
    assert sorted(table.ledger_ids()) == sorted(ledgers)


def test_states_are_found_by_ledger_and_the_last_of_two_counts() -> None:
    states = [state(7, lac=1), state(3, key=None), state(7, blob=b"opaque", lac=2), state(5)]
    table = SegmentTable(1, b"", b"".join([*(each.encode() for each in states), dropped_row(4), dropped_row(8, 11)]))
    assert [table.state(number) for number in (3, 5, 7)] == [states[1], states[3], states[2]]
    assert table.state_row(7) == states[2].encode() and table.state(4) is None and table.state_row(11) is None
    assert 3 in table and 4 not in table and "3" not in table
    assert list(table.all_states()) == [states[1], states[3], states[0], states[2]]
    assert table.dropped == ((4, 4), (8, 11))


def test_ids_in_a_range() -> None:
    table = SegmentTable(1, rows_of([Extent(n, 0, 1, 1, 1, 4096, 0) for n in (2, 4, 4, 9)]), state(3).encode())
    assert sorted(table.ledger_ids()) == [2, 3, 4, 4, 9]
    assert sorted(table.ledger_ids(3)) == [3, 4, 4, 9] and sorted(table.ledger_ids(3, 4)) == [3, 4, 4]
    assert list(table.ledger_ids(5, 8)) == []


KINDS = st.sampled_from(["plain", "plain", "plain", "no key", "blob", "other blob", "dropped"])


@given(st.lists(st.tuples(KINDS, st.integers(1, 90)), max_size=12))
def test_stretches_of_rows_that_are_alike_are_found_as_if_one_by_one(stretches: list[tuple[str, int]]) -> None:
    """Rows of one length are found together, whatever comes between them."""
    makers = {
        "plain": lambda number: state(number).encode(),
        "no key": lambda number: state(number, key=b"").encode(),
        "blob": lambda number: state(number, blob=b"b" * 300).encode(),
        "other blob": lambda number: state(number, key=KEY * 2, blob=b"b" * 280).encode(),
        "dropped": lambda number: dropped_row(number, number + 1),
    }
    rows: list[bytes] = []
    for kind, count in stretches:
        rows += [makers[kind](10 * (len(rows) + at)) for at in range(count)]
    whole, at = b"".join(rows), 0
    expected: list[tuple[int, int]] = []
    dropped: list[tuple[int, int]] = []
    for number, row in enumerate(rows):
        if row[8] & 8:
            dropped.append((10 * number, 10 * number + 1))
        else:
            expected.append((10 * number, at))
        at += len(row)
    found = find_rows(whole)
    assert list(zip(found.ledger_ids, found.offsets, strict=True)) == expected and found.dropped == dropped
    for ledger_id, offset in expected:
        assert decode_row(row_at(whole, offset)).ledger_id == ledger_id


@pytest.mark.parametrize("cut", [1, 20, 36, 73])
def test_rows_that_are_cut_short_are_damage(cut: int) -> None:
    states = b"".join(state(number).encode() for number in range(100))
    with pytest.raises(CorruptionError, match="cut short"):
        SegmentTable(1, b"", states[:-cut])
    rows = rows_of([Extent(1, 0, 1, 1, 1, 4096, 0)])
    with pytest.raises(CorruptionError, match="cut short"):
        SegmentTable(1, rows + rows[: cut % 36 or 1])
