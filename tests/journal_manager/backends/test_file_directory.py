"""A journal in a directory, through every crash: what was acknowledged is there, and the next writer can go on.

Every disk operation of a writer's life is a crash point: the process dies there (nothing written is lost), or
power is lost (what was not synced survives in part). Then the recovery crashes at each of its own steps.
"""

from __future__ import annotations

import asyncio
import errno
from random import Random

import pytest

from bookkeeper.testing.world import Fault, NodeCrashed, SimDisk
from journal_manager import (
    Discard,
    JournalCorruptionError,
    JournalDiskError,
    JournalFencedError,
    JournalLockedError,
    JournalUnavailableError,
    JournalWriter,
    NamespaceInfo,
    SegmentNotFoundError,
    TxId,
    Upgrade,
    UpgradeError,
    format_journal,
    open_reader,
    open_snapshots,
    open_writer,
)
from journal_manager.backends import file_format as form
from journal_manager.backends.file_directory import LOCK, JournalDirectory
from tests.contracts.journal_backend import batch, body, ends, txids, write_segment
from tests.contracts.journal_story import Story

DIRECTORY = "/edits"
URI = f"file://{DIRECTORY}"


class Disk(SimDisk):
    """With a rename that is atomic across a loss of power, as every journaling file system promises."""

    def rename(self, source: str, target: str) -> None:
        self.operation("rename", target)
        names, pending = self._directories[DIRECTORY].names, self._directories[DIRECTORY].pending
        old, new = source.rpartition("/")[2], target.rpartition("/")[2]
        inode = names[new] = names.pop(old)
        pending.append((f"rename {old}", new, inode))

    @staticmethod
    def _link(names, kind, name, inode) -> None:  # type: ignore[no-untyped-def]
        SimDisk._link(names, "link" if kind.startswith("rename") else kind, name, inode)
        if kind.startswith("rename") and names.get(kind[7:]) is inode:
            del names[kind[7:]]


async def writer_on(disk: SimDisk, owner: str = "a") -> JournalWriter:
    return await open_writer(URI, owner=owner, files=disk, threads=False)


def story_on(disk: SimDisk) -> Story:
    return Story(lambda: writer_on(disk))


def crashed(disk: SimDisk, story: Story, operations: int) -> bool:
    disk.die_after(operations)
    try:
        asyncio.run(story.live())
    except NodeCrashed:
        return True
    return False


@pytest.mark.rule("C4", "C7", "C8", "K1", "K2", "K3", "J2", "J5")
@pytest.mark.parametrize("keep", [None, 0.0, 0.5], ids=["process", "nothing", "half"])
def test_any_crash_of_a_writer_and_of_the_next_ones_recovery(keep: float | None) -> None:
    images = 0
    for at in range(400):
        disk = Disk(Random(at))
        disk.make_directories(DIRECTORY)
        story = story_on(disk)
        if not crashed(disk, story, at):
            break
        for again in range(0, 60, 11):
            images += 1
            disk.process_died() if keep is None else disk.crash(keep=keep)
            if not crashed(disk, story, again + at % 11):
                break
        disk.process_died() if keep is None else disk.crash(keep=keep)
        asyncio.run(story.check())
    else:
        pytest.fail("the story never came to its end")
    assert images > 300


@pytest.mark.rule("K23", "J8")
@pytest.mark.parametrize("operation", ["pwrite", "sync", "rename", "sync_directory", "open", "unlink"])
def test_any_failing_operation_leaves_a_journal_that_opens_once_the_fault_is_gone(operation: str) -> None:
    for after in range(60):
        disk = Disk(Random(after))
        disk.make_directories(DIRECTORY)
        story = story_on(disk)
        disk.faults = [Fault(operation=operation, code=errno.EIO, after=after, times=1, partial=True)]
        try:
            asyncio.run(story.live())
        except JournalUnavailableError:
            disk.faults = []
            disk.process_died()
            asyncio.run(story.check())
            continue
        break
    else:
        pytest.fail("the fault never came to an end")


@pytest.mark.rule("K23")
async def test_a_segment_takes_nothing_more_after_a_failed_sync() -> None:
    disk = Disk(Random(1))
    writer = await writer_on(disk)
    segment = await writer.start_segment(TxId(1), 1)
    disk.faults = [Fault(operation="sync", code=errno.EIO, times=1)]
    with pytest.raises(JournalUnavailableError):
        await segment.append(batch(1))
    with pytest.raises(Exception, match="failed"):
        await segment.append(batch(1))


