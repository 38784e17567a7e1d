"""Opens the store of a namespace by its address: journal, snapshots, blobs and lease.

Each address is decoded once, here. The journal's own address is made anew from what was decoded.

mem:NAME            this process; nothing outlives it
file:///DIRECTORY   one directory on this machine, locked by one gateway at a time
anything else       a BookKeeper cluster's metadata URI: journal and blobs are ledgers, the lease lies in the
                    metadata store, and several gateways may stand by
"""

from __future__ import annotations

from urllib.parse import quote, unquote, urlsplit

from bookkeeper.errors import ConfigError, DirectoryLockedError
from bookkeeper.leases.lease import SoleOwner
from bookkeeper.leases.process_location import NOWHERE, OwnLocation
from bookkeeper.meta.service_uri import unescaped
from bookkeeper.seams import Lock, Seams, Worker
from spark_wal.webhdfs.config import GatewayConfig
from spark_wal.webhdfs.contents.blob_store import FileBlobs, MemoryBlobs
from spark_wal.webhdfs.ownership.backing import Backing, open_journal, require_namespace
from spark_wal.webhdfs.ownership.gateway import ClaimedNamespace


async def open_backing(
    uri: str,
    seams: Seams,
    *,
    namespace: str,
    owner: str,
    address: str,
    here: OwnLocation = NOWHERE,
    config: GatewayConfig | None = None,
) -> Backing:
    """Open the backing at ``uri``. ``owner`` names only this process, ``address`` is where it answers, and ``here`` is
    where it runs. ``config`` says how long a lease and a session last.

    Raises:
        ConfigError: the address cannot be used. DirectoryLockedError: another gateway uses the directory.
        BookKeeperError: the cluster cannot be reached.
    """
    require_namespace(namespace)
    scheme = urlsplit(uri).scheme
    if scheme == "mem":
        return _in_memory(uri, namespace, owner)
    if scheme == "file":
        return await _in_directory(uri, seams, namespace, owner)
    if scheme:
        from spark_wal.webhdfs.ownership.cluster_backing import open_cluster_backing

        config = config or GatewayConfig()
        return await open_cluster_backing(
            uri, seams, config, namespace=namespace, owner=owner, address=address, here=here
        )
    raise ConfigError(f"expected a cluster's address, file:///DIRECTORY or mem:NAME, got {uri!r}")


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
    directory = f"{unescaped(uri, parts.path).rstrip('/')}/{namespace}"
    worker = seams.workers.worker("blobs")
    lock = await worker.call(lambda: _lock(seams, directory))
    try:
        await worker.call(lambda: _require_journal_here(seams, directory))
    except BaseException:
        _release(lock, worker)
        raise
    blobs = FileBlobs(f"{directory}/blobs", seams.disk, worker, seams.rng)
    await blobs.open()

    async def open_namespace() -> ClaimedNamespace:
        return await open_journal(f"file://{quote(directory)}/journal", blobs, owner)

    async def close() -> None:
        _release(lock, worker)

    return Backing(open_namespace, SoleOwner(), close)


def _lock(seams: Seams, directory: str) -> Lock:
    seams.disk.make_directories(directory)
    try:
        return seams.disk.lock(f"{directory}/lock")
    except BlockingIOError as error:
        raise DirectoryLockedError(f"another gateway uses {directory}: end it, or choose another directory") from error


def _require_journal_here(seams: Seams, directory: str) -> None:
    """Refuse a namespace whose journal an earlier version put elsewhere: it decoded the address once more for it."""
    strayed = unquote(directory)
    exists = seams.disk.exists
    if strayed == directory or exists(f"{directory}/journal") or not exists(f"{directory}/blobs"):
        return
    if exists(f"{strayed}/journal"):
        raise ConfigError(
            f"the journal of {directory} is not there: earlier versions kept it in {strayed}/journal. If no other "
            f"namespace is in {strayed}, move the directory journal from there into {directory}, and start again"
        )


def _release(lock: Lock, worker: Worker) -> None:
    worker.close()
    lock.release()
