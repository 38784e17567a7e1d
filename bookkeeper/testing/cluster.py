"""A whole cluster in one simulated world: production bookies and clients on virtual time, one seed.

::

    cluster = SimCluster(seed=7)

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger() as ledger:
                cluster.acked(ledger.id, await ledger.append(b"x"), b"x")
        await cluster.check_acked()

    cluster.run(story)

Every bookie is a node that can crash, freeze, come back, or lose its disk; the story runs on the node ``client``.
What is checked at all times: each change of a ledger's metadata is a legal one (M2, M3, W5). What a story records with
:meth:`SimCluster.acked` is checked when it asks for it: acknowledged is readable, and is what was written (L1, R11).
(For a cluster on real parts inside one process: :mod:`bookkeeper.embedded`.)
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from random import Random
from typing import Any, Final, TypeVar

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import MetadataError, check
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.ledger.metadata import broken_rule
from bookkeeper.meta import Metadata
from bookkeeper.meta.cluster import init_cluster_in
from bookkeeper.meta.records import ledger_format
from bookkeeper.meta.stores.memory import MemoryCluster, MemoryStore
from bookkeeper.meta.stores.tree import Transaction
from bookkeeper.seams import Net, Seams
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.engine import Engine
from bookkeeper.testing.world import Node, SimDisk, World

T = TypeVar("T")

KIB: Final = 1024
PORT: Final = 3181
SESSION_TIMEOUT_S: Final = 2.0
"""How long the store keeps the session of a bookie that is gone."""

STORAGE: Final[dict[str, Any]] = {
    "journal_file_bytes": 256 * KIB,
    "journal_spares": 1,
    "entry_log_bytes": 1024 * KIB,
    "checkpoint_bytes": 256 * KIB,
    "reserve_bytes": 64 * KIB,
}
"""A bookie's disk in a story: small, so that it rolls and checkpoints."""

CLIENT: Final = ClientConfig(add_timeout_ms=5_000, metadata_timeout_ms=4_000, bookies_poll_ms=5_000, delete_grace_s=0)
"""A client in a story: less patient than one in production. What it deletes is gone."""


class WitnessedStore(MemoryCluster):
    """A metadata service that refuses to see an illegal history of a ledger."""

    def __init__(self, wall_ms: Callable[[], int]) -> None:
        super().__init__(wall_ms)
        self.seen: dict[str, LedgerMetadata] = {}
        """Path -> a ledger's metadata as last written."""

    def write(self, session: int, job: Callable[[Transaction], T]) -> T:
        changed: list[str] = []

        def watched(transaction: Transaction) -> T:
            result = job(transaction)
            changed.extend(transaction.values)
            return result

        result = super().write(session, watched)
        for path in changed:
            self._witness(path)
        return result

    def _witness(self, path: str) -> None:
        node = self.read(lambda tree: tree.find(path))
        if node is None or not node.value.startswith(b"BookieMetadataFormatVersion"):
            return
        try:
            new = ledger_format.decode(node.value)
        except MetadataError as error:
            raise AssertionError(f"{path} became unreadable: {error}") from error
        old = self.seen.get(path)
        self.seen[path] = new
        if old is not None:
            broken = broken_rule(old, new)
            check(not broken, broken.partition(":")[0] or "M2", f"{path}: {broken}")


