"""The bookie's process with a bug that a power cut has to show: ``python -m tests.power_cuts.sabotage NAME``."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bookkeeper import real
from bookkeeper.bookie.config import load_config
from bookkeeper.bookie.process import serve
from bookkeeper.real.disk import PosixDisk, PosixFile
from bookkeeper.real.unix_socket import listen_unix
from bookkeeper.seams import Disk, File
from bookkeeper.storage.journal.group_commit import GroupCommit
from tests.simulation.bugs.bugs import BUGS


class LazyFile(PosixFile):
    """A file that is never synced."""

    __slots__ = ()

    def sync(self) -> None:
        pass


class LazyDisk(PosixDisk):
    """A disk that does not sync the journal, and says that it did."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False, write: bool = True, direct: bool = False) -> File:
        if not path.endswith((".journal", ".spare")):
            return super().open(path, create=create, write=write, direct=direct)
        opened = super().open(path, create=create, write=write)
        assert isinstance(opened, PosixFile)
        opened.__class__ = LazyFile
        return opened


class NamelessDisk(PosixDisk):
    """A disk that syncs no directory, and says that it did."""

    __slots__ = ()

    def sync_directory(self, path: str) -> None:
        pass


def answer_early() -> Disk:
    """Adds are acknowledged while their group waits for the journal."""
    original = GroupCommit.when_durable

    def early(self: GroupCommit, callback: Callable[[BaseException | None], None]) -> None:
        original(self, lambda error: None)
        callback(None)

    GroupCommit.when_durable = early  # type: ignore[method-assign]
    return PosixDisk()


def of_the_simulator(name: str) -> Callable[[], Disk]:
    def plant() -> Disk:
        BUGS[name].plant(setattr)
        return PosixDisk()

    return plant


SABOTAGE: Final[dict[str, Callable[[], Disk]]] = {
    "no-journal-syncs": LazyDisk,
    "no-directory-syncs": NamelessDisk,
    "early-answers": answer_early,
    "fence-in-memory": of_the_simulator("fence-in-memory"),
    "mark-before-sync": of_the_simulator("mark-before-sync"),
}
"""Each plants its bug in this process, and returns the disk to run on."""


def main(name: str, option: str, config: str) -> int:
    assert option == "--config", option
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    seams = replace(real.system_seams(), disk=SABOTAGE[name]())
    return real.run(serve(load_config(config), seams, listen_control=listen_unix))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
