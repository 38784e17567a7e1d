"""Disks of a benchmark: files as loop devices with ext4, each as slow as it is told. Needs root, on Linux."""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_BLKIO: Final = Path("/sys/fs/cgroup/blkio")


class NoLoopDisksError(Exception):
    """This machine has none; the message says why."""


def why_not() -> str | None:
    """Why there can be no such disks here; None: there can."""
    if os.geteuid() != 0:
        return "mounting loop devices needs root"
    for program in ("mkfs.ext4", "mount", "umount"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    if not (_BLKIO / "blkio.throttle.write_bps_device").exists():
        return f"{_BLKIO} does not limit what a process writes to a device (control groups of version 1)"
    return None


class LoopDisks:
    """Several disks, mounted. A context manager; leaving it unmounts and removes them."""

    def __init__(self, directory: Path, count: int, *, megabytes: int, bytes_per_s: int) -> None:
        """
        Args:
            megabytes: the size of each disk.
            bytes_per_s: what the processes of :meth:`limit` may write to each in a second, past the page cache.

        Raises:
            NoLoopDisksError: there can be none here.
        """
        if (reason := why_not()) is not None:
            raise NoLoopDisksError(reason)
        self._directory, self._count, self._megabytes, self._bytes_per_s = directory, count, megabytes, bytes_per_s
        self.paths: list[Path] = []
        self._group = _BLKIO / f"bk-bench-{os.getpid()}"

    def limit(self, pid: int) -> None:
        """From now on a process writes to each disk no faster than that."""
        self._group.mkdir(exist_ok=True)
        for path in self.paths:
            device = os.stat(path).st_dev
            rule = f"{os.major(device)}:{os.minor(device)} {self._bytes_per_s}"
            (self._group / "blkio.throttle.write_bps_device").write_text(rule)
        (self._group / "cgroup.procs").write_text(str(pid))

    def __enter__(self) -> Self:
        try:
            for number in range(1, self._count + 1):
                image, path = self._directory / f"disk{number}.img", self._directory / f"disk{number}"
                path.mkdir(parents=True)
                with image.open("wb") as file:
                    file.truncate(self._megabytes << 20)
                subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
                subprocess.run(["mount", "-o", "loop", str(image), str(path)], check=True)
                self.paths.append(path)
        except BaseException as error:
            self.__exit__(None, None, None)
            if isinstance(error, subprocess.CalledProcessError):
                raise NoLoopDisksError(f"{error.cmd[0]} failed here with status {error.returncode}") from error
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for path in self.paths:
            subprocess.run(["umount", str(path)], check=False)
            with suppress(OSError):
                path.with_suffix(".img").unlink()
        self.paths = []
        with suppress(OSError):
            self._group.rmdir()
