from __future__ import annotations

import struct

import pytest

from bookkeeper.codec import record
from bookkeeper.errors import InvariantError
from bookkeeper.storage.entry_log.entry_log_file import EntryLogWriter
from bookkeeper.storage.journal.group_writer import (
    GroupWriter,
    journal_ids,
    journal_name,
    recycle,
    spare_names,
)
from bookkeeper.storage.journal.journal_format import GROUP_HEADER, DamagedStretch, JournalGroup, read_groups
from bookkeeper.storage.journal.pending_group import GroupBuffer, PendingGroup
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import make_entry


def a_group(sequence: int, file_id: int, offset: int, *entries: bytes) -> PendingGroup:
    group = PendingGroup(GroupBuffer(20000), 1, 4096)
    for entry in entries:
        group.add_record(struct.unpack_from(">q", entry)[0], record(entry))
    group.sequence, group.file_id, group.file_offset = sequence, file_id, offset
    return group


def writers(disk: RecordingDisk) -> tuple[GroupWriter, EntryLogWriter]:
    return GroupWriter(disk, "/j", 16384, 0, 0), EntryLogWriter(disk, "/l", 0, 0)


@pytest.mark.rule("K1", "K11", "K12")
def test_a_new_file_is_zeroed_and_headed_before_it_has_its_name() -> None:
    disk = RecordingDisk()
    journal, _ = writers(disk)
    journal.begin_file(1, 1, None)
    assert [(op.kind, op.path.rpartition(".")[2]) for op in disk.ops] == [
        ("create", "spare"),
        ("write", "spare"),
        ("sync", "spare"),
        ("sync_directory", "/j"),
        ("write", "spare"),
        ("sync", "spare"),
        ("rename", "spare"),
        ("sync_directory", "/j"),
    ]
    assert len(disk.read_file("/j/" + journal_name(1))) == 16384


@pytest.mark.rule("K10")
def test_file_ids_only_rise() -> None:
    journal, _ = writers(RecordingDisk())
    journal.begin_file(5, 1, None)
    with pytest.raises(InvariantError, match="K10"):
        journal.begin_file(5, 2, None)


@pytest.mark.rule("K7")
@pytest.mark.parametrize("direct", [False, True])
def test_one_buffer_is_written_twice_journal_first(direct: bool) -> None:
    disk = RecordingDisk(direct=direct)
    journal, logs = writers(disk)
    entries = [make_entry(1, at) for at in range(5)]
    group = a_group(1, 1, 4096, *entries)
    assert journal.write(group, 0, None).spare_used is None
    assert logs.write(1, group.data, 4096) is not None, "a new log"
    ops = [op for op in disk.ops if op.kind in ("write", "sync")]
    in_journal = next(op for op in ops if op.path.endswith("journal"))
    in_log = [op for op in ops if op.path.endswith(".log")][-2 if ops[-1].kind == "sync" else -1]
    assert in_journal.through is direct and len(in_journal.data) % 4096 == 0
    assert in_journal.data[GROUP_HEADER : GROUP_HEADER + len(in_log.data)] == in_log.data
    assert in_log.data == b"".join(map(record, entries)) and in_log.offset == 4096
    assert ops.index(in_journal) < ops.index(in_log)
    journal.write(a_group(2, 1, 8192, make_entry(1, 5)), 1, None)
    found = list(read_groups(disk.open("/j/" + journal_name(1)), 1))
    assert [item.header.sequence for item in found if isinstance(item, JournalGroup)] == [1, 2]
    assert found[-1] == DamagedStretch(12288, 16384, last=True, begun=False)


@pytest.mark.rule("K8", "K12")
def test_a_recycled_file_shows_nothing_of_its_earlier_life() -> None:
    disk = RecordingDisk()
    journal, _ = writers(disk)
    for sequence, offset in ((1, 4096), (2, 8192), (3, 12288)):
        journal.write(a_group(sequence, 1, offset, make_entry(1, sequence)), sequence - 1, None)
    journal.write(a_group(4, 2, 4096, make_entry(1, 4)), 3, None)
    spares: list[str] = []
    recycle(disk, "/j", [1], 1, spares)
    assert spares == spare_names(disk, "/j") and journal_ids(disk, "/j") == [2]
    written = journal.write(a_group(5, 3, 4096, make_entry(1, 5)), 4, spares[0])
    assert written.spare_used == spares[0] and journal_ids(disk, "/j") == [2, 3]
    data = disk.read_file("/j/" + journal_name(3))
    assert make_entry(1, 3) in data, "the bytes are still there"
    found = list(read_groups(disk.open("/j/" + journal_name(3)), 3))
    assert [item.header.sequence for item in found if isinstance(item, JournalGroup)] == [5]
    none: list[str] = []
    recycle(disk, "/j", [2], 0, none)
    assert none == [] and journal_ids(disk, "/j") == [3]
