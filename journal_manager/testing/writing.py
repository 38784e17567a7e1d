"""The contract of journal backends: what a writer may do, and what it leaves (J1, J2, J3, J5, J7)."""

from __future__ import annotations

import asyncio

import pytest

from journal_manager import (
    FencingToken,
    JournalFencedError,
    JournalGapError,
    SegmentExistsError,
    SegmentMismatchError,
    SegmentNotFoundError,
    TxId,
)
from journal_manager.testing.journal import Journal, batch, ends, txids, write_segment


class WritingContract:
    """One writer at a time; durable edits stay, in segments that are final once."""

    @pytest.mark.rule("J1", "C5", "C8")
    async def test_j1_a_later_writer_fences_the_earlier_one_while_it_writes(self, journal: Journal) -> None:
        old = await journal.writer("old")
        segment = await old.start_segment(TxId(1), 1)
        await segment.append(batch(1))
        new = await journal.writer("new")
        assert new.token > old.token and new.token.owner == "new"
        assert ends(new.recovery.finalized) == [(1, 1)]
        with pytest.raises(JournalFencedError) as caught:
            await segment.append(batch(2))
        assert caught.value.epoch == old.token.epoch
        await segment.abort()
        for attempt in (old.finalize_segment(TxId(1), TxId(1)), old.purge(TxId(2)), old.ensure_owner()):
            with pytest.raises(JournalFencedError) as caught:
                await attempt
            assert caught.value.by == new.token
        await new.ensure_owner()
        assert await txids(new) == [1]

    @pytest.mark.rule("J1", "C5")
    async def test_j1_a_writer_between_segments_cannot_begin_another(self, journal: Journal) -> None:
        old = await journal.writer("old")
        await write_segment(old, 1, 2)
        new = await journal.writer("new")
        with pytest.raises(JournalFencedError):
            await old.start_segment(TxId(3), 1)
        assert ends(await new.segments()) == [(1, 2)]
        await write_segment(new, 3, 4)
        assert await txids(new) == [1, 2, 3, 4]

    @pytest.mark.rule("J1", "C5")
    async def test_j1_contenders_get_distinct_rising_epochs(self, journal: Journal) -> None:
        await journal.writer("first")
        results = await asyncio.gather(*(journal.writer(f"w{i}") for i in range(5)), return_exceptions=True)
        for result in results:
            assert not isinstance(result, BaseException) or isinstance(result, JournalFencedError)
        tokens = [result.token for result in results if not isinstance(result, BaseException)]
        assert tokens and len({token.epoch for token in tokens}) == len(tokens)
        last = await journal.writer("last")
        assert last.token > max(tokens)
        assert last.token == FencingToken(last.token.epoch, "last")

    @pytest.mark.rule("J2", "C4", "C8")
    async def test_j2_edits_of_a_writer_that_vanished_are_recovered(self, journal: Journal) -> None:
        old = await journal.writer()
        await write_segment(old, 1, 10, batches_of=3)
        segment = await old.start_segment(TxId(11), 1)
        await segment.append(batch(11, 5))
        await segment.append(batch(16))
        await segment.abort()
        await old.close()
        new = await journal.writer()
        assert ends(new.recovery.finalized) == [(11, 16)] and new.recovery.last_txid == 16
        assert ends(await new.segments()) == [(1, 10), (11, 16)]
        assert await txids(new) == list(range(1, 17))

    @pytest.mark.rule("C7")
    async def test_a_segment_without_edits_is_removed_and_its_ids_are_free(self, journal: Journal) -> None:
        old = await journal.writer()
        await write_segment(old, 1, 2)
        await old.start_segment(TxId(3), 1)
        await old.close()
        new = await journal.writer()
        assert ends(new.recovery.removed_empty) == [(3, None)] and new.recovery.last_txid == 2
        await write_segment(new, 3, 3)
        assert await txids(new) == [1, 2, 3]

    async def test_a_segment_without_edits_can_be_discarded(self, journal: Journal) -> None:
        writer = await journal.writer()
        segment = await writer.start_segment(TxId(1), 1)
        await segment.close()
        await writer.discard_segment(TxId(1))
        assert await writer.segments() == ()
        segment = await writer.start_segment(TxId(1), 1)
        await segment.append(batch(1))
        await segment.close()
        with pytest.raises(SegmentMismatchError):
            await writer.discard_segment(TxId(1))
        await writer.finalize_segment(TxId(1), TxId(1))

    async def test_a_segments_layout_may_be_negative_as_hdfss_are(self, journal: Journal) -> None:
        writer = await journal.writer()
        segment = await writer.start_segment(TxId(1), -67)
        await segment.append(batch(1))
        await segment.close()
        await writer.finalize_segment(TxId(1), TxId(1))
        assert [each.layout_version for each in await writer.segments()] == [-67]
        await writer.close()
        async with await journal.reader() as reader:
            assert [each.layout_version for each in await reader.segments()] == [-67]

    @pytest.mark.rule("J3", "C7")
    async def test_j3_a_final_segment_keeps_its_ends(self, journal: Journal) -> None:
        writer = await journal.writer()
        segment = await writer.start_segment(TxId(1), 5)
        await segment.append(batch(1, 4))
        assert [s.in_progress for s in await writer.segments()] == [True]
        await segment.close()
        with pytest.raises(SegmentMismatchError):
            await writer.finalize_segment(TxId(1), TxId(3))
        with pytest.raises(SegmentMismatchError):
            await writer.finalize_segment(TxId(1), TxId(5))
        final = await writer.finalize_segment(TxId(1), TxId(4))
        assert (final.first, final.last, final.layout_version, final.epoch) == (1, 4, 5, writer.token.epoch)
        assert await writer.segments() == (final,)
        assert await writer.finalize_segment(TxId(1), TxId(4)) == final
        with pytest.raises(SegmentMismatchError):
            await writer.finalize_segment(TxId(1), TxId(3))
        with pytest.raises(SegmentNotFoundError):
            await writer.finalize_segment(TxId(5), TxId(5))

    @pytest.mark.rule("C3", "C7")
    async def test_a_segment_begins_after_the_last_one_and_alone(self, journal: Journal) -> None:
        writer = await journal.writer()
        with pytest.raises(SegmentExistsError):
            await writer.start_segment(TxId(0), 1)
        await write_segment(writer, 1, 10)
        for first in (1, 10, 12):
            with pytest.raises(SegmentExistsError):
                await writer.start_segment(TxId(first), 1)
        segment = await writer.start_segment(TxId(11), 1)
        with pytest.raises(SegmentExistsError):
            await writer.start_segment(TxId(11), 1)
        await segment.append(batch(11))
        await segment.close()
        with pytest.raises(SegmentExistsError):
            await writer.start_segment(TxId(12), 1)

    @pytest.mark.rule("C7")
    async def test_a_batch_that_does_not_follow_the_last_one_is_refused(self, journal: Journal) -> None:
        writer = await journal.writer()
        segment = await writer.start_segment(1, 1)
        await segment.append(batch(1, 2))
        with pytest.raises(SegmentMismatchError):
            await segment.append(batch(4))
        with pytest.raises(SegmentExistsError):
            await writer.finalize_segment(1, 2)
        await segment.close()
        await writer.finalize_segment(1, 2)
        assert await txids(writer) == [1, 2]

    async def test_a_new_journal_may_begin_anywhere(self, journal: Journal) -> None:
        writer = await journal.writer()
        await write_segment(writer, 1000, 1001)
        assert await txids(writer, 1000) == [1000, 1001]
        with pytest.raises(JournalGapError) as caught:
            await txids(writer, 1)
        assert (caught.value.wanted, caught.value.next_available) == (1, 1000)

    @pytest.mark.rule("J5", "C8")
    async def test_j5_recovering_again_changes_nothing(self, journal: Journal) -> None:
        old = await journal.writer()
        segment = await old.start_segment(TxId(1), 1)
        await segment.append(batch(1, 3))
        first = await journal.writer()
        found = await first.segments()
        second = await journal.writer()
        assert second.recovery.finalized == () and second.recovery.last_txid == 3
        assert await second.segments() == found
        assert await txids(second) == [1, 2, 3]

    @pytest.mark.rule("J7", "C6")
    async def test_j7_purge_removes_whole_segments_and_never_the_newest(self, journal: Journal) -> None:
        writer = await journal.writer()
        for first in (1, 11, 21):
            await write_segment(writer, first, first + 9)
        assert ends(await writer.purge(TxId(10))) == []
        assert ends(await writer.purge(TxId(11))) == [(1, 10)]
        assert ends(await writer.purge(TxId(20))) == []
        with pytest.raises(JournalGapError) as caught:
            await txids(writer, 5)
        assert (caught.value.wanted, caught.value.next_available) == (5, 11)
        assert await txids(writer, 15) == list(range(15, 31))
        assert ends(await writer.purge(TxId(1000))) == [(11, 20)]
        assert ends(await writer.segments()) == [(21, 30)]
        again = await journal.writer()
        assert again.recovery.last_txid == 30
