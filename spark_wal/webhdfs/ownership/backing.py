"""What a namespace stands on, by its address: journal, snapshots, blobs and lease.

mem:NAME            this process; nothing outlives it
file:///DIRECTORY   one directory on this machine, locked by one gateway at a time
anything else       a BookKeeper cluster's metadata URI: journal and blobs are ledgers, the lease lies in the
                    metadata store, and several gateways may stand by
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from bookkeeper.errors import ConfigError, DirectoryLockedError
from bookkeeper.gateways.lease import Lease, SoleOwner
from bookkeeper.gateways.process_location import NOWHERE, OwnLocation
from bookkeeper.seams import Lock, Seams, Worker
from journal_manager import EditLog, open_snapshots
from spark_wal.webhdfs.contents.blob_store import BlobStore, FileBlobs, MemoryBlobs
from spark_wal.webhdfs.ownership.gateway import ClaimedNamespace

DEFAULT_NAMESPACE: Final = "default"


@dataclass(frozen=True, slots=True)
class Backing:
    """How to open the namespace, who may, and how to let go of everything."""

    open_namespace: Callable[[], Awaitable[ClaimedNamespace]]
    lease: Lease
    close: Callable[[], Awaitable[None]]


async def open_backing(
    uri: str, seams: Seams, *, namespace: str, owner: str, address: str, here: OwnLocation = NOWHERE
) -> Backing:
    """The backing at ``uri``. ``owner`` is unique to this process; ``address`` is where it answers, ``here`` where it
    runs.

    Raises:
        ConfigError: not such an address. DirectoryLockedError: another gateway uses the directory.
        BookKeeperError: the cluster cannot be reached.
    """
    scheme = urlsplit(uri).scheme
    if scheme == "mem":
        return _in_memory(uri, namespace, owner)
    if scheme == "file":
        return await _in_directory(uri, seams, namespace, owner)
    if scheme:
        from spark_wal.webhdfs.ownership.cluster_backing import open_cluster_backing

        return await open_cluster_backing(uri, seams, namespace=namespace, owner=owner, address=address, here=here)
    raise ConfigError(f"expected the URI of a cluster, file:///DIRECTORY or mem:NAME, got {uri!r}")


def _in_memory(uri: str, namespace: str, owner: str) -> Backing:
    journal = f"{uri}/{namespace}"
    blobs = MemoryBlobs()

    async def open_namespace() -> ClaimedNamespace:
        return await open_journal(journal, blobs, owner)

    async def close() -> None:
        await blobs.close()

    return Backing(open_namespace, SoleOwner(), close)


async def _in_directory(uri: str, seams: Seams, namespace: str, owner: str) -> Backing:
    parts = urlsplit(uri)
    if parts.netloc or parts.query or not parts.path.startswith("/"):
        raise ConfigError(f"expected file:///DIRECTORY, got {uri!r}")
    directory = f"{unquote(parts.path).rstrip('/')}/{namespace}"
    worker = seams.workers.worker("blobs")
    lock = await worker.call(lambda: _lock(seams, directory))
    blobs = FileBlobs(f"{directory}/blobs", seams.disk, worker, seams.rng)
    await blobs.open()

    async def open_namespace() -> ClaimedNamespace:
        return await open_journal(f"file://{directory}/journal", blobs, owner)

    async def close() -> None:
        _release(lock, worker)

    return Backing(open_namespace, SoleOwner(), close)


def _lock(seams: Seams, directory: str) -> Lock:
    seams.disk.make_directories(directory)
    try:
        return seams.disk.lock(f"{directory}/lock")
    except BlockingIOError as error:
        raise DirectoryLockedError(f"another gateway uses {directory}") from error


def _release(lock: Lock, worker: Worker) -> None:
    worker.close()
    lock.release()


async def open_journal(uri: str, blobs: BlobStore, owner: str, **options: Any) -> ClaimedNamespace:
    """Claim the journal at ``uri`` and put it together with its snapshots and blobs."""
    log = await EditLog.open(uri, owner=owner, **options)
    try:
        snapshots = await open_snapshots(uri, **options)
    except BaseException:
        await log.abort()
        raise
    return ClaimedNamespace(log, snapshots, blobs)
