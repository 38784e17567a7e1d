"""The open segment: when it is full, how it ends, and that a store that does not answer is asked again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from journal_manager import JournalDiskError, JournalUnavailableError, JournalWriter, TxId, open_writer
from journal_manager.backends.memory import MemoryHub
from journal_manager.edits.ops import Batch, encode_batch
from journal_manager.write.growing_segment import GrowingSegment, patiently
from tests.spark_wal.webhdfs.virtual import in_virtual_time


async def writer_of() -> JournalWriter:
    return await open_writer("mem:x", owner="a", create=True, hub=MemoryHub())


def segment_of(
    writer: JournalWriter, *, max_bytes: int = 1000, max_edits: int = 10, on_age: Callable[[], None] = lambda: None
) -> GrowingSegment:
    return GrowingSegment(
        writer,
        layout_version=1,
        max_bytes=max_bytes,
        max_edits=max_edits,
        max_s=60,
        patience_s=5,
        on_age=on_age,
    )


def batch(first: int, count: int = 1) -> Batch:
    return encode_batch(TxId(first), [(0, b"x") for _ in range(count)])


async def test_a_segment_is_full_by_its_bytes_or_its_edits() -> None:
    segment = segment_of(await writer_of(), max_bytes=100, max_edits=3)
    await segment.begin(TxId(1))
    assert not segment.is_full(100, TxId(3))
    assert segment.is_full(101, TxId(1)) and segment.is_full(1, TxId(4))
    await segment.append(batch(1))
    size = len(batch(1).frames)
    assert not segment.is_full(100 - size, TxId(2)) and segment.is_full(101 - size, TxId(2))


async def test_one_that_has_ended_is_final_and_the_next_begins_empty() -> None:
    writer = await writer_of()
    segment = segment_of(writer)
    assert await segment.finalize(TxId(0)) is None, "none is open"
    await segment.begin(TxId(1))
    await segment.append(batch(1, 5))
    final = await segment.finalize(TxId(5))
    assert final is not None and (final.first, final.last) == (1, 5)
    assert await segment.finalize(TxId(5)) is None, "it is still open"
    await segment.begin(TxId(6))
    assert segment.is_open and not segment.is_full(1000, TxId(15))
    assert [(each.first, each.last) for each in await writer.segments()] == [(1, 5), (6, None)]


@in_virtual_time
async def test_the_age_is_told_once_and_not_of_a_segment_that_has_ended() -> None:
    told: list[str] = []
    segment = segment_of(await writer_of(), on_age=lambda: told.append("old"))
    await segment.begin(TxId(1))
    await segment.append(batch(1))
    await asyncio.sleep(59)
    assert told == []
    await asyncio.sleep(120)
    assert told == ["old"]
    await segment.finalize(TxId(1))
    await segment.begin(TxId(2))
    await segment.append(batch(2))
    await segment.finalize(TxId(2))
    await asyncio.sleep(120)
    assert told == ["old"]


class Step:
    """A step that fails so many times."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.calls = list(errors), 0

    async def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


@in_virtual_time
async def test_a_step_is_repeated_while_the_store_does_not_answer_and_not_for_ever() -> None:
    loop = asyncio.get_running_loop()
    step, began = Step(*(JournalUnavailableError("away") for _ in range(4))), loop.time()
    assert await patiently(step, 5) == "done"
    assert step.calls == 5 and loop.time() - began == pytest.approx(0.05 + 0.1 + 0.2 + 0.4)
    step, began = Step(*(JournalUnavailableError("away") for _ in range(100))), loop.time()
    with pytest.raises(JournalUnavailableError):
        await patiently(step, 5)
    assert step.calls == 9 and loop.time() - began <= 5


async def test_what_failed_on_a_disk_is_not_repeated() -> None:
    step = Step(JournalDiskError("full"))
    with pytest.raises(JournalDiskError):
        await patiently(step, 5)
    assert step.calls == 1
