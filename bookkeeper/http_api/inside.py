"""The API inside a bookie. The bookie loads this module by name, for it stands on a lower floor."""

from __future__ import annotations

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.http_api_config import HttpApiConfig
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.http_api.admission import read_secrets
from bookkeeper.http_api.service import HttpApi
from bookkeeper.ids import Address
from bookkeeper.meta import Metadata
from bookkeeper.replication.repairs.bookie_client import client_of_bookie
from bookkeeper.seams import Seams


def check(config: HttpApiConfig, seams: Seams) -> None:
    """Look whether the API can be served, before anything is begun. Raises: ConfigError."""
    read_secrets(config, seams)


class InsideHttpApi:
    """The API with a client of its own. :meth:`stop` ends both."""

    def __init__(self, client: BookKeeper, api: HttpApi) -> None:
        self._client, self._api = client, api

    @classmethod
    async def of_bookie(
        cls, server: BookieServer, metadata: Metadata, config: BookieConfig, seams: Seams
    ) -> InsideHttpApi:
        """Serve beside a bookie. Raises: ConfigError, MetadataError, OSError: the address cannot be had."""
        client = await client_of_bookie(metadata, config, seams)
        try:
            api = HttpApi(
                config.http_api,
                client,
                name=str(server.bookie_id),
                settings=config,
                pages=server.pages(),
                metrics=server.metrics,
                refresh=server.refresh_metrics,
                audit=server.audit,
                bookie=server,
            )
            await api.start()
        except BaseException:
            await client.close()
            raise
        return cls(client, api)

    @property
    def address(self) -> Address:
        """Where it serves."""
        return self._api.address

    async def stop(self) -> None:
        """End the server and the client. Idempotent."""
        await self._api.close()
        await self._client.close()
