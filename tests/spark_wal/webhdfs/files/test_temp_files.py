from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import ConfigError
from spark_wal.webhdfs.config import OwnerConfig, UploadLimits
from spark_wal.webhdfs.contents.blob_store import MemoryBlobs
from spark_wal.webhdfs.files.inodes import FileNode
from spark_wal.webhdfs.files.records import RenameMode, SetAttributes
from spark_wal.webhdfs.files.temp_files import AbandonedFiles, TempFile
from spark_wal.webhdfs.ownership import file_system
from spark_wal.webhdfs.ownership.namespace_owner import PENDING_BYTES_MAX, NamespaceOwner, NotOwnerError
from tests.spark_wal.webhdfs.ownership.test_file_system import append, content, names, put
from tests.spark_wal.webhdfs.virtual import HeldLog, LoopClock, Snapshots, Switch, in_virtual_time, owner_on, turns

DAY_S, HOUR_S = 24 * 3600, 3600
LIMITS = UploadLimits(inline_size=100, spill_size=200)


def name(number: int) -> str:
    return f".{number}.0a1b2c3d-0a1b-2c3d-4e5f-{number:012x}.tmp"


def temp(number: int, touched_ms: int = 0) -> TempFile:
    node = FileNode(number, 0o644, "a", "g", touched_ms, 0, (b"x",), 1, 1, 1, touched_ms=touched_ms)
    return TempFile(f"/c/{name(number)}", node)


def durable(**config: object) -> NamespaceOwner:
    log = HeldLog()
    log.held = False
    return owner_on(log, config=OwnerConfig(limits=LIMITS, **config))  # type: ignore[arg-type]


# -- the machine -----------------------------------------------------------------------------------------


def test_a_file_goes_at_the_second_look_that_finds_it_untouched_for_long_enough() -> None:
    machine = AbandonedFiles(100)
    old, young = temp(1), temp(2, touched_ms=50_000)
    assert machine.abandoned([old, young], 99_999) == []
    assert machine.abandoned([old, young], 100_000) == []
    assert machine.abandoned([old, young], 100_001) == [old]


def test_who_is_touched_between_two_looks_stays() -> None:
    machine = AbandonedFiles(100)
    one = temp(1)
    assert machine.abandoned([one], 200_000) == []
    machine.touch(one.node, 200_001)
    assert machine.abandoned([one], 200_002) == []
    assert machine.abandoned([one], 300_001) == []
    assert machine.abandoned([one], 300_002) == [one]


def test_who_is_touched_needs_two_looks_of_its_own() -> None:
    machine = AbandonedFiles(100)
    one = temp(1)
    assert machine.abandoned([one], 200_000) == []
    machine.touch(one.node, 200_001)
    assert machine.abandoned([one], 300_001) == []
    assert machine.abandoned([one], 300_002) == [one]


def test_a_clock_that_is_set_ahead_takes_no_file_from_under_its_rename() -> None:
    machine = AbandonedFiles(100)
    assert machine.abandoned([temp(1, touched_ms=1000)], 10_000_000) == []
    assert machine.abandoned([temp(2, touched_ms=1000)], 10_000_001) == [], "another file: the first has been renamed"


def test_what_is_known_of_files_is_forgotten_with_them() -> None:
    machine = AbandonedFiles(100)
    one = temp(1)
    machine.touch(one.node, 1_000_000)
    machine.abandoned([], 1)
    machine.abandoned([one], 200_000)
    assert machine.abandoned([one], 200_000) == [one]


@pytest.mark.parametrize(
    ("keep_s", "interval_s"), [(DAY_S, HOUR_S), (0, None), (1, 1), (240, 10), (30 * DAY_S, HOUR_S)]
)
def test_how_often_it_checks(keep_s: float, interval_s: float | None) -> None:
    assert AbandonedFiles(keep_s).check_interval_s == interval_s


def test_never_is_never() -> None:
    machine = AbandonedFiles(0)
    assert [machine.abandoned([temp(1)], 10**15) for _ in range(3)] == [[]] * 3


@pytest.mark.parametrize("keep_s", [-1, float("inf"), float("nan")])
def test_nonsense_is_refused(keep_s: float) -> None:
    with pytest.raises(ConfigError, match="an untouched temporary file stays for"):
        OwnerConfig(temporary_keep_s=keep_s)


# -- in a session ----------------------------------------------------------------------------------------


@pytest.mark.rule("S4")
@in_virtual_time
async def test_s4_a_temporary_file_that_nobody_touches_for_a_day_goes_by_a_record() -> None:
    """Acknowledged temporary files are in the journal, so one whose task died before the rename stays: without this
    they would add up for ever."""
    log, blobs = HeldLog(), MemoryBlobs()
    log.held = False
    owner = owner_on(log, blobs=blobs, config=OwnerConfig(limits=LIMITS))
    owner.begin_looking()
    await put(owner, f"/c/{name(1)}", b"left behind")
    await put(owner, f"/c/d/{name(2)}", bytes(500))
    await put(owner, "/c/.0.tmp", b"a name of somebody's own")
    await put(owner, "/c/0", b"a file")
    await asyncio.sleep(DAY_S - HOUR_S)
    await put(owner, f"/c/{name(3)}", b"young")
    await asyncio.sleep(3 * HOUR_S)
    assert await names(owner, "/c") == [".0.tmp", name(3), "0", "d"]
    assert await names(owner, "/c/d") == []
    assert not blobs.blobs, "its bytes go too"
    assert owner.namespace.temporary_files == 1
    successor = owner_on(HeldLog(2, tuple(log.ops)))
    await successor.replay()
    assert await names(successor, "/c") == [".0.tmp", name(3), "0", "d"]
    await owner.close()


