"""What can become of a bookie's files while it is down: rot, files that are gone or older than they were, files of
another bookie (F3, F8, K9, K32).

A damage is done to the disk of a process that does not run, in one or a few places. What a bookie cannot know is not
done to it: the last group of a journal, of which nothing lies anywhere else, is a torn tail and not rot (K9), and what
became durable in the last seconds before a directory was put back is guarded by nobody (K32). So whoever damages the
end of a journal makes sure that there is a witness: the same records in an entry log, or a sector that no power cut
leaves like that.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from bookkeeper.storage.base.manifest import NAME as MANIFEST
from bookkeeper.storage.journal.journal_format import GROUP_HEADER
from bookkeeper.testing.world import SECTOR, SimDisk

Files = dict[str, bytes]
"""Path -> content."""

ROOT: Final = "/data"
JOURNALS: Final = f"{ROOT}/journal/"
LEDGERS: Final = f"{ROOT}/ledgers/"
_STATELESS: Final = ("lock", "dirty")

FIRST_RECORD: Final = 64
"""Bytes of a group's first record that are looked for: its header, its ids and more."""


@dataclass(frozen=True, slots=True)
class LastGroup:
    """The last group that a bookie made durable."""

    path: str
    offset: int
    data: bytes
    """Its header and records."""

    @property
    def end(self) -> int:
        return self.offset + len(self.data)

    def has_witness(self, files: Files) -> bool:
        """Its records lie in an entry log, too."""
        first = self.data[GROUP_HEADER : GROUP_HEADER + FIRST_RECORD]
        return any(first in data for path, data in files.items() if path.startswith(LEDGERS) and path.endswith(".log"))


@dataclass(frozen=True, slots=True)
class DirectoryBackup:
    """A bookie's directory as it was."""

    files: Files
    boot: int
    """Its life then."""


@dataclass(frozen=True, slots=True)
class DamageReport:
    """What was done, and how an operator undoes it where the bookie refuses to start."""

    what: str
    undo: Callable[[], None]
    may_refuse: bool
    """The bookie may refuse to start as long as it is like that; else it has to start by itself."""


def files_of(disk: SimDisk) -> Files:
    """Everything that a bookie keeps."""
    return {path: data for path, data in disk.files().items() if path.startswith(f"{ROOT}/")}


