"""The contract of journal backends: snapshots beside the journal (J9)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from journal_manager import (
    NOTHING,
    JournalFencedError,
    SnapshotAheadError,
    SnapshotNotFoundError,
)
from journal_manager.testing.journal import Journal, batch, body, write_segment


class SnapshotContract:
    """They are the owner's, and never above what is durable."""

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
