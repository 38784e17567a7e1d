"""Snapshots: the state at a transaction id, so that a replay need not begin at the first edit.

snapshot(N), then edits N+1..M, is the state after M. A snapshot may only be saved at a durable id.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol, Self

from journal_manager.txid import TxId


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """A complete snapshot."""

    at: TxId
    size: int
    location: str


class SnapshotStore(Protocol):
    """Keeps snapshots. A snapshot exists whole, or not at all. Also an async context manager."""

    async def save(self, at: TxId, chunks: Iterable[bytes]) -> SnapshotInfo:
        """Keep the state after edit ``at``. It is durable when this returns. It replaces one at the same id."""

    async def list(self) -> tuple[SnapshotInfo, ...]:
        """List all snapshots, oldest first."""

    async def load(self, at: TxId | None = None) -> tuple[SnapshotInfo, bytes] | None:
        """Load the snapshot at ``at``, or the newest that is intact; None if there is none.

        Raises:
            SnapshotNotFoundError: there is none at ``at``. JournalCorruptionError: it is damaged, or all are.
        """

    async def delete(self, at: TxId) -> None:
        """Remove a snapshot. It is no error if there is none."""

    async def close(self) -> None:
        """Release everything. Idempotent."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()
