"""Snapshots as files: whole or not at all, and an older one when the newest is damaged."""

from __future__ import annotations

import hashlib
from random import Random

import pytest

from bookkeeper.testing.world import NodeCrashed, SimDisk
from journal_manager import (
    JournalCorruptionError,
    JournalFencedError,
    JournalWriter,
    SnapshotNotFoundError,
    UnsupportedLayoutError,
    open_snapshots,
    open_writer,
)
from journal_manager.backends.file import FileWriter
from journal_manager.backends.file_snapshots import (
    HEADER_BYTES,
    PLAIN_BYTES,
    SnapshotHeader,
    decode_header,
    encode_header,
)
from journal_manager.snapshots.snapshots import SnapshotStore
from tests.contracts.journal_backend import write_segment


async def store_on(disk: SimDisk) -> SnapshotStore:
    return await open_snapshots("file:///edits", files=disk, threads=False)


async def writer_on(disk: SimDisk) -> JournalWriter:
    return await open_writer("file:///edits", files=disk, threads=False)


async def formatted() -> SimDisk:
    disk = SimDisk(Random(1))
    await write_segment(await writer_on(disk), 1, 9)
    return disk


def test_bytes() -> None:
    header = SnapshotHeader(7, 5, hashlib.sha256(b"state").digest())
    data = encode_header(header)
    assert len(data) == PLAIN_BYTES and decode_header(data + b"state", "f") == header
    for damaged in (b"", data[:-1], b"X" + data[1:]):
        with pytest.raises(JournalCorruptionError):
            decode_header(damaged, "f")
    with pytest.raises(UnsupportedLayoutError):
        decode_header(data[:5] + b"\x03" + data[6:], "f")


def test_a_snapshot_with_an_epoch_is_kept_from_earlier_programs() -> None:
    header = SnapshotHeader(7, 5, hashlib.sha256(b"state").digest(), 4)
    data = encode_header(header)
    assert (data[5], len(data)) == (2, HEADER_BYTES) and decode_header(data + b"state", "f") == header
    with pytest.raises(JournalCorruptionError):
        decode_header(data[:-1], "f")


async def test_the_file_of_format_1_is_header_and_content() -> None:
    disk = await formatted()
    await (await writer_on(disk)).save_snapshot(7, [b"sta", b"te"])
    header = SnapshotHeader(7, 5, hashlib.sha256(b"state").digest())
    assert disk.read_file("/edits/snapshot_0000000000000000007") == encode_header(header) + b"state"


async def test_of_damaged_ones_an_older_is_loaded_and_none_is_passed_over_on_demand() -> None:
    disk = await formatted()
    writer, store = await writer_on(disk), await store_on(disk)
    for at in (5, 9):
        await writer.save_snapshot(at, [b"state at %d" % at])
    disk.flip_bit("/edits/snapshot_0000000000000000009", 450)
    found = await store.load()
    assert found is not None and (found[0].at, found[1]) == (5, b"state at 5")
    with pytest.raises(JournalCorruptionError):
        await store.load(9)
    disk.flip_bit("/edits/snapshot_0000000000000000005", 450)
    with pytest.raises(JournalCorruptionError, match="9 is damaged"):
        await store.load()


async def test_a_file_under_another_id_s_name_or_of_another_length_is_damaged() -> None:
    disk = await formatted()
    writer, store = await writer_on(disk), await store_on(disk)
    await writer.save_snapshot(5, [b"state"])
    disk.rename("/edits/snapshot_0000000000000000005", "/edits/snapshot_0000000000000000008")
    with pytest.raises(JournalCorruptionError):
        await store.load()
    await writer.save_snapshot(5, [b"state"])
    file = disk.open("/edits/snapshot_0000000000000000005")
    file.truncate(PLAIN_BYTES + 4)
    with pytest.raises(JournalCorruptionError):
        await store.load(5)


