from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bookkeeper.errors import AddTimeoutError
from journal_manager import JournalFencedError
from spark_wal.webhdfs.config import OwnerConfig, UploadLimits
from spark_wal.webhdfs.contents.blob_store import BlobWriter, MemoryBlobs
from spark_wal.webhdfs.errors import (
    DirectoryNotEmptyError,
    EndOfFileError,
    NoSuchFileError,
    ParentNotDirectoryError,
    PathExistsError,
    PlainIOError,
)
from spark_wal.webhdfs.files.inodes import BlobRef, FileNode, cut
from spark_wal.webhdfs.files.numbered import NumberLimit, listing_digest
from spark_wal.webhdfs.files.records import RenameMode, SetAttributes
from spark_wal.webhdfs.ownership import file_system
from spark_wal.webhdfs.ownership.file_system import CreateOptions
from spark_wal.webhdfs.ownership.namespace_owner import PENDING_BYTES_MAX, NamespaceOwner, NotOwnerError
from tests.spark_wal.webhdfs.virtual import HeldLog, Switch, in_virtual_time, owner_on, turns

TEMP = "/c/.0.0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f.tmp"
LIMITS = UploadLimits(inline_size=100, spill_size=200, budget=1000)


def options(*, overwrite: bool = True, create_parent: bool = True) -> CreateOptions:
    return CreateOptions(overwrite, create_parent, 0o644, "a", 1, 1 << 20)


def durable_owner(blobs: MemoryBlobs | None = None) -> NamespaceOwner:
    log = HeldLog()
    log.held = False
    return owner_on(log, blobs=blobs, config=OwnerConfig(limits=LIMITS))


async def put(owner: NamespaceOwner, path: str, data: bytes = b"x", *, overwrite: bool = True) -> None:
    upload = owner.uploads.begin()
    await upload.write(data)
    await file_system.finish_create(owner, path, upload, options(overwrite=overwrite))


async def append(owner: NamespaceOwner, path: str, data: bytes) -> None:
    upload = owner.uploads.begin()
    await upload.write(data)
    await file_system.finish_append(owner, file_system.begin_append(owner, path), upload)


async def content(owner: NamespaceOwner, path: str, offset: int = 0, length: int | None = None) -> bytes:
    return b"".join([data async for data in await file_system.open_file(owner, path, offset, length)])


async def names(owner: NamespaceOwner, path: str) -> list[str]:
    return [status.name for status in await file_system.listing(owner, path)]


@pytest.mark.rule("S4")
@in_virtual_time
async def test_s4_a_temporary_file_is_durable_when_its_upload_is_answered() -> None:
    """Temporary files used to be remembered in memory until their rename: a gateway that ended in between had
    acknowledged bytes that nobody had any more, and the rename ended Spark's query."""
    log = HeldLog()
    owner = owner_on(log)
    answer = asyncio.ensure_future(put(owner, TEMP, b"plan"))
    await turns()
    assert not answer.done(), "the bytes are in no journal yet"
    log.release()
    await answer
    successor = owner_on(HeldLog(2, tuple(log.ops)))
    await successor.replay()
    assert await content(successor, TEMP) == b"plan"
    assert await names(successor, "/c") == [TEMP[3:]]
    assert owner.uploads.in_memory == 0


@pytest.mark.rule("S4")
@pytest.mark.parametrize("size", [4, 150, 500])
def test_s4_a_rename_comes_after_another_gateway_has_taken_over(size: int) -> None:
    """The client uploads a temporary file to one gateway and renames it at the next: whatever its size, inline or a
    blob of its own, the file is there."""

    @in_virtual_time
    async def story() -> None:
        blobs, log = MemoryBlobs(), HeldLog()
        log.held = False
        first = owner_on(log, blobs=blobs, config=OwnerConfig(limits=LIMITS))
        await put(first, TEMP, bytes(size))
        log = HeldLog(2, tuple(log.ops))
        log.held = False
        second = owner_on(log, blobs=blobs, config=OwnerConfig(limits=LIMITS))
        await second.replay()
        assert await second.collect_orphans() == 0
        assert await file_system.rename(second, TEMP, "/c/0", RenameMode.BARE)
        assert await names(second, "/c") == ["0"]
        assert await content(second, "/c/0") == bytes(size)

    story()


@in_virtual_time
async def test_the_rename_of_a_temporary_file_is_a_small_record() -> None:
    log = HeldLog()
    log.held = False
    owner = owner_on(log)
    await put(owner, TEMP, bytes(50_000))
    await file_system.rename(owner, TEMP, "/c/0", RenameMode.NONE)
    assert len(log.ops) == 2
    assert len(log.ops[1].body) < 250


