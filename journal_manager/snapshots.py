"""Snapshots: state at a transaction id, kept so that a replay is bounded.

snapshot(N), then edits N+1..M, is the state after M. A snapshot may only be saved at an id that is durable.
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
        """Keep the state after edit ``at``; durable when this returns. One at the same id is replaced."""

    async def list(self) -> tuple[SnapshotInfo, ...]:
        """List all snapshots, oldest first."""

    async def load(self, at: TxId | None = None) -> tuple[SnapshotInfo, bytes] | None:
        """Load the snapshot at ``at``, or the newest that is intact; None if there is none.

        Raises:
            SnapshotNotFoundError: none at ``at``. JournalCorruptionError: it, or every one, is damaged.
        """

    async def delete(self, at: TxId) -> None:
        """Remove a snapshot. A missing one is no error."""

    async def close(self) -> None:
        """Release everything. Idempotent."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()
