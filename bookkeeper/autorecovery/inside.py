"""Autorecovery inside another process: a bookie's (``bk bookie --autorecovery``), or the one of an embedded cluster.

It uses that process's session with the metadata. The bookie loads this module by name, for it stands on a lower floor.
"""

from __future__ import annotations

from bookkeeper.autorecovery.config import AutorecoveryConfig
from bookkeeper.autorecovery.service import AutorecoveryService
from bookkeeper.bookie.config import BookieConfig
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.meta import Metadata
from bookkeeper.metrics import Metrics
from bookkeeper.replication.repairs.bookie_client import BorrowedCluster, client_of_bookie
from bookkeeper.seams import Seams


class InsideAutorecovery:
    """Autorecovery with a client of its own. :meth:`stop` ends both."""

    def __init__(
        self, client: BookKeeper, name: str, config: AutorecoveryConfig, metrics: Metrics | None = None
    ) -> None:
        self._client = client
        self.service = AutorecoveryService(client, name, config, metrics)

    @classmethod
    async def of_bookie(
        cls, name: str, metadata: Metadata, config: BookieConfig, seams: Seams, metrics: Metrics
    ) -> InsideAutorecovery:
        """Begin inside a bookie, whose ``metrics`` show it, too. Raises: ConfigError, MetadataError."""
        return await cls._begin(await client_of_bookie(metadata, config, seams), name, metrics)

    @classmethod
    async def of_cluster(cls, name: str, metadata: Metadata, seams: Seams) -> InsideAutorecovery:
        """Begin beside all bookies of a process. Raises: MetadataError."""
        cluster = BorrowedCluster(metadata, seams.net)
        return await cls._begin(await BookKeeper.over(cluster, config=ClientConfig(), seams=seams), name)

    @classmethod
    async def _begin(cls, client: BookKeeper, name: str, metrics: Metrics | None = None) -> InsideAutorecovery:
        inside = cls(client, name, AutorecoveryConfig(), metrics)
        await inside.service.start()
        return inside

    async def stop(self) -> None:
        """End the service and the client. Idempotent."""
        await self.service.stop()
        await self._client.close()
