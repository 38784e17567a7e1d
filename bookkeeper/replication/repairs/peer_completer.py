"""Completes a bookie's own copies from the other bookies, so that its ledgers become whole again.

The bookie names the entries that it cannot read. They are read from the other bookies of their fragments, their digests
are checked, they are sent to the bookie as recovery adds, and read back from it
(:mod:`~bookkeeper.replication.copying.repair` with the bookie itself as the target: metadata do not change). The bookie
loads this module by name when it has something to copy (:mod:`bookkeeper.bookie.identity.completion`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.identity.completion import MissingEntries
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.errors import BookieUnavailableError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.replication.copying.copies import PartialCopy, copy_at
from bookkeeper.replication.copying.repair import RepairContext, copy_fragment
from bookkeeper.replication.copying.repair_lock import repair_lock
from bookkeeper.replication.copying.throttle import Throttle
from bookkeeper.replication.repairs.bookie_client import client_of_bookie
from bookkeeper.seams import Seams


class PeerCompleter:
    """Implements :class:`bookkeeper.bookie.identity.completion.Completer` with the machinery of repair."""

    def __init__(self, bookie: BookieId, metadata: Metadata, config: BookieConfig, seams: Seams) -> None:
        self._bookie = bookie
        self._metadata = metadata
        self._config = config
        self._seams = seams
        self._client: BookKeeper | None = None
        self._throttle = Throttle(config.completion_bytes_per_s)

    async def complete(
        self, ledger_id: LedgerId, gaps: Sequence[MissingEntries], on_copied: Callable[[int, int], None]
    ) -> None:
        """Copy the entries of ``gaps`` to this bookie, one fragment after the other.

        Raises:
            BookieUnavailableError: somebody else repairs this ledger now.
            BookKeeperError: some entries could not be copied now; the others are here.
        """
        client = await self._connected()
        async with repair_lock(self._metadata, ledger_id, self._bookie) as holder:
            if holder is not None:
                raise BookieUnavailableError(f"{holder} holds the lock of its repair now")
            record = await LedgerView.read(self._metadata.ledgers, ledger_id)
            context = RepairContext(
                services=client.services,
                throttle=self._throttle,
                on_copied=on_copied,
                tells_nothing={self._bookie},  # what it lacks is known
            )
            for gap in gaps:
                copy = copy_at(record.metadata, gap.first_entry, gap.position)
                if copy is None or copy.bookie != self._bookie:
                    continue  # somebody else has its place by now
                copied = await copy_fragment(context, record, PartialCopy.of(copy, gap.entries), self._bookie)
                if copied.error is not None:
                    raise copied.error

    async def close(self) -> None:
        """Close the connections. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connected(self) -> BookKeeper:
        if self._client is None:
            self._client = await client_of_bookie(self._metadata, self._config, self._seams)
        return self._client
