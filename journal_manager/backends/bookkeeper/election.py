"""The election of a ``bk:`` journal: a lease in the metadata store, beside the journal's node."""

from __future__ import annotations

from bookkeeper.gateways.lease import LeaseEntry, LeaseLostError, StoreLease
from journal_manager.backends.bookkeeper.error_translation import worded
from journal_manager.backends.bookkeeper.shared_client import SharedClient
from journal_manager.errors import ElectionLostError
from journal_manager.journals import Election


class LeaseElection(Election):
    """Whoever holds the lease is elected, as long as he renews it."""

    def __init__(self, connection: SharedClient, lease: StoreLease) -> None:
        self._connection, self._lease = connection, lease
        self._closed = False

    @property
    def is_held(self) -> bool:
        return self._lease.is_held

    @property
    def holder(self) -> str | None:
        return self._lease.other

    async def campaign(self) -> None:
        with worded("taking the lease of the active replica"):
            await self._lease.acquire(LeaseEntry.WHEN_VACANT)

    async def wait_until_held(self) -> None:
        try:
            await self._lease.wait_until_held()
        except LeaseLostError as error:
            raise ElectionLostError(f"replica {self._lease.other or 'unknown'} was elected meanwhile") from error

    async def lost(self) -> None:
        await self._lease.lost()

    async def resign(self) -> None:
        await self._lease.release()

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        try:
            await self._lease.release()
        finally:
            await self._connection.close()
