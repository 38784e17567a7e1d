"""The binding to the system's files."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from random import Random

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.real.disk import PosixDisk
from bookkeeper.testing.world import SimDisk
from journal_manager.backends.files import Files, SystemFiles, SystemLock
from tests.bookkeeper.real.places import in_place_of_another


@pytest.mark.rule("K1")
def test_files_are_written_at_offsets_and_made_once(tmp_path: Path) -> None:
    files = SystemFiles()
    directory = f"{tmp_path}/a/b/c"
    files.make_directories(directory)
    files.make_directories(directory)
    path = f"{directory}/file"
    file = files.open(path, create=True)
    file.pwrite(b"0123456789", 0)
    file.pwrite(b"xy", 4)
    file.sync()
    assert (file.pread(4, 3), file.pread(99, 8), file.pread(1, 99), file.size()) == (b"3xy6", b"89", b"", 10)
    file.truncate(5)
    file.close()
    file.close()
    assert files.read_file(path) == b"0123x"
    with pytest.raises(FileExistsError):
        files.open(path, create=True)
    with pytest.raises(FileNotFoundError):
        files.open(f"{directory}/other")
    files.rename(path, f"{directory}/moved")
    files.sync_directory(directory)
    assert files.list(directory) == ["moved"] and files.exists(f"{directory}/moved")
    files.unlink(f"{directory}/moved")
    assert not files.exists(f"{directory}/moved")


def test_a_file_opened_for_reading_is_not_written(tmp_path: Path) -> None:
    files = SystemFiles()
    files.open(f"{tmp_path}/file", create=True).close()
    file = files.open(f"{tmp_path}/file", write=False)
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.pwrite(b"x", 0)
    file.close()


def test_a_lock_is_exclusive_until_released(tmp_path: Path) -> None:
    files = SystemFiles()
    lock = files.lock(f"{tmp_path}/lock")
    with pytest.raises(BlockingIOError):
        files.lock(f"{tmp_path}/lock")
    lock.release()
    lock.release()
    files.lock(f"{tmp_path}/lock").release()


def test_a_lock_is_in_force_while_its_file_is_there(tmp_path: Path) -> None:
    path, moved = tmp_path / "lock", tmp_path / "moved"
    for files in (SystemFiles(), PosixDisk()):
        lock = files.lock(str(path))
        found = [lock.in_force]
        path.rename(moved)
        found.append(lock.in_force)
        path.touch()  # another file has its name
        found.append(lock.in_force)
        path.unlink()
        moved.rename(path)
        found.append(lock.in_force)
        lock.release()
        assert [*found, lock.in_force] == [True, False, False, True, False]


def test_a_bookies_disk_serves_as_well() -> None:
    files: Files = SimDisk(Random(1))
    assert files.list("/") == []


@pytest.mark.rule("X43")
def test_files_are_their_owner_s_alone_also_those_of_an_earlier_version(tmp_path: Path) -> None:
    """A file journal holds the gateway's files, and everybody could read them."""
    files, directory = SystemFiles(), tmp_path / "a" / "b"
    before = os.umask(0o022)
    try:
        files.make_directories(str(directory))
        for name in ("edits", "state"):
            files.open(str(directory / name), create=True).close()
        files.lock(str(directory / "lock")).release()
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    assert modes == {"a": 0o700, "b": 0o700, "edits": 0o600, "state": 0o600, "lock": 0o600}
    for name in ("edits", "state", "lock"):
        (directory / name).chmod(0o644)
    files.lock(str(directory / "lock")).release()
    assert {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()} == {0o600}


@pytest.mark.rule("X42")
def test_links_in_a_directory_of_data_are_not_followed(tmp_path: Path) -> None:
    target, link = tmp_path / "elsewhere", tmp_path / "edits"
    target.write_text("somebody else's")
    link.symlink_to(target)
    for more in ({}, {"create": True}, {"write": False}):
        with pytest.raises(OSError, match=r"edits"):
            SystemFiles().open(str(link), **more)
    assert target.read_text() == "somebody else's"


@pytest.mark.rule("X43")
def test_no_journal_is_kept_in_a_directory_of_another_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match=in_place_of_another(monkeypatch, tmp_path)):
        SystemFiles().make_directories(str(tmp_path))


@pytest.mark.rule("X42")
def test_a_lock_that_is_a_link_is_refused(tmp_path: Path) -> None:
    """Somebody could have laid it, so that a file elsewhere is made, or held."""
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        SystemLock(str(tmp_path / "lock"))
    assert not (tmp_path / "elsewhere").exists()
