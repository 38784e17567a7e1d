"""A whole cluster inside this process: ``embedded:///DIR?bookies=N``.

A metadata store (SQLite) and N bookies run under one directory, in the caller's own loop. There is nothing to start, no
port to choose, and nothing that others could reach. It is for notebooks, tests and small machines. The bookies are the
production ones. Copies in N directories of one disk protect against bugs and damaged files, but not against that disk.

    DIR/embedded.lock      allows one process at a time
    DIR/metadata.sqlite
    DIR/b1, DIR/b2, ...    one bookie each, with this name for ever

All connections of one loop to the same directory share one cluster, which stops with the last of them. A larger N than
before adds bookies; a smaller N removes none, because their entries are needed.
"""

from __future__ import annotations

import asyncio
import logging
import os
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from bookkeeper.autorecovery.inside import InsideAutorecovery
from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.errors import BookKeeperError, ConfigError, DirectoryLockedError, NoClusterError, in_words
from bookkeeper.meta import Metadata, init_cluster
from bookkeeper.meta.service_uri import require_address, sqlite_uri, unescaped
from bookkeeper.net.in_process import InProcessNet
from bookkeeper.seams import Lock, Net, Seams
from bookkeeper.secret import without_secrets
from bookkeeper.storage.base.config import StorageConfig

_log = logging.getLogger(__name__)

MIB: Final = 1024 * 1024
BOOKIES: Final = 3
"""The number of bookies when the address does not say."""

BOOKIES_MAX: Final = 16
"""The largest number of bookies: more of them in one process have no use."""

METADATA: Final = "metadata.sqlite"
"""The file that makes a directory a cluster."""

HEAL_AFTER_S: Final = 2.0
"""Seconds after which autorecovery begins."""

FIRST_PORT: Final = 3181
"""The port of b1; b2 has the next. Inside this process ports are only names."""

STORAGE: Final[dict[str, Any]] = {"journal_file_bytes": 16 * MIB, "journal_spares": 1, "reserve_bytes": 16 * MIB}
"""A bookie's storage on a small machine. Files are small, because journal files are filled with zeros at the first
start."""


@dataclass(frozen=True, slots=True)
class EmbeddedUri:
    """The parts of an ``embedded:`` address."""

    directory: str
    bookies: int = BOOKIES

    @classmethod
    def parse(cls, uri: str) -> EmbeddedUri:
        """Take an address ``embedded:///DIR?bookies=N`` apart. Raises: ConfigError."""
        require_address(uri)
        parts = urlsplit(uri)
        if parts.scheme != "embedded" or parts.netloc or not parts.path.startswith("/") or parts.fragment:
            raise ConfigError(
                "an embedded cluster has an address like embedded:///DIRECTORY?bookies=N (three slashes), not "
                f"{without_secrets(uri)}"
            )
        bookies = BOOKIES
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if name != "bookies" or not value.isdecimal() or not 1 <= int(value) <= BOOKIES_MAX:
                raise ConfigError(
                    f"the address {without_secrets(uri)} cannot be used: the only option is bookies=1 to "
                    f"bookies={BOOKIES_MAX}, not {without_secrets(f'?{name}={value}')[1:]}"
                )
            bookies = int(value)
        return cls(os.path.realpath(unescaped(uri, parts.path)), bookies)


@dataclass(slots=True, eq=False)
class EmbeddedCluster:
    """The cluster under one directory."""

    directory: str
    metadata: Metadata
    net: Net
    servers: list[BookieServer]
    lock: Lock
    loop: asyncio.AbstractEventLoop
    process: int = field(default_factory=os.getpid)
    """Whose it is: a forked process has a copy of this object, and nothing that runs."""
    users: int = 0
    healer: InsideAutorecovery | None = None
    """What repairs under-replicated ledgers; None while there is one bookie, and at first."""
    watchers: list[asyncio.Task[None]] = field(default_factory=list)

    async def stop(self) -> None:
        """Stop the bookies in good order, then the store."""
        for watcher in self.watchers:
            watcher.cancel()
        await asyncio.gather(*self.watchers, return_exceptions=True)
        if self.healer is not None:
            await self.healer.stop()
        try:
            await asyncio.gather(*(server.stop() for server in self.servers))
            await self.metadata.close()
        finally:
            self.lock.release()


class EmbeddedUser:
    """One connection's share of a cluster. A client holds it and closes it."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._closed = False
        cluster.users += 1

    @property
    def metadata(self) -> Metadata:
        return self._cluster.metadata

    @property
    def net(self) -> Net:
        """The network on which the cluster's bookies are reached."""
        return self._cluster.net

    @property
    def servers(self) -> list[BookieServer]:
        """The cluster's bookies, for tools."""
        return self._cluster.servers

    async def close(self) -> None:
        """End this connection. The last one stops the cluster. Idempotent."""
        if self._closed:
            return
        self._closed = True
        cluster = self._cluster
        async with _opening(cluster.loop):
            cluster.users -= 1
            if not cluster.users:
                _running.pop(cluster.directory, None)
                await cluster.stop()


_running: Final[dict[str, EmbeddedCluster]] = {}
"""The clusters of this process, by directory."""

_locks: Final[dict[asyncio.AbstractEventLoop, asyncio.Lock]] = {}


def _opening(loop: asyncio.AbstractEventLoop) -> asyncio.Lock:
    """Let one caller at a time open or close a cluster."""
    for ended in [other for other in _locks if other.is_closed()]:
        del _locks[ended]
    return _locks.setdefault(loop, asyncio.Lock())


