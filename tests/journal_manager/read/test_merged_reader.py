"""One log out of several copies: damage, absence and gaps in one are made good by another."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from journal_manager import (
    Batch,
    JournalCorruptionError,
    JournalGapError,
    JournalReader,
    JournalUnavailableError,
    SegmentInfo,
    open_writer,
    read_ops_over,
)
from journal_manager.backends.memory import MemoryHub
from journal_manager.testing import batch, body, write_segment


class Copy(JournalReader):
    """A copy whose edits ``damaged`` cannot be read. ``segments``: (first, last); last None is in progress, up to
    ``durable``."""

    def __init__(
        self, *segments: tuple[int, int | None], damaged: tuple[int, ...] = (), durable: int = 0, away: bool = False
    ) -> None:
        self.listing = tuple(SegmentInfo(a, b, 1, 1, f"s{a}") for a, b in segments)
        self.damaged, self.durable, self.away = damaged, durable, away
        self.reads: list[tuple[int, int]] = []

    async def segments(self) -> tuple[SegmentInfo, ...]:
        if self.away:
            raise JournalUnavailableError("this copy is away")
        return self.listing

    async def read(self, segment: SegmentInfo, start: int) -> AsyncGenerator[Batch, None]:
        self.reads.append((segment.first, start))
        for txid in range(start, (segment.last or self.durable) + 1):
            if txid in self.damaged:
                raise JournalCorruptionError(f"edit {txid} is damaged")
            yield batch(txid)

    async def changed(self, timeout_s: float) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


async def txids(*copies: JournalReader, start: int = 1, end: int | None = None, in_progress: bool = True) -> list[int]:
    found = []
    async for op in read_ops_over(copies, start, end, in_progress=in_progress):
        assert op.body == body(op.txid)
        found.append(op.txid)
    return found


async def test_the_longest_stream_wins_and_no_edit_comes_twice() -> None:
    one, two = Copy((1, 10), (11, 15)), Copy((1, 12), (13, 20))
    assert await txids(one, two) == list(range(1, 21))
    assert one.reads == [] and two.reads == [(1, 1), (13, 13)]
    assert await txids(one, two, start=5, end=14) == list(range(5, 15))


async def test_journals_that_failed_in_turns_make_one_log() -> None:
    one = Copy(*((first, first + 9) for first in range(1, 110, 20)))
    two = Copy(*((first, first + 9) for first in range(11, 110, 20)))
    assert await txids(one, two) == list(range(1, 111))


async def test_a_damaged_edit_is_read_from_another_copy_without_repeating_one() -> None:
    one, two = Copy((1, 10), (11, 20), damaged=(5, 18)), Copy((1, 10), (11, 20), damaged=(8, 12))
    assert await txids(one, two) == list(range(1, 21))
    assert two.reads[0] == (1, 5)


async def test_what_is_damaged_in_all_copies_is_an_error_and_no_end() -> None:
    with pytest.raises(JournalCorruptionError, match="edit 5") as caught:
        await txids(Copy((1, 10), damaged=(5,)), Copy((1, 10), damaged=(5,)))
    assert caught.value.__notes__ == ["another copy: edit 5 is damaged"]
    with pytest.raises(JournalCorruptionError, match="edit 9"):
        await txids(Copy((1, 10), damaged=(9,)), Copy((1, 8)))


async def test_a_copy_that_cannot_be_listed_is_passed_over_unless_all_are() -> None:
    assert await txids(Copy(away=True), Copy((1, 3))) == [1, 2, 3]
    with pytest.raises(JournalUnavailableError):
        await txids(Copy(away=True), Copy(away=True))


async def test_open_segments_are_read_as_far_as_any_copy_has_them() -> None:
    one, two = Copy((1, 3), (4, None), durable=5), Copy((1, 3), (4, None), durable=8)
    assert await txids(one, two) == list(range(1, 9))
    assert await txids(one, two, in_progress=False) == [1, 2, 3]


async def test_a_gap_in_all_copies_is_named() -> None:
    with pytest.raises(JournalGapError) as caught:
        await txids(Copy((1, 3), (8, 9)), Copy((1, 2), (7, 9)))
    assert (caught.value.wanted, caught.value.next_available) == (4, 7)
    with pytest.raises(JournalGapError, match="no edit after 9"):
        await txids(Copy((1, 9)), Copy((1, 5)), start=11)
    with pytest.raises(JournalGapError) as end:
        await txids(Copy((1, 9)), Copy((1, 5)), end=12)
    assert end.value.wanted == 10


async def test_over_real_journals() -> None:
    hub = MemoryHub()
    one, two = await open_writer("mem:one", hub=hub), await open_writer("mem:two", hub=hub)
    for writer in (one, two):
        await write_segment(writer, 1, 5)
    await write_segment(two, 6, 9)
    assert await txids(one, two) == list(range(1, 10))
    await two.purge(6)
    assert await txids(one, two) == list(range(1, 10))