@pytest.mark.rule("J6", "J2")
async def test_a_segment_with_a_failed_append_is_not_ended_below_what_a_reader_has_seen() -> None:
    """The record of a failed append may be whole in the file. A tail synced and delivered it, and the writer that ended
    its segment at the last durable edit cut it off."""
    disk = Disk(Random(1))
    writer = await writer_on(disk)
    segment = await writer.start_segment(TxId(1), 1)
    await segment.append(batch(1))
    disk.faults = [Fault(operation="sync", code=errno.EIO, times=1)]
    with pytest.raises(JournalUnavailableError):
        await segment.append(batch(2))
    reader = await open_reader(URI, files=disk, threads=False)
    assert await txids(reader) == [1, 2]
    await segment.close()
    with pytest.raises(JournalDiskError, match="open the journal anew"):
        await writer.finalize_segment(TxId(1), TxId(1))
    assert await txids(await writer_on(disk, "its successor")) == [1, 2]


@pytest.mark.rule("J6")
async def test_a_segment_whose_file_is_longer_than_what_was_written_is_not_cut() -> None:
    disk = Disk(Random(1))
    writer = await writer_on(disk)
    segment = await writer.start_segment(TxId(1), 1)
    await segment.append(batch(1))
    await segment.close()
    path = f"{DIRECTORY}/{form.in_progress_name(TxId(1))}"
    file = disk.open(path)
    file.pwrite(form.encode_record(batch(2)), file.size())
    with pytest.raises(JournalDiskError, match="open the journal anew"):
        await writer.finalize_segment(TxId(1), TxId(1))


@pytest.mark.rule("J1", "C5")
async def test_a_writer_of_a_directory_that_was_made_anew_is_told_although_the_epochs_are_the_same() -> None:
    """A claim was known by its epoch and its owner's name alone, and both came again: the former writer's edits went to
    a file that was removed, and were acknowledged."""
    disk = Disk(Random(1))
    old = await writer_on(disk)
    segment = await old.start_segment(TxId(1), 1)
    await segment.append(batch(1))
    reader = await open_reader(URI, files=disk, threads=False)
    (before,) = await reader.segments()
    for name in list(disk.list(DIRECTORY)):
        disk.unlink(f"{DIRECTORY}/{name}")
    new = await writer_on(disk)
    assert new.token == old.token
    another = await new.start_segment(TxId(1), 1)
    for attempt in (segment.append(batch(2)), old.ensure_owner(), old.purge(TxId(1)), old.save_snapshot(1, [b"x"])):
        with pytest.raises(JournalFencedError):
            await attempt
    await another.append(batch(1))
    assert [each.last async for each in reader.read(before, TxId(1))] == [1]


@pytest.mark.rule("J10")
async def test_a_name_that_is_used_again_is_another_segment() -> None:
    """A reader knew a final segment by its file's name, and gave its header to the segment that has the name now."""
    disk = Disk(Random(1))
    writer = await writer_on(disk)
    await write_segment(writer, 1, 3)
    await write_segment(writer, 4, 6)
    reader = await open_reader(URI, files=disk, threads=False)
    before = await reader.segments()
    assert [segment.epoch for segment in before] == [1, 1]
    assert isinstance(writer, Discard)
    await writer.discard_from(TxId(4))
    await write_segment(await writer_on(disk), 4, 6)
    assert [(segment.location, segment.epoch) for segment in await reader.segments()] == [
        (before[0].location, 1),
        (before[1].location, 2),
    ]
    with pytest.raises(SegmentNotFoundError, match="another segment"):
        await anext(reader.read(before[1], TxId(4)))


@pytest.mark.rule("J10")
async def test_a_segment_whose_header_is_damaged_does_not_count_as_discarded() -> None:
    """Its epoch is not known then; without it the next edits would get ids that are in use."""
    disk = Disk(Random(1))
    writer = await writer_on(disk)
    await write_segment(writer, 1, 3)
    await write_segment(writer, 4, 6)
    assert isinstance(writer, Discard)
    await writer.discard_from(TxId(4))
    await write_segment(await writer_on(disk), 4, 6)
    disk.flip_bit(f"{DIRECTORY}/{form.final_name(TxId(4), TxId(6))}", 8 * 20)
    reader = await open_reader(URI, files=disk, threads=False)
    with pytest.raises(JournalCorruptionError):
        await txids(reader)
    assert (await writer_on(disk)).recovery.last_txid == 6


