"""What a bookie's disk must have at least, kept in the metadata store and not on the disk.

A record is JSON under ``<root>-py/disks/<bookie id>``. A disk that is put back from an older copy looks healthy; a
comparison with the record shows that it is not. ``bk metadata copy`` copies the records, forgetting a bookie removes
its record.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

from bookkeeper.errors import MetadataConflictError, MetadataFormatError, in_words
from bookkeeper.ids import BookieId
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import (
    MetadataStore,
    Version,
    Versioned,
    get_or_none,
    names_below,
    settled_create,
    settled_delete,
    settled_set,
)

DISKS: Final = "disks"


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeProgress:
    """The same of one of several ledger directories."""

    number: int
    directory_id: int
    boot: int = 0
    sequence: int = 0
    file_id: int = 0


@dataclass(frozen=True, slots=True, order=True)
class PlacementsEnd:
    """Where the file ends that says which of several ledger directories has which ledger. The greater is the later."""

    generation: int
    """The start that wrote the file anew last; 0: a version that did not note it."""
    count: int
    """How many records the file has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskProgress:
    """The record of one bookie's disk."""

    directory_id: int
    """The directory's random id, which is in the header of every file that holds data."""
    starting: int
    """The start that has claimed the record; no earlier start writes it any more."""
    boot: int = 0
    """The last start that the directory knows of; 0 before the first."""
    sequence: int = 0
    """The last group of the journal that was durable, with all groups before it."""
    file_id: int = 0
    """The greatest id of a journal file."""
    highest: int = -1
    """The greatest ledger id that may be older than the disk, or than a loss on it."""
    volumes: tuple[VolumeProgress, ...] = ()
    """With several ledger directories: each one's. Then ``sequence`` and ``file_id`` say nothing."""
    placements: PlacementsEnd | None = None
    """With several ledger directories: the file of placements has at least this much. None: nothing was published."""

    @property
    def directory_ids(self) -> set[int]:
        """The ids of all directories."""
        return {self.directory_id, *(each.directory_id for each in self.volumes)}

    def encode(self) -> bytes:
        """The bytes of a record. Directory ids become text, because they have 64 bits."""
        found: dict[str, Any] = {**asdict(self), "directory_id": f"{self.directory_id:016x}"}
        found["volumes"] = [{**each, "directory_id": f"{each['directory_id']:016x}"} for each in found["volumes"]]
        for name in ("volumes", "placements"):
            if not found[name]:
                del found[name]
        return json.dumps(found).encode()

    @classmethod
    def decode(cls, data: bytes, what: str) -> DiskProgress:
        """The reverse of encode. Fields of later versions are passed over. Raises: MetadataFormatError."""
        try:
            found: dict[str, Any] = json.loads(data)
            numbers = {name: int(found[name]) for name in ("starting", "boot", "sequence", "file_id", "highest")}
            names = ("number", "boot", "sequence", "file_id")
            volumes = tuple(
                VolumeProgress(directory_id=int(each["directory_id"], 16), **{name: int(each[name]) for name in names})
                for each in found.get("volumes", ())
            )
            ends = found.get("placements")
            placements = PlacementsEnd(int(ends["generation"]), int(ends["count"])) if ends is not None else None
            directory_id = int(found["directory_id"], 16)
            return cls(directory_id=directory_id, volumes=volumes, placements=placements, **numbers)
        except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
            raise MetadataFormatError(f"{what} cannot be read: {in_words(error)}") from error


class Disks:
    """The records of one cluster. Every change is a compare-and-set; after a lost reply the value is read again."""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self._paths = paths

    def path(self, bookie: BookieId) -> str:
        """The path of a bookie's record."""
        return self._paths.own(DISKS, bookie)

    async def read(self, bookie: BookieId) -> Versioned[DiskProgress] | None:
        """Read the record after a sync; None if there is none. Raises: MetadataFormatError."""
        path = self.path(bookie)
        found = await get_or_none(self._store, path, fresh=True)
        return found.over(DiskProgress.decode(found.value, path)) if found is not None else None

    async def write(
        self, bookie: BookieId, record: DiskProgress, expected: Versioned[DiskProgress] | None
    ) -> Versioned[DiskProgress]:
        """Create the record (``expected`` None), or replace the one that was read.

        Raises:
            KeyExistsError: there is a record already.
            MetadataConflictError, NoSuchKeyError: the record was changed or removed since it was read.
        """
        path, value = self.path(bookie), record.encode()
        if expected is not None:
            version = await settled_set(self._store, path, value, expected.version, created_txn=expected.created_txn)
            return Versioned(record, version, created_txn=expected.created_txn)
        await settled_create(self._store, path, value, parents=True)
        found = await self.read(bookie)
        if found is None or found.value != record:
            raise MetadataConflictError(f"{path} was changed right after it was created")
        return found

    async def version(self, bookie: BookieId) -> Version | None:
        """The record's version, also if it cannot be read; None if there is no record."""
        path = self.path(bookie)
        await self._store.sync(path)
        return await self._store.exists(path)

    async def forget(self, bookie: BookieId, expected: Version) -> None:
        """Remove the record. Raises: NoSuchKeyError, MetadataConflictError."""
        await settled_delete(self._store, self.path(bookie), expected)

    async def holder_of(self, directory_id: int) -> BookieId | None:
        """The bookie to which the directory with this id belongs; None if no record has it."""
        for name in await names_below(self._store, self._paths.own(DISKS)):
            try:
                found = await self.read(BookieId(name))
            except MetadataFormatError:
                continue
            if found is not None and directory_id in found.value.directory_ids:
                return BookieId(name)
        return None
