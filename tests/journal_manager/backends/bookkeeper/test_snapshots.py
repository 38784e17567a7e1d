"""Snapshots on ledgers: through every crash, and an older one when the newest is damaged."""

from __future__ import annotations

from typing import Any

import pytest

from bookkeeper.errors import MetadataConflictError
from journal_manager import (
    UNKNOWN_EPOCH,
    JournalCorruptionError,
    JournalFencedError,
    JournalFullError,
    JournalWriter,
    SnapshotNotFoundError,
    format_journal,
    open_snapshots,
    open_writer,
)
from journal_manager.backends.bookkeeper import node_size
from journal_manager.backends.bookkeeper.writer import LedgerJournalWriter
from journal_manager.snapshots.snapshots import SnapshotStore
from tests.contracts.journal_backend import write_segment
from tests.journal_manager.backends.bookkeeper.fake import Cluster, Died, LostReplies


async def store_on(cluster: Cluster) -> SnapshotStore:
    return await open_snapshots("bk:edits", client=cluster.client())


async def writer_on(cluster: Cluster) -> JournalWriter:
    return await open_writer("bk:edits", client=cluster.client())


async def formatted() -> Cluster:
    cluster = Cluster()
    await write_segment(await writer_on(cluster), 1, 9)
    return cluster


def snapshot_ledgers(cluster: Cluster) -> dict[int, bytes]:
    """Ledger -> the id of the snapshot that it was made for."""
    return {ledger.id: ledger.tags["snapshot"] for ledger in cluster.ledgers.values() if ledger.tags.get("snapshot")}


async def test_of_damaged_ones_an_older_is_loaded_and_none_is_passed_over_on_demand() -> None:
    cluster = await formatted()
    writer, store = await writer_on(cluster), await store_on(cluster)
    for at in (5, 9):
        await writer.save_snapshot(at, [b"state at %d" % at])
    cluster.ledgers[3].entries[0] = b"something"
    found = await store.load()
    assert found is not None and (found[0].at, found[1]) == (5, b"state at 5")
    with pytest.raises(JournalCorruptionError, match="9 is damaged"):
        await store.load(9)
    cluster.ledgers.clear()
    with pytest.raises(JournalCorruptionError, match="reading the snapshot at edit 9"):
        await store.load()


