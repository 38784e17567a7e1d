"""The files of a compaction: every record is verified, and a target is whole or goes."""

from __future__ import annotations

import pytest

from bookkeeper.codec import record
from bookkeeper.errors import CorruptionError
from bookkeeper.storage.compaction.log_copy import CHUNK, CompactionFiles
from bookkeeper.storage.entry_log.entry_log_file import create_log
from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.workload import make_adds, make_entry


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def source(disk: RecordingDisk, data: bytes) -> int:
    file = create_log(disk, "/d", 1, 7, 1)
    file.pwrite(data, 4096)
    file.close()
    return 4096 + len(data)


def files_of(disk: RecordingDisk, sync_bytes: int = 0) -> CompactionFiles:
    return CompactionFiles(disk, "/d", 7, 1, sync_bytes)


def test_a_source_is_read_piece_by_piece_also_if_a_record_is_larger_than_a_piece(disk: RecordingDisk) -> None:
    records = [record(make_entry(1, at, size=size)) for at, size in enumerate((100, 3 * CHUNK, 5, CHUNK - 100, 7))]
    end = source(disk, b"".join(records))
    files = files_of(disk)
    files.open_source(1)
    at, seen = 4096, list[int]()
    while at < end:
        chunk = files.read(1, at, end)
        seen += chunk.parts[0].entry_ids
        assert chunk.end > at
        at = chunk.end
    assert seen == [0, 1, 2, 3, 4] and at == end
    files.close()
    assert not disk.left_open


@pytest.mark.rule("G4")
def test_damage_and_a_log_that_ends_early_are_named(disk: RecordingDisk) -> None:
    end = source(disk, bytes(make_adds(1, list(range(20))).records))
    files = files_of(disk)
    files.open_source(1)
    inode = disk.names["/d/000001.log"]
    with pytest.raises(CorruptionError, match=r"000001\.log is damaged at byte"):
        files.read(1, files.read(1, 4096, end + 10).end, end + 10)
    inode.data[4096 + 50] ^= 1
    with pytest.raises(CorruptionError, match=r"000001\.log is damaged at byte 4096"):
        files.read(1, 4096, end)
    inode.data[5] ^= 1
    with pytest.raises(CorruptionError):
        files.open_source(1)
    files.close()


def test_a_target_is_made_with_the_first_copy_and_synced_in_steps(disk: RecordingDisk) -> None:
    end = source(disk, bytes(make_adds(1, list(range(20))).records))
    files = files_of(disk, sync_bytes=2500)
    files.open_source(1)
    chunk = files.read(1, 4096, end)
    assert files.write(4, 4096, chunk, [], []).size == 0 and not disk.exists("/d/000004.log")
    before = len(disk.ops)
    one = files.write(4, 4096, chunk, chunk.parts, [])
    two = files.write(4, 4096 + one.size, chunk, chunk.parts, [])
    synced = [op for op in disk.ops[before:] if op.kind == "sync" and op.path == "/d/000004.log"]
    assert len(synced) == 2, "its header, and after the second copy"
    assert one.usage == {1: [one.size, 20]} and two.moves[0].old == one.moves[0].old
    target = files.hand_over()
    assert target.size() == 4096 + 2 * one.size
    files.close()
    assert disk.left_open == ["/d/000004.log"], "whoever took it closes it"


def test_a_target_of_which_nothing_is_needed_is_removed(disk: RecordingDisk) -> None:
    end = source(disk, bytes(make_adds(1, [0, 1]).records))
    files = files_of(disk)
    files.open_source(1)
    chunk = files.read(1, 4096, end)
    files.write(4, 4096, chunk, chunk.parts, [])
    files.discard(4)
    files.discard(5)
    assert not disk.exists("/d/000004.log")
    files.close()
    assert not disk.left_open
