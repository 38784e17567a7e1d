"""Snapshots on ledgers: through every crash, and an older one when the newest is damaged."""

from __future__ import annotations

import pytest

from journal_manager import JournalCorruptionError, TxId, open_snapshots, open_writer
from journal_manager.backends.bookkeeper.snapshots import SnapshotLine, decode_index, encode_index
from journal_manager.errors import UnsupportedLayoutError
from journal_manager.snapshots import SnapshotStore
from tests.journal_manager.backends.bookkeeper.fake import Cluster, Died


async def store_on(cluster: Cluster) -> SnapshotStore:
    return await open_snapshots("bk:edits", client=cluster.client())


async def formatted() -> Cluster:
    cluster = Cluster()
    await open_writer("bk:edits", client=cluster.client())
    return cluster


def test_the_list() -> None:
    kept = (SnapshotLine(5, 1, 10, "ab"), SnapshotLine(9, 2, 20, "cd"))
    assert decode_index(encode_index(kept)) == kept
    for data in (b"", b"{}", b'{"format":1,"snapshots":[1]}'):
        with pytest.raises(JournalCorruptionError):
            decode_index(data)
    with pytest.raises(UnsupportedLayoutError):
        decode_index(b'{"format":2,"snapshots":[]}')


async def test_of_damaged_ones_an_older_is_loaded_and_none_is_passed_over_on_demand() -> None:
    cluster = await formatted()
    store = await store_on(cluster)
    for at in (5, 9):
        await store.save(TxId(at), [b"state at %d" % at])
    cluster.ledgers[2].entries[0] = b"something else"
    found = await store.load()
    assert found is not None and (found[0].at, found[1]) == (5, b"state at 5")
    with pytest.raises(JournalCorruptionError, match="9 is damaged"):
        await store.load(TxId(9))
    cluster.ledgers.clear()
    with pytest.raises(JournalCorruptionError, match="reading the snapshot at edit 9"):
        await store.load()


@pytest.mark.rule("C6")
async def test_what_replaces_and_removes_snapshots_deletes_their_ledgers() -> None:
    cluster = await formatted()
    store = await store_on(cluster)
    await store.save(TxId(5), [b"one"])
    await store.save(TxId(5), [b"two"])
    assert sorted(cluster.ledgers) == [2]
    await store.delete(TxId(5))
    assert cluster.ledgers == {} and await store.list() == ()


async def test_a_crash_while_saving_leaves_the_old_or_the_new() -> None:
    outcomes = set()
    for at in range(60):
        cluster = await formatted()
        store = await store_on(cluster)
        await store.save(TxId(5), [b"old"])
        cluster.die_after(at)
        try:
            await store.save(TxId(5), [b"new" * 1_000_000])
            saved = True
        except Died:
            saved = False
        cluster.die_after(None)
        found = await (await store_on(cluster)).load(TxId(5))
        assert found is not None and found[1] in (b"old", b"new" * 1_000_000)
        assert not saved or found[1] == b"new" * 1_000_000
        outcomes.add(saved)
        if saved:
            break
    assert outcomes == {True, False}
