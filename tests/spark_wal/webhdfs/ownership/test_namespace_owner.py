from __future__ import annotations

import asyncio

import pytest

from journal_manager import JournalFencedError, Op, TxId
from spark_wal.webhdfs.config import OwnerConfig
from spark_wal.webhdfs.contents.blob_store import MemoryBlobs
from spark_wal.webhdfs.errors import NoSuchFileError, PathExistsError
from spark_wal.webhdfs.files.inodes import BlobRef
from spark_wal.webhdfs.files.records import (
    DeletePath,
    MakeDirectories,
    NewFile,
    PutFile,
    RecordFormatError,
    Rename,
    RenameMode,
    encode_record,
)
from spark_wal.webhdfs.ownership import file_system
from spark_wal.webhdfs.ownership.namespace_owner import NotOwnerError
from tests.spark_wal.webhdfs.virtual import HeldLog, Snapshots, Switch, in_virtual_time, owner_on, turns


def put(path: str, data: bytes = b"x", *, overwrite: bool = False) -> PutFile:
    return PutFile(path, NewFile((data,), 0o644, "a", 1, 1 << 20, 1), overwrite)


@pytest.mark.rule("S4")
@in_virtual_time
async def test_s4_a_change_is_answered_when_it_is_durable_and_not_before() -> None:
    log = HeldLog()
    owner = owner_on(log)
    change = asyncio.ensure_future(owner.change(put("/a")))
    await turns()
    assert not change.done()
    log.release()
    assert (await change).changed


@pytest.mark.rule("S3")
@in_virtual_time
async def test_s3_nobody_is_shown_what_is_not_durable() -> None:
    log = HeldLog()
    owner = owner_on(log)
    changes = [asyncio.ensure_future(owner.change(put(f"/d/{name}"))) for name in "ab"]
    await turns()
    looks = [
        asyncio.ensure_future(look)
        for look in (
            file_system.status(owner, "/d/a"),
            file_system.listing(owner, "/d"),
            file_system.open_file(owner, "/d/b", 0, None),
            file_system.summary(owner, "/"),
        )
    ]
    missing = asyncio.ensure_future(file_system.status(owner, "/d/c"))
    await turns()
    assert not any(look.done() for look in [*looks, missing])
    log.release()
    await asyncio.gather(*looks, *changes)
    with pytest.raises(NoSuchFileError):
        await missing


@pytest.mark.rule("S3")
@in_virtual_time
async def test_s3_a_look_at_something_durable_does_not_wait() -> None:
    log = HeldLog()
    owner = owner_on(log)
    first = asyncio.ensure_future(owner.change(put("/done/a")))
    await turns()
    log.release()
    await first
    second = asyncio.ensure_future(owner.change(put("/pending/a")))
    await turns()
    assert (await file_system.status(owner, "/done/a")).length == 1
    assert [s.name for s in await file_system.listing(owner, "/done")] == ["a"]
    log.release()
    await second


@pytest.mark.rule("S1")
@in_virtual_time
async def test_s1_a_refusal_that_rests_on_an_undurable_record_waits_for_it() -> None:
    log = HeldLog()
    owner = owner_on(log)
    winner = asyncio.ensure_future(owner.change(put("/a", b"1")))
    loser = asyncio.ensure_future(owner.change(put("/a", b"2")))
    await turns()
    assert not loser.done()
    log.release()
    await winner
    with pytest.raises(PathExistsError):
        await loser


@in_virtual_time
async def test_many_changes_wait_for_one_group_commit() -> None:
    log = HeldLog()
    owner = owner_on(log)
    changes = [asyncio.ensure_future(owner.change(put(f"/{n}"))) for n in range(50)]
    await turns()
    assert len(log.ops) == 50
    log.release()
    await asyncio.gather(*changes)


@in_virtual_time
async def test_a_lost_journal_ends_the_session_without_an_answer() -> None:
    log = HeldLog()
    owner = owner_on(log)
    change = asyncio.ensure_future(owner.change(put("/a")))
    look = asyncio.ensure_future(file_system.status(owner, "/a"))
    await turns()
    log.fail(JournalFencedError("another one", epoch=1))
    for pending in (change, look):
        with pytest.raises(NotOwnerError):
            await pending
    assert owner.failed.is_set()
    assert owner.fenced
    with pytest.raises(NotOwnerError):
        await file_system.status(owner, "/")


@pytest.mark.rule("S3")
@in_virtual_time
async def test_d22_without_the_lease_nothing_is_answered_from_memory() -> None:
    log, lease = HeldLog(), Switch()
    log.held = False
    owner = owner_on(log, lease=lease)
    await owner.change(put("/a"))
    lease.is_held = False
    with pytest.raises(NotOwnerError):
        await file_system.status(owner, "/a")
    with pytest.raises(NotOwnerError):
        await owner.change(put("/b"))
    assert len(log.ops) == 1


@in_virtual_time
async def test_a_caller_that_gives_up_takes_nothing_back() -> None:
    log = HeldLog()
    owner = owner_on(log)
    change = asyncio.ensure_future(owner.change(put("/a")))
    await turns()
    change.cancel()
    await turns()
    log.release()
    assert (await file_system.status(owner, "/a")).length == 1


# -- replay ----------------------------------------------------------------------------------------------


def ops(*records: PutFile | Rename | DeletePath | MakeDirectories) -> tuple[Op, ...]:
    return tuple(Op(opcode, TxId(n), body) for n, (opcode, body) in enumerate(map(encode_record, records), 1))


