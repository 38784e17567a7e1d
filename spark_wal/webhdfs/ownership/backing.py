"""Where a namespace is stored: journal, snapshots, blobs and lease."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from bookkeeper.gateways.lease import Lease
from journal_manager import EditLog, open_snapshots
from spark_wal.webhdfs.contents.blob_store import BlobStore
from spark_wal.webhdfs.ownership.gateway import ClaimedNamespace

DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Backing:
    """How to open the namespace, the lease that is needed for it, and how to release everything."""

    open_namespace: Callable[[], Awaitable[ClaimedNamespace]]
    lease: Lease
    close: Callable[[], Awaitable[None]]


async def open_journal(uri: str, blobs: BlobStore, owner: str, **options: Any) -> ClaimedNamespace:
    """Claim the journal at ``uri``, with its snapshots and blobs."""
    log = await EditLog.open(uri, owner=owner, **options)
    try:
        snapshots = await open_snapshots(uri, **options)
    except BaseException:
        await log.abort()
        raise
    return ClaimedNamespace(log, snapshots, blobs)