async def test_a_claim_removes_what_a_dead_writer_had_begun() -> None:
    disk = await formatted()
    writer = await writer_on(disk)
    disk.die_after(8)
    with pytest.raises(NodeCrashed):
        await writer.save_snapshot(5, [b"state"])
    disk.crash(keep=1.0)
    assert any(name.endswith(".tmp") for name in disk.list("/edits"))
    await writer_on(disk)
    assert not any(name.endswith(".tmp") for name in disk.list("/edits"))


@pytest.mark.rule("K2", "K3")
@pytest.mark.parametrize("keep", [0.0, 0.5, 1.0])
async def test_a_crash_while_saving_leaves_the_old_or_the_new(keep: float) -> None:
    outcomes = set()
    for at in range(40):
        disk = await formatted()
        writer = await writer_on(disk)
        await writer.save_snapshot(5, [b"old"])
        disk.die_after(at)
        try:
            await writer.save_snapshot(5, [b"new" * 1000])
            saved = True
        except NodeCrashed:
            saved = False
        disk.crash(keep=keep)
        found = await (await store_on(disk)).load(5)
        assert found is not None and found[1] in (b"old", b"new" * 1000)
        assert not saved or found[1] == b"new" * 1000
        outcomes.add(saved)
        await (await writer_on(disk)).save_snapshot(5, [b"newer"])
        if saved:
            break
    assert outcomes == {True, False}


@pytest.mark.rule("J9")
@pytest.mark.parametrize("keep", [0.0, 1.0])
async def test_a_crash_while_adopting_keeps_the_offer_or_the_snapshot(keep: float) -> None:
    for at in range(20):
        disk = await formatted()
        writer = await writer_on(disk)
        await (await store_on(disk)).offer(5, [b"state"])
        disk.die_after(at)
        try:
            adopted = await writer.adopt_snapshots()
        except NodeCrashed:
            adopted = ()
        disk.crash(keep=keep)
        await (await writer_on(disk)).adopt_snapshots()
        found = await (await store_on(disk)).load()
        assert found is not None and found[1] == b"state"
        if adopted:
            return
    raise AssertionError("it never came to its end")


async def discarded(disk: SimDisk) -> FileWriter:
    """Edits 1 to 9, of which those from 5 on were discarded and written anew."""
    writer = await writer_on(disk)
    await write_segment(writer, 1, 4)
    await write_segment(writer, 5, 9)
    assert isinstance(writer, FileWriter)
    await writer.save_snapshot(4, [b"at 4"])
    await writer.save_snapshot(8, [b"at 8"])
    writer._place.discard_from(writer.token, 5)  # a crash has left the snapshot
    writer = await writer_on(disk)
    assert isinstance(writer, FileWriter)
    await write_segment(writer, 5, 9)
    return writer


@pytest.mark.rule("J10")
async def test_a_snapshot_of_what_was_discarded_is_none_also_while_its_file_is_there() -> None:
    disk = SimDisk(Random(1))
    await discarded(disk)
    assert disk.exists("/edits/snapshot_0000000000000000008")
    store = await store_on(disk)
    assert [info.at for info in await store.list()] == [4]
    with pytest.raises(SnapshotNotFoundError):
        await anext(store.read(8))


@pytest.mark.rule("J10", "J9")
async def test_a_damaged_snapshot_is_told_although_its_epoch_cannot_be_read() -> None:
    disk = SimDisk(Random(1))
    writer = await discarded(disk)
    await writer.save_snapshot(8, [b"at 8, again"])
    disk.flip_bit("/edits/snapshot_0000000000000000008", 8)
    store = await store_on(disk)
    assert [info.at for info in await store.list()] == [4, 8]
    with pytest.raises(JournalCorruptionError):
        await store.load(8)
    found = await store.load()
    assert found is not None and (found[0].at, found[1]) == (4, b"at 4")


@pytest.mark.rule("J1")
async def test_a_former_owner_is_told_also_when_there_is_nothing_to_adopt() -> None:
    disk = await formatted()
    former = await writer_on(disk)
    await writer_on(disk)
    with pytest.raises(JournalFencedError):
        await former.adopt_snapshots()
