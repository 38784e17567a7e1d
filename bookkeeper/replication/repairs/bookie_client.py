"""A client inside a bookie: over the bookie's own session with the metadata, with the bookie's own certificate."""

from __future__ import annotations

from dataclasses import replace

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.client import openers
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.meta import Metadata
from bookkeeper.net.tls import TlsConfig
from bookkeeper.seams import Net, Seams


class BorrowedCluster:
    """A cluster over a session that belongs to somebody else, and stays open when the client is closed."""

    def __init__(self, metadata: Metadata, net: Net) -> None:
        self.metadata = metadata
        self.net: Net | None = net

    async def close(self) -> None:
        """Do nothing: the session belongs to its owner."""


async def client_of_bookie(metadata: Metadata, config: BookieConfig, seams: Seams) -> BookKeeper:
    """A client for repairs by a bookie. The environment's settings for TLS (``BK_TLS_CA`` ...) come first.

    Raises: ConfigError, MetadataError.
    """
    client = openers.with_surroundings(ClientConfig())
    if client.tls is None:
        client = replace(client, tls=_own_tls(config))
    return await BookKeeper.over(BorrowedCluster(metadata, seams.net), config=client, seams=seams)


def _own_tls(config: BookieConfig) -> TlsConfig | None:
    """TLS settings towards other bookies if the environment gives none: this bookie's own certificate. Other bookies
    accept it where one authority serves the whole cluster."""
    tls = config.tls
    if tls.mode == "off" or tls.client_ca is None:
        return None
    return TlsConfig(ca=tls.client_ca, cert=tls.cert, key=tls.key)
