"""The records of a piece of a log: by ledger, which of them live, and where their copies are."""

from __future__ import annotations

import random
from array import array

import pytest

from bookkeeper.codec import record, scan_records
from bookkeeper.errors import CorruptionError
from bookkeeper.storage.compaction.chunk import Chunk, living
from bookkeeper.storage.index.entry_index import PAGE, place
from bookkeeper.storage.index.ledger_descriptor import StateRecordKind, state_record
from bookkeeper.storage.index.moved_entries import put_moved
from tests.bookkeeper.storage.workload import make_entry


def chunk_of(*records: bytes, at: int = 4096, log_id: int = 3) -> Chunk:
    data = b"".join(records)
    return Chunk(data, at, log_id, scan_records(data, 0, len(data)))


def entries(ledger_id: int, *entry_ids: int) -> list[bytes]:
    return [record(make_entry(ledger_id, entry_id, size=20 + entry_id % 7)) for entry_id in entry_ids]


def page_with(*known: tuple[int, int]) -> array[int]:
    page = array("q", bytes(8 * PAGE))
    for entry_id, found in known:
        page[entry_id % PAGE] = found
    return page


@pytest.mark.parametrize("seed", range(20))
def test_every_record_is_there_once_at_its_place_and_in_its_copy(seed: int) -> None:
    rng = random.Random(seed)
    records: list[bytes] = []
    for _ in range(rng.randrange(1, 30)):
        ledger_id, first = rng.randrange(4), rng.randrange(2000)
        records += entries(ledger_id, *range(first, first + rng.randrange(1, 6)))
        if rng.random() < 0.3:
            records.append(state_record(ledger_id, StateRecordKind.KEY, b"k"))
    chunk = chunk_of(*records)
    assert chunk.end == 4096 + len(chunk.data)
    data, moves, usage = chunk.copy(chunk.parts, chunk.states, 9, 5000)
    assert sorted(records) == sorted(data[at : at + 8 + size] for at, size in zip(*_offsets(data), strict=True))
    assert sum(size for size, _ in usage.values()) == len(data)
    assert sum(count for _, count in usage.values()) == len(records)
    for moved in moves:
        assert list(moved.entry_ids) == sorted(moved.entry_ids)
        for entry_id, old, new in zip(moved.entry_ids, moved.old, moved.new, strict=True):
            begin = old - place(3, 4096)
            copied = new - place(9, 5000)
            assert chunk.data[begin:].startswith(data[copied : copied + 40])
            assert data[copied + 8 : copied + 24] == make_entry(moved.ledger_id, entry_id)[:16]


def _offsets(data: bytes) -> tuple[array[int], array[int]]:
    scan = scan_records(data, 0, len(data))
    return scan.offsets, scan.sizes


def test_what_has_another_place_is_dead_and_what_has_none_is_a_reason_to_stop() -> None:
    chunk = chunk_of(*entries(1, 5, 6, 7))
    (part,) = chunk.parts
    there = list(zip(part.entry_ids, part.places, strict=True))
    assert living(part, lambda number: page_with(*there)) is part
    some = living(part, lambda number: page_with(there[0], (6, place(8, 4096)), there[2]))
    assert some is not None and list(some.entry_ids) == [5, 7] and some.runs == [(0, 1), (2, 3)]
    elsewhere = [(entry_id, place(8, 4096)) for entry_id in (5, 6, 7)]
    assert living(part, lambda number: page_with(*elsewhere)) is None
    with pytest.raises(CorruptionError, match="entry 6 of ledger 1, which the index does not know"):
        living(part, lambda number: page_with(there[0], there[2]))


def test_of_an_entry_that_is_there_twice_the_one_in_the_index_lives() -> None:
    chunk = chunk_of(*entries(1, 5, 6), *entries(1, 5))
    (part,) = chunk.parts
    assert list(part.entry_ids) == [5, 5, 6]
    for kept in (0, 1):
        page = page_with((5, part.places[kept]), (6, part.places[2]))
        alive = living(part, lambda number, page=page: page)  # type: ignore[misc]
        assert alive is not None
        _, (moved,), _ = chunk.copy([alive], [], 9, 4096)
        assert put_moved(page, 0, moved, 0, len(moved.new)) >= 2
        assert page[5] == dict(zip(moved.old, moved.new, strict=True))[part.places[kept]]


def test_a_state_record_is_told_with_its_lac() -> None:
    chunk = chunk_of(*entries(1, 0), state_record(2, StateRecordKind.EXPLICIT_LAC, b"\0", 17))
    assert [chunk.state(at) for at in chunk.states] == [(2, StateRecordKind.EXPLICIT_LAC, 17)]
    assert [part.ledger_id for part in chunk.parts] == [1]
