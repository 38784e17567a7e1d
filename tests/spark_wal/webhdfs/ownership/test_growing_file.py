from __future__ import annotations

import asyncio
import tracemalloc
from typing import Any, cast

import pytest

from bookkeeper.errors import AddTimeoutError
from spark_wal.webhdfs.config import OwnerConfig, UploadLimits
from spark_wal.webhdfs.contents.blob_store import BlobWriter, MemoryBlobs
from spark_wal.webhdfs.errors import NoSuchFileError, PathExistsError, PlainIOError, QuotaExceededError
from spark_wal.webhdfs.files.inodes import BlobRef, FileNode
from spark_wal.webhdfs.files.records import MoveToBlob, RenameMode, SetQuota, decode_record
from spark_wal.webhdfs.ownership import file_system
from spark_wal.webhdfs.ownership.growing_file import GrowingFile, settle_left_behind
from spark_wal.webhdfs.ownership.namespace_owner import NamespaceOwner, NotOwnerError
from tests.spark_wal.webhdfs.ownership.test_file_system import content, options, put
from tests.spark_wal.webhdfs.virtual import HeldLog, Switch, in_virtual_time, owner_on, turns

LOG = "/logs/app.inprogress"
LIMITS = UploadLimits(inline_size=100, spill_size=200, budget=10_000, file_bytes_max=20_000)


class Hall:
    """Owners, one after the other, of the same edits and blobs."""

    def __init__(self, limits: UploadLimits = LIMITS) -> None:
        self.blobs = MemoryBlobs()
        self.log = HeldLog()
        self.log.held = False
        self.config = OwnerConfig(limits=limits)
        self.owner = owner_on(self.log, blobs=self.blobs, config=self.config)

    async def next_owner(self) -> NamespaceOwner:
        """As after a kill: what is not durable is gone."""
        durable = tuple(self.log.ops[: self.log.durable_txid])
        self.log = HeldLog(self.log.token.epoch + 1, durable)
        self.log.held = False
        self.owner = owner_on(self.log, blobs=self.blobs, config=self.config)
        await self.owner.replay()
        return self.owner

    async def begin(self, path: str = LOG, *, overwrite: bool = False) -> GrowingFile:
        return await file_system.begin_growing(self.owner, path, options(overwrite=overwrite))


async def settled(owner: NamespaceOwner) -> None:
    """Until nothing goes on beside the uploads."""
    for _ in range(20):
        await turns()
        await asyncio.sleep(0.01)


def node_at(owner: NamespaceOwner, path: str) -> FileNode:
    node = owner.namespace.find(path).node
    assert isinstance(node, FileNode)
    return node


@pytest.mark.rule("S13")
@in_virtual_time
async def test_s13_what_was_received_is_durable_listed_and_read_a_second_later() -> None:
    """The cause: bytes entered the tree with an upload's last one. An event log, whose upload lasts as long as its
    application, could be read by nobody, and was lost with its writer or the gateway."""
    hall = Hall()
    growing = await hall.begin()
    assert await content(hall.owner, LOG) == b"", "it is there from the beginning"
    await growing.write(b"first ")
    await growing.write(b"second ")
    assert node_at(hall.owner, LOG).length == 0
    await asyncio.sleep(1.01)
    (listed,) = await file_system.listing(hall.owner, "/logs")
    assert (listed.name, listed.length) == ("app.inprogress", 13)
    await growing.write(b"third")
    successor = await hall.next_owner()
    assert await content(successor, LOG) == b"first second "


@pytest.mark.rule("S13")
@in_virtual_time
async def test_s13_nothing_is_shown_before_it_is_durable() -> None:
    hall = Hall()
    growing = await hall.begin()
    hall.log.held = True
    await growing.write(b"first")
    await asyncio.sleep(1.01)
    reading = asyncio.ensure_future(file_system.status(hall.owner, LOG))
    await turns()
    assert not reading.done()
    hall.log.release()
    assert (await reading).length == 5


