"""Snapshots as files: whole or not at all, and an older one when the newest is damaged."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper.testing.disk import NodeCrashed, SimDisk
from journal_manager import JournalCorruptionError, TxId, open_snapshots, open_writer
from journal_manager.backends.file_snapshots import decode, encode
from journal_manager.snapshots import SnapshotStore


async def store_on(disk: SimDisk) -> SnapshotStore:
    return await open_snapshots("file:///edits", files=disk, threads=False)


async def formatted() -> SimDisk:
    disk = SimDisk(Random(1))
    await open_writer("file:///edits", files=disk, threads=False)
    return disk


def test_bytes() -> None:
    data = encode(TxId(7), b"content")
    assert decode(data, TxId(7), "f") == b"content"
    for damaged in (b"", data[:-1], data + b"x", data[:20] + b"\xff" + data[21:], data[:-1] + b"T"):
        with pytest.raises(JournalCorruptionError):
            decode(damaged, TxId(7), "f")
    with pytest.raises(JournalCorruptionError):
        decode(data, TxId(8), "f")


async def test_of_damaged_ones_an_older_is_loaded_and_none_is_passed_over_on_demand() -> None:
    disk = await formatted()
    store = await store_on(disk)
    for at in (5, 9):
        await store.save(TxId(at), [b"state at %d" % at])
    disk.flip_bit("/edits/snapshot_0000000000000000009", 450)
    found = await store.load()
    assert found is not None and (found[0].at, found[1]) == (5, b"state at 5")
    with pytest.raises(JournalCorruptionError):
        await store.load(TxId(9))
    disk.flip_bit("/edits/snapshot_0000000000000000005", 450)
    with pytest.raises(JournalCorruptionError, match="9 is damaged"):
        await store.load()


@pytest.mark.rule("K2", "K3")
@pytest.mark.parametrize("keep", [0.0, 0.5, 1.0])
async def test_a_crash_while_saving_leaves_the_old_or_the_new(keep: float) -> None:
    outcomes = set()
    for at in range(40):
        disk = await formatted()
        store = await store_on(disk)
        await store.save(TxId(5), [b"old"])
        disk.die_after(at)
        try:
            await store.save(TxId(5), [b"new" * 1000])
            saved = True
        except NodeCrashed:
            saved = False
        disk.crash(keep=keep)
        found = await (await store_on(disk)).load(TxId(5))
        assert found is not None and found[1] in (b"old", b"new" * 1000)
        assert not saved or found[1] == b"new" * 1000
        outcomes.add(saved)
        await (await store_on(disk)).save(TxId(5), [b"newer"])
        if saved:
            break
    assert outcomes == {True, False}