@pytest.mark.rule("S1")
@in_virtual_time
async def test_s1_a_rename_that_is_refused_leaves_the_temporary_file() -> None:
    owner = durable_owner()
    await put(owner, "/c/0", b"first")
    await put(owner, TEMP, b"second")
    with pytest.raises(PathExistsError):
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
    log.held = False
    owner = owner_on(log)
    await put(owner, TEMP)
    log.held = True
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


@pytest.mark.rule("S4")
@in_virtual_time
async def test_s4_a_rename_while_the_lease_is_not_certain_leaves_the_temporary_file() -> None:
    """A lease renewal that came late made the rename of that moment forget the temporary file: it was taken out of
    memory before the record was refused, and the client's repetition found no source."""
    lease = Switch()
    log = HeldLog()
    log.held = False
    owner = owner_on(log, lease=lease)
    await put(owner, TEMP, b"plan")
    lease.is_held = False
    with pytest.raises(NotOwnerError):
        await file_system.rename(owner, TEMP, "/c/0", RenameMode.NONE)
    lease.is_held = True
    assert await file_system.rename(owner, TEMP, "/c/0", RenameMode.NONE)
    assert await content(owner, "/c/0") == b"plan"


@pytest.mark.rule("S2")
@pytest.mark.parametrize("size", [50, 150, 500])
@pytest.mark.parametrize("append", [False, True])
def test_s2_an_upload_that_ends_while_the_lease_is_not_certain_leaves_nothing(size: int, append: bool) -> None:
    """A lease renewal that came late left the uploads of that moment in the budget, and their blobs in the store, for
    as long as the gateway went on: nobody knew them, and nobody gave them up."""

    @in_virtual_time
    async def story() -> None:
        blobs, lease, log = MemoryBlobs(), Switch(), HeldLog()
        log.held = False
        owner = owner_on(log, lease=lease, blobs=blobs, config=OwnerConfig(limits=LIMITS))
        await put(owner, "/a", b"")
        upload = owner.uploads.begin()
        await upload.write(bytes(size))
        file = file_system.begin_append(owner, "/a")
        lease.is_held = False
        with pytest.raises(NotOwnerError):
            if append:
                await file_system.finish_append(owner, file, upload)
            else:
                await file_system.finish_create(owner, "/b", upload, options())
        await turns()
        assert owner.uploads.in_memory == 0
        assert not blobs.blobs

    story()


@pytest.mark.rule("S2")
@in_virtual_time
async def test_s2_bytes_that_the_tree_has_stay_whatever_becomes_of_the_answer() -> None:
    """The client goes away, or the journal ends, after the record was written: it may be durable, so its blob stays."""
    blobs, log = MemoryBlobs(), HeldLog()
    owner = owner_on(log, blobs=blobs, config=OwnerConfig(limits=LIMITS))
    answers = [asyncio.ensure_future(put(owner, path, bytes(150))) for path in ("/a", "/b")]
    await turns()
    answers[0].cancel()
    await turns()
    log.fail(JournalFencedError("another one", epoch=2))
    with pytest.raises(NotOwnerError):
        await answers[1]
    await turns()
    assert len(blobs.blobs) == 2
    assert owner.uploads.in_memory == 0


@in_virtual_time
async def test_a_temporary_file_is_a_file_like_any_other() -> None:
    owner = durable_owner()
    await put(owner, TEMP, b"1")
    await file_system.set_attributes(owner, SetAttributes(TEMP, permission=0o600))
    await append(owner, TEMP, b"2")
    await file_system.rename(owner, "/c", "/d", RenameMode.BARE)
    moved = "/d" + TEMP[2:]
    assert (await content(owner, moved), (await file_system.status(owner, moved)).permission) == (b"12", 0o600)
    with pytest.raises(DirectoryNotEmptyError):
        await file_system.delete(owner, "/d", recursive=False)
    assert await file_system.delete(owner, "/d", recursive=True)
    assert owner.namespace.temporary_files == 0


# -- an append, and what others do meanwhile --------------------------------------------------------------


@pytest.mark.rule("S4")
@pytest.mark.parametrize(("source", "target"), [("/c/a", "/c/b"), ("/c", "/d"), ("/c/a", "/e")])
def test_s4_what_is_appended_goes_along_with_a_rename(source: str, target: str) -> None:
    """An append looked its file up by name when the last byte had come: one that had been renamed meanwhile, itself or
    by a directory above it, lost the append, and another that had taken the name got it."""

    @in_virtual_time
    async def story() -> None:
        owner = durable_owner()
        await put(owner, "/c/a", b"1")
        upload = owner.uploads.begin()
        file = file_system.begin_append(owner, "/c/a")
        await upload.write(b"2")
        await file_system.rename(owner, source, target, RenameMode.NONE)
        await put(owner, "/c/a", b"another")
        await upload.write(b"3")
        await file_system.finish_append(owner, file, upload)
        assert await content(owner, target + "/c/a"[len(source) :]) == b"123"
        assert await content(owner, "/c/a") == b"another"

    story()