@pytest.mark.parametrize("how", ["read", "append", "attributes", "rename", "rename above"])
def test_who_touches_a_temporary_file_keeps_it(how: str) -> None:
    @in_virtual_time
    async def story() -> None:
        owner = durable()
        owner.begin_looking()
        path = f"/c/{name(1)}"
        await put(owner, path)
        await asyncio.sleep(DAY_S - 1)
        if how == "read":
            await content(owner, path)
        elif how == "append":
            await append(owner, path, b"y")
        elif how == "attributes":
            await file_system.set_attributes(owner, SetAttributes(path, modified_ms=1))
        else:
            source, target = (path, f"/c/{name(2)}") if how == "rename" else ("/c", "/d")
            await file_system.rename(owner, source, target, RenameMode.NONE)
            path = target if how == "rename" else f"/d/{name(1)}"
        await asyncio.sleep(3 * HOUR_S)
        there = owner.namespace.find(path).node is not None
        assert there == (how != "rename above"), "a directory is not a file"
        await asyncio.sleep(DAY_S)
        assert owner.namespace.find(path).node is None
        await owner.close()

    story()


@in_virtual_time
async def test_a_time_that_a_client_sets_makes_no_file_older() -> None:
    """Tools that copy trees set the times of the copies to those of the originals, also of stale temporary files."""
    log, snapshots = HeldLog(), Snapshots()
    log.held = False
    first = owner_on(log, snapshots=snapshots)
    await put(first, f"/{name(1)}")
    await file_system.set_attributes(first, SetAttributes(f"/{name(1)}", modified_ms=1, accessed_ms=1))
    await first.begin_snapshot()
    second = owner_on(HeldLog(2, tuple(log.ops)), snapshots=snapshots)
    await second.replay()
    assert second.namespace.temporary_files == 1
    assert [await second.remove_left_behind() for _ in range(3)] == [0, 0, 0]


@in_virtual_time
async def test_who_is_renamed_while_the_journal_makes_room_stays() -> None:
    """Between the decision and the record there may be a pause: what was decided is looked at again after it."""
    log, clock = HeldLog(), LoopClock()
    log.held = False
    owner = owner_on(log, clock=clock)
    for number in (1, 2):
        await put(owner, f"/c/{name(number)}")
    clock.wall_offset = 2 * DAY_S
    assert await owner.remove_left_behind() == 0
    log.held = True
    removing = asyncio.ensure_future(owner.remove_left_behind())
    await asyncio.sleep(0.1)
    assert len(log.ops) == 3, "the first delete waits for the disk"
    renaming = asyncio.ensure_future(file_system.rename(owner, f"/c/{name(1)}", "/c/1", RenameMode.BARE))
    renamed = asyncio.ensure_future(file_system.rename(owner, f"/c/{name(2)}", "/c/2", RenameMode.BARE))
    await asyncio.sleep(0.1)
    log.held = False
    log.release()
    assert await removing == 1
    assert sorted([await renaming, await renamed]) == [False, True]
    assert len(await names(owner, "/c")) == 1


@pytest.mark.parametrize("how", ["read", "append", "replace"])
def test_who_is_touched_while_the_journal_makes_room_stays(how: str) -> None:
    """The journal is full for a while, at the moment between the decision and the record."""

    @in_virtual_time
    async def story() -> None:
        log, clock = HeldLog(), LoopClock()
        log.held = False
        owner = owner_on(log, clock=clock)
        path = f"/c/{name(1)}"
        await put(owner, path)
        clock.wall_offset = 2 * DAY_S
        assert await owner.remove_left_behind() == 0
        log.held = True
        numbers = range(PENDING_BYTES_MAX // 100_000 + 1)
        filled = [asyncio.ensure_future(put(owner, f"/{number}", bytes(100_000))) for number in numbers]
        await turns()
        if how != "read":
            change = {"append": append, "replace": put}[how]
            filled.append(asyncio.ensure_future(change(owner, path, b"new")))  # waits for room, before the delete does
            await turns()
        removing = asyncio.ensure_future(owner.remove_left_behind())
        await asyncio.sleep(1)
        if how == "read":
            assert await content(owner, path) == b"x"
        await asyncio.sleep(1)
        assert not removing.done()
        log.held = False
        log.release()
        assert await removing == 0
        await asyncio.gather(*filled)
        assert path[3:] in await names(owner, "/c")

    story()


@in_virtual_time
async def test_one_that_is_not_sure_to_be_the_owner_removes_nothing_and_goes_on_later() -> None:
    lease, log = Switch(), HeldLog()
    log.held = False
    owner = owner_on(log, lease=lease)
    owner.begin_looking()
    await put(owner, f"/{name(1)}")
    lease.is_held = False
    await asyncio.sleep(3 * DAY_S)
    assert owner.namespace.temporary_files == 1
    with pytest.raises(NotOwnerError):
        await owner.remove_left_behind()
    lease.is_held = True
    await asyncio.sleep(3 * HOUR_S)
    assert owner.namespace.temporary_files == 0
    await owner.close()
