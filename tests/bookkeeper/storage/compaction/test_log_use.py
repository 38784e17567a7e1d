"""What lives in a log, by its ledgers."""

from __future__ import annotations

import errno

import pytest

from bookkeeper.storage.base.manifest import ManifestLog
from bookkeeper.storage.compaction.log_use import uses_of
from bookkeeper.storage.entry_log.entry_log_file import create_log, finish_log
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import make_adds


def written(disk: RecordingDisk, log_id: int, *ledgers: int, finished: bool = True) -> ManifestLog:
    file = create_log(disk, "/d", log_id, 1, 1)
    at, usage = 4096, dict[int, list[int]]()
    for ledger_id in ledgers:
        records = bytes(make_adds(ledger_id, [0, 1]).records)
        file.pwrite(records, at)
        at, usage[ledger_id] = at + len(records), [len(records), 2]
    if finished:
        finish_log(file, log_id, at, usage)
    return ManifestLog(at, finished, {} if finished else usage)


def test_what_lives_is_what_belongs_to_ledgers_that_are_not_deleted() -> None:
    disk = RecordingDisk()
    logs = {1: written(disk, 1, 5, 6, 7), 2: written(disk, 2, 6, 8), 3: written(disk, 3, 9, finished=False)}
    one, two, three = uses_of(disk, "/d", logs, {6, 7})
    size = len(make_adds(5, [0, 1]).records)
    assert (one.total, one.live, one.filling) == (3 * size, size, False)
    assert (two.total, two.live) == (2 * size, size)
    assert (three.log_id, three.live, three.filling) == (3, size, True)
    assert one.drops == {6} and two.drops == {6}, "ledger 7 is nowhere else"


@pytest.mark.rule("G4")
def test_a_log_without_a_map_is_scanned_and_one_that_is_damaged_too_says_so() -> None:
    disk = RecordingDisk()
    logs = {1: written(disk, 1, 5, 6)}
    disk.names["/d/000001.log"].data[-1] ^= 1
    assert uses_of(disk, "/d", logs, set())[0].live == logs[1].end - 4096
    disk.names["/d/000001.log"].data[4096 + 60] ^= 1
    use = uses_of(disk, "/d", logs, set())[0]
    assert use.unreadable is not None and "/d/000001.log" in use.unreadable


def test_a_log_that_cannot_be_read_says_why_and_a_passing_problem_is_passed_on() -> None:
    disk = RecordingDisk()
    logs = {1: written(disk, 1, 5)}
    disk.faults["read", ".log"] = OSError(errno.EIO, "input/output error")
    assert uses_of(disk, "/d", logs, set())[0].unreadable
    disk.faults["read", ".log"] = OSError(errno.EMFILE, "too many open files")
    with pytest.raises(OSError, match="too many"):
        uses_of(disk, "/d", logs, set())