@pytest.mark.rule("J10", "J5")
@pytest.mark.parametrize("step", ["roll_back", "discard", "format"])
@pytest.mark.parametrize("keep", [None, 0.0, 1.0])
def test_edits_are_discarded_at_once_with_their_snapshots_or_not_at_all(keep: float | None, step: str) -> None:
    """Files went one by one, snapshots first: a crash in between left edits whose snapshot was gone."""
    outcomes = set()
    for at in range(200):
        disk = Disk(Random(at))
        disk.make_directories(DIRECTORY)
        asyncio.run(going_back(disk, step))
        disk.die_after(at)
        try:
            if step == "format":
                asyncio.run(format_journal(URI, files=disk, threads=False, force=True))
            else:
                asyncio.run(step_back(disk, step))
            done = True
        except NodeCrashed:
            done = False
        disk.process_died() if keep is None else disk.crash(keep=keep)

        async def look(disk: SimDisk = disk) -> tuple[list[int], list[int]]:
            reader = await open_reader(URI, files=disk, threads=False)
            store = await open_snapshots(URI, files=disk, threads=False)
            seen = await txids(reader), [info.at for info in await store.list()]
            writer = await writer_on(disk)
            assert (await txids(writer), [info.at for info in await store.list()]) == seen
            first = len(seen[0]) + 1
            segment = await writer.start_segment(first, 1)
            await segment.append(batch(first, 8 - first))
            assert await txids(await writer_on(disk)) == list(range(1, 8)), "nothing that is left stands in its way"
            return seen

        edits, snapshots = asyncio.run(look())
        outcomes.add((tuple(edits), tuple(snapshots)))
        if done:
            break
    before, after = ((1, 2, 3, 4, 5, 6), (3, 6)), (((1, 2, 3), (3,)) if step != "format" else ((), ()))
    assert outcomes == {before, after}


@pytest.mark.rule("C7")
async def test_rot_in_the_middle_is_told_from_a_torn_tail() -> None:
    disk = Disk(Random(1))
    writer = await writer_on(disk)
    segment = await writer.start_segment(TxId(1), 1)
    for txid in (1, 2, 3):
        await segment.append(batch(txid))
    await segment.abort()
    path = f"{DIRECTORY}/{form.in_progress_name(TxId(1))}"
    record = len(form.encode_record(batch(1)))

    disk.flip_bit(path, 8 * (form.HEADER_BYTES + 2 * record + 30))  # the last record: as if torn
    assert ends((await writer_on(disk)).recovery.finalized) == [(1, 2)]

    writer = await writer_on(disk)
    segment = await writer.start_segment(TxId(3), 1)
    for txid in (3, 4):
        await segment.append(batch(txid))
    await segment.abort()
    disk.flip_bit(f"{DIRECTORY}/{form.in_progress_name(TxId(3))}", 8 * (form.HEADER_BYTES + 30))
    with pytest.raises(JournalCorruptionError) as caught:
        await writer_on(disk)
    assert caught.value.first_missing == 3


async def test_a_damaged_final_segment_spoils_only_its_own_edits() -> None:
    disk = Disk(Random(1))
    writer = await writer_on(disk)
    for first in (1, 4, 7):
        await write_segment(writer, first, first + 2)
    disk.flip_bit(f"{DIRECTORY}/{form.final_name(TxId(4), TxId(6))}", 8 * (form.HEADER_BYTES + 30))
    disk.flip_bit(f"{DIRECTORY}/{form.final_name(TxId(1), TxId(3))}", 8 * 20)
    reader = await open_reader(URI, files=disk, threads=False)
    assert len(await reader.segments()) == 3
    assert await txids(reader, 7) == [7, 8, 9]
    for start in (1, 4, 6):
        with pytest.raises(JournalCorruptionError):
            await txids(reader, start)
    assert (await writer_on(disk)).recovery.last_txid == 9


