from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import AddTimeoutError
from spark_wal.webhdfs import file_system
from spark_wal.webhdfs.content import BlobWriter, MemoryBlobs
from spark_wal.webhdfs.file_system import CreateOptions, cut
from spark_wal.webhdfs.inodes import BlobRef
from spark_wal.webhdfs.owner import Owner, OwnerConfig
from spark_wal.webhdfs.records import Rename, RenameMode, SetAttributes
from spark_wal.webhdfs.refusals import (
    DirectoryNotEmptyError,
    EndOfFileRefusal,
    FileExistsRefusal,
    NoSuchFileError,
    ParentNotDirectoryError,
)
from spark_wal.webhdfs.uploads import UploadLimits
from tests.spark_wal.webhdfs.virtual import HeldLog, in_virtual_time, owner_on, turns

TEMP = "/c/.0.0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f.tmp"
LIMITS = UploadLimits(inline_size=100, spill_size=200, budget=1000)


def options(*, overwrite: bool = True, create_parent: bool = True) -> CreateOptions:
    return CreateOptions(overwrite, create_parent, 0o644, "a", 1, 1 << 20)


def durable_owner(blobs: MemoryBlobs | None = None) -> Owner:
    log = HeldLog()
    log.held = False
    return owner_on(log, blobs=blobs, config=OwnerConfig(limits=LIMITS))


async def put(owner: Owner, path: str, data: bytes = b"x", *, overwrite: bool = True) -> None:
    upload = owner.uploads.begin()
    await upload.write(data)
    await file_system.finish_create(owner, path, upload, options(overwrite=overwrite))


async def content(owner: Owner, path: str, offset: int = 0, length: int | None = None) -> bytes:
    return b"".join([data async for data in await file_system.open_file(owner, path, offset, length)])


async def names(owner: Owner, path: str) -> list[str]:
    return [status.name for status in await file_system.listing(owner, path)]


@pytest.mark.rule("S4")
@in_virtual_time
async def test_s4_a_temporary_file_is_seen_and_is_in_no_record_until_it_is_renamed() -> None:
    owner = durable_owner()
    await file_system.make_directories(owner, "/c", 0o755, "a")
    await put(owner, TEMP, b"plan")
    assert owner.durable_txid == 1
    assert (await file_system.status(owner, TEMP)).length == 4
    assert await names(owner, "/c") == [TEMP[3:]]
    assert await content(owner, TEMP) == b"plan"
    await file_system.rename(owner, TEMP, "/c/0", RenameMode.NONE)
    assert owner.durable_txid == 2
    assert await names(owner, "/c") == ["0"]
    assert owner.uploads.in_memory == 0


@pytest.mark.rule("S1")
@in_virtual_time
async def test_s1_a_rename_that_is_refused_leaves_the_temporary_file() -> None:
    owner = durable_owner()
    await put(owner, "/c/0", b"first")
    await put(owner, TEMP, b"second")
    with pytest.raises(FileExistsRefusal):
        await file_system.rename(owner, TEMP, "/c/0", RenameMode.NONE)
    assert not await file_system.rename(owner, TEMP, "/c/0", RenameMode.BARE)
    assert await content(owner, TEMP) == b"second"
    assert await content(owner, "/c/0") == b"first"
    assert await file_system.delete(owner, TEMP, recursive=False)
    assert owner.uploads.in_memory == 0


@pytest.mark.rule("S4")
@in_virtual_time
async def test_s4_a_rename_repeated_while_the_first_waits_for_the_disk_succeeds_with_it() -> None:
    log = HeldLog()
    owner = owner_on(log)
    making = asyncio.ensure_future(file_system.make_directories(owner, "/c", 0o755, "a"))
    await turns()
    log.release()
    await making
    await put(owner, TEMP)
    first = asyncio.ensure_future(file_system.rename(owner, TEMP, "/c/0", RenameMode.NONE))
    await turns()
    second = asyncio.ensure_future(file_system.rename(owner, TEMP, "/c/0", RenameMode.NONE))
    await turns()
    assert not first.done()
    assert not second.done()
    log.release()
    assert await first
    assert await second
    assert len(log.ops) == 2


