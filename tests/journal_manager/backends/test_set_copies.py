"""Members of a set beside the leading one: which edits they may be read for, and what they get."""

from __future__ import annotations

import pytest

from journal_manager import (
    Discard,
    EditLog,
    JournalCorruptionError,
    JournalGapError,
    JournalWriter,
    RequestId,
    TxId,
    capability,
    format_journal,
    open_writer,
    read_ops,
)
from journal_manager.backends import memory
from journal_manager.backends.memory import MemoryHub, MemoryWriter
from journal_manager.backends.set_copies import bring_up, holds, still_there_below
from journal_manager.edits import UNKNOWN_EPOCH
from journal_manager.journals.capabilities import CopySource


class Two:
    """A leading journal and a copy of it."""

    def __init__(self) -> None:
        self.hub = MemoryHub()

    async def log(self, name: str, *segments: list[bytes]) -> None:
        async with await EditLog.open(f"mem:{name}", hub=self.hub) as log:
            for segment in segments:
                await log.log_group([(0, word) for word in segment])
                await log.roll()

    async def open(self, name: str) -> JournalWriter:
        return await open_writer(f"mem:{name}", hub=self.hub)

    async def discard(self, name: str, first: int) -> None:
        await capability(await self.open(name), Discard).discard_from(first)  # type: ignore[type-abstract]

    async def bring_up(self) -> MemoryWriter:
        leading, copy = await self.open("leading"), await self.open("copy")
        await bring_up(leading, copy, "mem:copy", copy)
        assert isinstance(copy, MemoryWriter)
        return copy


async def bodies(journal: JournalWriter) -> list[bytes]:
    return [op.body async for op in read_ops(journal, (await journal.segments())[0].first)]


async def test_a_copy_gets_what_it_lacks_segment_by_segment() -> None:
    two = Two()
    await two.log("leading", [b"1", b"2"], [b"3"])
    await two.log("copy", [b"1"])
    copy = await two.bring_up()
    assert [(segment.first, segment.last) for segment in await copy.segments()] == [(1, 1), (2, 2), (3, 3)]
    assert await bodies(copy) == [b"1", b"2", b"3"]
    assert (await copy.describe()).copy_of is None, "as long as nothing was discarded there is nothing to remember"


async def test_a_copy_that_takes_shorter_batches_gets_them_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch was handed to it as it was, although longer than it takes: it was refused, and the copy never joined."""
    two, request = Two(), RequestId(b"client", 7)
    async with await EditLog.open("mem:leading", hub=two.hub) as log:
        await log.log(b"0")
        await log.log_group([(0, bytes([n]) * 30) for n in range(4)], request=request)
    monkeypatch.setattr(memory, "MAX_BATCH_BYTES", 100)
    copy = await two.bring_up()
    batches = [batch for each in two.hub.places["copy"].batches.values() for batch in each]
    assert len(batches) > 2 and max(len(batch.frames) for batch in batches) <= 100
    assert [op.request async for op in read_ops(copy, TxId(1))] == [None] * 4 + [request]


async def test_what_is_no_copy_gets_nothing() -> None:
    for words, error in (([b"1", b"x"], "another"), ([b"1", b"2", b"3"], "only up to 2")):
        two = Two()
        await two.log("leading", [b"1", b"2"])
        await two.log("copy", words)
        with pytest.raises(JournalCorruptionError, match=error):
            await two.bring_up()
    two = Two()
    await two.log("leading", [b"1"], [b"2"], [b"3"])
    await two.log("copy", [b"1"])
    await (await two.open("leading")).purge(3)
    with pytest.raises(JournalGapError, match="begin at 3"):
        await two.bring_up()


@pytest.mark.rule("J10")
async def test_a_copy_remembers_since_when_it_has_the_leading_ones_edits() -> None:
    """A copy has epochs of its own, so ids alone were compared: equal last edits hid others that were discarded."""
    two = Two()
    await two.log("leading", [b"1"], [b"old", b"same"])
    await two.log("copy", [b"1"], [b"old", b"same"])
    await two.discard("leading", 2)
    await two.log("leading", [b"new", b"same"])
    with pytest.raises(JournalCorruptionError, match="those from 2 on were discarded"):
        await two.bring_up()
    await two.discard("copy", 2)
    copy = await two.bring_up()
    assert await bodies(copy) == [b"1", b"new", b"same"]
    leading = await two.open("leading")
    discarded = await leading.discarded()
    assert (await copy.describe()).copy_of == CopySource(discarded.journal, discarded.epoch + 1)
    assert await still_there_below(discarded, copy) is None
    assert all([await holds(copy, leading, segment) for segment in await leading.segments()])

    await two.discard("leading", 2)
    await two.log("leading", [b"newest"])
    leading = await two.open("leading")
    assert await still_there_below(await leading.discarded(), copy) == 2
    assert [await holds(copy, leading, segment) for segment in await leading.segments()] == [True, False]


@pytest.mark.rule("J10")
async def test_epochs_of_another_leading_journal_say_nothing() -> None:
    """Epochs of two journals count different things, so one that is remembered needs its journal's name."""
    two = Two()
    await two.log("leading", [b"1"])
    await format_journal("mem:leading", force=True, hub=two.hub)
    await two.log("leading", [b"1"])
    leading, copy = await two.open("leading"), await two.open("copy")
    assert isinstance(copy, MemoryWriter)
    discarded = await leading.discarded()
    await copy.note_copy(CopySource("another journal", 1000))
    assert await still_there_below(discarded, copy) == discarded.first_after(UNKNOWN_EPOCH) == 1
    await copy.note_copy(CopySource(discarded.journal, 1000))
    assert await still_there_below(discarded, copy) is None