@pytest.mark.parametrize("how", ["delete", "replace", "delete the directory", "put a file in its place"])
def test_what_is_appended_to_a_file_that_was_removed_meanwhile_is_refused(how: str) -> None:
    @in_virtual_time
    async def story() -> None:
        log = HeldLog()
        log.held = False
        owner = owner_on(log)
        await put(owner, "/c/a", b"1")
        upload = owner.uploads.begin()
        file = file_system.begin_append(owner, "/c/a")
        await upload.write(b"2")
        if how != "replace":
            await file_system.delete(owner, "/c" if "directory" in how or "place" in how else "/c/a", recursive=True)
        if how in ("replace", "put a file in its place"):
            await put(owner, "/c/a" if how == "replace" else "/c", b"another")
        with pytest.raises(NoSuchFileError, match="removed while it was appended to"):
            await file_system.finish_append(owner, file, upload)
        assert owner.uploads.in_memory == 0

    story()


@pytest.mark.rule("S2", "S4")
@in_virtual_time
async def test_an_append_goes_to_its_file_though_that_is_renamed_while_the_journal_makes_room() -> None:
    """Where the file is, and what its bytes are, is asked when there is room: a record made before that would name a
    place at which another file is by now."""
    log = HeldLog()
    log.held = False
    owner = owner_on(log)
    await put(owner, "/a", b"1")
    log.held = True
    numbers = range(PENDING_BYTES_MAX // 100_000 + 1)
    filled = [asyncio.ensure_future(put(owner, f"/{number}", bytes(100_000))) for number in numbers]
    await turns()
    renaming = asyncio.ensure_future(file_system.rename(owner, "/a", "/b", RenameMode.BARE))
    making = asyncio.ensure_future(put(owner, "/a", b"another"))
    await turns()
    appending = asyncio.ensure_future(append(owner, "/a", b"2"))
    await turns()
    assert owner.namespace.following == 1 and not appending.done()
    log.held = False
    log.release()
    await asyncio.gather(*filled, making, appending)
    assert await renaming
    assert (await content(owner, "/b"), await content(owner, "/a")) == (b"12", b"another")


@pytest.mark.rule("S3")
@in_virtual_time
async def test_s3_that_a_file_was_removed_is_told_when_it_is_durable() -> None:
    log = HeldLog()
    log.held = False
    owner = owner_on(log)
    await put(owner, "/a", b"1")
    upload = owner.uploads.begin()
    await upload.write(b"2")
    file = file_system.begin_append(owner, "/a")
    log.held = True
    removing = asyncio.ensure_future(file_system.delete(owner, "/a", recursive=False))
    await turns()
    answer = asyncio.ensure_future(file_system.finish_append(owner, file, upload))
    await turns()
    assert not answer.done()
    log.release()
    await removing
    with pytest.raises(NoSuchFileError):
        await answer


# -- nothing is shown before it is durable ----------------------------------------------------------------


CHANGES: dict[str, Callable[[NamespaceOwner], Coroutine[Any, Any, object]]] = {
    "a child more": lambda owner: put(owner, "/d/c"),
    "a child less": lambda owner: file_system.delete(owner, "/d/a", recursive=False),
    "a child with another name": lambda owner: file_system.rename(owner, "/d/a", "/d/z", RenameMode.NONE),
    "a child's status": lambda owner: file_system.set_attributes(owner, SetAttributes("/d/a", permission=0)),
}

LOOKS: dict[str, Callable[[NamespaceOwner], Coroutine[Any, Any, object]]] = {
    "status": lambda owner: file_system.status(owner, "/d"),
    "listing": lambda owner: file_system.listing(owner, "/d"),
    "listing above": lambda owner: file_system.listing(owner, "/"),
    "first step of an append": lambda owner: file_system.check_append(owner, "/d/a"),
}

UNCONCERNED = {
    ("status", "a child's status"),
    ("listing above", "a child's status"),
    ("first step of an append", "a child more"),
}
"""Looks that show nothing of a change."""


@pytest.mark.rule("S3")
@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("change", CHANGES)
def test_s3_what_is_shown_of_a_directory_waits_for_its_own_changes(look: str, change: str) -> None:
    """A directory's status has the number of its children and the time of their last change, yet waited for the
    records of the directory itself only, not for those that made or removed its children."""

    @in_virtual_time
    async def story() -> None:
        log = HeldLog()
        log.held = False
        owner = owner_on(log)
        await put(owner, "/d/a", b"1")
        await put(owner, "/d/b", b"2")
        log.held = True
        changing = asyncio.ensure_future(CHANGES[change](owner))
        await turns()
        looking = asyncio.ensure_future(LOOKS[look](owner))
        await turns()
        assert looking.done() == ((look, change) in UNCONCERNED)
        log.release()
        await changing
        await asyncio.wait([looking])
        looking.exception()

    story()


@pytest.mark.rule("S2")
@in_virtual_time
async def test_s2_a_refused_upload_leaves_nothing() -> None:
    blobs = MemoryBlobs()
    owner = durable_owner(blobs)
    await put(owner, "/a")
    for size in (10, 500):
        with pytest.raises(PathExistsError):
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
        data = bytes([size % 256]) * size
        await append(owner, "/a", data)
        expected += data
        assert await content(owner, "/a") == expected
    assert await content(owner, "/a", 5, 200) == expected[5:205]
    assert await content(owner, "/a", len(expected)) == b""
    with pytest.raises(EndOfFileError):
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


@pytest.mark.rule("S2", "S4", "S11")
@pytest.mark.parametrize("back", [True, False])
def test_a_renewal_of_the_lease_that_is_late_loses_nothing_and_leaks_nothing(back: bool) -> None:
    """What was under way at that moment was refused as if the lease were lost, though the session went on when the
    renewal came: the bytes of an upload stayed in memory for good, and a rename had let go of its temporary file."""

    @in_virtual_time
    async def story() -> None:
        blobs, lease, log = MemoryBlobs(), Switch(), HeldLog()
        log.held = False
        owner = owner_on(log, blobs=blobs, lease=lease, config=OwnerConfig(limits=LIMITS))
        await put(owner, TEMP, b"acknowledged")
        uploads = [owner.uploads.begin() for _ in range(2)]
        await uploads[0].write(bytes(50))
        await uploads[1].write(bytes(500))
        lease.is_held = False
        asked = [
            asyncio.ensure_future(file_system.finish_create(owner, "/c/small", uploads[0], options())),
            asyncio.ensure_future(file_system.finish_create(owner, "/c/large", uploads[1], options())),
            asyncio.ensure_future(file_system.rename(owner, TEMP, "/c/0", RenameMode.NONE)),
            asyncio.ensure_future(file_system.delete(owner, "/none", recursive=False)),
        ]
        await asyncio.sleep(3)
        assert not any(each.done() for each in asked), "nothing is decided without the lease"
        assert len(log.ops) == 1
        if back:
            lease.is_held = True
            await asyncio.gather(*asked)
            assert await names(owner, "/c") == ["0", "large", "small"]
        else:
            failed = await asyncio.gather(*asked, return_exceptions=True)
            assert all(isinstance(error, NotOwnerError) for error in failed)
            lease.is_held = True
            assert await file_system.rename(owner, TEMP, "/c/0", RenameMode.NONE), "asked again it is done"
            assert await names(owner, "/c") == ["0"]
        assert await content(owner, "/c/0") == b"acknowledged"
        assert owner.uploads.in_memory == 0
        assert {info.blob for info in await blobs.list()} == owner.namespace.blobs()
        await owner.close()

    story()


@pytest.mark.rule("S2")
@in_virtual_time
async def test_s2_attributes_of_an_open_upload_come_with_the_file_or_not_at_all() -> None:
    """Cause: a group and an access time were set by a second record, by path, when the file was durable already. After
    a crash in between the group was missing, and another file that had the path by then got both."""
    log = HeldLog()
    owner = owner_on(log)
    log.held = False
    upload = owner.uploads.begin()
    file = file_system.begin_create(owner, "/c/f", options())
    await upload.write(b"mine")
    await file_system.set_attributes(owner, SetAttributes("/c/f", group="us", accessed_ms=9))
    log.held = True
    making = asyncio.ensure_future(file_system.finish_create(owner, "/c/f", upload, options(), file))
    await turns()
    moving = asyncio.ensure_future(file_system.rename(owner, "/c/f", "/c/g", RenameMode.NONE))
    stranger = asyncio.ensure_future(put(owner, "/c/f", b"of a stranger"))
    await turns()
    log.release()
    log.held = False
    await asyncio.gather(making, moving, stranger)
    owner.incoming.end(file)
    found = {name: await file_system.status(owner, f"/c/{name}") for name in ("f", "g")}
    assert (found["g"].group, found["g"].accessed_ms) == ("us", 9)
    assert found["f"].group != "us" and found["f"].accessed_ms != 9
    crashed = owner_on(HeldLog(2, tuple(log.ops[:1])))
    await crashed.replay()
    node = crashed.namespace.find("/c/f").node
    assert node is not None and (node.group, node.accessed_ms) == ("us", 9)


@in_virtual_time
async def test_attributes_of_a_file_that_was_moved_before_its_upload_was_answered_are_not_lost() -> None:
    """Cause: a file counted as open until its upload was answered. Attributes that were set after it had been moved
    were acknowledged, and nobody had them."""
    log = HeldLog()
    owner = owner_on(log)
    upload = owner.uploads.begin()
    file = file_system.begin_create(owner, "/f", options())
    await upload.write(b"mine")
    making = asyncio.ensure_future(file_system.finish_create(owner, "/f", upload, options(), file))
    await turns()
    moving = asyncio.ensure_future(file_system.rename(owner, "/f", "/g", RenameMode.NONE))
    await turns()
    setting = asyncio.ensure_future(file_system.set_attributes(owner, SetAttributes("/f", group="us")))
    await turns()
    log.release()
    await asyncio.gather(making, moving)
    with pytest.raises(NoSuchFileError):
        await setting


LIMIT = (NumberLimit("offsets", 1),)


def seen(owner: NamespaceOwner, *names: str) -> str:
    found = [(name, owner.namespace.find(f"/c/{name}").node) for name in names]
    return listing_digest((name, node.length, node.modified_ms) for name, node in found if isinstance(node, FileNode))


@in_virtual_time
async def test_files_above_a_number_go_by_one_edit_after_which_a_successor_finds_all_of_them_gone() -> None:
    log = HeldLog()
    log.held = False
    owner = owner_on(log)
    for number in range(4):
        await put(owner, f"/c/offsets/{number}")
    digest, edits = seen(owner, *(f"offsets/{n}" for n in range(4))), len(log.ops)
    assert await file_system.remove_numbered(owner, "/c", LIMIT, digest, 0)
    assert len(log.ops) == edits + 1
    successor = owner_on(HeldLog(2, tuple(log.ops)))
    await successor.replay()
    assert await names(successor, "/c/offsets") == ["0", "1"]


@in_virtual_time
async def test_files_above_a_number_stay_while_somebody_writes_there() -> None:
    owner = durable_owner()
    await put(owner, "/c/offsets/2")
    digest = seen(owner, "offsets/2")
    with pytest.raises(PlainIOError, match="ago by a: stop the query"):
        await file_system.remove_numbered(owner, "/c", LIMIT, digest, 5000)
    await asyncio.sleep(6)
    open_file = file_system.begin_create(owner, "/c/state/0/0/3.delta", options())
    with pytest.raises(PlainIOError, match="is being written now"):
        await file_system.remove_numbered(owner, "/c", LIMIT, digest, 5000)
    owner.incoming.end(open_file)
    await put(owner, "/c/offsets/3")
    with pytest.raises(PlainIOError, match="look again"):
        await file_system.remove_numbered(owner, "/c", LIMIT, digest, 0)
    with pytest.raises(NoSuchFileError):
        await file_system.remove_numbered(owner, "/none", LIMIT, digest, 0)
    assert await names(owner, "/c/offsets") == ["2", "3"]
    assert await file_system.remove_numbered(owner, "/c", LIMIT, seen(owner, "offsets/2", "offsets/3"), 0)
    assert await names(owner, "/c/offsets") == []


@in_virtual_time
async def test_a_time_that_a_client_gave_a_file_does_not_forbid_a_rollback_for_ever() -> None:
    """A file with a time of a later year counted as just written, whatever time without writes was asked for."""
    owner = durable_owner()
    await put(owner, "/c/offsets/1")
    await put(owner, "/c/offsets/2")
    later_ms = owner.clock.wall_ms() + 10 * 365 * 86_400_000
    await file_system.set_attributes(owner, SetAttributes("/c/offsets/1", modified_ms=later_ms))
    await asyncio.sleep(600)
    digest = seen(owner, "offsets/1", "offsets/2")
    with pytest.raises(PlainIOError, match=r"will be written in 3\d+\.0 s: a client gave it this time"):
        await file_system.remove_numbered(owner, "/c", LIMIT, digest, 5000)
    assert await names(owner, "/c/offsets") == ["1", "2"]
    assert await file_system.remove_numbered(owner, "/c", LIMIT, digest, 0)
    assert await names(owner, "/c/offsets") == ["1"]