@pytest.mark.rule("S13")
@in_virtual_time
async def test_s13_many_bytes_do_not_wait_for_the_second_to_pass() -> None:
    hall = Hall()
    growing = await hall.begin()
    await growing.write(bytes(250))
    assert node_at(hall.owner, LOG).length == 250
    await growing.write(b"the end")
    await growing.finish()
    await settled(hall.owner)
    assert await content(hall.owner, LOG) == bytes(250) + b"the end"
    assert (hall.owner.namespace.following, len(hall.owner.growing)) == (0, 0)


@pytest.mark.rule("S13")
@in_virtual_time
async def test_s13_an_upload_that_is_cut_leaves_what_has_come() -> None:
    hall = Hall()
    growing = await hall.begin()
    await growing.write(b"so far")
    await growing.cut()
    assert await content(hall.owner, LOG) == b"so far"
    assert (hall.owner.namespace.following, len(hall.owner.growing)) == (0, 0)


@in_virtual_time
async def test_an_owner_that_stops_in_order_keeps_what_has_come() -> None:
    hall = Hall()
    growing = await hall.begin()
    await growing.write(b"so far")
    await hall.owner.close()
    assert await content(await hall.next_owner(), LOG) == b"so far"


@pytest.mark.rule("S1")
@in_virtual_time
async def test_s1_a_second_writer_is_refused_or_takes_the_file_from_the_first() -> None:
    hall = Hall()
    first = await hall.begin()
    await first.write(b"old")
    with pytest.raises(PathExistsError):
        await hall.begin()
    second = await hall.begin(overwrite=True)
    await second.write(b"new")
    with pytest.raises(NoSuchFileError, match="was removed or replaced while it was written"):
        await first.finish()
    await second.finish()
    assert await content(hall.owner, LOG) == b"new"


@pytest.mark.rule("S4")
@in_virtual_time
async def test_s4_bytes_follow_a_file_that_is_renamed_and_not_one_that_is_removed() -> None:
    hall = Hall()
    growing = await hall.begin()
    await growing.write(b"one ")
    await file_system.rename(hall.owner, "/logs", "/kept", RenameMode.NONE)
    await growing.write(b"two")
    await asyncio.sleep(1.01)
    assert await content(hall.owner, "/kept/app.inprogress") == b"one two"
    await file_system.delete(hall.owner, "/kept", recursive=True)
    await growing.write(b"three")
    await asyncio.sleep(1.01)
    with pytest.raises(NoSuchFileError, match="was removed or replaced"):
        await growing.write(b"four")
    await growing.cut()


@pytest.mark.rule("S13")
@in_virtual_time
async def test_s13_after_bytes_that_were_refused_none_are_appended() -> None:
    """Later, fewer bytes may fit into the quota. They would stand where the refused ones belong."""
    hall = Hall()
    await hall.owner.change(SetQuota("/logs", 150, 1))
    growing = await hall.begin()
    await growing.write(bytes(100))
    with pytest.raises(QuotaExceededError):
        await growing.write(b"1" * 100)
    for _ in range(2):
        with pytest.raises(QuotaExceededError):
            await growing.write(b"2")
    await growing.cut()
    assert await content(hall.owner, LOG) == bytes(100)


@in_virtual_time
async def test_a_file_has_a_largest_size() -> None:
    hall = Hall()
    growing = await hall.begin()
    for _ in range(20):
        await growing.write(bytes(1000))
    with pytest.raises(PlainIOError, match="at most 20000 bytes"):
        await growing.write(b"1")


@in_virtual_time
async def test_one_that_is_not_the_owner_any_more_says_so() -> None:
    log, lease = HeldLog(), Switch()
    log.held = False
    owner = owner_on(log, lease=lease, config=OwnerConfig(limits=LIMITS))
    growing = await file_system.begin_growing(owner, LOG, options())
    await owner.close(abort=True)
    with pytest.raises(NotOwnerError):
        await growing.write(bytes(200))
    await growing.cut()


