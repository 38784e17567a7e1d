"""A file system on a file, whose power can be cut. Needs root and loop devices."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from random import Random
from typing import Final

SHUTDOWN: Final = 0x8004587D
"""``_IOR('X', 125, __u32)``: EXT4_IOC_SHUTDOWN and XFS_IOC_GOINGDOWN."""

SIZE: Final = 1 << 30
"""Bytes of the image, which has holes."""

MAKE: Final = {"ext4": ("mkfs.ext4", "-q", "-F"), "xfs": ("mkfs.xfs", "-q", "-f")}

UNMOUNT_S: Final = 20.0
"""Seconds after which a volume that is still used is detached from the tree of directories all the same."""


class Flush(IntEnum):
    """What the file system may still write when its power is cut: the argument of the ioctl."""

    LOG = 1
    """Its own journal: as if it had committed right before the cut. Data that were not synced are gone."""
    NOTHING = 2


@dataclass
class Volume:
    """One file system below ``place``: ``image`` is the file, ``path`` where it is mounted."""

    place: Path
    kind: str = "ext4"
    options: str = ""
    """Of the mount, such as ``data=writeback``."""

    @property
    def path(self) -> Path:
        return self.place / "volume"

    @property
    def image(self) -> Path:
        return self.place / "image"

    def __str__(self) -> str:
        return f"{self.kind}, {self.options}" if self.options else self.kind

    def make(self) -> None:
        """An empty file system; not mounted."""
        self.path.mkdir(parents=True, exist_ok=True)
        with self.image.open("wb") as image:
            image.truncate(SIZE)
        _run(*MAKE[self.kind], str(self.image))

    def mount(self) -> None:
        """Mount it; the file system replays its journal."""
        options = f"loop,{self.options}" if self.options else "loop"
        _run("mount", "-t", self.kind, "-o", options, str(self.image), str(self.path))

    def cut(self, flush: Flush = Flush.NOTHING) -> None:
        """From now on nothing reaches the disk, and every call that would write fails."""
        fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", flush))
        finally:
            os.close(fd)

    def write_some(self, rng: Random) -> None:
        """Have the system write pages of some file now, as it does at any time: the others stay in memory."""
        files = [path for path in self.path.rglob("*") if path.is_file()]
        with contextlib.suppress(OSError):  # it has just gone
            fd = os.open(rng.choice(files), os.O_RDONLY)
            try:
                size = os.fstat(fd).st_size
                at = rng.randrange(size // 4096 + 1) * 4096
                os.posix_fadvise(fd, at, rng.randrange(1, 64) * 4096, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)

    def unmount(self) -> None:
        """Unmount it, and wait until nothing of it is in memory. Idempotent. Whoever used it must have ended.

        A process that has just begun a mount namespace of its own holds what was mounted then: as long as it does, a
        new mount would show the volume without power again.
        """
        deadline = time.monotonic() + UNMOUNT_S
        failed = ""
        while (is_mounted(self.path) and (failed := _unmount(self.path))) or self._has_loop_device():
            if time.monotonic() > deadline:
                subprocess.run(["umount", "--lazy", self.path], check=False, capture_output=True)
                raise OSError(f"{self.path} could not be unmounted, and was detached: {failed or 'it is in use'}")
            time.sleep(0.02)

    def _has_loop_device(self) -> bool:
        for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
            with contextlib.suppress(OSError):  # it has just gone
                if backing.read_text().strip() == str(self.image):
                    return True
        return False

    def remove(self) -> None:
        """Unmount it and delete it. Idempotent."""
        self.unmount()
        shutil.rmtree(self.place, ignore_errors=True)


@contextlib.contextmanager
def volume(kind: str = "ext4", options: str = "") -> Iterator[Volume]:
    """A new volume, not mounted, that is gone at the end, whatever happens."""
    made = Volume(Path(tempfile.mkdtemp(prefix="bk-power-")), kind, options)
    try:
        made.make()
        yield made
    finally:
        made.remove()


@functools.cache
def why_not(kind: str = "ext4") -> str | None:
    """Why this machine cannot cut the power of such a file system; None if it can."""
    if not sys.platform.startswith("linux"):
        return "it needs Linux"
    if os.geteuid() != 0:
        return "it mounts file systems, and needs root"
    for program in ("mount", "umount", MAKE[kind][0]):
        if shutil.which(program) is None:
            return f"there is no {program}"
    try:
        with volume(kind) as tried:
            tried.mount()
            tried.cut()
    except (OSError, subprocess.CalledProcessError) as error:
        said = error.stderr if isinstance(error, subprocess.CalledProcessError) else str(error)
        return f"no power of {kind} can be cut here: {said.strip()}"
    return None


def is_mounted(path: Path) -> bool:
    """Whether something is mounted there; asked of the system, because a volume without power may not answer."""
    return any(line.split()[1] == str(path) for line in Path("/proc/self/mounts").read_text().splitlines())


def _unmount(path: Path) -> str:
    """What umount says; empty if it succeeded."""
    return subprocess.run(["umount", path], check=False, capture_output=True, text=True).stderr.strip()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
