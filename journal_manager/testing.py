"""What every journal backend must show: the contract as tests, also for backends of other packages.

    # conftest.py
    pytest_plugins = ["journal_manager.testing"]

    # test_my_backend.py
    from journal_manager.testing import Journal, JournalBackendContract, closing

    class TestMyBackend(JournalBackendContract):
        @pytest.fixture
        async def journal(self):
            async for journal in closing(Journal("mine:somewhere/new")):
                yield journal

It needs pytest and pytest-asyncio (``asyncio_mode = "auto"``). The promises J1 to J10 stand in docs/rules.md; a backend
on ledgers keeps the rules C by them. A backend that has a capability (``journal_manager.journals.capabilities``) is
asked to show that, too; one that has not must say so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from journal_manager import (
    NOTHING,
    EditLog,
    EditLogConfig,
    EditsDiscardedError,
    FencingToken,
    JournalClosedError,
    JournalConfigError,
    JournalError,
    JournalExistsError,
    JournalFailedError,
    JournalFencedError,
    JournalGapError,
    JournalNotFormattedError,
    JournalReader,
    JournalWriter,
    NamespaceInfo,
    NamespaceMismatchError,
    OpTooLargeError,
    SegmentExistsError,
    SegmentMismatchError,
    SegmentNotFoundError,
    SnapshotAheadError,
    SnapshotNotFoundError,
    SnapshotStore,
    TxId,
    UnsupportedCapabilityError,
    UpgradeError,
    capability,
    format_journal,
    has_data,
    open_reader,
    open_snapshots,
    open_writer,
)
from journal_manager.edits import UNKNOWN_EPOCH, Batch, encode_batch
from journal_manager.journals import DescribableReader, Discard, Upgrade
from journal_manager.read import read_ops, read_runs, tail

NAMESPACE = NamespaceInfo(namespace_id=7, cluster_id="c", pool_id="p")


@dataclass
class Journal:
    """One journal's address, and the handles a test opened: all are closed at its end."""

    uri: str
    options: dict[str, Any] = field(default_factory=dict)
    opened: list[Any] = field(default_factory=list)

    async def writer(self, owner: str = "a", **options: Any) -> JournalWriter:
        writer = await open_writer(self.uri, owner=owner, **self.options, **options)
        self.opened.append(writer)
        return writer

    async def reader(self, **options: Any) -> JournalReader:
        reader = await open_reader(self.uri, **self.options, **options)
        self.opened.append(reader)
        return reader

    async def log(self, owner: str = "a", **config: Any) -> EditLog:
        log = await EditLog.open(self.uri, owner=owner, config=EditLogConfig(**config), **self.options)
        self.opened.append(log)
        return log

    async def snapshots(self) -> SnapshotStore:
        store = await open_snapshots(self.uri, **self.options)
        self.opened.append(store)
        return store

    async def close(self) -> None:
        for handle in reversed(self.opened):
            await (handle.abort() if isinstance(handle, EditLog) else handle.close())


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known that names the promise which a test guards."""
    config.addinivalue_line("markers", "rule(*ids): the numbered promises this test would catch a violation of")


def body(txid: int) -> bytes:
    return b"edit %d" % txid


def batch(first: int, count: int = 1) -> Batch:
    return encode_batch(TxId(first), [(txid % 100, body(txid)) for txid in range(first, first + count)])


async def write_segment(writer: JournalWriter, first: int, last: int, *, batches_of: int = 1) -> None:
    """A finalized segment."""
    segment = await writer.start_segment(TxId(first), 1)
    for at in range(first, last + 1, batches_of):
        await segment.append(batch(at, min(batches_of, last + 1 - at)))
    await segment.close()
    await writer.finalize_segment(TxId(first), TxId(last))


async def write_others(writer: JournalWriter, first: int, last: int) -> None:
    """A finalized segment with other edits."""
    segment = await writer.start_segment(TxId(first), 1)
    await segment.append(encode_batch(TxId(first), [(1, b"other %d" % txid) for txid in range(first, last + 1)]))
    await segment.close()
    await writer.finalize_segment(TxId(first), TxId(last))


async def txids(reader: JournalReader, start: int = 1, end: int | None = None, **options: Any) -> list[int]:
    """The ids that are read; every body is checked."""
    found: list[int] = []
    async for op in read_ops(reader, TxId(start), None if end is None else TxId(end), **options):
        assert op.body == body(op.txid) and op.opcode == op.txid % 100
        found.append(op.txid)
    return found


def ends(segments: Any) -> list[tuple[int, int | None]]:
    return [(segment.first, segment.last) for segment in segments]


class JournalBackendContract:
    """Inherit; give a fixture ``journal`` (an address under which nothing is yet, closed afterwards)."""

    # -- format and life cycle -------------------------------------------------------------------------

    async def test_nothing_can_be_opened_before_it_is_formatted(self, journal: Journal) -> None:
        assert not await has_data(journal.uri, **journal.options)
        with pytest.raises(JournalNotFormattedError):
            await journal.reader()
        with pytest.raises(JournalNotFormattedError):
            await journal.writer(create=False)

    async def test_a_writer_makes_the_journal_if_there_is_none(self, journal: Journal) -> None:
        writer = await journal.writer()
        assert writer.recovery.last_txid == NOTHING
        assert await writer.segments() == ()
        assert not await has_data(journal.uri, **journal.options)

    async def test_format_refuses_to_destroy_edits_unless_forced(self, journal: Journal) -> None:
        await format_journal(journal.uri, namespace=NAMESPACE, **journal.options)
        writer = await journal.writer(namespace=NAMESPACE)
        await write_segment(writer, 1, 3)
        await writer.start_segment(TxId(4), 1)
        await writer.close()
        assert await has_data(journal.uri, **journal.options)
        with pytest.raises(JournalExistsError):
            await format_journal(journal.uri, **journal.options)
        await format_journal(journal.uri, namespace=NAMESPACE, force=True, **journal.options)
        again = await journal.writer()
        assert await again.segments() == ()
        await write_segment(again, 1, 1)

    @pytest.mark.rule("C5")
    async def test_a_forced_format_fences_the_writer(self, journal: Journal) -> None:
        old = await journal.writer()
        segment = await old.start_segment(TxId(1), 1)
        await segment.append(batch(1))
        await format_journal(journal.uri, force=True, **journal.options)
        with pytest.raises(JournalFencedError):
            await segment.append(batch(2))
        with pytest.raises(JournalFencedError):
            await old.ensure_owner()

    async def test_several_that_format_at_once_leave_an_empty_journal(self, journal: Journal) -> None:
        writer = await journal.writer()
        for first in range(1, 21):
            await write_segment(writer, first, first)
        results = await asyncio.gather(
            *(format_journal(journal.uri, force=True, **journal.options) for _ in range(8)), return_exceptions=True
        )
        assert all(result is None or isinstance(result, JournalError) for result in results), results
        assert None in results
        again = await journal.writer()
        assert await again.segments() == ()
        await write_segment(again, 1, 1)

    @pytest.mark.parametrize("changed", [{"namespace_id": 8}, {"cluster_id": "x"}, {"pool_id": "x"}])
    async def test_another_namespace_is_refused(self, journal: Journal, changed: dict[str, Any]) -> None:
        await format_journal(journal.uri, namespace=NAMESPACE, **journal.options)
        other = NamespaceInfo(**{"namespace_id": 7, "cluster_id": "c", "pool_id": "p", **changed})
        with pytest.raises(NamespaceMismatchError):
            await journal.writer(namespace=other)
        with pytest.raises(NamespaceMismatchError):
            await journal.reader(namespace=other)
        await journal.reader(namespace=NAMESPACE)

    async def test_an_unknown_option_is_refused(self, journal: Journal) -> None:
        with pytest.raises(JournalConfigError, match="colour"):
            await journal.writer(colour="red")

    async def test_close_is_idempotent_and_final(self, journal: Journal) -> None:
        writer = await journal.writer()
        await writer.close()
        await writer.close()
        with pytest.raises(JournalClosedError):
            await writer.segments()
        with pytest.raises(JournalClosedError):
            await writer.start_segment(TxId(1), 1)

    # -- J1: one writer --------------------------------------------------------------------------------

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

    # -- J2: durable edits stay ------------------------------------------------------------------------

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

    # -- J3: segments ----------------------------------------------------------------------------------

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

    # -- J4: reading -----------------------------------------------------------------------------------

    @pytest.mark.rule("J4", "C4")
    async def test_j4_reading_may_begin_at_any_edit(self, journal: Journal) -> None:
        writer = await journal.writer()
        for first in range(1, 31, 10):
            await write_segment(writer, first, first + 9, batches_of=4)
        segment = await writer.start_segment(TxId(31), 1)
        await segment.append(batch(31, 3))
        await segment.append(batch(34, 2))
        reader = await journal.reader()
        for start in range(1, 36):
            assert await txids(reader, start, 33) == list(range(start, 34))
            assert await txids(reader, start, in_progress=False) == list(range(start, 31))
        assert await txids(reader, 31, 30) == []
        assert await txids(reader, 500) == [], "nobody but its writer knows where an open segment ends"

    @pytest.mark.rule("J4", "C4")
    async def test_j4_reading_from_beyond_the_end_is_a_gap(self, journal: Journal) -> None:
        writer = await journal.writer()
        assert await txids(writer) == []
        with pytest.raises(JournalGapError):
            await txids(writer, 2)
        await write_segment(writer, 1, 3)
        reader = await journal.reader()
        for each in (reader, writer):
            assert await txids(each, 4) == [] and await txids(each, 4, 3) == []
            with pytest.raises(JournalGapError, match="no edit after 3") as caught:
                await txids(each, 5)
            assert (caught.value.wanted, caught.value.next_available) == (5, None)
        log = await journal.log()
        await log.log(b"4")
        with pytest.raises(JournalGapError, match="no edit after 4"):
            await anext(log.read(6))

    @pytest.mark.rule("J4", "C4", "C7")
    async def test_j4_an_end_that_is_not_there_is_a_gap(self, journal: Journal) -> None:
        writer = await journal.writer()
        await write_segment(writer, 1, 3)
        with pytest.raises(JournalGapError) as caught:
            await txids(writer, 2, 5)
        assert caught.value.wanted == 4

    async def test_a_long_segment_of_large_batches_is_read_back(self, journal: Journal) -> None:
        writer = await journal.writer()
        segment = await writer.start_segment(TxId(1), 1)
        for first in range(1, 13):
            await segment.append(encode_batch(TxId(first), [(1, bytes([first]) * 700_000)]))
        await segment.close()
        await writer.finalize_segment(TxId(1), TxId(12))
        sizes = [(op.txid, op.body == bytes([op.txid]) * 700_000) async for op in read_ops(writer, TxId(1))]
        assert sizes == [(txid, True) for txid in range(1, 13)]

    async def test_many_edits_in_one_segment_and_many_segments_are_read_back(self, journal: Journal) -> None:
        writer = await journal.writer()
        await write_segment(writer, 1, 10_000, batches_of=500)
        for first in range(10_001, 10_101):
            await write_segment(writer, first, first)
        reader = await journal.reader()
        assert len(await reader.segments()) == 101
        assert await txids(reader) == list(range(1, 10_101))
        assert (await journal.writer()).recovery.last_txid == 10_100

    # -- J5: recovery ----------------------------------------------------------------------------------

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

    # -- J6: readers -----------------------------------------------------------------------------------

    @pytest.mark.rule("J6", "C8")
    async def test_j6_a_reader_disturbs_nobody(self, journal: Journal) -> None:
        writer = await journal.writer()
        segment = await writer.start_segment(TxId(1), 1)
        await segment.append(batch(1, 2))
        reader = await journal.reader()
        assert set(await txids(reader)) <= {1, 2}
        assert [s.in_progress for s in await reader.segments()] == [True]
        await segment.append(batch(3))
        await segment.close()
        await writer.finalize_segment(TxId(1), TxId(3))
        assert await txids(reader) == [1, 2, 3]
        assert not {"append", "start_segment", "finalize_segment", "purge", "discard_segment"} & set(dir(reader))

    @pytest.mark.rule("J6", "C4", "C8")
    async def test_j6_a_tail_follows_rolls_and_takeovers(self, journal: Journal) -> None:
        log = await journal.log("one")
        await log.log(b"1")
        stop = asyncio.Event()
        seen: list[tuple[int, bytes]] = []
        reader = await journal.reader()

        async def follow() -> None:
            async for op in tail(reader, TxId(1), poll_s=0.2, stop=stop):
                seen.append((op.txid, op.body))
                if op.txid == 7:
                    return

        following = asyncio.create_task(follow())
        await log.log(b"2")
        await log.roll()
        await log.log(b"3")
        other = await journal.log("two")
        await other.log_group([(0, b"4"), (0, b"5")])
        await other.roll()
        await other.log(b"6")
        await other.log(b"7")
        await asyncio.wait_for(following, 30)
        assert seen == [(txid, b"%d" % txid) for txid in range(1, 8)]

    # -- J7: purge -------------------------------------------------------------------------------------

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

    # -- capabilities ----------------------------------------------------------------------------------

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

    async def test_an_upgrade_is_rolled_back_or_finalized_or_it_cannot(self, journal: Journal) -> None:
        await format_journal(journal.uri, namespace=NAMESPACE, **journal.options)
        writer = await journal.writer()
        if not isinstance(writer, Upgrade):
            with pytest.raises(UnsupportedCapabilityError):
                capability(writer, Upgrade)  # type: ignore[type-abstract]
            return
        for first in (1, 4):
            await write_segment(writer, first, first + 2)
        await writer.save_snapshot(6, [b"before"])
        newer = replace(NAMESPACE, layout_version=NAMESPACE.layout_version + 1)
        with pytest.raises(UpgradeError):
            await writer.roll_back()
        with pytest.raises(NamespaceMismatchError):
            await writer.begin_upgrade(replace(newer, cluster_id="another"))
        await writer.begin_upgrade(newer)
        await writer.begin_upgrade(newer)
        writer = await journal.writer(namespace=newer)
        assert isinstance(writer, Upgrade) and isinstance(writer, Discard)
        await write_segment(writer, 7, 9)
        with pytest.raises(UpgradeError):
            await writer.begin_upgrade(replace(newer, layout_version=newer.layout_version + 1))
        await writer.save_snapshot(9, [b"since"])
        store = await journal.snapshots()
        await store.offer(8, [b"offered since"])
        assert await writer.purge(9) == (), "what is from before stays"
        await writer.delete_snapshot(6)
        with pytest.raises(UpgradeError):
            await writer.discard_from(4)
        assert ends(await writer.roll_back()) == [(7, 9)]
        assert ends(await writer.segments()) == [(1, 3), (4, 6)] and writer.durable_txid == 6
        found = await store.load()
        assert found is not None and (found[0].at, found[1]) == (6, b"before")
        assert await writer.adopt_snapshots() == ()
        with pytest.raises(UpgradeError):
            await writer.roll_back()

        await writer.begin_upgrade(newer)
        with pytest.raises(SegmentExistsError, match="open the journal anew"):
            await writer.start_segment(7, 1)
        writer = await journal.writer()
        assert isinstance(writer, Upgrade)
        await write_segment(writer, 7, 9)
        await writer.finalize_upgrade()
        await writer.finalize_upgrade()
        with pytest.raises(UpgradeError):
            await writer.roll_back()
        assert ends(await writer.purge(7)) == [(1, 3), (4, 6)]
        with pytest.raises(UpgradeError, match="step back"):
            await writer.begin_upgrade(NAMESPACE)
        segment = await writer.start_segment(10, 1)
        with pytest.raises(UpgradeError, match="in progress"):
            await writer.begin_upgrade(replace(newer, layout_version=9))
        await segment.abort()
        again = await journal.writer()
        assert isinstance(again, Upgrade)
        for step in (writer.begin_upgrade(newer), writer.finalize_upgrade(), writer.roll_back()):
            with pytest.raises(JournalFencedError):
                await step

    async def test_an_upgrade_comes_back_to_the_snapshots_it_began_with(self, journal: Journal) -> None:
        """A snapshot of the new version at an id from before the upgrade took the place of the former version's, and
        was the newest one after the roll-back: the former version could not read its state any more."""
        await format_journal(journal.uri, namespace=NAMESPACE, **journal.options)
        writer = await journal.writer()
        if not isinstance(writer, Upgrade):
            return
        await write_segment(writer, 1, 3)
        await writer.save_snapshot(3, [b"before"])
        await write_segment(writer, 4, 6)
        newer = replace(NAMESPACE, layout_version=NAMESPACE.layout_version + 1)
        await writer.begin_upgrade(newer)
        writer = await journal.writer(namespace=newer)
        assert isinstance(writer, Upgrade)
        store = await journal.snapshots()
        for at in (3, 6):
            with pytest.raises(UpgradeError, match="from before the upgrade"):
                await writer.save_snapshot(at, [b"of the new version"])
        await store.offer(6, [b"of the new version"])
        assert await writer.adopt_snapshots() == ()
        await store.offer(6, [b"of the new version, not looked at before the roll-back"])
        await writer.roll_back()
        assert await writer.adopt_snapshots() == ()
        found = await store.load()
        assert found is not None and (found[0].at, found[1]) == (3, b"before")

        await writer.save_snapshot(6, [b"of the former version"])
        await writer.begin_upgrade(newer)
        writer = await journal.writer(namespace=newer)
        assert isinstance(writer, Upgrade)
        await writer.finalize_upgrade()
        await writer.save_snapshot(6, [b"of the new version"])
        found = await store.load()
        assert found is not None and (found[0].at, found[1]) == (6, b"of the new version")

    # -- J10: ids that are used again ------------------------------------------------------------------

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

    async def test_a_reader_says_whose_journal_it_is_or_it_cannot(self, journal: Journal) -> None:
        await format_journal(journal.uri, namespace=NAMESPACE, **journal.options)
        writer = await journal.writer("its owner")
        reader = await journal.reader()
        if not isinstance(reader, DescribableReader):
            with pytest.raises(UnsupportedCapabilityError):
                capability(reader, DescribableReader)  # type: ignore[type-abstract]
            return
        found = await reader.describe()
        assert (found.namespace, found.token, found.upgraded_at) == (NAMESPACE, writer.token, None)
        if isinstance(writer, Upgrade):
            await write_segment(writer, 1, 3)
            await writer.begin_upgrade(replace(NAMESPACE, layout_version=2))
            found = await reader.describe()
            assert (found.namespace.layout_version, found.upgraded_at) == (2, 3)

    # -- the edit log ----------------------------------------------------------------------------------

    @pytest.mark.rule("C7")
    async def test_log_numbers_edits_densely_across_tasks_and_openings(self, journal: Journal) -> None:
        log = await journal.log()

        async def client(name: int) -> list[int]:
            return [await log.log(b"%d %d" % (name, i)) for i in range(10)]

        given = await asyncio.gather(*(client(name) for name in range(8)))
        assert sorted(txid for each in given for txid in each) == list(range(1, 81))
        assert all(each == sorted(each) for each in given)
        await log.close()
        again = await journal.log()
        assert again.next_txid == 81 and again.recovery.finalized == ()
        bodies = {op.body: op.txid async for op in again.read(TxId(1))}
        assert bodies == {b"%d %d" % (n, i): txid for n, each in enumerate(given) for i, txid in enumerate(each)}

    async def test_log_rolls_and_purges(self, journal: Journal) -> None:
        log = await journal.log()
        for txid in range(1, 4):
            assert await log.log(body(txid), txid) == txid
            final = await log.roll()
            assert final is not None and (final.first, final.last) == (txid, txid)
        assert await log.roll() is None
        assert ends(await log.purge(TxId(3))) == [(1, 1), (2, 2)]
        assert [op.txid async for op in log.read(TxId(3))] == [3]

    async def test_log_rolls_by_itself_before_a_segment_grows_too_long(self, journal: Journal) -> None:
        log = await journal.log(segment_bytes=1000)
        for _ in range(4):
            await log.log(bytes(300))
        assert ends(await log.segments()) == [(1, 3), (4, None)]

    @pytest.mark.rule("C5")
    async def test_log_is_told_that_it_was_fenced_and_stays_so(self, journal: Journal) -> None:
        old = await journal.log("old")
        await old.log(b"kept")
        new = await journal.log("new")
        with pytest.raises(JournalFencedError) as caught:
            await old.log(b"refused")
        assert caught.value.epoch == old.token.epoch
        with pytest.raises(JournalFencedError):
            old.log(b"refused at once")
        with pytest.raises(JournalFencedError):
            await old.sync()
        assert [op.body async for op in new.read(TxId(1))] == [b"kept"]
        assert await new.log(b"next") == 2

    async def test_log_refuses_what_cannot_be_durable_at_once_and_goes_on(self, journal: Journal) -> None:
        log = await journal.log(max_batch_bytes=1000)
        with pytest.raises(OpTooLargeError):
            log.log(bytes(1000))
        assert await log.log(bytes(900)) == 1

    async def test_log_aborted_without_waiting_keeps_what_was_acknowledged(self, journal: Journal) -> None:
        log = await journal.log()
        await log.log(b"1")
        unknown = log.log(b"2")
        await log.abort()
        with pytest.raises(JournalFailedError):
            await unknown
        again = await journal.log()
        bodies = [op.body async for op in again.read(TxId(1))]
        assert bodies[0] == b"1" and bodies[1:] in ([], [b"2"])

    # -- snapshots -------------------------------------------------------------------------------------

    async def test_snapshots_are_kept_beside_the_journal(self, journal: Journal) -> None:
        writer = await journal.writer()
        await write_segment(writer, 1, 10)
        async with await journal.snapshots() as store:
            assert await store.load() is None and await store.list() == ()
            await writer.save_snapshot(5, [b"state ", b"at 5"])
            await writer.save_snapshot(10, [b"large " * 500_000])
            await writer.save_snapshot(5, [b"state at 5, again"])
            saved = await writer.save_snapshot(7, [])
            assert [(info.at, info.size) for info in await store.list()] == [(5, 17), (7, 0), (10, 3_000_000)]
            assert saved in await store.list()
        store = await journal.snapshots()
        newest = await store.load()
        assert newest is not None and newest[0].at == 10 and newest[1] == b"large " * 500_000
        for at, content in ((5, b"state at 5, again"), (7, b"")):
            older = await store.load(at)
            assert older is not None and older[1] == content
        with pytest.raises(SnapshotNotFoundError):
            await store.load(6)
        with pytest.raises(SnapshotNotFoundError):
            await anext(store.read(6))
        for at in (10, 10, 7):
            await writer.delete_snapshot(at)
        assert [info.at for info in await store.list()] == [5]

    async def test_a_snapshot_goes_in_and_out_in_chunks(self, journal: Journal) -> None:
        writer = await journal.writer()
        await write_segment(writer, 1, 1)
        given = 0

        async def chunks() -> AsyncIterator[bytes]:
            nonlocal given
            for number in range(80):
                given += 1
                yield bytes([number]) * 100_000

        await writer.save_snapshot(1, chunks())
        store = await journal.snapshots()
        read = [chunk async for chunk in store.read(1)]
        assert given == 80 and max(map(len, read)) <= 2 << 20
        assert b"".join(read) == b"".join(bytes([number]) * 100_000 for number in range(80))

    @pytest.mark.rule("J9")
    async def test_j9_only_the_owner_keeps_and_removes_snapshots(self, journal: Journal) -> None:
        old = await journal.writer("old")
        await write_segment(old, 1, 3)
        await old.save_snapshot(2, [b"kept"])
        store = await journal.snapshots()
        await store.offer(3, [b"offered"])
        new = await journal.writer("new")
        for attempt in (old.save_snapshot(3, [b"x"]), old.save_snapshot(2, [b"x"]), old.delete_snapshot(2)):
            with pytest.raises(JournalFencedError):
                await attempt
        with pytest.raises(JournalFencedError):
            await old.adopt_snapshots()
        found = await store.load()
        assert found is not None and (found[0].at, found[1]) == (2, b"kept")
        await new.save_snapshot(3, [b"x"])
        await new.delete_snapshot(2)
        assert [info.at for info in await store.list()] == [3]
        assert not {"save", "delete", "save_snapshot", "delete_snapshot"} & set(dir(store))

    @pytest.mark.rule("J9")
    async def test_j9_a_writer_that_is_fenced_while_it_saves_changes_nothing(self, journal: Journal) -> None:
        old = await journal.writer("old")
        await write_segment(old, 1, 3)
        await old.save_snapshot(3, [b"kept"])

        async def chunks() -> AsyncIterator[bytes]:
            yield b"x" * 3_000_000
            await journal.writer("new")
            yield b"x"

        with pytest.raises(JournalFencedError):
            await old.save_snapshot(3, chunks())
        found = await (await journal.snapshots()).load()
        assert found is not None and found[1] == b"kept"

    @pytest.mark.rule("J9")
    async def test_j9_a_snapshot_is_never_above_what_is_durable(self, journal: Journal) -> None:
        writer = await journal.writer()
        assert writer.durable_txid == NOTHING
        with pytest.raises(SnapshotAheadError, match="no edits"):
            await writer.save_snapshot(1, [b"x"])
        with pytest.raises(ValueError, match="begin at 1"):
            await writer.save_snapshot(0, [b"x"])
        segment = await writer.start_segment(1, 1)
        await segment.append(batch(1, 4))
        assert writer.durable_txid == 4
        await writer.save_snapshot(4, [b"x"])
        with pytest.raises(SnapshotAheadError, match="up to edit 4"):
            await writer.save_snapshot(5, [b"x"])
        await segment.append(batch(5))
        await segment.close()
        await writer.finalize_segment(1, 5)
        assert writer.durable_txid == 5
        await writer.save_snapshot(5, [b"x"])
        again = await journal.writer()
        assert again.durable_txid == 5
        with pytest.raises(SnapshotAheadError):
            await again.save_snapshot(6, [b"x"])

    @pytest.mark.rule("J9")
    async def test_j9_what_a_reader_offers_is_a_snapshot_once_the_owner_adopts_it(self, journal: Journal) -> None:
        writer = await journal.writer()
        await write_segment(writer, 1, 9)
        store = await journal.snapshots()
        assert await writer.adopt_snapshots() == ()
        for at in (4, 6, 5, 12):
            await store.offer(at, [b"state at %d" % at])
        await store.offer(6, [b"state at 6"])
        assert await store.list() == () and await store.load() is None
        writer = await journal.writer("its successor")
        adopted = await writer.adopt_snapshots()
        assert [info.at for info in adopted] == [6], "the newest that is durable"
        assert adopted == await store.list()
        found = await store.load()
        assert found is not None and found[1] == b"state at 6"
        await store.offer(5, [b"old"])
        assert await writer.adopt_snapshots() == ()
        await write_segment(writer, 10, 12)
        assert [info.at for info in await writer.adopt_snapshots()] == [12]
        assert [info.at for info in await store.list()] == [6, 12]
        await writer.delete_snapshot(12)
        assert await writer.adopt_snapshots() == (), "an offer is adopted once"

    async def test_a_snapshot_that_is_cancelled_leaves_the_earlier_one(self, journal: Journal) -> None:
        writer = await journal.writer()
        await write_segment(writer, 1, 1)
        await writer.save_snapshot(1, [b"kept"])
        begun = asyncio.Event()

        async def chunks() -> AsyncIterator[bytes]:
            yield b"x" * 3_000_000
            begun.set()
            await asyncio.Event().wait()

        saving = asyncio.ensure_future(writer.save_snapshot(1, chunks()))
        await begun.wait()
        saving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saving
        found = await (await journal.snapshots()).load()
        assert found is not None and found[1] == b"kept"
        await writer.save_snapshot(1, [b"another"])

    async def test_a_snapshot_and_the_edits_after_it_are_the_state(self, journal: Journal) -> None:
        log = await journal.log()
        state: list[bytes] = []
        store = await journal.snapshots()
        for txid in range(1, 21):
            await log.log(body(txid))
            state.append(body(txid))
            if txid % 7 == 0:
                await log.roll()
                await log.save_snapshot(txid, state)
                await log.purge(txid + 1)
        await log.abort()
        again = await journal.log()
        found = await store.load()
        assert found is not None
        info, content = found
        assert info.at == 14
        assert content + b"".join([op.body async for op in again.read(info.at + 1)]) == b"".join(state)

    async def test_log_is_fenced_by_a_snapshot_that_is_refused(self, journal: Journal) -> None:
        old = await journal.log("old")
        await old.log(b"1")
        await journal.log("new")
        with pytest.raises(JournalFencedError):
            await old.save_snapshot(1, [b"x"])
        with pytest.raises(JournalFencedError):
            old.log(b"refused at once")


async def closing(journal: Journal) -> AsyncIterator[Journal]:
    """For fixtures: hand the journal out, close its handles afterwards."""
    yield journal
    await journal.close()