def require_cluster(uri: str, seams: Seams) -> None:
    """Check that the cluster exists, for callers that must not make one.

    Raises:
        ConfigError: the address is no embedded one.
        NoClusterError: the cluster does not exist; :func:`open_embedded` would make it.
    """
    directory = EmbeddedUri.parse(uri).directory
    if not seams.disk.exists(os.path.join(directory, METADATA)):
        raise NoClusterError(f"there is no cluster in {directory}; `bk ledger append -m {uri}` makes one")


async def open_embedded(uri: str, seams: Seams) -> EmbeddedUser:
    """Open the cluster at an address, and start it if it does not run.

    Raises:
        ConfigError: the address cannot be used.
        DirectoryLockedError: another process, or another loop of this one, has the directory.
        CookieError, StorageError: a bookie cannot start on what it finds there.
    """
    address = EmbeddedUri.parse(uri)
    loop = asyncio.get_running_loop()
    async with _opening(loop):
        cluster = _running.get(address.directory)
        if cluster is not None and cluster.process != os.getpid():
            raise DirectoryLockedError(
                f"process {cluster.process}, from which this one was forked, has {address.directory} open; run "
                "`bk standalone --dir` there, and connect both to the address that it prints"
            )
        if cluster is not None and cluster.loop is not loop:
            if not cluster.loop.is_closed():
                raise DirectoryLockedError(
                    f"{address.directory} is open in another event loop of this process; use it from there, "
                    "or through bookkeeper.sync from threads"
                )
            cluster.lock.release()  # its loop ended without closing it; the bookies recover as after a crash
            del _running[address.directory]
            cluster = None
        if cluster is None:
            cluster = _running[address.directory] = await _start(address, seams)
        else:
            await _grow(cluster, address, seams)
        return EmbeddedUser(cluster)


async def _start(address: EmbeddedUri, seams: Seams) -> EmbeddedCluster:
    seams.disk.make_directories(address.directory)
    try:
        lock = seams.disk.lock(os.path.join(address.directory, "embedded.lock"))
    except BlockingIOError as error:
        raise DirectoryLockedError(
            f"another process has {address.directory} open; stop it, or run `bk standalone --dir` there and connect "
            "to the address that it prints"
        ) from error
    try:
        metadata = await _open_metadata(address, seams)
        cluster = EmbeddedCluster(address.directory, metadata, InProcessNet(), [], lock, asyncio.get_running_loop())
        try:
            await _grow(cluster, address, seams)
        except BaseException:
            await asyncio.gather(*(server.stop() for server in cluster.servers), return_exceptions=True)
            await metadata.close()
            raise
    except BaseException:
        lock.release()
        raise
    return cluster


async def _open_metadata(address: EmbeddedUri, seams: Seams) -> Metadata:
    uri = sqlite_uri(os.path.join(address.directory, METADATA))
    try:
        return await Metadata.connect(uri, seams)
    except NoClusterError:
        await init_cluster(uri, seams)
        return await Metadata.connect(uri, seams)


async def _grow(cluster: EmbeddedCluster, address: EmbeddedUri, seams: Seams) -> None:
    """Start every bookie that the directory holds or the address asks for, and that does not run."""
    names = [f"b{i + 1}" for i in range(BOOKIES_MAX)]
    found = [i for i, name in enumerate(names) if seams.disk.exists(os.path.join(cluster.directory, name))]
    wanted = names[: max([address.bookies, *(i + 1 for i in found)])]
    there = {str(server.bookie_id) for server in cluster.servers}
    running = len(there)
    own = replace(seams, net=cluster.net)
    new = [
        BookieServer(_config(cluster.directory, name, i), own, cluster.metadata)
        for i, name in enumerate(wanted)
        if name not in there
    ]
    results = await asyncio.gather(*(server.start() for server in new), return_exceptions=True)
    for server, result in zip(new, results, strict=True):
        if result is None:
            cluster.servers.append(server)
            cluster.watchers.append(asyncio.get_running_loop().create_task(_report_failure(server)))
    for result in results:
        if result is not None:
            raise result
    if running <= 1 < len(cluster.servers):
        cluster.watchers.append(asyncio.get_running_loop().create_task(_heal(cluster, own)))


async def _heal(cluster: EmbeddedCluster, seams: Seams) -> None:
    """Begin autorecovery when the cluster has been open for a while: who opens it for a moment does not wait for it."""
    await asyncio.sleep(HEAL_AFTER_S)
    try:
        cluster.healer = await InsideAutorecovery.of_cluster("embedded", cluster.metadata, seams)
    except BookKeeperError as error:
        _log.warning("%s: under-replicated ledgers are not repaired: %s", cluster.directory, in_words(error))


async def _report_failure(server: BookieServer) -> None:
    reason = await server.run_until_failure()
    _log.error("bookie %s inside this process has failed: %s", server.bookie_id, reason)


def _config(directory: str, name: str, index: int) -> BookieConfig:
    home = os.path.join(directory, name)
    return BookieConfig(
        metadata_uri=sqlite_uri(os.path.join(directory, METADATA)),
        directory=home,
        bookie_id=name,
        listen=f"127.0.0.1:{FIRST_PORT + index}",
        http_listen=None,
        storage=StorageConfig(
            journal_dir=os.path.join(home, "journal"), ledger_dir=os.path.join(home, "ledgers"), **STORAGE
        ),
    )