async def test_a_list_of_snapshots_that_is_full_takes_no_other_until_one_is_removed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It grew with each snapshot until the metadata store took it no more, with an error that told nobody why."""
    cluster = await formatted()
    writer = await writer_on(cluster)
    monkeypatch.setattr(node_size, "NODE_BYTES_MAX", 300)
    await writer.save_snapshot(1, [b"state"])
    await writer.save_snapshot(2, [b"state"])
    with pytest.raises(JournalFullError, match=r"list of snapshots of journal .* has 2, is full.*bk journal purge"):
        await writer.save_snapshot(3, [b"state"])
    assert sorted(snapshot_ledgers(cluster).values()) == [b"1", b"2"], "its ledger is no orphan"
    await writer.save_snapshot(2, [b"another state"])
    await writer.delete_snapshot(1)
    await writer.save_snapshot(3, [b"state"])


async def test_a_snapshot_that_is_removed_while_it_is_looked_for_is_not_there() -> None:
    cluster = await formatted()
    writer, store = await writer_on(cluster), await store_on(cluster)
    await writer.save_snapshot(5, [b"state"])
    reading = store.read(5)
    found = store._find  # type: ignore[attr-defined]

    async def find_and_lose(at: int) -> object:
        line = await found(at)
        store._find = found  # type: ignore[attr-defined]
        await writer.delete_snapshot(5)
        return line

    store._find = find_and_lose  # type: ignore[attr-defined]
    with pytest.raises(SnapshotNotFoundError):
        await anext(reading)


@pytest.mark.rule("C6")
async def test_what_replaces_and_removes_snapshots_deletes_their_ledgers() -> None:
    cluster = await formatted()
    writer, store = await writer_on(cluster), await store_on(cluster)
    await writer.save_snapshot(5, [b"one"])
    await writer.save_snapshot(5, [b"two"])
    assert list(snapshot_ledgers(cluster)) == [3]
    await writer.delete_snapshot(5)
    assert snapshot_ledgers(cluster) == {} and await store.list() == ()


@pytest.mark.rule("J9")
async def test_what_is_refused_leaves_no_ledger() -> None:
    cluster = await formatted()
    old, store = await writer_on(cluster), await store_on(cluster)

    class Chunks:
        def __aiter__(self) -> Chunks:
            return self

        async def __anext__(self) -> bytes:
            await writer_on(cluster)
            raise StopAsyncIteration

    with pytest.raises(JournalFencedError):
        await old.save_snapshot(5, Chunks())
    assert snapshot_ledgers(cluster) == {}
    new = await writer_on(cluster)
    for at in (4, 5, 6, 3):
        await store.offer(at, [b"x"])
    await new.adopt_snapshots()
    assert list(snapshot_ledgers(cluster).values()) == [b"6"]


async def test_format_removes_snapshots_and_offers() -> None:
    cluster = await formatted()
    await (await writer_on(cluster)).save_snapshot(5, [b"x"])
    store = await store_on(cluster)
    await store.offer(6, [b"x"])
    await format_journal("bk:edits", force=True, client=cluster.client())
    assert cluster.ledgers == {} and await store.list() == ()
    writer = await writer_on(cluster)
    await write_segment(writer, 1, 9)
    assert await writer.adopt_snapshots() == ()


async def test_a_crash_while_saving_leaves_the_old_or_the_new() -> None:
    outcomes = set()
    for at in range(60):
        cluster = await formatted()
        writer = await writer_on(cluster)
        await writer.save_snapshot(5, [b"old"])
        cluster.die_after(at)
        try:
            await writer.save_snapshot(5, [b"new" * 1_000_000])
            saved = True
        except Died:
            saved = False
        cluster.die_after(None)
        found = await (await store_on(cluster)).load(5)
        assert found is not None and found[1] in (b"old", b"new" * 1_000_000)
        assert not saved or found[1] == b"new" * 1_000_000
        outcomes.add(saved)
        if saved:
            break
    assert outcomes == {True, False}


@pytest.mark.rule("J9")
async def test_a_crash_while_adopting_keeps_the_offer_or_the_snapshot() -> None:
    for at in range(60):
        cluster = await formatted()
        writer = await writer_on(cluster)
        await (await store_on(cluster)).offer(5, [b"state"])
        cluster.die_after(at)
        try:
            adopted = await writer.adopt_snapshots()
        except Died:
            adopted = ()
        cluster.die_after(None)
        again = await writer_on(cluster)
        await again.adopt_snapshots()
        found = await (await store_on(cluster)).load()
        assert found is not None and found[1] == b"state"
        await again.delete_snapshot(5)
        assert await again.adopt_snapshots() == () and snapshot_ledgers(cluster) == {}
        if adopted:
            return
    raise AssertionError("it never came to its end")


async def test_a_write_whose_reply_is_lost_is_settled() -> None:
    for lost in range(6):
        cluster = await formatted()
        writer, store = await writer_on(cluster), await store_on(cluster)
        cluster.metadata.interference = LostReplies(lost)
        await writer.save_snapshot(5, [b"one"])
        await store.offer(6, [b"two"])
        assert [info.at for info in await writer.adopt_snapshots()] == [6]
        cluster.metadata.interference = None
        found = await store.load()
        assert found is not None and found[1] == b"two"
        assert [info.at for info in await store.list()] == [5, 6]


@pytest.mark.rule("C6", "J9")
async def test_a_snapshot_that_the_list_names_is_not_deleted_by_the_owner_that_was_overtaken() -> None:
    """The write of the list was done, its reply lost, and the next owner has kept the line: the ledger was deleted, so
    that the newest snapshot could not be read."""
    cluster = await formatted()
    old, store = await writer_on(cluster), await store_on(cluster)
    assert isinstance(old, LedgerJournalWriter)
    index = old._snapshots._index
    write = index.write

    async def done_and_overtaken(*arguments: Any) -> None:
        await write(*arguments)
        index.write = write  # type: ignore[method-assign]
        new = await writer_on(cluster)
        await new.save_snapshot(2, [b"of the next owner"])
        raise MetadataConflictError("another version")

    index.write = done_and_overtaken  # type: ignore[method-assign, assignment]
    with pytest.raises(JournalFencedError):
        await old.save_snapshot(5, [b"state"])
    found = await store.load()
    assert found is not None and (found[0].at, found[1]) == (5, b"state")


async def test_as_long_as_nothing_was_discarded_snapshots_and_offers_are_stored_as_by_earlier_versions() -> None:
    cluster = await formatted()
    writer, store = await writer_on(cluster), await store_on(cluster)
    assert isinstance(writer, LedgerJournalWriter)
    await store.offer(6, [b"x"], epoch=1)
    assert [line.epoch for line in await writer._snapshots._index.offers()] == [UNKNOWN_EPOCH]
    await writer.save_snapshot(5, [b"x"])
    assert [info.epoch for info in await store.list()] == [UNKNOWN_EPOCH]
