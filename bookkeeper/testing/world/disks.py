"""The disks of a machine that has several: each fills up, fails and loses what was not synced by itself."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Sequence
from random import Random

from bookkeeper.seams import Space
from bookkeeper.testing.world.disk import SimDisk, _Directory


class SimDisks(SimDisk):
    """A :class:`SimDisk` whose ``mounts`` are disks of their own; everything else lies on one more."""

    def __init__(self, rng: Random, mounts: Sequence[str], note: Callable[..., None] = lambda *details: None) -> None:
        super().__init__(rng, note)
        self._capacities = dict.fromkeys(["", *mounts], self.capacity)
        for mount in mounts:
            self._directories[mount] = _Directory(synced=True)

    def mount_of(self, path: str) -> str:
        """The mount below which a path lies; "": none."""
        path = posixpath.normpath(path)
        return next((each for each in self._capacities if each and (path == each or path.startswith(f"{each}/"))), "")

    def limit(self, mount: str, spare: int | None) -> None:
        """Let so many bytes more fit on one disk; None: as many as ever."""
        self._capacities[mount] = self.capacity if spare is None else self.used_of(mount) + spare

    def used_of(self, mount: str) -> int:
        """Bytes of all files on one disk."""
        return sum(
            len(inode.volatile)
            for path, directory in self._directories.items()
            if self.mount_of(path) == mount
            for inode in directory.names.values()
        )

    def has_room(self, path: str, grows: int) -> bool:
        mount = self.mount_of(path)
        return self._capacities[mount] >= self.capacity or self.used_of(mount) + grows <= self._capacities[mount]

    def space(self, path: str) -> Space:
        self.operation("space", path)
        mount = self.mount_of(path)
        total = self._capacities[mount]
        return Space(total=total, free=max(0, total - self.used_of(mount)))

    def exchange(self, mount: str) -> None:
        """Put an empty disk in the place of one. Who has a file of the old one open keeps it."""
        for path in [each for each in self._directories if self.mount_of(each) == mount]:
            del self._directories[path]
        self._directories[mount] = _Directory(synced=True)
        self.locks -= {path for path in self.locks if self.mount_of(path) == mount}
        self._capacities[mount] = self.capacity

    def _survival(self, keep: float | None) -> Callable[[str], float]:
        if keep is not None:
            return super()._survival(keep)
        shares = {mount: self.rng.choice([0.0, 0.5, 0.9, 1.0]) for mount in self._capacities}
        return lambda path: shares[self.mount_of(path)]