class Damage:
    """Draws what happens to one disk.

    Args:
        tail: the last group that was durable on it.
        copy: how its files were some time ago.
    """

    def __init__(self, rng: Random, disk: SimDisk, tail: LastGroup | None, copy: DirectoryBackup | None) -> None:
        self._rng = rng
        self._disk = disk
        self._tail = tail
        self._copy = copy
        self._before = files_of(disk)
        self._witness = tail is not None and tail.has_witness(self._before)

    def rot(self) -> DamageReport | None:
        """A few bits are flipped, or a sector is as it was before, in one file; often in the last group of the journal,
        if that leaves a witness."""
        tail = self._tail
        if tail is not None and tail.path in self._before and self._rng.random() < 0.6:
            return self._rot_in_tail(tail)
        path = self._some_file()
        if path is None or not self._before[path]:
            return None
        place = self._rng.randrange(len(self._before[path]))
        if self._in_tail(path, place) and not self._witness:
            return None
        data = bytearray(self._before[path])
        if self._rng.random() < 0.7:
            what = self._flip(data, place, len(data))
        else:
            what = self._age(path, data, place)
        if data == self._before[path]:
            return None
        return self._write({path: bytes(data)}, f"{what} of {path}")

    def thin(self) -> DamageReport | None:
        """A file is gone, or as it was some time ago; with the manifest perhaps an entry log, which only it names."""
        path = self._some_file()
        if path is None or (self._tail is not None and path == self._tail.path and not self._witness):
            return None
        if self._copy is not None and path in self._copy.files and self._rng.random() < 0.3:
            return self._write({path: self._copy.files[path]}, f"{path} is an older one")
        gone: dict[str, bytes | None] = {path: None}
        logs = [log for log in sorted(self._before) if log.startswith(LEDGERS) and log.endswith(".log")]
        if posixpath.basename(path) == MANIFEST and len(logs) > 1 and self._rng.random() < 0.5:
            gone[self._rng.choice(logs[:-1])] = None  # which only the manifest could have told
        return self._write(gone, f"{' and '.join(gone)} are gone")

    def older_copy(self) -> DamageReport | None:
        """The directory is put back from an older copy, of an earlier life."""
        if self._copy is None:
            return None
        changes: dict[str, bytes | None] = dict.fromkeys(self._before)
        changes.update(self._copy.files)
        return self._write(changes, f"put back as in life {self._copy.boot}")

    # -- inside -------------------------------------------------------------------------------------------

    def _some_file(self) -> str | None:
        """Of each kind of file as often as of the others."""
        kinds: dict[str, list[str]] = {}
        for path in sorted(self._before):
            name = posixpath.basename(path)
            if name not in _STATELESS:
                kinds.setdefault(posixpath.splitext(name)[1] or name, []).append(path)
        return self._rng.choice(kinds[self._rng.choice(sorted(kinds))]) if kinds else None

    def _in_tail(self, path: str, place: int) -> bool:
        tail = self._tail
        return tail is not None and path == tail.path and place // SECTOR >= tail.offset // SECTOR

    def _rot_in_tail(self, tail: LastGroup) -> DamageReport | None:
        data = bytearray(self._before[tail.path])
        if bytes(data[tail.offset : tail.end]) != tail.data:
            return None  # it has been recycled
        if self._witness:
            what = self._flip(data, self._rng.randrange(tail.offset, tail.end), tail.end)
        else:  # a header that no power cut leaves like that
            place = self._rng.randrange(tail.offset, tail.offset + GROUP_HEADER)
            data[place] ^= 1 << self._rng.randrange(8)
            what = f"a bit flipped at {place}"
        return self._write({tail.path: bytes(data)}, f"{what} of {tail.path}, in its last group")

    def _flip(self, data: bytearray, place: int, end: int) -> str:
        sector = place // SECTOR * SECTOR
        begin, end = max(sector, place if end - place < SECTOR else sector), min(sector + SECTOR, end)
        places = sorted({place, *(self._rng.randrange(begin, end) for _ in range(self._rng.choice([0, 0, 1, 2])))})
        for at in places:
            data[at] ^= 1 << self._rng.randrange(8)
        return f"bits flipped at {places}"

    def _age(self, path: str, data: bytearray, place: int) -> str:
        begin = place // SECTOR * SECTOR
        old = self._copy.files.get(path, b"") if self._copy is not None else b""
        end = min(begin + SECTOR, len(data))
        data[begin:end] = old[begin:end].ljust(end - begin, b"\0")
        return f"an older sector at {begin}"

    def _write(self, changes: dict[str, bytes | None], what: str) -> DamageReport:
        disk, before = self._disk, {path: self._before.get(path) for path in changes}
        disk.replace(changes)
        may_refuse = len(changes) == 1 and not any(_has_id(path) or path.endswith("birth.json") for path in changes)
        return DamageReport(what, lambda: disk.replace(before), may_refuse)


def exchange(rng: Random, one: SimDisk, other: SimDisk) -> DamageReport | None:
    """Data files of two bookies change places; cookies and what else says who a bookie is stay."""
    mine, theirs = _data_of(one), _data_of(other)
    way = rng.random()
    if way < 0.5:
        mine_gone, theirs_gone = list(mine), list(theirs)
    elif way < 0.75:
        part = rng.choice([JOURNALS, LEDGERS])
        mine_gone = [path for path in mine if path.startswith(part)]
        theirs_gone = [path for path in theirs if path.startswith(part)]
    else:
        both = sorted(set(mine) & set(theirs))
        mine_gone = theirs_gone = [rng.choice(both)] if both else []
    if not mine_gone or not theirs_gone:
        return None
    to_one: dict[str, bytes | None] = {**dict.fromkeys(mine_gone), **{path: theirs[path] for path in theirs_gone}}
    to_other: dict[str, bytes | None] = {**dict.fromkeys(theirs_gone), **{path: mine[path] for path in mine_gone}}

    def undo() -> None:
        one.replace({**dict.fromkeys(theirs_gone), **{path: mine[path] for path in mine_gone}})
        other.replace({**dict.fromkeys(mine_gone), **{path: theirs[path] for path in theirs_gone}})

    one.replace(to_one)
    other.replace(to_other)
    return DamageReport(f"{len(mine_gone)} and {len(theirs_gone)} files exchanged", undo, True)


def _data_of(disk: SimDisk) -> Files:
    """The files that carry their directory's id."""
    return {path: data for path, data in files_of(disk).items() if _has_id(path)}


def _has_id(path: str) -> bool:
    return path.startswith((JOURNALS, LEDGERS)) and (
        path.endswith((".journal", ".log", ".index")) or posixpath.basename(path) == "manifest"
    )
