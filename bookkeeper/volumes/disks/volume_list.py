"""The file ``volumes`` in a bookie's directory: its volumes, their directories and what has become of them.

It is JSON in a stamp (magic BKVL)::

    {"id": "hex", "next": 4, "volumes": [{"number": 1, "ledger_dir": "/disk1", "journal_dir": "/disk1",
     "state": "used"}, ...], "replaced": [2], "mended": [1]}

A number is given once, and never again: placements name volumes by it. A directory that comes back empty is another
volume. ``id`` is random, and stands in the file of placements, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from bookkeeper.errors import CookieError, CorruptionError, in_words
from bookkeeper.seams import Disk
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import replace_file, stamp, unstamp

NAME: Final = "volumes"
ONLY: Final = 0
"""The number of the volume of a bookie that was never given a second one."""
_MAGIC: Final = b"BKVL"
_VERSION: Final = 1


class VolumeState(StrEnum):
    """What has become of a volume. The words are stored, and shown to people."""

    NEW = "new"
    """It has not been opened yet, so it must be empty."""
    USED = "used"
    DRAINING = "draining"
    """Its ledgers are being moved to the others; it gets no new one."""
    DRAINED = "drained"
    """Nothing is on it any more; its directory may be taken away."""
    LOST = "lost"
    """It has failed, or was given up."""

    @property
    def serves(self) -> bool:
        """Whether it is opened by a start."""
        return self in (VolumeState.NEW, VolumeState.USED, VolumeState.DRAINING)


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeEntry:
    """One volume, as the file has it."""

    number: int
    ledger_dir: str
    journal_dir: str
    state: VolumeState = VolumeState.NEW
    reason: str = ""
    """Why it is lost, for people."""


@dataclass(frozen=True, slots=True)
class VolumeList:
    """The volumes of one bookie, ascending."""

    file_id: int
    entries: tuple[VolumeEntry, ...] = ()
    next_number: int = 1
    replaced: tuple[int, ...] = ()
    """Lost volumes whose directories are used again, while any ledger is not whole."""
    mended: tuple[int, ...] = ()
    """Those of which every ledger is whole, while any is retired. 0: of ledgers whose place was in doubt, too."""

    @classmethod
    def of_one(cls, ledger_dir: str, journal_dir: str) -> VolumeList:
        """The list of a bookie with one volume and no map. It is never stored."""
        return cls(
            0, (VolumeEntry(number=ONLY, ledger_dir=ledger_dir, journal_dir=journal_dir, state=VolumeState.USED),)
        )

    # -- changes; each gives another list -----------------------------------------------------------------

    def with_new(self, ledger_dir: str, journal_dir: str, state: VolumeState = VolumeState.NEW) -> VolumeList:
        """One volume more."""
        number = self.next_number
        return self.with_entry(VolumeEntry(number=number, ledger_dir=ledger_dir, journal_dir=journal_dir, state=state))

    def with_entry(self, entry: VolumeEntry) -> VolumeList:
        """The same with an entry that another :meth:`with_new` has made. Lost and drained volumes in its directory go;
        of a loss is kept that there was one."""
        former = [each for each in self.entries if not each.state.serves and each.ledger_dir == entry.ledger_dir]
        kept = [each for each in self.entries if each not in former]
        losses = [each.number for each in former if each.state is VolumeState.LOST]
        following = max(self.next_number, entry.number + 1)
        return replace(self, entries=(*kept, entry), next_number=following, replaced=(*self.replaced, *losses))

    def with_state(self, number: int, state: VolumeState, reason: str = "") -> VolumeList:
        """A volume has another state."""
        changed = [replace(each, state=state, reason=reason) if each.number == number else each for each in self]
        return replace(self, entries=tuple(changed))

    def with_whole(self, *, any_retired: bool) -> VolumeList:
        """No ledger is lost any more."""
        return replace(self, replaced=(), mended=(*self.mended, *self.replaced) if any_retired else ())

    def with_doubt(self) -> VolumeList:
        """Ledgers are lost because their places were in doubt: which are retired later only the placements say."""
        return self if 0 in self.mended else replace(self, mended=(*self.mended, 0))

    # -- questions ----------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[VolumeEntry]:
        return iter(self.entries)

    @property
    def serving(self) -> tuple[VolumeEntry, ...]:
        """Those that a start opens."""
        return tuple(each for each in self.entries if each.state.serves)

    def at(self, ledger_dir: str) -> VolumeEntry | None:
        """The newest volume in a directory."""
        return next((each for each in reversed(self.entries) if each.ledger_dir == ledger_dir), None)

    # -- bytes --------------------------------------------------------------------------------------------

    def encode(self) -> bytes:
        """The content of the file."""
        rows = [
            {
                "number": each.number,
                "ledger_dir": each.ledger_dir,
                "journal_dir": each.journal_dir,
                "state": each.state.value,
                **({"reason": each.reason} if each.reason else {}),
            }
            for each in self.entries
        ]
        found: dict[str, object] = {"id": f"{self.file_id:016x}", "next": self.next_number, "volumes": rows}
        lists = {"replaced": self.replaced, "mended": self.mended}
        found |= {name: numbers for name, numbers in lists.items() if numbers}
        return stamp(_MAGIC, _VERSION, json.dumps(found, indent=1).encode())

    @classmethod
    def decode(cls, data: bytes, path: str) -> VolumeList:
        """
        Raises:
            CorruptionError: it is damaged.
            UnsupportedFormatError: another version.
        """
        body = unstamp(data, _MAGIC, _VERSION, path)
        try:
            found = json.loads(body)
            entries = tuple(
                VolumeEntry(**{**row, "number": int(row["number"]), "state": VolumeState(row["state"])})
                for row in found["volumes"]
            )
            replaced, mended = (tuple(int(each) for each in found.get(name, ())) for name in ("replaced", "mended"))
            return cls(int(found["id"], 16), entries, int(found["next"]), replaced, mended)
        except (ValueError, TypeError, KeyError) as error:
            raise CorruptionError(f"{path} cannot be read: {in_words(error)}") from error


def read_volumes(disk: Disk, directory: str) -> VolumeList | None:
    """The list of a bookie; None: it has never had several directories. Raises: as :meth:`VolumeList.decode`."""
    path = f"{directory}/{NAME}"
    if not disk.exists(path):
        return None
    try:
        return VolumeList.decode(disk.read_file(path), path)
    except CorruptionError as error:
        raise CorruptionError(
            f"{error}. It says which ledger directories this bookie has: put it back from a copy; or give the bookie "
            "up, and join with empty directories under another --bookie-id"
        ) from error


def write_volumes(disk: Disk, directory: str, volumes: VolumeList) -> None:
    """Replace the list. It is durable when this returns."""
    replace_file(disk, f"{directory}/{NAME}", volumes.encode())


def matched(known: VolumeList, wanted: Sequence[tuple[str, str]], directory: str) -> VolumeList:
    """The list after directories were configured: ``wanted`` are (ledger directory, journal directory), in any order.

    Raises:
        CookieError: a directory in use is not configured any more, or has another journal directory.
    """
    asked = dict(wanted)
    for each in known.serving:
        if each.ledger_dir not in asked:
            raise CookieError(
                f"{each.ledger_dir} holds ledgers of this bookie and is not among its ledger_dirs: add it again; or, "
                f"if its disk is lost, give it up with `bk bookie lose-directory --dir {directory} {each.ledger_dir}`"
            )
        if asked[each.ledger_dir] != each.journal_dir:
            raise CookieError(
                f"the journal of {each.ledger_dir} is in {each.journal_dir}, not in {asked[each.ledger_dir]}: start "
                "the bookie with the journal_dirs that it had"
            )
    for ledger_dir, journal_dir in wanted:
        if known.at(ledger_dir) is None:
            known = known.with_new(ledger_dir, journal_dir)
    return known


def share_of(storage: StorageConfig, entry: VolumeEntry, count: int) -> StorageConfig:
    """The settings of one of ``count`` volumes: its directories, and its share of the memory, at least what a
    :class:`StorageConfig` accepts; so a single volume has all of it. Rates and sizes of files are those of each."""
    return replace(
        storage,
        ledger_dir=entry.ledger_dir,
        journal_dir=entry.journal_dir,
        inflight_bytes=max(storage.inflight_bytes // count, storage.group_bytes),
        ledger_buffer_bytes=max(storage.ledger_buffer_bytes // count, 4096),
        cached_bytes=storage.cached_bytes // count,
        page_cache_pages=max(storage.page_cache_pages // count, 1),
        resident_ledgers_max=max(storage.resident_ledgers_max // count, 1),
        open_logs_max=max(storage.open_logs_max // count, 1),
    )


def last_of(entries: Iterable[VolumeEntry], number: int) -> bool:
    """Whether no other volume than this one serves and gets new ledgers."""
    return not any(each.number != number and each.state is VolumeState.USED for each in entries)
