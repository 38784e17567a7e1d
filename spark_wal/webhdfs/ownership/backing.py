"""Where a namespace is stored: journal, snapshots, blobs and lease."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from bookkeeper.errors import require
from bookkeeper.leases.lease import Lease
from bookkeeper.meta import Metadata
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
    metadata: Metadata | None = None
    """Of the cluster, if there is one: there the access policy lies."""


def require_namespace(name: str) -> None:
    """Check the name of a namespace, which becomes a part of its journal's address.

    Raises:
        ConfigError: it has a character that means something there. Earlier versions gave the namespaces ``%41`` and
            ``A`` one journal and two leases.
    """
    given = [each for each in "%?#" if each in name]
    require(
        bool(name) and not given,
        f"the name of a namespace is not empty and has none of % ? #, but {name!r} was given; earlier versions took "
        "%20 in it for a space: give that name as it was meant",
    )


async def open_journal(uri: str, blobs: BlobStore, owner: str, **options: Any) -> ClaimedNamespace:
    """Claim the journal at ``uri``, with its snapshots and blobs."""
    log = await EditLog.open(uri, owner=owner, **options)
    try:
        snapshots = await open_snapshots(uri, **options)
    except BaseException:
        await log.abort()
        raise
    return ClaimedNamespace(log, snapshots, blobs)
