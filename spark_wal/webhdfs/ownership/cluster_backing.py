"""A namespace on a BookKeeper cluster: its journal and blobs are ledgers, its lease lies in the metadata store."""

from __future__ import annotations

from dataclasses import replace
from typing import Final
from urllib.parse import quote

from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.leases.lease import LEASE_S, StoreLease
from bookkeeper.leases.process_location import NOWHERE, OwnLocation
from bookkeeper.seams import Clock, Seams
from spark_wal.webhdfs.config import GatewayConfig
from spark_wal.webhdfs.contents.ledger_blobs import LedgerBlobs
from spark_wal.webhdfs.ownership.backing import Backing, open_journal
from spark_wal.webhdfs.ownership.gateway import ClaimedNamespace

CLIENT: Final = ClientConfig(explicit_lac_delay_ms=200, delete_grace_s=0)
"""Writes need not notify readers: nobody follows the namespace's journal, and a successor recovers it. What is deleted
is gone at once: no file names it any more."""


async def open_cluster_backing(
    uri: str,
    seams: Seams,
    config: GatewayConfig,
    *,
    namespace: str,
    owner: str,
    address: str,
    here: OwnLocation = NOWHERE,
) -> Backing:
    """Connect to the cluster at a metadata URI. Raises BookKeeperError if it cannot be reached."""
    session_ms = int(config.metadata_session_s * 1000)
    client = await BookKeeper.connect(uri, config=replace(CLIENT, metadata_session_ms=session_ms), seams=seams)
    return backing_on(
        client, seams.clock, namespace=namespace, owner=owner, address=address, here=here, lease_s=config.lease_s
    )


def backing_on(
    client: BookKeeper,
    clock: Clock,
    *,
    namespace: str,
    owner: str,
    address: str,
    here: OwnLocation = NOWHERE,
    lease_s: float = LEASE_S,
) -> Backing:
    """Make the backing on the cluster of ``client``. Closing it closes the client."""
    metadata = client.metadata_store
    path = metadata.own("leases", f"webhdfs-{namespace}")
    lease = StoreLease(metadata.store, path, clock, owner=owner, address=address, lease_s=lease_s, here=here)
    blobs = LedgerBlobs(client, namespace, client.services.seams.rng)

    async def open_namespace() -> ClaimedNamespace:
        return await open_journal(f"bk:webhdfs/{quote(namespace)}", blobs, owner, client=client)

    async def close() -> None:
        await blobs.close()
        await client.close()

    return Backing(open_namespace, lease, close, metadata)