@in_virtual_time
async def test_anything_else_makes_a_temporary_file_an_ordinary_one() -> None:
    owner = durable_owner()
    for change in (
        lambda: file_system.set_attributes(owner, SetAttributes(TEMP, permission=0o600)),
        lambda: file_system.finish_append(owner, TEMP, owner.uploads.begin()),
        lambda: file_system.rename(owner, "/c", "/d", RenameMode.BARE),
    ):
        await put(owner, TEMP)
        assert owner.temps.get(TEMP) is not None
        await change()
        assert owner.temps.get(TEMP) is None
        settled = TEMP if owner.namespace.find("/c").node is not None else "/d" + TEMP[2:]
        assert await content(owner, settled) == b"x"
        await file_system.delete(owner, settled, recursive=False)


@in_virtual_time
async def test_removing_a_directory_removes_the_temporary_files_below() -> None:
    owner = durable_owner()
    await put(owner, TEMP, bytes(50))
    with pytest.raises(DirectoryNotEmptyError):
        await file_system.delete(owner, "/c", recursive=False)
    assert await file_system.delete(owner, "/c", recursive=True)
    assert len(owner.temps) == 0
    assert owner.uploads.in_memory == 0


@pytest.mark.rule("S2")
@in_virtual_time
async def test_s2_a_refused_upload_leaves_nothing() -> None:
    blobs = MemoryBlobs()
    owner = durable_owner(blobs)
    await put(owner, "/a")
    for size in (10, 500):
        with pytest.raises(FileExistsRefusal):
            await put(owner, "/a", bytes(size), overwrite=False)
        with pytest.raises(ParentNotDirectoryError):
            await put(owner, "/a/b", bytes(size))
    await turns()
    assert owner.uploads.in_memory == 0
    assert not blobs.blobs


class Failing(MemoryBlobs):
    """Takes bytes, and cannot make them durable."""

    async def create(self, epoch: int) -> BlobWriter:
        writer = await super().create(epoch)

        async def finish() -> None:
            raise AddTimeoutError("no ack quorum")

        writer.finish = finish  # type: ignore[method-assign]
        return writer


@pytest.mark.rule("S2")
@in_virtual_time
async def test_s2_an_upload_that_cannot_become_durable_leaves_nothing() -> None:
    blobs = Failing()
    owner = durable_owner(blobs)
    for size in (150, 500):
        with pytest.raises(AddTimeoutError):
            await put(owner, "/a", bytes(size))
    await turns()
    assert owner.namespace.find("/a").node is None
    assert owner.uploads.in_memory == 0
    assert not blobs.blobs


@in_virtual_time
async def test_appends_add_up_whatever_their_size() -> None:
    owner = durable_owner()
    await put(owner, "/a", b"")
    expected = b""
    for size in (10, 150, 500, 1):
        upload = owner.uploads.begin()
        data = bytes([size % 256]) * size
        await upload.write(data)
        await file_system.finish_append(owner, "/a", upload)
        expected += data
        assert await content(owner, "/a") == expected
    assert await content(owner, "/a", 5, 200) == expected[5:205]
    assert await content(owner, "/a", len(expected)) == b""
    with pytest.raises(EndOfFileRefusal):
        await content(owner, "/a", len(expected) + 1)


@in_virtual_time
async def test_without_create_parent_a_missing_parent_is_told() -> None:
    owner = durable_owner()
    upload = owner.uploads.begin()
    with pytest.raises(NoSuchFileError):
        await file_system.finish_create(owner, "/no/f", upload, options(create_parent=False))


@in_virtual_time
async def test_a_summary_counts() -> None:
    owner = durable_owner()
    await put(owner, "/c/a/1", bytes(10))
    await put(owner, "/c/2", bytes(20))
    found = await file_system.summary(owner, "/c")
    assert (found.directories, found.files, found.length) == (2, 2, 30)


def test_cutting_pieces() -> None:
    pieces = (b"0123", BlobRef("b", 10, 4), b"89")
    assert cut(pieces, 0, 10) == [b"0123", BlobRef("b", 10, 4), b"89"]
    assert cut(pieces, 2, 5) == [b"23", BlobRef("b", 10, 1)]
    assert cut(pieces, 5, 7) == [BlobRef("b", 11, 2)]
    assert cut(pieces, 4, 4) == []


def test_a_rename_record_is_not_made_of_names_alone() -> None:
    assert Rename("/a", "/b", RenameMode.NONE, 1).carried is None
