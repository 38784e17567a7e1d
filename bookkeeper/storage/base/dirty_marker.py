"""A file in each directory that says "in use": there from a start to a clean stop."""

from __future__ import annotations

from collections.abc import Iterable

from bookkeeper.seams import Disk
from bookkeeper.storage.base.durable_file import create_file, remove_files, stamp

DIRTY = "dirty"


def is_marked(disk: Disk, directory: str) -> bool:
    """The last run on this directory was not stopped cleanly, or has not ended."""
    return disk.exists(f"{directory}/{DIRTY}")


def mark(disk: Disk, directories: Iterable[str], boot: int) -> None:
    """Durable when this returns. A marker that is there may have lost its body, not its name."""
    for directory in directories:
        if is_marked(disk, directory):
            disk.sync_directory(directory)
        else:
            create_file(disk, f"{directory}/{DIRTY}", stamp(b"BKDM", 1, str(boot).encode()))


def unmark(disk: Disk, directories: Iterable[str]) -> None:
    """A clean stop: everything is covered."""
    for directory in directories:
        remove_files(disk, directory, [DIRTY])
