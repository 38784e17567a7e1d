"""The contract of journal backends: edits that are discarded, and ids that are used again (J10)."""

from __future__ import annotations

import pytest

from journal_manager import (
    EditsDiscardedError,
    JournalFencedError,
    JournalWriter,
    SegmentExistsError,
    SegmentMismatchError,
    UnsupportedCapabilityError,
    capability,
    format_journal,
)
from journal_manager.edits import UNKNOWN_EPOCH
from journal_manager.journals.capabilities import Discard
from journal_manager.read import read_ops, read_runs, tail
from journal_manager.testing.journal import Journal, batch, body, ends, txids, write_others, write_segment


class DiscardContract:
    """Nobody takes edits that were discarded for those that got their ids."""

    async def test_the_newest_edits_are_discarded_with_their_snapshots_or_it_cannot(self, journal: Journal) -> None:
        writer = await journal.writer()
        if not isinstance(writer, Discard):
            with pytest.raises(UnsupportedCapabilityError):
                capability(writer, Discard)  # type: ignore[type-abstract]
            return
        for first in (1, 11, 21):
            await write_segment(writer, first, first + 9)
        for at in (5, 10, 11, 25):
            await writer.save_snapshot(at, [b"x"])
        store = await journal.snapshots()
        await store.offer(26, [b"x"])
        await store.offer(9, [b"x"])
        for refused in (15, 1):
            with pytest.raises(SegmentMismatchError):
                await writer.discard_from(refused)
        assert ends(await writer.discard_from(31)) == []
        assert [info.at for info in await store.list()] == [5, 10, 11, 25], "what is refused removes nothing"
        assert ends(await writer.discard_from(11)) == [(11, 20), (21, 30)]
        assert ends(await writer.segments()) == [(1, 10)] and writer.durable_txid == 10
        assert [info.at for info in await store.list()] == [5, 10]
        with pytest.raises(SegmentExistsError, match="open the journal anew"):
            await writer.start_segment(11, 1)
        writer = await journal.writer()
        await write_segment(writer, 11, 30)
        assert await writer.adopt_snapshots() == (), "what was offered of the discarded edits is gone, too"
        assert isinstance(writer, Discard)
        segment = await writer.start_segment(31, 1)
        await segment.append(batch(31))
        await segment.close()
        with pytest.raises(SegmentExistsError):
            await writer.discard_from(31)
        again = await journal.writer()
        assert isinstance(again, Discard)
        assert ends(await again.discard_from(31)) == [(31, 31)]
        with pytest.raises(JournalFencedError):
            await writer.discard_from(11)
        assert await txids(again) == list(range(1, 31))

    async def discarded_from_11(self, journal: Journal) -> JournalWriter | None:
        """Edits 1 to 30, of which those from 11 on were discarded, and other edits have got their ids. None if the
        backend discards nothing."""
        writer = await journal.writer("old")
        if not isinstance(writer, Discard):
            return None
        await write_segment(writer, 1, 10)
        await write_segment(writer, 11, 30)
        await self.discard(journal)
        writer = await journal.writer("new")
        await write_others(writer, 11, 35)
        return writer

    async def discard(self, journal: Journal) -> None:
        writer = await journal.writer("an operator")
        assert isinstance(writer, Discard)
        await writer.discard_from(11)

    @pytest.mark.rule("J10")
    async def test_j10_a_snapshot_of_what_was_discarded_is_never_adopted(self, journal: Journal) -> None:
        """Offers had an id and no epoch: one that came after the edits were discarded was adopted as soon as other
        edits had that id, and restored at each later start."""
        if await self.discarded_from_11(journal) is None:
            return
        store = await journal.snapshots()
        old, new = sorted({segment.epoch for segment in await (await journal.reader()).segments()})
        writer = await journal.writer()
        await store.offer(20, [b"a state that no journal has"], epoch=old)
        await store.offer(21, [b"a state of an unknown epoch"])
        assert await writer.adopt_snapshots() == ()
        await store.offer(20, [b"a state that no journal has"], epoch=old)
        await store.offer(20, [b"a state of this journal"], epoch=new)
        assert [(info.at, info.epoch) for info in await writer.adopt_snapshots()] == [(20, new)]
        found = await store.load()
        assert found is not None and found[1] == b"a state of this journal"
        assert await writer.adopt_snapshots() == ()
        await writer.delete_snapshot(20)
        await store.offer(10, [b"from before"], epoch=old)
        assert [info.at for info in await writer.adopt_snapshots()] == [10], "those edits are still there"
        await writer.save_snapshot(25, [b"by the owner"])
        assert [(info.at, info.epoch) for info in await store.list()] == [(10, old), (25, writer.token.epoch)]

    @pytest.mark.rule("J10")
    async def test_j10_a_reader_is_told_that_what_it_has_was_discarded(self, journal: Journal) -> None:
        """A tail compared ids alone: it went on behind edits that were not in the journal any more."""
        writer = await journal.writer("old")
        if not isinstance(writer, Discard):
            return
        await write_segment(writer, 1, 10)
        await write_segment(writer, 11, 20)
        reader = await journal.reader()
        runs = [run async for run in read_runs(reader, 1)]
        assert [op.txid for run in runs for op in run] == list(range(1, 21))
        at_10, at_20 = runs[0].epoch, runs[-1].epoch
        ops = tail(await journal.reader(), 1, poll_s=0.05)
        for _ in range(20):
            await anext(ops)
        await self.discard(journal)
        await write_others(await journal.writer("new"), 11, 35)
        with pytest.raises(EditsDiscardedError) as caught:
            await anext(ops)
        assert (caught.value.txid, caught.value.epoch) == (20, at_20)
        with pytest.raises(EditsDiscardedError):
            await anext(read_runs(reader, 21, epoch=at_20))
        with pytest.raises(EditsDiscardedError):
            await anext(read_ops(reader, 21, epoch=UNKNOWN_EPOCH))
        runs = [run async for run in read_runs(reader, 11, epoch=at_10)]
        assert [op.body for run in runs for op in run] == [b"other %d" % txid for txid in range(11, 36)]
        assert [op.txid async for op in read_ops(reader, 36, epoch=runs[-1].epoch)] == []

    @pytest.mark.rule("J10")
    async def test_j10_what_is_discarded_while_it_is_read_is_not_joined_to_what_follows(self, journal: Journal) -> None:
        """A reader whose segment went away looked for the next id in the new list, and joined two histories."""
        writer = await journal.writer("old")
        if not isinstance(writer, Discard):
            return
        await write_segment(writer, 1, 10)
        for first in (11, 15, 18):
            await write_segment(writer, first, first + (3 if first == 11 else 2))
        reader = await journal.reader()
        seen: list[bytes] = []
        with pytest.raises(EditsDiscardedError):
            async for run in read_runs(reader, 1):
                seen += [op.body for op in run]
                if run[-1].txid == 14:
                    await self.discard(journal)
                    await write_others(await journal.writer("new"), 11, 35)
        assert seen[:14] == [body(txid) for txid in range(1, 15)] and not [each for each in seen if b"other" in each]

    @pytest.mark.rule("J10")
    async def test_j10_formatting_takes_everything_back(self, journal: Journal) -> None:
        writer = await journal.writer("old")
        await write_segment(writer, 1, 20)
        reader, store = await journal.reader(), await journal.snapshots()
        (run, *_) = [run async for run in read_runs(reader, 1)]
        await format_journal(journal.uri, force=True, **journal.options)
        await store.offer(15, [b"a state that no journal has"], epoch=run.epoch)
        writer = await journal.writer("new")
        await write_others(writer, 1, 25)
        assert await writer.adopt_snapshots() == ()
        if await reader.discarded():
            with pytest.raises(EditsDiscardedError):
                await anext(read_runs(reader, 21, epoch=run.epoch))
