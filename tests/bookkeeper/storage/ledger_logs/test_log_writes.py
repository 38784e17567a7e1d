"""The files of ledgers' logs: made with their first bytes, synced when they give way, and told how far it came."""

from __future__ import annotations

import errno

import pytest

from bookkeeper.seams import File
from bookkeeper.storage.base.durable_file import BLOCK, SyncFailedError
from bookkeeper.storage.entry_log.entry_log_file import check_header
from bookkeeper.storage.ledger_logs.ledger_logs import LogWrite, WritePlan
from bookkeeper.storage.ledger_logs.log_writes import LogWriteResult, LogWrites
from tests.bookkeeper.storage.recording_disk import RecordingDisk


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def write(log_id: int, data: bytes, at: int = BLOCK, *, make: bool = True, keep: bool = True) -> LogWrite:
    return LogWrite(log_id, at, data, make, keep)


def carry_out(disk: RecordingDisk, plan: WritePlan, files: dict[int, File] | None = None) -> LogWriteResult:
    return LogWrites(disk, "/d", 7, 1).carry_out(plan, files or {})


def kinds(disk: RecordingDisk) -> list[tuple[str, str]]:
    return [(op.kind, op.path[-10:]) for op in disk.ops]


@pytest.mark.rule("K1")
def test_a_file_is_made_with_its_first_bytes_in_one_write(disk: RecordingDisk) -> None:
    done = carry_out(disk, WritePlan([write(1, b"first"), write(2, b"other")]))
    assert done.error is None and [each.log_id for each, _ in done.written] == [1, 2]
    assert kinds(disk) == [
        ("create", "000001.log"),
        ("write", "000001.log"),
        ("create", "000002.log"),
        ("write", "000002.log"),
    ]
    file = done.written[0][1]
    check_header(file, 1)
    assert file.pread(100, BLOCK) == b"first"
    more = carry_out(disk, WritePlan([write(1, b"second", BLOCK + 5, make=False)]), {1: file})
    assert more.written[0][1] is file and file.pread(100, BLOCK) == b"firstsecond"


@pytest.mark.rule("K5")
def test_what_gives_way_is_synced_by_the_descriptor_that_wrote_it(disk: RecordingDisk) -> None:
    first = carry_out(disk, WritePlan([write(1, b"a"), write(2, b"b")])).written
    files = {each.log_id: file for each, file in first}
    begin = len(disk.ops)
    plan = WritePlan([write(3, b"c", keep=False)], give_way=[(1, True), (2, False)])
    done = carry_out(disk, plan, files)
    assert kinds(disk)[begin:] == [
        ("sync", "000001.log"),
        ("create", "000003.log"),
        ("write", "000003.log"),
        ("sync", "000003.log"),
    ]
    assert done.gave_way == [1, 2] and not done.written[0][0].keep
    begin = len(disk.ops)
    carry_out(disk, WritePlan([write(1, b"x", BLOCK + 1, make=False)]))
    assert kinds(disk)[begin:] == [("write", "000001.log")], "its file is opened again"


@pytest.mark.rule("K26", "K28")
def test_the_first_error_ends_it_and_what_was_done_is_told(disk: RecordingDisk) -> None:
    disk.faults["write", "000002"] = OSError(errno.ENOSPC, "full")
    done = carry_out(disk, WritePlan([write(log_id, b"x") for log_id in (1, 2, 3)]))
    assert [each.log_id for each, _ in done.written] == [1]
    assert isinstance(done.error, OSError) and done.error.errno == errno.ENOSPC
    assert disk.left_open == ["/d/000001.log"], "the other one was closed"
    disk.faults.clear()
    again = carry_out(disk, WritePlan([write(2, b"x")]))
    assert again.error is None, "the file that an earlier try has left is made anew"


@pytest.mark.rule("K5", "K28")
def test_a_descriptor_that_wrote_before_stays_open_when_it_finds_no_space(disk: RecordingDisk) -> None:
    file = carry_out(disk, WritePlan([write(1, b"x")])).written[0][1]
    disk.faults["write", "000001"] = OSError(errno.ENOSPC, "full")
    assert carry_out(disk, WritePlan([write(1, b"y", BLOCK + 1, make=False)]), {1: file}).error is not None
    assert disk.left_open == ["/d/000001.log"], "its bytes are not synced"


@pytest.mark.rule("K23")
def test_a_sync_that_fails_is_told_as_that(disk: RecordingDisk) -> None:
    file = carry_out(disk, WritePlan([write(1, b"x")])).written[0][1]
    disk.faults["sync", ".log"] = OSError(errno.EIO, "broken")
    done = carry_out(disk, WritePlan([write(2, b"x")], give_way=[(1, True)]), {1: file})
    assert isinstance(done.error, SyncFailedError) and done.gave_way == [] and done.written == []
