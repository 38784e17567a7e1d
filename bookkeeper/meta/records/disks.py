"""What the disk of a bookie had at least, kept where the disk cannot take it along.

Under ``disks/<bookie id>`` of our own state beside the root, as JSON. A disk that is put back from an older copy
looks healthy; compared with this it does not. ``bk metadata copy`` takes it along, forgetting a bookie removes it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Final

from bookkeeper.errors import MetadataConflictError, MetadataFormatError, NoSuchKeyError
from bookkeeper.ids import BookieId
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore, Version, Versioned, settled_create, settled_delete, settled_set

DISKS: Final = "disks"


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRecord:
    """One bookie's."""

    directory_id: int
    """In the header of every file that holds data."""
    starting: int
    """The start that has claimed the record; no earlier one writes it any more."""
    boot: int = 0
    """The last start that the directory has come to know of; 0 before the first."""
    sequence: int = 0
    """Every group of the journal up to this one was durable."""
    file_id: int = 0
    """No journal file had a greater id."""
    highest: int = -1
    """Ledgers up to this one may be older than the disk, or than a loss on it."""

    def encode(self) -> bytes:
        """Ids of directories as text: they have all 64 bits."""
        return json.dumps({**asdict(self), "directory_id": f"{self.directory_id:016x}"}).encode()

    @classmethod
    def decode(cls, data: bytes, what: str) -> DiskRecord:
        """Fields of later versions are passed over. Raises: MetadataFormatError."""
        try:
            found: dict[str, Any] = json.loads(data)
            numbers = {name: int(found[name]) for name in ("starting", "boot", "sequence", "file_id", "highest")}
            return cls(directory_id=int(found["directory_id"], 16), **numbers)
        except (ValueError, TypeError, KeyError) as error:
            raise MetadataFormatError(f"{what} cannot be read: {data[:100]!r}") from error


class Disks:
    """The records of one cluster. Every change is compare-and-set, a lost reply is settled."""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self._paths = paths

    def path(self, bookie: BookieId) -> str:
        """Where a bookie's record is."""
        return self._paths.own(DISKS, bookie)

    async def read(self, bookie: BookieId) -> Versioned[DiskRecord] | None:
        """As of now; None if there is none. Raises: MetadataFormatError."""
        path = self.path(bookie)
        await self._store.sync(path)
        try:
            found = await self._store.get(path)
        except NoSuchKeyError:
            return None
        record = DiskRecord.decode(found.value, path)
        return Versioned(record, found.version, found.created_ms, found.transaction, found.created_txn)

    async def write(
        self, bookie: BookieId, record: DiskRecord, expected: Versioned[DiskRecord] | None
    ) -> Versioned[DiskRecord]:
        """Create it (``expected`` None) or replace what was read, in the life that it was read in.

        Raises:
            KeyExistsError: there is one.
            MetadataConflictError, NoSuchKeyError: there is another one, or none any more.
        """
        path, value = self.path(bookie), record.encode()
        if expected is not None:
            version = await settled_set(self._store, path, value, expected.version, created_txn=expected.created_txn)
            return Versioned(record, version, created_txn=expected.created_txn)
        await settled_create(self._store, path, value, parents=True)
        found = await self.read(bookie)
        if found is None or found.value != record:
            raise MetadataConflictError(f"{path} was changed at once")
        return found

    async def version(self, bookie: BookieId) -> Version | None:
        """Of the record, whatever is in it; None if there is none."""
        path = self.path(bookie)
        await self._store.sync(path)
        return await self._store.exists(path)

    async def forget(self, bookie: BookieId, expected: Version) -> None:
        """Remove the record. Raises: NoSuchKeyError, MetadataConflictError."""
        await settled_delete(self._store, self.path(bookie), expected)

    async def holder_of(self, directory_id: int) -> BookieId | None:
        """Whose directory this is; None: nobody's that is known."""
        try:
            names = await self._store.children(self._paths.own(DISKS))
        except NoSuchKeyError:
            return None
        for name in names:
            try:
                found = await self.read(BookieId(name))
            except MetadataFormatError:
                continue
            if found is not None and found.value.directory_id == directory_id:
                return BookieId(name)
        return None
