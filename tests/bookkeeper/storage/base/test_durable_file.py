from __future__ import annotations

import errno

import pytest

from bookkeeper.errors import ConfigError, CorruptionError, UnsupportedFormatError
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import SyncFailedError, create_file, replace_file, stamp, unstamp, write_zeros
from tests.bookkeeper.storage.recording_disk import RecordingDisk


def test_a_stamp_round_trips_and_sees_every_flipped_bit() -> None:
    data = stamp(b"TEST", 1, b"body", pad_to=64)
    assert len(data) == 64 and unstamp(data, b"TEST", 1, "x") == b"body"
    for at in range(8 * 20):
        if 6 <= at // 8 < 8:  # the flags are under the crc, too
            assert data[at // 8] == 0
        changed = bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        with pytest.raises(CorruptionError, match="x"):
            unstamp(bytes(changed), b"TEST", 1, "x")
    with pytest.raises(CorruptionError):
        unstamp(data[:10], b"TEST", 1, "x")


def test_a_file_that_was_cut_is_told_from_another_file() -> None:
    data = stamp(b"TEST", 1, b"body", pad_to=64)
    with pytest.raises(CorruptionError, match="it should have 20 bytes, and 18 are there"):
        unstamp(data[:18], b"TEST", 1, "x")
    with pytest.raises(CorruptionError, match="or another file: it begins with b'TEST', not with b'ELSE'"):
        unstamp(data, b"ELSE", 1, "x")


def test_another_version_is_a_sentence() -> None:
    with pytest.raises(UnsupportedFormatError, match="x is of version 3; this program reads version 1"):
        unstamp(stamp(b"TEST", 3, b""), b"TEST", 1, "x")


@pytest.mark.rule("K11")
def test_a_file_of_any_size_is_filled_in_pieces_to_its_end() -> None:
    for size in (4096, (4 << 20) + 8192, 9 << 20):
        disk = RecordingDisk()
        file = disk.open("/d/new", create=True)
        write_zeros(file, size)
        written = [op for op in disk.ops if op.kind == "write"]
        assert disk.read_file("/d/new") == bytes(size)
        assert max(len(op.data) for op in written) <= 4 << 20, "as much memory as a piece takes, not the file"


@pytest.mark.rule("K1")
def test_a_new_file_is_synced_and_then_its_name() -> None:
    disk = RecordingDisk()
    create_file(disk, "/d/new", b"one", b"two")
    assert disk.read_file("/d/new") == b"onetwo"
    assert [op.kind for op in disk.ops] == ["create", "write", "write", "sync", "sync_directory"]


@pytest.mark.rule("K2")
def test_a_file_is_replaced_by_way_of_a_temporary_one() -> None:
    disk = RecordingDisk({"/d/old": b"old", "/d/old.tmp": b"left over"})
    replace_file(disk, "/d/old", b"new")
    assert disk.files() == {"/d/old": b"new"}
    assert [op.kind for op in disk.ops] == ["unlink", "create", "write", "sync", "rename", "sync_directory"]


@pytest.mark.rule("K23")
def test_a_failed_sync_is_told_from_a_failed_write() -> None:
    disk = RecordingDisk()
    disk.faults["sync", "new"] = OSError(errno.ENOSPC, "no space")
    with pytest.raises(SyncFailedError, match="/d/new could not be synced"):
        create_file(disk, "/d/new", b"data")
    disk.faults = {("write", "other"): OSError(errno.ENOSPC, "no space")}
    with pytest.raises(OSError, match="no space"):
        create_file(disk, "/d/other", b"data")


def test_settings_that_are_not_allowed_are_refused_with_what_is() -> None:
    with pytest.raises(ConfigError, match=r"group_bytes must be at most inflight_bytes \(4096\), not [0-9]+"):
        StorageConfig(journal_dir="j", ledger_dir="l", inflight_bytes=4096)
    with pytest.raises(ConfigError, match="journal_dir is empty; it must be a directory"):
        StorageConfig(journal_dir="", ledger_dir="l")
