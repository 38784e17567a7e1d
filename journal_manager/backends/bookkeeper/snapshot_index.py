"""The node of a journal's snapshots, ``<journal>/snapshots``, and what readers offer, ``<journal>/offers``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from bookkeeper.errors import KeyExistsError, MetadataConflictError, NoSuchKeyError
from bookkeeper.meta.store import Check, Version, settled_create, settled_delete, settled_set_if
from journal_manager.edits import UNKNOWN_EPOCH, DiscardedEdits, TxId
from journal_manager.errors import JournalCorruptionError, UnsupportedLayoutError
from journal_manager.snapshots.snapshots import SnapshotInfo

if TYPE_CHECKING:
    from journal_manager.backends.bookkeeper.journal_node import JournalNode

FORMAT: Final = 2
"""Written once a snapshot says its epoch, which happens after edits were discarded."""

PLAIN_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class SnapshotLine:
    """One snapshot in the node."""

    at: int
    ledger: int
    size: int
    sha256: str
    epoch: int = UNKNOWN_EPOCH

    def info(self) -> SnapshotInfo:
        return SnapshotInfo(TxId(self.at), self.size, f"ledger {self.ledger}", self.epoch)

    def fields(self) -> dict[str, object]:
        fields = asdict(self)
        if self.epoch == UNKNOWN_EPOCH:
            del fields["epoch"]
        return fields


def encode_index(kept: Sequence[SnapshotLine]) -> bytes:
    """Encode the node of snapshots as JSON, oldest first."""
    lines = sorted(kept, key=lambda each: each.at)
    version = FORMAT if any(each.epoch != UNKNOWN_EPOCH for each in lines) else PLAIN_FORMAT
    return json.dumps({"format": version, "snapshots": [each.fields() for each in lines]}).encode()


def decode_index(data: bytes) -> tuple[SnapshotLine, ...]:
    """Decode the node of snapshots. Raises JournalCorruptionError, UnsupportedLayoutError."""
    try:
        value = json.loads(data)
        if value["format"] > FORMAT:
            raise UnsupportedLayoutError(
                f"the list of snapshots has format {value['format']}: a newer program wrote it"
            )
        return tuple(SnapshotLine(**each) for each in value["snapshots"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise JournalCorruptionError(f"this is no list of snapshots: {data[:80].decode(errors='replace')}") from error


class SnapshotIndex:
    """Reads and writes the node. Its methods also raise BookKeeper's MetadataErrors."""

    def __init__(self, node: JournalNode) -> None:
        self.journal, self._node = node.name, node
        self._store = node.store
        self._path = f"{node.path}/snapshots"
        self._offers = f"{node.path}/offers"

    async def read(self) -> tuple[tuple[SnapshotLine, ...], Version | None]:
        """The snapshots, oldest first, and the node's version; None if there is no node yet."""
        await self._store.sync(self._path)
        try:
            found = await self._store.get(self._path)
        except NoSuchKeyError:
            return (), None
        return decode_index(found.value), found.version

    async def discarded(self) -> DiscardedEdits:
        """What was discarded from the journal, as its node says now. Raises JournalNotFormattedError."""
        return (await self._node.read())[0].discarded

    async def write(self, lines: Sequence[SnapshotLine], expected: Version | None, condition: Check) -> None:
        """Replace the node, in a write that is done only if ``condition`` holds.

        Raises:
            MetadataConflictError: someone else replaced it, or the condition does not hold.
        """
        if expected is None:
            try:
                expected = await settled_create(self._store, self._path, encode_index(()), parents=True)
            except KeyExistsError as error:
                raise MetadataConflictError(str(error)) from error
        await settled_set_if(self._store, self._path, encode_index(lines), expected, [condition])

    async def offer(self, line: SnapshotLine) -> None:
        """Note a snapshot for the owner."""
        await settled_create(self._store, self._offer(line), encode_index([line]), parents=True)

    async def offers(self) -> tuple[SnapshotLine, ...]:
        """What readers have offered."""
        await self._store.sync(self._offers)
        found: list[SnapshotLine] = []
        try:
            for name in await self._store.children(self._offers):
                try:
                    found += decode_index((await self._store.get(f"{self._offers}/{name}")).value)
                except NoSuchKeyError:
                    continue
        except NoSuchKeyError:
            return ()
        return tuple(found)

    async def forget_offer(self, line: SnapshotLine) -> None:
        """Take an offer away. It is no error if there is none."""
        try:
            await settled_delete(self._store, self._offer(line), None)
        except NoSuchKeyError:
            pass

    def _offer(self, line: SnapshotLine) -> str:
        return f"{self._offers}/{line.at}-{line.ledger}"
