"""Edits out of segments, while segments come and go."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from journal_manager import (
    Batch,
    EditLog,
    JournalCorruptionError,
    JournalGapError,
    JournalReader,
    SegmentInfo,
    SegmentNotFoundError,
    TxId,
    open_reader,
)
from journal_manager.backends.memory import MemoryHub
from journal_manager.errors import EditsDiscardedError, JournalInvariantError
from journal_manager.read import read_ops, read_runs
from tests.contracts.journal_backend import batch, txids


class Shelf(JournalReader):
    """Segments by name; listings and contents as the test arranges them."""

    def __init__(self, *listings: list[tuple[int, int | None]], **batches: list[Batch]) -> None:
        self.listings = [
            tuple(SegmentInfo(TxId(a), None if b is None else TxId(b), 1, 1, f"s{a}") for a, b in listing)
            for listing in listings
        ]
        self.batches = batches
        self.opened: list[tuple[int, int]] = []
        self.left_open = 0

    async def segments(self) -> tuple[SegmentInfo, ...]:
        return self.listings.pop(0) if len(self.listings) > 1 else self.listings[0]

    async def read(self, segment: SegmentInfo, start: TxId) -> AsyncGenerator[Batch, None]:
        self.opened.append((segment.first, start))
        key = segment.location if segment.in_progress else f"{segment.location}_{segment.last}"
        if key not in self.batches:
            raise SegmentNotFoundError(key)
        self.left_open += 1
        try:
            for each in self.batches[key]:
                if each.last >= start:
                    yield each
        finally:
            self.left_open -= 1

    async def changed(self, timeout_s: float) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


@pytest.mark.rule("C4")
async def test_reading_begins_inside_a_batch_and_opens_only_what_it_needs() -> None:
    shelf = Shelf([(1, 4), (5, 8), (9, None)], s1_4=[batch(1, 4)], s5_8=[batch(5, 2), batch(7, 2)], s9=[batch(9, 3)])
    assert await txids(shelf, 6, 9) == [6, 7, 8, 9]
    assert shelf.opened == [(5, 6), (9, 9)]
    assert await txids(shelf, 9, in_progress=False) == []
    assert await txids(shelf, 1) == list(range(1, 12))


@pytest.mark.rule("C4")
async def test_runs_are_the_edits_of_batches_cut_to_what_is_wanted() -> None:
    shelf = Shelf([(1, 4), (5, None)], s1_4=[batch(1, 4)], s5=[batch(5, 2), batch(7, 3)])
    runs = [[op.txid for op in run] async for run in read_runs(shelf, TxId(2), TxId(8))]
    assert runs == [[2, 3, 4], [5, 6], [7, 8]]
    assert [run async for run in read_runs(shelf, TxId(5), TxId(4))] == []
    assert shelf.left_open == 0


@pytest.mark.rule("C4")
async def test_a_segment_that_is_finalized_meanwhile_is_found_again() -> None:
    shelf = Shelf(
        [(1, 2), (3, None)], [(1, 2), (3, 4), (5, None)], s1_2=[batch(1, 2)], s3_4=[batch(3, 2)], s5=[batch(5)]
    )
    assert await txids(shelf) == [1, 2, 3, 4, 5]


@pytest.mark.rule("C4", "C6")
async def test_a_segment_that_is_purged_meanwhile_is_a_gap() -> None:
    shelf = Shelf([(1, 2), (3, 4)], [(3, 4)], s3_4=[batch(3, 2)])
    with pytest.raises(JournalGapError) as caught:
        await txids(shelf)
    assert (caught.value.wanted, caught.value.next_available) == (1, 3)


async def test_a_segment_that_is_listed_and_never_there_is_an_error_and_no_loop() -> None:
    with pytest.raises(SegmentNotFoundError):
        await txids(Shelf([(1, 2)]))


@pytest.mark.rule("C4", "C7")
async def test_what_a_segment_lacks_is_never_passed_over() -> None:
    with pytest.raises(JournalCorruptionError) as short:
        await txids(Shelf([(1, 4), (5, 6)], s1_4=[batch(1, 2)], s5_6=[batch(5, 2)]))
    assert short.value.first_missing == 3
    with pytest.raises(JournalInvariantError, match="C4"):
        await txids(Shelf([(1, 4)], s1_4=[batch(1), batch(3, 2)]))
    with pytest.raises(JournalGapError) as end:
        await txids(Shelf([(1, None)], s1=[batch(1, 2)]), 1, 3)
    assert end.value.wanted == 3


@pytest.mark.rule("C4")
async def test_a_gap_is_believed_only_if_the_next_listing_shows_it_too() -> None:
    """A listing that misses a segment which is just being finalized is no gap."""
    shelf = Shelf([(1, 2)], [(1, 2), (3, 6)], s1_2=[batch(1, 2)], s3_6=[batch(3, 4)])
    assert await txids(shelf, 5) == [5, 6]
    with pytest.raises(JournalGapError):
        await txids(Shelf([(1, 2)]), 5)


async def test_whoever_stops_early_leaves_nothing_open() -> None:
    shelf = Shelf([(1, 4)], s1_4=[batch(1, 4)])
    reading = read_ops(shelf, TxId(1))
    assert (await anext(reading)).txid == 1
    await reading.aclose()
    assert shelf.left_open == 0


async def test_reading_begins_at_an_id() -> None:
    with pytest.raises(ValueError, match="0 is no transaction id"):
        await txids(Shelf([]), 0)


@pytest.mark.rule("J10")
async def test_who_goes_on_is_told_of_another_edit_that_nobody_noted() -> None:
    """Only noted ids were looked at, so that a reader of a journal that was put back and written anew went on with the
    next id."""
    hub = MemoryHub()
    for _ in range(2):
        async with await EditLog.open("mem:x", hub=hub) as log:
            await log.log(b"of a later epoch")
    async with await open_reader("mem:x", hub=hub) as reader:
        assert [op.txid async for op in read_ops(reader, 2, epoch=1)] == [2]
        assert [op.txid async for op in read_ops(reader, 3, epoch=2)] == []
        with pytest.raises(EditsDiscardedError, match="put back to an older state"):
            await anext(read_ops(reader, 3, epoch=1))