# -- tails ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("S13")
@in_virtual_time
async def test_a_long_tail_moves_to_a_blob_while_the_file_grows() -> None:
    """Bytes in records are in memory and in each snapshot: a log of a gigabyte would be, too."""
    hall = Hall()
    growing = await hall.begin()
    whole = b""
    for number in range(1500):
        data = b"%d " % number
        whole += data
        await growing.write(data)
        if number % 10 == 0:
            await turns(3)
    await growing.finish()
    await settled(hall.owner)
    node = node_at(hall.owner, LOG)
    assert await content(hall.owner, LOG) == whole
    assert await content(hall.owner, LOG, 300, 900) == whole[300:1200]
    blobs = list(node.blobs())
    assert 3 < len(blobs) < 20, "the longer the file the longer its pieces"
    assert sorted(hall.blobs.blobs) == sorted(blobs), "no other blob is left"
    assert sum(map(len, node.tail()[1])) <= LIMITS.inline_size
    successor = await hall.next_owner()
    assert await content(successor, LOG) == whole
    assert await successor.collect_orphans() == 0


@in_virtual_time
async def test_of_many_growing_files_the_one_with_the_longest_tail_makes_room() -> None:
    hall = Hall(UploadLimits(inline_size=100, spill_size=10_000, budget=1000))
    first, second = await hall.begin("/a.inprogress"), await hall.begin("/b.inprogress")
    await first.write(bytes(900))
    await second.write(bytes(200))
    await settled(hall.owner)
    assert [isinstance(piece, BlobRef) for piece in node_at(hall.owner, "/a.inprogress").pieces] == [True]
    assert not list(node_at(hall.owner, "/b.inprogress").blobs())
    assert first.tail == 0


@pytest.mark.parametrize("what", ["renamed", "replaced", "appended to"])
def test_what_happens_to_a_file_while_its_tail_moves(what: str) -> None:
    @in_virtual_time
    async def story() -> None:
        hall = Hall()
        growing = await hall.begin()
        await growing.write(bytes(190))
        moving = asyncio.ensure_future(growing.settle())
        path, expected, blobs = LOG, bytes(190), 1
        if what == "renamed":
            path = "/logs/app"
            await file_system.rename(hall.owner, LOG, path, RenameMode.NONE)
        elif what == "replaced":
            await put(hall.owner, LOG, b"another")
            expected, blobs = b"another", 0
        else:
            await growing.write(b"more")
            await growing.flush()
            expected += b"more"
        await moving
        await settled(hall.owner)
        assert await content(hall.owner, path) == expected
        assert len(list(node_at(hall.owner, path).blobs())) == len(hall.blobs.blobs) == blobs
        await growing.cut()

    story()


class Ailing(MemoryBlobs):
    """Makes no blob while it ails; says how many bytes moved at the same time at most."""

    ails = True
    moving = most = 0

    async def create(self, epoch: int) -> BlobWriter:
        if self.ails:
            raise AddTimeoutError("no bookie answers")
        writer: Any = await super().create(epoch)
        write, finish = writer.write, writer.finish

        async def slow(data: bytes) -> None:
            self.moving += len(data)
            self.most = max(self.most, self.moving)
            await asyncio.sleep(0.5)
            await write(data)

        async def end() -> None:
            await finish()
            self.moving = 0 if self.moving < 0 else self.moving - len(self.blobs[writer.blob])

        writer.write, writer.finish = slow, end
        return cast("BlobWriter", writer)


def ailing_hall(limits: UploadLimits = LIMITS) -> tuple[Hall, Ailing]:
    hall, ailing = Hall(limits), Ailing()
    hall.blobs = ailing
    hall.owner = owner_on(hall.log, blobs=ailing, config=hall.config)
    return hall, ailing


@in_virtual_time
async def test_who_appends_beyond_the_budget_waits_until_tails_have_moved() -> None:
    """Cause: beyond the budget one move was begun, and nobody waited for it: while no blob could be made the tails grew
    without a bound."""
    hall, ailing = ailing_hall(UploadLimits(inline_size=100, spill_size=10_000, budget=1000))
    files = [await hall.begin(f"/{number}.inprogress") for number in range(3)]
    writing = [asyncio.ensure_future(file.write(bytes(5000))) for file in files]
    await asyncio.sleep(60)
    held = sum(node_at(hall.owner, f"/{number}.inprogress").length for number in range(3))
    assert 1000 < held <= 1000 + 3 * 100 and not any(each.done() for each in writing)
    ailing.ails = False
    await asyncio.gather(*writing)
    for file in files:
        await file.finish()
    for number in range(3):
        assert await content(hall.owner, f"/{number}.inprogress") == bytes(5000)


