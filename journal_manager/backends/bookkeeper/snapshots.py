"""Snapshots on ledgers: one closed ledger each, listed in a record beside the journal's.

A snapshot is there when the record names it: ledger first, closed, then the record; on removal the record first.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from bookkeeper.errors import BookKeeperError, KeyExistsError, MetadataConflictError, NoSuchKeyError
from bookkeeper.meta.store import Version, settled_create, settled_set
from journal_manager.backends.bookkeeper.error_translation import journal_error, worded
from journal_manager.backends.bookkeeper.reader import SharedClient
from journal_manager.backends.bookkeeper.writer import NewLedger, delete_quietly
from journal_manager.errors import (
    JournalCorruptionError,
    SegmentNotFoundError,
    SnapshotNotFoundError,
    UnsupportedLayoutError,
)
from journal_manager.snapshots import SnapshotInfo, SnapshotStore
from journal_manager.txid import TxId

if TYPE_CHECKING:
    from bookkeeper.meta import MetadataStore

FORMAT: Final = 1
_CHUNK: Final = 1 << 20
_AT_ONCE: Final = 16
"""Entries appended by one call."""


@dataclass(frozen=True, slots=True)
class SnapshotLine:
    """One snapshot in the record."""

    at: int
    ledger: int
    size: int
    sha256: str

    def info(self) -> SnapshotInfo:
        return SnapshotInfo(TxId(self.at), self.size, f"ledger {self.ledger}")


def encode_index(kept: Sequence[SnapshotLine]) -> bytes:
    return json.dumps({"format": FORMAT, "snapshots": [asdict(each) for each in kept]}).encode()


def decode_index(data: bytes) -> tuple[SnapshotLine, ...]:
    """Decode the record of snapshots. Raises JournalCorruptionError, UnsupportedLayoutError."""
    try:
        value = json.loads(data)
        if value["format"] > FORMAT:
            raise UnsupportedLayoutError(
                f"the list of snapshots has format {value['format']}: a newer program wrote it"
            )
        return tuple(SnapshotLine(**each) for each in value["snapshots"])
    except (ValueError, KeyError, TypeError) as error:
        raise JournalCorruptionError(f"this is no list of snapshots: {data[:80].decode(errors='replace')}") from error


class LedgerSnapshots(SnapshotStore):
    """The snapshots of one journal."""

    def __init__(self, connection: SharedClient, journal_path: str, password: bytes, new_ledger: NewLedger) -> None:
        self._connection, self._client = connection, connection.client
        self._store: MetadataStore = connection.client.metadata_store.store
        self._path = f"{journal_path}/snapshots"
        self._password, self._new_ledger = password, new_ledger

    async def save(self, at: TxId, chunks: Iterable[bytes]) -> SnapshotInfo:
        content = b"".join(chunks)
        with worded(f"keeping the snapshot at edit {at}"):
            ledger = await self._new_ledger({"application": b"journal_manager", "snapshot": b"%d" % at})
            async with ledger:
                pieces = [content[i : i + _CHUNK] for i in range(0, len(content), _CHUNK)]
                for i in range(0, len(pieces), _AT_ONCE):
                    await ledger.append_many(pieces[i : i + _AT_ONCE])
            kept = SnapshotLine(at, ledger.id, len(content), hashlib.sha256(content).hexdigest())
            await self._replace(at, kept)
        return kept.info()

    async def list(self) -> tuple[SnapshotInfo, ...]:
        with worded("listing snapshots"):
            return tuple(each.info() for each in (await self._read())[0])

    async def load(self, at: TxId | None = None) -> tuple[SnapshotInfo, bytes] | None:
        with worded("listing snapshots"):
            kept = [each for each in (await self._read())[0] if at is None or each.at == at]
        if at is not None and not kept:
            raise SnapshotNotFoundError(f"there is no snapshot at edit {at}")
        damage: JournalCorruptionError | None = None
        for each in reversed(kept):
            try:
                return each.info(), await self._content(each)
            except JournalCorruptionError as error:
                damage = damage or error
        if damage is not None:
            raise damage
        return None

    async def delete(self, at: TxId) -> None:
        with worded(f"removing the snapshot at edit {at}"):
            await self._replace(at, None)

    async def close(self) -> None:
        await self._connection.close()

    async def _content(self, kept: SnapshotLine) -> bytes:
        try:
            async with await self._client.open_ledger(kept.ledger, self._password, recovery=False) as handle:
                parts: list[bytes] = []
                async for _, payloads in handle.read_batches(0, handle.last_add_confirmed):
                    parts += payloads
        except BookKeeperError as error:
            failure = journal_error(error, f"reading the snapshot at edit {kept.at} (ledger {kept.ledger})")
            if isinstance(failure, SegmentNotFoundError):
                failure = JournalCorruptionError(str(failure), location=str(kept.ledger))
            raise failure from error
        content = b"".join(parts)
        if hashlib.sha256(content).hexdigest() != kept.sha256:
            raise JournalCorruptionError(f"the snapshot at edit {kept.at} is damaged", location=str(kept.ledger))
        return content

    async def _read(self) -> tuple[tuple[SnapshotLine, ...], Version | None]:
        await self._store.sync(self._path)
        try:
            found = await self._store.get(self._path)
        except NoSuchKeyError:
            return (), None
        return decode_index(found.value), found.version

    async def _replace(self, at: int, new: SnapshotLine | None) -> None:
        """Replace the line of ``at`` by ``new``; then delete the old snapshot's ledger."""
        while True:
            kept, version = await self._read()
            lines = [each for each in kept if each.at != at] + ([new] if new is not None else [])
            value = encode_index(sorted(lines, key=lambda each: each.at))
            try:
                if version is None:
                    await settled_create(self._store, self._path, value, parents=True)
                else:
                    await settled_set(self._store, self._path, value, version)
                break
            except (MetadataConflictError, KeyExistsError):
                continue
        for each in kept:
            if each.at == at and each != new:
                await delete_quietly(self._client, str(each.ledger))
