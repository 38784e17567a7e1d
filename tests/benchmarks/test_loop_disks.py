"""Disks of a benchmark are mounted and go again, or say why there are none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from benchmarks import loop_disks
from benchmarks.loop_disks import LoopDisks, NoLoopDisksError, why_not


def test_without_root_they_say_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(NoLoopDisksError, match="mounting loop devices needs root"):
        LoopDisks(tmp_path, 1, megabytes=8, bytes_per_s=1)


def test_without_control_groups_they_say_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda program: f"/sbin/{program}")
    monkeypatch.setattr(loop_disks, "_BLKIO", tmp_path)
    assert why_not() == f"{tmp_path} does not limit what a process writes to a device (control groups of version 1)"


def test_they_are_mounted_and_go_again(tmp_path: Path) -> None:
    if (reason := why_not()) is not None:
        pytest.skip(f"there are no loop disks here: {reason}")
    try:
        with LoopDisks(tmp_path, 2, megabytes=16, bytes_per_s=1 << 20) as disks:
            assert [path.name for path in disks.paths] == ["disk1", "disk2"]
            assert all(os.path.ismount(path) for path in disks.paths)
            (disks.paths[0] / "file").write_bytes(b"on the disk")
    except NoLoopDisksError as error:
        pytest.skip(str(error))
    assert not any(os.path.ismount(tmp_path / name) for name in ("disk1", "disk2"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk1", "disk2"]