@in_virtual_time
async def test_an_owner_that_stops_waits_for_no_tail_to_move() -> None:
    hall, _ = ailing_hall(UploadLimits(inline_size=100, spill_size=10_000, budget=1000))
    growing = await hall.begin()
    writing = asyncio.ensure_future(growing.write(bytes(5000)))
    await asyncio.sleep(5)
    async with asyncio.timeout(5):
        await hall.owner.close()
        await writing
    assert await content(await hall.next_owner(), LOG) == bytes(5000)


@in_virtual_time
async def test_tails_of_ended_uploads_move_a_few_at_a_time_and_again_until_they_have() -> None:
    """Cause: each upload that ended began a move of its own, however many there were. One that failed was not tried
    again: the tail stayed in memory, and in each snapshot, until the next owner."""
    hall, ailing = ailing_hall(UploadLimits(inline_size=100, spill_size=100, budget=1 << 20))
    paths = [f"/{number}.inprogress" for number in range(40)]
    for path in paths:
        growing = await hall.begin(path)
        await growing.write(bytes(190))
        await growing.finish()
    assert len(hall.owner.growing) == 40
    await asyncio.sleep(10)
    assert not ailing.blobs
    ailing.ails = False
    await asyncio.sleep(10)
    assert all(len(list(node_at(hall.owner, path).blobs())) == 1 for path in paths)
    assert 190 < ailing.most <= 16 * 100
    assert (len(hall.owner.growing), hall.owner.namespace.following, hall.owner.tail_moves.bytes) == (0, 0, 0)


@in_virtual_time
async def test_a_tail_that_an_ended_owner_left_is_tried_again() -> None:
    """Cause: as above, for those that the next owner moves."""
    hall, ailing = ailing_hall()
    growing = await hall.begin()
    await growing.write(bytes(500))
    successor = await hall.next_owner()
    settling = asyncio.ensure_future(settle_left_behind(successor))
    await asyncio.sleep(10)
    assert not settling.done()
    ailing.ails = False
    await settling
    assert len(list(node_at(successor, LOG).blobs())) == 1


@in_virtual_time
async def test_a_tail_whose_move_fails_stays_and_is_moved_later(caplog: pytest.LogCaptureFixture) -> None:
    hall, ailing = ailing_hall()
    growing = await hall.begin()
    await growing.write(bytes(500))
    await settled(hall.owner)
    assert "stay in memory for now: no bookie answers" in caplog.text
    assert await content(hall.owner, LOG) == bytes(500)
    ailing.ails = False
    await growing.write(b"the end")
    await growing.finish()
    await settled(hall.owner)
    assert len(list(node_at(hall.owner, LOG).blobs())) == 1


@in_virtual_time
async def test_the_next_owner_moves_the_tails_that_an_ended_one_left() -> None:
    hall = Hall(UploadLimits(inline_size=100, spill_size=10_000))
    growing = await hall.begin()
    await growing.write(bytes(500))
    small = await hall.begin("/small.inprogress")
    await small.write(bytes(50))
    await small.finish()
    successor = await hall.next_owner()
    await settle_left_behind(successor)
    assert len(list(node_at(successor, LOG).blobs())) == 1
    assert not list(node_at(successor, "/small.inprogress").blobs())
    assert await content(successor, LOG) == bytes(500)
    record = decode_record(hall.log.ops[-1].opcode, hall.log.ops[-1].body)
    assert isinstance(record, MoveToBlob)
    assert successor.namespace.following == 0


@pytest.mark.rule("S13")
@in_virtual_time
async def test_bytes_that_wait_and_came_two_at_a_time_take_little_more_memory_than_they_are() -> None:
    """Each piece was kept as an object of its own until its record was made: 28 times as much."""
    hall = Hall(UploadLimits())
    growing = await hall.begin()
    tracemalloc.start()
    try:
        for number in range(20_000):
            await growing.write(number.to_bytes(2, "big"))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 3 * 40_000
    await growing.finish()
    assert await content(hall.owner, LOG) == b"".join(number.to_bytes(2, "big") for number in range(20_000))
