from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from random import Random

import pytest

from bookkeeper.audit import AuditConfig
from bookkeeper.audit.audit_file import AuditFile
from bookkeeper.errors import ConfigError
from bookkeeper.real.disk import PosixDisk
from bookkeeper.testing import Fault, SimDisk

PATH = "/log/audit"
KIB64 = 64 * 1024


def simulated(files_kept: int = 2) -> tuple[SimDisk, AuditFile]:
    disk = SimDisk(Random(1))
    disk.make_directories("/log")
    return disk, opened(disk, files_kept)


def opened(disk: SimDisk, files_kept: int = 2) -> AuditFile:
    file = AuditFile(PATH, AuditConfig(to=PATH, file_bytes=KIB64, files_kept=files_kept), disk)
    file.open()
    return file


@pytest.mark.rule("X16")
def test_what_was_written_survives_a_power_cut_and_the_next_process_goes_on_behind_it() -> None:
    disk, file = simulated()
    file.write(b"one\n")
    file.write(b"two\n")
    file.close()
    disk.crash(keep=0.0)
    again = opened(disk)
    again.write(b"three\n")
    assert disk.read_file(PATH) == b"one\ntwo\nthree\n"


def test_half_a_line_of_a_crash_is_ended() -> None:
    disk, file = simulated()
    file.write(b"one\nhal")
    file.close()
    opened(disk).write(b"two\n")
    assert disk.read_file(PATH) == b"one\nhal\ntwo\n"


@pytest.mark.rule("X16")
@pytest.mark.parametrize("kept", [0, 1, 3])
def test_the_file_is_put_aside_by_size_and_the_oldest_goes(kept: int) -> None:
    disk, file = simulated(kept)
    for number in range(6):
        file.write(b"%d" % number * (KIB64 - 1) + b"\n")
    names = [name for name in disk.list("/log") if not name.endswith(".lock")]
    assert names == ["audit", *(f"audit.{number}" for number in range(1, kept + 1))]
    assert [disk.read_file(f"/log/{name}")[:1] for name in names] == [b"%d" % (5 - n) for n in range(kept + 1)]
    disk.crash(keep=0.0)
    assert [name for name in disk.list("/log") if not name.endswith(".lock")] == names


@pytest.mark.rule("X16")
@pytest.mark.parametrize("operation", ["pwrite", "sync", "rename", "open", "sync_directory", "truncate"])
def test_a_batch_that_failed_is_written_again_and_stands_once(operation: str) -> None:
    """Also if the failure came while the file was put aside."""
    disk, file = simulated(9)
    batches = [b"%d" % number * 30_000 + b"\n" for number in range(8)]
    for number, batch in enumerate(batches):
        if number in (2, 3):
            disk.faults.append(Fault(operation=operation, code=errno.ENOSPC, times=1, partial=True, path="audit"))
        try:
            file.write(batch)
        except OSError:
            file.write(batch)
    names = [f"{PATH}.{number}" for number in range(9, 0, -1)] + [PATH]
    assert b"".join(disk.read_file(name) for name in names if disk.exists(name)) == b"".join(batches)


def test_a_file_that_was_taken_away_is_made_anew() -> None:
    disk, file = simulated()
    file.write(b"one\n")
    disk.rename(PATH, "/log/elsewhere")
    file.write(b"two\n")
    disk.unlink(PATH)
    file.write(b"three\n")
    assert (disk.read_file("/log/elsewhere"), disk.read_file(PATH)) == (b"one\n", b"three\n")


@pytest.mark.rule("X16", "X43")
def test_the_file_is_its_owners_alone_no_link_is_followed_and_no_other_process_writes_it(tmp_path: Path) -> None:
    path = str(tmp_path / "audit")
    config = AuditConfig(to=path)
    first = AuditFile(path, config, PosixDisk())
    first.open()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    second = AuditFile(path, config, PosixDisk())
    with pytest.raises(ConfigError, match=r"another process writes the audit log .*a file of its own"):
        second.open()
    first.close()
    second.open()
    second.close()
    os.symlink(path, tmp_path / "link")
    with pytest.raises(ConfigError, match=r"link cannot be written"):
        AuditFile(str(tmp_path / "link"), config, PosixDisk()).open()
    with pytest.raises(ConfigError, match=r"absent/audit cannot be written.*give another file"):
        AuditFile(str(tmp_path / "absent" / "audit"), config, PosixDisk()).open()


@pytest.mark.rule("X16")
def test_after_a_failed_sync_the_file_is_opened_anew_and_nothing_of_the_batch_stays() -> None:
    """A descriptor whose sync has failed says nothing about its bytes any more."""
    operations: list[tuple[object, ...]] = []
    disk = SimDisk(Random(1), lambda *details: operations.append(details))
    disk.make_directories("/log")
    file = opened(disk)
    file.write(b"one\n")
    before = operations.count(("disk", "open", "audit"))
    disk.faults.append(Fault(operation="sync", code=errno.EIO, times=1, path="audit"))
    with pytest.raises(OSError):
        file.write(b"a long line that is not durable\n")
    file.write(b"two\n")
    assert operations.count(("disk", "open", "audit")) == before + 1
    assert disk.read_file(PATH) == b"one\ntwo\n"


@pytest.mark.rule("X16", "X43")
def test_a_file_that_is_there_becomes_its_owners_alone_and_keeps_its_lines(tmp_path: Path) -> None:
    """Cause: a file that somebody had made before kept its mode, and others read who did what."""
    path = tmp_path / "audit"
    path.write_bytes(b"one\n")
    path.chmod(0o644)
    file = AuditFile(str(path), AuditConfig(to=str(path)), PosixDisk())
    file.open()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    file.write(b"two\n")
    file.close()
    assert path.read_bytes() == b"one\ntwo\n"


@pytest.mark.rule("X16", "X42")
@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("pipe", "it is a pipe"),
        ("link", "it is a symbolic link"),
        ("dangling link", "it is a symbolic link"),
        ("directory", "it is a directory"),
    ],
)
def test_what_is_no_file_is_refused_by_name(tmp_path: Path, kind: str, says: str) -> None:
    """Cause: a pipe was taken, and each line failed; through a link the lines went where somebody else wanted."""
    path, elsewhere = tmp_path / "audit", tmp_path / "elsewhere"
    match kind:
        case "pipe":
            os.mkfifo(path)
        case "directory":
            path.mkdir()
        case _:
            path.symlink_to(elsewhere)
            if kind == "link":
                elsewhere.write_bytes(b"theirs\n")
    with pytest.raises(ConfigError, match=f"the audit log {path} cannot be written: {says}, and not a file"):
        AuditFile(str(path), AuditConfig(to=str(path)), PosixDisk()).open()
    assert not elsewhere.exists() or elsewhere.read_bytes() == b"theirs\n"


@pytest.mark.rule("X16", "X42")
def test_a_file_that_is_opened_anew_is_looked_at_again(tmp_path: Path) -> None:
    path = tmp_path / "audit"
    file = AuditFile(str(path), AuditConfig(to=str(path)), PosixDisk())
    file.open()
    file.write(b"one\n")
    file.close()
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(OSError, match="it is a pipe"):
        file.write(b"two\n")
