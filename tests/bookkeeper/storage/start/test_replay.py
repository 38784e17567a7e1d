"""The journal behind the mark: replayed, cut where it is torn, and compared with what is known of it."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest

from bookkeeper.errors import DataUnknownError
from bookkeeper.storage.base.results import PublishedProgress
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.entry_log.entry_log_file import first_group_of, log_ids, log_name
from bookkeeper.storage.journal.journal_format import CLEAN_STOP, GROUP_HEADER, GroupHeader, padded
from bookkeeper.storage.start.replay import AHEAD, STEP, FileReadAhead
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.start.crashed_life import a_life, groups_of, manifest_of
from tests.bookkeeper.storage.workload import (
    CONFIG,
    KEY,
    Life,
    add,
    everything,
    lid,
    open_engine,
    read,
    standard_life,
)


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


@pytest.mark.rule("K32", "K10", "K14")
@pytest.mark.parametrize(
    ("known", "said"),
    [
        (PublishedProgress(boot=4), "knows of start 0, the bookie's data have seen start 4"),
        (PublishedProgress(sequence=50), "50 groups were durable, 14 are known here"),
        (PublishedProgress(sequence=15), "15 groups were durable, 14 are known here"),
        (PublishedProgress(boot=4, sequence=50, file_id=99), "older copy"),
    ],
)
def test_a_directory_that_knows_less_than_is_known_of_it_has_lost_data(known: PublishedProgress, said: str) -> None:
    files, wanted = a_life()
    disk, workers = RecordingDisk(files), QueueWorkers()
    engine = Engine.open(CONFIG, disk, workers, boot=5, known=known)
    assert said in str(engine.report.limbo_reason) and "put back from an older copy" in str(engine.report.limbo_reason)
    assert isinstance(read(engine, workers, 77, 0), DataUnknownError)
    mark = manifest_of(disk)
    assert mark.boot == 5 and mark.file_id > known.file_id and mark.sequence >= known.sequence
    engine.narrow_limbo([])
    assert everything(engine, workers) == wanted
    add(engine, 2, 7)
    engine.when_durable(lambda error: None)
    workers.pump()
    assert engine.durable_position > (known.file_id, known.sequence)
    disk.locks.clear()
    again = Engine.open(CONFIG, disk, QueueWorkers(), boot=6, known=known)
    assert again.report.limbo_reason == engine.report.limbo_reason and again.report.quarantined == []


@pytest.mark.rule("B3", "M6", "K17")
def test_a_ledger_whose_removal_was_only_journalled_does_not_come_back(disk: RecordingDisk) -> None:
    life = Life(disk)
    life.add(1, 0, 1)
    life.add(2, 0)
    life.checkpoint()
    life.pump()
    disk.faults["rename", "manifest"] = OSError(errno.EMFILE, "too many open files")
    life.collect(1)
    life.pump()
    disk.faults.clear()
    assert life.truth.gone == {}, "not acknowledged, but durable"
    for _ in range(4):
        engine, workers = open_engine(disk)
        assert engine.is_fenced(lid(1)) and set(everything(engine, workers)) == {2}


@pytest.mark.rule("K8", "K9")
def test_a_torn_last_group_is_cut_and_reported_and_its_sequence_given_out_again(disk: RecordingDisk) -> None:
    life = Life(disk)
    life.add(1, 0)
    life.pump()
    before, wanted = disk.files(), everything(life.engine, life.workers)
    add(life.engine, 3, 0, size=900)
    life.fence(3)
    life.pump()
    name, group = groups_of(disk)[-1]
    begin = group.header.offset
    before[name] = disk.files()[name][: begin + 512].ljust(len(before[name]), b"\0")
    disk = RecordingDisk(before)
    engine, workers = open_engine(disk)
    assert engine.report.torn_tail is not None and name in engine.report.torn_tail
    assert engine.report.limbo_reason is None
    assert everything(engine, workers) == wanted
    engine.fence(lid(3), KEY, lambda error: None)
    workers.pump()
    engine, _ = open_engine(disk)
    assert engine.report.torn_tail is None and engine.report.limbo_reason is None and engine.is_fenced(lid(3))


@pytest.mark.rule("K18", "K9")
def test_after_a_clean_stop_there_is_no_torn_tail(disk: RecordingDisk) -> None:
    standard_life(disk)
    files = disk.files()
    assert open_engine(RecordingDisk(files))[0].report.limbo_reason is None
    name, group = groups_of(disk)[-1]
    after, mark = group.header.offset + padded(len(group.data) - GROUP_HEADER), manifest_of(disk)
    begun = GroupHeader(0, mark.file_id, mark.sequence + 1, after, mark.sequence, 3, 2000, 77).encode()
    files[name] = files[name][:after] + begun + files[name][after + len(begun) :]
    engine, _ = open_engine(RecordingDisk(files))
    assert engine.report.limbo_reason is not None and "clean stop" in engine.report.limbo_reason


@pytest.mark.rule("K7", "K17", "K22")
@pytest.mark.parametrize("logged", [True, False], ids=["killed", "without power"])
def test_a_stop_that_is_cut_short_behind_its_last_group_loses_nothing_of_it(disk: RecordingDisk, logged: bool) -> None:
    """What was added before the stop went into the group that announces it, was acknowledged, and was passed over."""
    engine, workers = open_engine(disk)
    entries, durable = list[bytes](), list[BaseException | None]()
    for entry_id in range(2):
        entries.append(add(engine, 1, entry_id))
        engine.when_durable(durable.append)
    engine.close(lambda error: None)
    while len(durable) < 2:
        assert workers.step()
    assert durable == [None, None]
    _, (_, group) = groups_of(disk)
    assert (group.header.flags, group.header.records) == (CLEAN_STOP, 1)
    files = {key: data for key, data in disk.files().items() if logged or not key.endswith(".log")}
    engine, workers = open_engine(RecordingDisk(files))
    assert [read(engine, workers, 1, entry_id) for entry_id in range(2)] == entries
    assert engine.report.limbo_reason is None and engine.report.quarantined == []


def test_a_group_without_records_makes_no_log(disk: RecordingDisk) -> None:
    engine, workers = open_engine(disk)
    engine.close(lambda error: None)
    while not groups_of(disk):
        assert workers.step()
    disk = RecordingDisk(disk.files())
    engine, _ = open_engine(disk)
    assert (engine.report.replayed_groups, engine.report.replayed_records) == (1, 0)
    assert log_ids(disk, "/ledgers") == []


@pytest.mark.rule("K9", "K33")
def test_a_log_takes_groups_without_a_gap_and_says_with_which_it_begins(disk: RecordingDisk) -> None:
    roomy = replace(CONFIG, entry_log_bytes=1 << 20)
    life = Life(disk, roomy)
    for entry_id in range(4):
        life.add(1, entry_id)
        life.pump()
    files = disk.files()
    (name, _), (_, second), *_ = groups_of(disk)
    assert second.header.sequence == 2
    at = second.header.offset
    files[name] = files[name][:at] + bytes(len(second.data)) + files[name][at + len(second.data) :]
    disk = RecordingDisk({key: data for key, data in files.items() if not key.endswith(".log")})
    engine, _ = open_engine(disk, roomy)
    assert "groups 2 to 2" in str(engine.report.limbo_reason)
    logs = {log_id: disk.open(f"/ledgers/{log_name(log_id)}", write=False) for log_id in log_ids(disk, "/ledgers")}
    assert [first_group_of(log, log_id) for log_id, log in logs.items()] == [1, 3]


class LongFile:
    """A file of some length, without its bytes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.expected: list[tuple[int, int]] = []

    def size(self) -> int:
        return self._size

    def expect(self, offset: int, size: int) -> None:
        self.expected.append((offset, size))


