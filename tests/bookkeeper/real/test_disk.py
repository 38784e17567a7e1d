"""Files of the real system: offsets, alignment, errors that name their path."""

from __future__ import annotations

import errno
import mmap
import os
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.real.disk import PosixDisk
from tests.bookkeeper.real.places import in_place_of_another


@pytest.mark.rule("P1")
def test_files_are_read_and_written_at_offsets(tmp_path: Path) -> None:
    disk = PosixDisk()
    path = str(tmp_path / "file")
    file = disk.open(path, create=True)
    file.pwrite(b"hello", 3)
    file.sync()
    assert (file.size(), file.pread(100, 0), file.pread(2, 4)) == (8, b"\0\0\0hello", b"el")
    into = bytearray(4)
    assert file.pread_into(into, 5) == 3
    assert bytes(into) == b"llo\0"
    file.expect(0, 1 << 20)
    assert file.pread_cached(5, 3) in (b"hello", None)
    file.truncate(4)
    file.close()
    file.close()
    assert disk.read_file(path) == b"\0\0\0h"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        disk.open(path, create=True)
    with pytest.raises(FileNotFoundError, match="nothing"):
        disk.open(str(tmp_path / "nothing"))


def test_errors_name_the_path(tmp_path: Path) -> None:
    disk = PosixDisk()
    path = str(tmp_path / "file")
    disk.open(path, create=True).close()
    file = disk.open(path, write=False)
    with pytest.raises(OSError, match="file"):
        file.pwrite(b"x", 0)


@pytest.mark.rule("K24")
def test_direct_files_take_aligned_blocks_and_read_anything(tmp_path: Path) -> None:
    file = PosixDisk().open(str(tmp_path / "file"), create=True, direct=True)
    block = mmap.mmap(-1, 8192)
    block[:] = bytes(range(256)) * 32
    file.pwrite(memoryview(block), 0)
    if file.direct:
        with pytest.raises(OSError, match="Invalid"):
            file.pwrite(b"x" * 100, 0)
    assert file.pread(10, 4090) == (bytes(range(256)) * 32)[4090:4100]
    assert file.pread(10000, 4090) == (bytes(range(256)) * 32)[4090:]
    assert file.pread(10, 9000) == b""
    file.expect(0, 4096)
    file.close()
    file.expect(0, 4096)  # advice never fails


@pytest.mark.rule("K4")
def test_missing_directories_are_made_from_the_top_and_each_parent_is_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, synced = PosixDisk(), list[tuple[str, bool]]()
    below = tmp_path / "a" / "b"
    monkeypatch.setattr(PosixDisk, "sync_directory", lambda self, path: synced.append((path, below.exists())))
    disk.make_directories(str(below))
    disk.make_directories(str(below))
    assert synced == [(str(tmp_path), False), (str(tmp_path / "a"), True)]


def test_directories_names_and_space(tmp_path: Path) -> None:
    disk = PosixDisk()
    path = str(tmp_path / "a" / "b")
    disk.make_directories(path)
    disk.make_directories(path)
    disk.open(path + "/x", create=True).close()
    disk.rename(path + "/x", path + "/y")
    disk.sync_directory(path)
    assert disk.list(path) == ["y"]
    disk.unlink(path + "/y")
    assert not disk.exists(path + "/y")
    assert disk.space(path).total > disk.space(path).free > 0


@pytest.mark.rule("B11")
def test_a_lock_is_held_by_one(tmp_path: Path) -> None:
    disk = PosixDisk()
    lock = disk.lock(str(tmp_path / "lock"))
    with pytest.raises(BlockingIOError):
        disk.lock(str(tmp_path / "lock"))
    lock.release()
    lock.release()
    disk.lock(str(tmp_path / "lock")).release()


@pytest.mark.rule("K25")
def test_a_short_write_is_continued_and_one_that_writes_nothing_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = PosixDisk().open(str(tmp_path / "file"), create=True)
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: pwrite(fd, data[:3], offset))
    file.pwrite(b"0123456789", 5)
    assert file.pread(10, 5) == b"0123456789"
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: 0)
    with pytest.raises(OSError, match="file") as caught:
        file.pwrite(b"x", 0)
    assert caught.value.errno == errno.EIO


@pytest.mark.rule("K25", "K26")
def test_a_write_that_ends_in_an_error_says_so_after_the_part_that_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = PosixDisk().open(str(tmp_path / "file"), create=True)
    pwrite = os.pwrite

    def full_after_four(fd: int, data: memoryview, offset: int) -> int:
        if offset >= 4:
            raise OSError(errno.ENOSPC, "full")
        return pwrite(fd, data[:4], offset)

    monkeypatch.setattr(os, "pwrite", full_after_four)
    with pytest.raises(OSError, match="file") as caught:
        file.pwrite(b"01234567", 0)
    assert caught.value.errno == errno.ENOSPC
    assert file.size() == 4


@pytest.mark.rule("K25", "K26")
def test_a_short_direct_write_is_continued_at_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a full disk has taken a part of a block, the rest of it would be refused as not aligned: a final error."""
    file = PosixDisk().open(str(tmp_path / "file"), create=True, direct=True)
    if not file.direct:
        pytest.skip("this file system has no direct writes")
    block = mmap.mmap(-1, 16384)
    block[:] = bytes(range(256)) * 64
    pwrite = os.pwrite

    def odd(fd: int, data: memoryview, offset: int) -> int:
        assert offset % 4096 == 0
        return pwrite(fd, data[:8192], offset) - 512 if len(data) > 8192 else pwrite(fd, data, offset)

    monkeypatch.setattr(os, "pwrite", odd)
    file.pwrite(memoryview(block), 0)
    assert file.pread(16384, 0) == block[:]
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: 512)
    with pytest.raises(OSError, match="file") as caught:
        file.pwrite(memoryview(block), 0)
    assert caught.value.errno == errno.ENOSPC


@pytest.mark.rule("K6", "K23")
@pytest.mark.parametrize(("call", "method"), [("close", "close"), ("fdatasync", "sync")])
def test_errors_of_close_and_sync_are_not_swallowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, method: str
) -> None:
    file = PosixDisk().open(str(tmp_path / "file"), create=True)
    with monkeypatch.context() as patched:

        def fail(fd: int) -> None:
            raise OSError(errno.EIO, "bad")

        patched.setattr(os, call, fail)
        with pytest.raises(OSError, match="file"):
            getattr(file, method)()


def test_cached_reads_of_any_size_do_not_see_each_other(tmp_path: Path) -> None:
    """They share their thread's memory."""
    disk = PosixDisk()
    file = disk.open(str(tmp_path / "f"), create=True)
    content = bytes(range(256)) * 40_000
    file.pwrite(content, 0)
    reads = [(10, 5), (100_000, 77), (3, 9), (len(content), 0), (4096, 4096)]
    got = [file.pread_cached(size, offset) for size, offset in reads]
    file.close()
    for data, (size, offset) in zip(got, reads, strict=True):
        assert data is None or data == content[offset : offset + size]


@pytest.mark.rule("X43")
def test_nothing_is_kept_in_a_directory_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause: who makes /tmp/streams before somebody else does could exchange what that one keeps there."""
    with pytest.raises(ConfigError, match=in_place_of_another(monkeypatch, tmp_path)):
        PosixDisk().make_directories(str(tmp_path))