class SimCluster:
    """Production bookies ``b1`` ... ``bN`` and clients in a world of one seed."""

    def __init__(self, seed: int = 1, bookies: int = 3, **options: Any) -> None:
        """``options``: of every :class:`BookieConfig`."""
        self.world = World(seed)
        self._options = options
        self.client = self.world.node("client")
        self.store = WitnessedStore(self.client.seams.clock.wall_ms)
        self.servers: dict[str, BookieServer] = {}
        """The running (or last) server of each bookie."""
        self.names = [f"b{i + 1}" for i in range(bookies)]
        self.sessions: dict[str, MemoryStore] = {}
        """Node -> the newest session of its process with the metadata store."""
        self._acked: dict[tuple[int, int], bytes] = {}
        self._passwords: dict[int, bytes] = {}

    def engine_of(self, name: str) -> Engine:
        """The storage engine of a bookie with one ledger directory."""
        (only,) = self.servers[name].engine.serving
        return only.engine

    # -- bookies ------------------------------------------------------------------------------------------

    def node(self, bookie: str) -> Node:
        """The machine of a bookie: ``crash()``, ``restart()``, ``freeze()``, ``thaw()``."""
        return self.world.node(bookie)

    async def add_bookie(self, name: str) -> None:
        """A new bookie; returns when it serves."""
        if name not in self.names:
            self.names.append(name)
        self.node(name).start(lambda seams: self._serve(name, seams))
        await self.wait_until_up(name)

    def options_of(self, name: str) -> dict[str, Any]:
        """The options of a bookie's configuration that are not the usual ones."""
        return self._options

    async def wait_until_up(self, *names: str) -> None:
        """Wait until these bookies (default: all) serve."""
        for name in names or tuple(self.names):
            while not self._serves(name):  # noqa: ASYNC110 - virtual time, and nobody tells
                await asyncio.sleep(0.01)

    def _serves(self, name: str) -> bool:
        node, server = self.node(name), self.servers.get(name)
        return node.alive and server is not None and server.boot == node.life and server.health()["status"] == "ok"

    def lose_disk(self, name: str) -> None:
        """The machine of a crashed bookie gets an empty disk."""
        node = self.node(name)
        assert not node.alive, f"{name} is running"
        node.disk = SimDisk(Random(f"{self.world.seed}/{name}/disk/{node.life}"))

    async def forget_cookie(self, name: str) -> None:
        """An operator deletes a bookie's cookie: under its id anything may start now."""
        store = self.store.connect()
        try:
            cookies = (await Metadata.over(store, self.client.seams)).cookies
            await cookies.delete(BookieId(name), (await cookies.read(BookieId(name))).version)
        finally:
            await store.close()

    async def _serve(self, name: str, seams: Seams) -> str:
        store = self.session(self.node(name))
        self.node(name).on_crash[:] = [lambda: self._session_ends(store)]
        metadata = await Metadata.over(store, seams)
        server = BookieServer(replace(bookie_config(name), **self.options_of(name)), seams, metadata)
        await server.start()
        self.servers[name] = server
        return await server.run_until_failure()

    def session(self, node: Node) -> MemoryStore:
        """A new session of a node's process with the metadata store."""
        store = self.sessions[node.name] = self.store.connect()
        return store

    def _session_ends(self, store: MemoryStore) -> None:
        """Ephemeral values of a process that died go when its session times out, not before."""
        self.world.loop.call_later(SESSION_TIMEOUT_S, self.store.expire, store)

    # -- clients ------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def connect(self, config: ClientConfig = CLIENT, node: Node | None = None) -> AsyncIterator[BookKeeper]:
        """A client on ``node`` (default: the story's own), with a session of its own; closed at the end."""
        client = await self.new_client(config, node)
        try:
            yield client
        finally:
            await client.close()

    async def new_client(self, config: ClientConfig = CLIENT, node: Node | None = None) -> BookKeeper:
        """The same for a node that will crash: nobody closes it."""
        node = node or self.client
        metadata = await Metadata.over(self.session(node), node.seams)
        return await BookKeeper.over(_Session(metadata), config=config, seams=node.seams)

    # -- what is promised ---------------------------------------------------------------------------------

    def acked(self, ledger_id: LedgerId, entry_id: int, payload: bytes, password: bytes = b"") -> None:
        """An append was acknowledged."""
        assert self._acked.setdefault((ledger_id, entry_id), payload) == payload, "an id was given out twice (W2)"
        self._passwords[ledger_id] = password

    async def check_acked(self, config: ClientConfig = CLIENT) -> None:
        """Recover every ledger of which something was acknowledged, and compare (L1, R11, R12)."""
        async with self.connect(config) as bk:
            for ledger_id, password in self._passwords.items():
                async with await bk.open_ledger(ledger_id, password) as reader:
                    end = reader.last_add_confirmed
                    found = {e.entry_id: e.payload async for e in reader.read(0, end)}
                    for (ledger, entry), payload in self._acked.items():
                        if ledger == ledger_id:
                            check(entry <= end, "R11", f"entry {entry} of {ledger} was acked, it ends at {end}")
                            check(found.get(entry) == payload, "L1", f"entry {entry} of ledger {ledger} is another")  # type: ignore[call-overload]
                    total = sum(map(len, found.values()))
                    check(reader.length == total, "R12", f"length {reader.length}, entries hold {total}")

    # -- stories ------------------------------------------------------------------------------------------

    def run(self, story: Callable[[SimCluster], Coroutine[Any, Any, T]], *, within_s: float = 600.0) -> T:
        """Start the bookies, run ``story(self)`` on the client's node, end the world."""

        async def main() -> T:
            await init_cluster_in(self.store.connect(), self.client.seams)
            for name in self.names:
                await self.add_bookie(name)
            return await self.client.run(story(self))

        with self.world:
            return self.world.run(main(), within_s=within_s)


class _Session:
    """A cluster of which a client owns nothing but its session."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.net: Net | None = None

    async def close(self) -> None:
        await self.metadata.close()


def bookie_config(name: str) -> BookieConfig:
    """A bookie on the node ``name``."""
    return BookieConfig(
        metadata_uri="memory:",
        directory="/data",
        bookie_id=BookieId(name),
        listen=f"{name}:{PORT}",
        insecure=True,  # names of simulated machines are no loopback addresses
        http_listen=None,
        storage=StorageConfig(journal_dir="/data/journal", ledger_dir="/data/ledgers", **STORAGE),
    )