def asked_of(size: int, *reached: int) -> list[tuple[int, int]]:
    file = LongFile(size)
    ahead = FileReadAhead(file)  # type: ignore[arg-type]
    for offset in reached:
        ahead.reached(offset)
    assert all(
        before + length <= after for (before, length), (after, _) in zip(file.expected, file.expected[1:], strict=False)
    )
    return file.expected


def test_it_stays_a_piece_ahead_and_asks_for_nothing_twice() -> None:
    begin = asked_of(10 * AHEAD)
    assert begin[0] == (0, STEP) and sum(begin[-1]) == AHEAD
    assert asked_of(10 * AHEAD, STEP - 1) == begin, "whole steps"
    assert asked_of(10 * AHEAD, STEP - 1, STEP, STEP + 9) == [*begin, (AHEAD, STEP)]


def test_it_ends_with_the_file() -> None:
    size = AHEAD + STEP + 77
    assert asked_of(0) == [] and asked_of(77) == [(0, 77)]
    asked = asked_of(size, *range(0, size, 4096), size)
    assert sum(length for _, length in asked) == size and sum(asked[-1]) == size


def test_what_was_passed_over_is_not_asked_for() -> None:
    assert asked_of(10 * AHEAD, 3 * AHEAD)[AHEAD // STEP] == (3 * AHEAD, STEP)


@pytest.mark.rule("K17")
def test_a_start_reads_the_journal_behind_the_mark_ahead() -> None:
    life = Life(RecordingDisk())
    for entry_id in range(9):
        life.add(1, entry_id, size=2000)
        life.pump()
    disk = RecordingDisk(life.disk.files())
    open_engine(disk)
    journals = {name: len(data) for name, data in life.disk.files().items() if name.endswith(".journal")}
    assert len(journals) > 1
    assert {(path, offset, size) for path, offset, size in disk.expected} == {
        (path, 0, size) for path, size in journals.items()
    }