@pytest.mark.rule("C5")
async def test_what_a_stopped_writer_adds_later_goes_nowhere() -> None:
    """The claim comes between the record of the old writer and its look at the epoch."""
    disk = Disk(Random(1))
    old = await writer_on(disk, "old")
    segment = await old.start_segment(TxId(1), 1)
    await segment.append(batch(1))
    place = JournalDirectory(disk, DIRECTORY, lock_timeout_s=10.0)
    claimed = place.claim("new", None)
    with pytest.raises(JournalFencedError):
        await segment.append(batch(2))
    new = await writer_on(disk, "newer")
    assert claimed.last_txid == new.recovery.last_txid == 1
    await write_segment(new, 2, 2)
    assert [body(txid) for txid in await txids(new)] == [body(1), body(2)]


@pytest.mark.rule("C8")
async def test_a_reader_never_sees_an_edit_that_recovery_dropped() -> None:
    disk = Disk(Random(1))
    old = await writer_on(disk, "old")
    segment = await old.start_segment(TxId(1), 1)
    await segment.append(batch(1))
    reader = await open_reader(URI, files=disk, threads=False)
    before = await reader.segments()
    path = f"{DIRECTORY}/{form.in_progress_name(TxId(1))}"
    content = disk.read_file(path)
    await writer_on(disk, "new")
    zombie = disk.open(path, create=True)  # recovery was interrupted before its last step, and the zombie wrote on
    zombie.pwrite(content + form.encode_record(batch(2)), 0)
    assert [b.last async for b in reader.read(before[0], TxId(1))] == []
    assert await txids(reader) == [1]
    assert (await writer_on(disk, "newer")).recovery.last_txid == 1


def test_a_held_lock_is_reported_in_time() -> None:
    disk = Disk(Random(1))
    waits: list[float] = []
    place = JournalDirectory(disk, DIRECTORY, lock_timeout_s=0.1, sleep=waits.append)
    disk.make_directories(DIRECTORY)
    lock = disk.lock(f"{DIRECTORY}/{LOCK}")
    with pytest.raises(JournalLockedError, match=LOCK):
        place.format(namespace=NamespaceInfo(), force=False)
    assert 0.05 < sum(waits) < 0.3
    lock.release()


async def going_back(disk: SimDisk, step: str) -> None:
    """Edits 1 to 3 and a snapshot at 3; since an upgrade began, edits 4 to 6 and a snapshot at 6; then the step."""
    writer = await writer_on(disk)
    assert isinstance(writer, Upgrade) and isinstance(writer, Discard)
    await write_segment(writer, 1, 3)
    await writer.save_snapshot(3, [b"before"])
    if step == "roll_back":
        await writer.begin_upgrade(NamespaceInfo(layout_version=2))
    for first in (4, 5, 6):
        await write_segment(writer, first, first)
    await writer.save_snapshot(6, [b"since"])


async def step_back(disk: SimDisk, step: str) -> None:
    writer = await writer_on(disk)
    assert isinstance(writer, Upgrade) and isinstance(writer, Discard)
    await (writer.roll_back() if step == "roll_back" else writer.discard_from(4))


@pytest.mark.rule("J5", "J8")
@pytest.mark.parametrize("step", ["roll_back", "discard"])
@pytest.mark.parametrize("keep", [None, 0.0, 1.0])
def test_a_crash_while_edits_are_discarded_is_mended_by_doing_it_again(keep: float | None, step: str) -> None:
    crashes = 0
    for at in range(200):
        disk = Disk(Random(at))
        disk.make_directories(DIRECTORY)
        asyncio.run(going_back(disk, step))
        disk.die_after(at)
        try:
            asyncio.run(step_back(disk, step))
            done = True
        except NodeCrashed:
            done = False
            crashes += 1
        disk.process_died() if keep is None else disk.crash(keep=keep)

        async def mend(disk: SimDisk = disk) -> None:
            try:
                await step_back(disk, step)
            except UpgradeError:
                pass  # it had come to its end
            writer = await writer_on(disk)
            assert await txids(writer) == [1, 2, 3]
            store = await open_snapshots(URI, files=disk, threads=False)
            assert [info.at for info in await store.list()] == [3]
            await write_segment(writer, 4, 4)

        asyncio.run(mend())
        if done:
            break
    assert crashes > 10
