"""A cut takes what was not synced, and nothing else; nothing stays mounted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from random import Random

import pytest

from bookkeeper.launchers.machine_speed import stretch
from tests.power_cuts.volume import Flush, Volume, is_mounted, volume, why_not

KINDS = ("ext4", "xfs")

pytestmark = [pytest.mark.integration]


@pytest.fixture(params=KINDS)
def on(request: pytest.FixtureRequest) -> str:
    kind: str = request.param
    if reason := why_not(kind):
        pytest.skip(reason)
    return kind


def write(path: Path, data: bytes, *, sync: bool) -> None:
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        os.write(fd, data)
        if sync:
            os.fsync(fd)
    finally:
        os.close(fd)


def test_a_cut_takes_what_was_not_synced(on: str) -> None:
    with volume(on) as cut:
        cut.mount()
        write(cut.path / "synced", b"s" * 5000, sync=True)
        write(cut.path / "lazy", b"l" * 5000, sync=False)
        os.rename(cut.path / "synced", cut.path / "renamed")
        cut.cut()
        with pytest.raises(OSError):
            write(cut.path / "late", b"x", sync=True)
        cut.unmount()
        cut.mount()
        found = {path.name: path.read_bytes() for path in cut.path.iterdir() if path.is_file()}
        assert found == {"synced": b"s" * 5000}


def test_with_the_file_systems_journal_names_stay_and_data_go(on: str) -> None:
    with volume(on) as cut:
        cut.mount()
        write(cut.path / "lazy", b"l" * 5000, sync=False)
        cut.cut(Flush.LOG)
        cut.unmount()
        cut.mount()
        assert b"l" * 5000 not in [path.read_bytes() for path in cut.path.iterdir() if path.is_file()]
        assert (cut.path / "lazy").exists()


def test_pages_that_the_system_writes_by_itself_do_no_harm(on: str) -> None:
    with volume(on) as cut:
        cut.mount()
        write(cut.path / "synced", b"s" * 500_000, sync=True)
        for seed in range(20):
            cut.write_some(Random(seed))
        assert (cut.path / "synced").read_bytes() == b"s" * 500_000


def test_nothing_stays_mounted_after_an_error(on: str) -> None:
    with pytest.raises(KeyboardInterrupt), volume(on) as cut:
        cut.mount()
        cut.cut()
        raise KeyboardInterrupt
    assert not is_mounted(cut.path) and not cut.place.exists()
    assert str(cut.image) not in subprocess.run(["losetup", "-a"], check=True, capture_output=True, text=True).stdout


def test_another_mount_namespace_is_waited_for(on: str) -> None:
    """Whoever begins one holds what was mounted then, and the volume stays in memory, without power."""
    with volume(on) as cut:
        cut.mount()
        write(cut.path / "synced", b"s", sync=True)
        other = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", "echo begun; read end"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "begun\n"
        cut.cut()
        ends = threading.Timer(0.3, other.communicate, ["\n"])
        ends.start()
        cut.unmount()
        cut.mount()
        write(cut.path / "later", b"l", sync=True)
        ends.join()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_stays_mounted_after_ctrl_c(number: signal.Signals, tmp_path: Path) -> None:
    if reason := why_not():
        pytest.skip(reason)
    campaign = subprocess.Popen(
        [sys.executable, "-m", "tests.power_cuts", "100", "--volume-cuts", "1"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert campaign.stdout is not None
    while "volume 0" not in campaign.stdout.readline():  # the next one is being made, mounted or used
        assert campaign.poll() is None
    campaign.send_signal(number)
    said, _ = campaign.communicate(timeout=60 * stretch())
    assert campaign.returncode != 0
    left = [path for path in tmp_path.rglob("*") if not path.is_dir()]  # a signal within mkdtemp leaves an empty one
    assert not left, said
    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
    assert str(tmp_path) not in subprocess.run(["losetup", "-a"], check=True, capture_output=True, text=True).stdout


def test_a_machine_that_cannot_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    why = why_not.__wrapped__
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 1000)
        assert why("ext4") == "it mounts file systems, and needs root"
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 0)
        patch.setattr(shutil, "which", lambda name: None if name == "mkfs.xfs" else name)
        assert why("xfs") == "there is no mkfs.xfs"

        def refused(self: Volume) -> None:
            raise PermissionError("not here")

        patch.setattr(Volume, "make", refused)
        assert why("ext4") == "no power of ext4 can be cut here: not here"
