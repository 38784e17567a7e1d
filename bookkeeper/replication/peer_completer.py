"""Completing a bookie's own copies from the other bookies: what ends its suspects.

The bookie says which entries it cannot read; they are read from the other bookies of their fragments, digest checked,
sent to it as recovery adds, and read back from it (:mod:`~bookkeeper.replication.repair`, with the bookie in place as
the target: nothing is swapped in metadata). The bookie itself loads this by name, when something is to be copied
(:mod:`bookkeeper.bookie.identity.completion`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.identity.completion import MissingEntries
from bookkeeper.client import openers
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.ledger_record import LedgerRecord
from bookkeeper.errors import BookieUnavailableError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.net.tls import TlsConfig
from bookkeeper.replication.copies import PartialCopy, copy_at
from bookkeeper.replication.repair import RepairContext, bring
from bookkeeper.replication.repair_lock import repair_lock
from bookkeeper.replication.throttle import Throttle
from bookkeeper.seams import Net, Seams


class PeerCompleter:
    """See :class:`bookkeeper.bookie.identity.completion.Completer`."""

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
        """Bring the entries of ``gaps`` here, one fragment after the other.

        Raises:
            BookieUnavailableError: somebody else repairs this ledger now.
            BookKeeperError: not all of them could be had now; those that could are here.
        """
        client = await self._connected()
        async with repair_lock(self._metadata, ledger_id, self._bookie) as holder:
            if holder is not None:
                raise BookieUnavailableError(f"{holder} repairs it now (the lock says so)")
            ledgers = self._metadata.ledgers
            record = LedgerRecord(ledgers, ledger_id, await ledgers.read(ledger_id, fresh=True))
            shop = RepairContext(
                services=client.services,
                throttle=self._throttle,
                on_copied=on_copied,
                tells_nothing={self._bookie},  # what it lacks is known
            )
            for gap in gaps:
                copy = copy_at(record.metadata, gap.first_entry, gap.position)
                if copy is None or copy.bookie != self._bookie:
                    continue  # somebody else has its place by now
                brought = await bring(shop, record, PartialCopy.of(copy, gap.entries), self._bookie)
                if brought.error is not None:
                    raise brought.error

    async def close(self) -> None:
        """End the connections. Idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _connected(self) -> BookKeeper:
        if self._client is None:
            config = openers.with_surroundings(ClientConfig())
            if config.tls is None:
                config = replace(config, tls=_own(self._config))
            home = _BookieCluster(self._metadata, self._seams.net)
            self._client = await BookKeeper.over(home, config=config, seams=self._seams)
        return self._client


class _BookieCluster:
    """The cluster as the bookie knows it: its session is the bookie's, and stays."""

    def __init__(self, metadata: Metadata, net: Net) -> None:
        self.metadata = metadata
        self.net: Net | None = net

    async def close(self) -> None:
        """Nothing here is ours to close."""


def _own(config: BookieConfig) -> TlsConfig | None:
    """How other bookies are spoken to where the environment says nothing of it (``BK_TLS_CA`` ...): with this bookie's
    own certificate, which the authority of its clients vouches for where one authority serves a cluster."""
    tls = config.tls
    if tls.mode == "off" or tls.client_ca is None:
        return None
    return TlsConfig(ca=tls.client_ca, cert=tls.cert, key=tls.key)
