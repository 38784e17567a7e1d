"""Which entry log is filled, how far, and with whose bytes."""

from __future__ import annotations

import pytest

from bookkeeper.errors import CorruptionError, InvariantError
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.base.manifest import ManifestLog
from bookkeeper.storage.entry_log.entry_log_file import create_log
from bookkeeper.storage.entry_log.entry_logs import EntryLogs
from tests.bookkeeper.storage.recording_disk import RecordingDisk

LIMIT = BLOCK + 1000


def entry_logs(disk: RecordingDisk | None = None, next_log: int = 1) -> EntryLogs:
    return EntryLogs(disk or RecordingDisk(), "/d", LIMIT, next_log)


def test_the_first_group_begins_a_log_behind_its_header() -> None:
    logs = entry_logs(next_log=5)
    assert logs.next_place() == (5, BLOCK)
    assert logs.next_place() == (5, BLOCK), "asking gives nothing out"
    assert (logs.current, logs.next_log) == (5, 6)


def test_groups_follow_each_other_until_the_log_is_full() -> None:
    logs = entry_logs()
    log, _ = logs.next_place()
    logs.given(log, LIMIT - 1, {7: [999, 3]})
    assert logs.next_place() == (1, LIMIT - 1)
    logs.given(1, LIMIT + 500, {7: [501, 1], 8: [1, 1]})
    assert logs.next_place() == (2, BLOCK), "the limit ends a log, not a group"
    assert logs.logs[1].dirty
    assert not logs.logs[2].dirty


def test_bytes_are_counted_by_ledger_as_the_manifest_is_to_know_them() -> None:
    logs = entry_logs()
    logs.next_place()
    logs.given(1, 5000, {7: [100, 3]})
    logs.given(1, 6000, {7: [50, 1], 8: [1, 1]})
    log = logs.logs[1]
    assert log.entry() == ManifestLog(6000, False, {7: [150, 4], 8: [1, 1]})
    log.entry().usage[7][0] = 0
    assert log.usage[7] == [150, 4], "what was handed out is a copy"
    log.finished = True
    assert log.entry() == ManifestLog(6000, True, {}), "its map is in its footer"


def test_a_log_is_opened_once_and_one_that_is_not_there_is_named() -> None:
    disk = RecordingDisk()
    create_log(disk, "/d", 1, 7, 1).close()
    logs = entry_logs(disk)
    logs.next_place()
    assert logs.file(1) is logs.file(1)
    with pytest.raises(CorruptionError, match=r"/d/000009\.log is missing"):
        logs.file(9)


@pytest.mark.rule("K10")
def test_log_ids_do_not_begin_again() -> None:
    logs = entry_logs(next_log=2**63)
    with pytest.raises(InvariantError, match="K10"):
        logs.next_place()


@pytest.mark.rule("K10")
def test_a_log_that_is_written_aside_has_an_id_of_its_own_and_is_finished_by_the_next_checkpoint() -> None:
    disk = RecordingDisk()
    logs = entry_logs(disk)
    logs.given(logs.next_place()[0], 5000, {7: [904, 1]})
    aside = logs.reserve()
    assert (aside, logs.current, logs.next_log) == (2, 1, 3) and aside not in logs.logs
    file = create_log(disk, "/d", aside, 1, 1)
    logs.written_aside(aside, file, 6000, {8: [1904, 2]})
    assert logs.file(aside) is file and logs.current == 1
    assert logs.take_dirty() == [1, 2] and logs.full() == {2: 6000}
    assert logs.entries()[2] == ManifestLog(6000, finished=False, usage={8: [1904, 2]})


def test_what_is_found_behind_the_end_of_a_log_is_counted_with_what_was_known() -> None:
    disk = RecordingDisk()
    logs = entry_logs(disk)
    logs.next_place()
    logs.given(1, 5000, {7: [100, 3]})
    file = create_log(disk, "/d", 1, 7, 1)
    logs.extend(1, file, 6000, {7: [50, 1], 8: [1, 1]})
    assert logs.logs[1].entry() == ManifestLog(6000, False, {7: [150, 4], 8: [1, 1]})
    assert logs.logs[1].dirty


def test_logs_of_single_ledgers_are_filled_beside_each_other_until_they_end() -> None:
    logs = entry_logs()
    one, other, shared = logs.begin(False), logs.begin(False), logs.begin(True)
    assert (one, other, shared, logs.next_log) == (1, 2, 3, 4) and logs.current == 0
    for log_id in (1, 2, 3):
        logs.given(log_id, 5000, {7 + log_id: [904, 1]})
    assert logs.full() == {} and logs.take_dirty() == [1, 2, 3]
    logs.end_filling(1)
    logs.end_filling(3)
    assert logs.full() == {1: 5000, 3: 5000}
    logs.mark_finished([1, 3])
    assert logs.logs[1].entry() == ManifestLog(5000, True, {8: [904, 1]}), "whose it is need not be read"
    assert logs.logs[3].entry() == ManifestLog(5000, True, {}), "its map is in its footer"
    again = entry_logs(next_log=4)
    for log_id, entry in logs.entries().items():
        again.add(log_id, entry, None, of_one=True)
    assert again.entries() == logs.entries()
    assert [log_id for log_id, log in again.logs.items() if log.remembered] == [1, 2]


@pytest.mark.rule("K10")
def test_the_last_ids_are_for_logs_of_many_ledgers() -> None:
    logs = entry_logs(next_log=2**23 - 2**20)
    assert logs.begin(False) is None and logs.begin(True) == 2**23 - 2**20
    with pytest.raises(InvariantError, match="K10"):
        entry_logs(next_log=2**63).begin(True)


@pytest.mark.rule("K28")
def test_of_descriptors_that_only_read_the_first_opened_goes_first() -> None:
    disk = RecordingDisk()
    for log_id in range(1, 6):
        create_log(disk, "/d", log_id, 7, 1).close()
    logs = EntryLogs(disk, "/d", LIMIT, 6, reading_max=2)
    for log_id in range(1, 5):
        logs.add(log_id, ManifestLog(5000, finished=True), None)
    opened = [logs.file(log_id) for log_id in (1, 2, 3)]
    assert len(disk.left_open) == 3, "nobody has said how they are closed"
    closed: list[object] = []
    logs.close_by(closed.extend)
    logs.file(4)
    assert closed == opened[:2] and logs.file(3) is opened[2]
    assert logs.file(1) is not opened[0] and closed == opened
    writing = create_log(disk, "/d", 9, 7, 1)
    before = logs.exchange_file(4, writing)
    assert before is not None and logs.file(4) is writing and logs.exchange_file(4, None) is writing
    assert logs.exchange_file(77, writing) is None