@in_virtual_time
async def test_a_replay_gives_the_same_tree() -> None:
    log = HeldLog()
    log.held = False
    first = owner_on(log)
    await first.change(put("/a/b"))
    await first.change(Rename("/a/b", "/a/c", RenameMode.NONE, 1))
    second = owner_on(HeldLog(2, tuple(log.ops)))
    await second.replay()
    assert [s.name for s in await file_system.listing(second, "/a")] == ["c"]
    assert second.namespace.sequence == 2


@pytest.mark.rule("S9")
@pytest.mark.parametrize("records", [(put("/a"), put("/a")), (DeletePath("/a", False, 1),)])
def test_s9_a_journal_that_does_not_fit_is_an_error(records: tuple[PutFile, ...]) -> None:
    @in_virtual_time
    async def replay() -> None:
        with pytest.raises(RecordFormatError):
            await owner_on(HeldLog(1, ops(*records))).replay()

    replay()


@pytest.mark.rule("S9")
@in_virtual_time
async def test_s9_a_journal_shorter_than_it_says_is_an_error() -> None:
    log = HeldLog(1, ops(put("/a"), put("/b")))
    del log.ops[1]
    with pytest.raises(RecordFormatError):
        await owner_on(log).replay()


@in_virtual_time
async def test_a_snapshot_is_taken_after_so_many_records_and_shortens_the_replay() -> None:
    log, snapshots = HeldLog(), Snapshots()
    log.held = False
    owner = owner_on(log, snapshots=snapshots, config=OwnerConfig(snapshot_records=10))
    for number in range(60):
        await owner.change(put(f"/{number}"))
        await turns()
    kept = sorted(snapshots.kept)
    assert len(kept) == 2, "the newest two"
    assert log.purged == kept[0] + 1, "edits go up to the older of the two"
    successor = owner_on(log, snapshots=snapshots)
    log.recovery = type(log.recovery)(log.token, (), (), TxId(len(log.ops)))
    await successor.replay()
    assert len(await file_system.listing(successor, "/")) == 60


@pytest.mark.parametrize(("names", "snapshots_at"), [(1, {11, 22, 33, 44, 55}), (60, {11, 35})])
@in_virtual_time
async def test_records_that_are_as_long_as_the_last_snapshot_make_the_next_one(
    names: int, snapshots_at: set[int]
) -> None:
    """A query changes few files again and again: a take-over replayed 50,000 such changes for seconds."""
    log, snapshots = HeldLog(), Snapshots()
    log.held = False
    owner = owner_on(log, snapshots=snapshots, config=OwnerConfig(snapshot_records_least=10))
    taken = set()
    for number in range(60):
        await owner.change(put(f"/{number % names}", overwrite=True))
        await turns()
        taken |= set(snapshots.kept)
    assert taken == snapshots_at


@pytest.mark.rule("S4")
@in_virtual_time
async def test_a_snapshot_never_holds_what_is_not_durable() -> None:
    log, snapshots = HeldLog(), Snapshots()
    owner = owner_on(log, snapshots=snapshots)
    change = asyncio.ensure_future(owner.change(put("/a")))
    await turns()
    saving = owner.begin_snapshot()
    await turns()
    assert not snapshots.kept
    log.release()
    await asyncio.gather(change, saving)
    assert list(snapshots.kept) == [1]


# -- blobs -----------------------------------------------------------------------------------------------


@in_virtual_time
async def test_orphans_of_earlier_owners_are_collected_and_nothing_else() -> None:
    blobs = MemoryBlobs()
    kept, orphan = await blobs.create(1), await blobs.create(1)
    running = await blobs.create(2)
    log = HeldLog(2)
    log.held = False
    owner = owner_on(log, blobs=blobs)
    large = NewFile((BlobRef(kept.blob, 0, 0),), 0o644, "a", 1, 1, 1)
    await owner.change(PutFile("/a", large, overwrite=False))
    assert await owner.collect_orphans() == 1
    assert set(blobs.blobs) == {kept.blob, running.blob}
    assert orphan.blob not in blobs.blobs


@in_virtual_time
async def test_a_removed_files_bytes_are_no_orphan_before_its_removal_is_durable() -> None:
    blobs = MemoryBlobs()
    kept = await blobs.create(1)
    log = HeldLog(2)
    log.held = False
    owner = owner_on(log, blobs=blobs)
    large = NewFile((BlobRef(kept.blob, 0, 0),), 0o644, "a", 1, 1, 1)
    await owner.change(PutFile("/a", large, overwrite=False))
    log.held = True
    removing = asyncio.ensure_future(owner.change(DeletePath("/a", False, 1)))
    await turns()
    collecting = asyncio.ensure_future(owner.collect_orphans())
    await turns()
    assert kept.blob in blobs.blobs, "the next owner may find the file there"
    log.release()
    await removing
    assert await collecting == 1


@in_virtual_time
async def test_the_bytes_of_a_removed_file_stay_for_a_while() -> None:
    blobs = MemoryBlobs()
    writer = await blobs.create(1)
    log = HeldLog()
    log.held = False
    owner = owner_on(log, blobs=blobs, config=OwnerConfig(delete_delay_s=60))
    large = NewFile((BlobRef(writer.blob, 0, 0),), 0o644, "a", 1, 1, 1)
    await owner.change(PutFile("/a", large, overwrite=False))
    await owner.change(DeletePath("/a", False, 1))
    await asyncio.sleep(59)
    assert writer.blob in blobs.blobs
    await asyncio.sleep(2)
    assert writer.blob not in blobs.blobs
