"""The three metadata services, as tests/contracts/metadata_store.py wants them."""

from __future__ import annotations

import json
import random
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

from kazoo.client import KazooClient

from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.meta.store import MetadataStore
from bookkeeper.meta.stores.memory import Fate, MemoryCluster, MemoryStore
from bookkeeper.meta.stores.sqlite import SqliteStore
from bookkeeper.meta.stores.zookeeper import ZooKeeperStore
from bookkeeper.real import system_seams
from bookkeeper.seams import Seams


def seams() -> Seams:
    """The system's, with dice that always fall the same way."""
    return replace(system_seams(), rng=random.Random(7))


class MemoryService:
    def __init__(self) -> None:
        self.cluster = MemoryCluster()
        self.stores: list[MetadataStore] = []

    async def connect(self) -> MemoryStore:
        store = self.cluster.connect()
        self.stores.append(store)
        return store

    async def expire(self, store: MetadataStore) -> None:
        assert isinstance(store, MemoryStore)
        self.cluster.expire(store)


class SqliteService:
    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.stores: list[MetadataStore] = []

    async def connect(self) -> SqliteStore:
        store = await SqliteStore.open(self.path, seams())
        self.stores.append(store)
        return store

    async def expire(self, store: MetadataStore) -> None:
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.execute("UPDATE sessions SET lease_until = 0 WHERE id = ?", (store.session_id,))
        connection.close()
        if isinstance(store, SqliteStore):
            store._file._renew_at = 0.0  # do not wait for a third of the lease


class ZooKeeperService:
    """A directory of its own in a server that all tests share."""

    def __init__(self, server: ZooKeeperServer, chroot: str) -> None:
        self.server = server
        self.chroot = chroot
        self.stores: list[MetadataStore] = []

    async def start(self) -> None:
        store = await ZooKeeperStore.open(str(self.server.address), seams())
        await store.create(self.chroot)
        await store.close()

    async def connect(self) -> ZooKeeperStore:
        store = await ZooKeeperStore.open(str(self.server.address), seams(), chroot=self.chroot)
        self.stores.append(store)
        return store

    async def expire(self, store: MetadataStore) -> None:
        """Take the session over on another connection and close it."""
        assert isinstance(store, ZooKeeperStore)
        thief = KazooClient(str(self.server.address), client_id=store._client.client_id)
        worker = seams().workers.worker("thief")
        await worker.call(lambda: (thief.start(), thief.stop(), thief.close()))
        worker.close()


def load(name: str) -> Any:
    """A file of ``tests/vectors``."""
    return json.loads((Path(__file__).parents[2] / "vectors" / name).read_text(encoding="utf-8"))


class Losing:
    """An Interference that loses the request or the reply of chosen calls, by the method's name."""

    def __init__(self, **fates: list[Fate]) -> None:
        self.fates = fates
        self.lost: list[str] = []

    def fate(self, session: int, kind: str, path: str) -> Fate:
        waiting = self.fates.get(kind)
        if not waiting:
            return Fate()
        self.lost.append(f"{kind} {path}")
        return waiting.pop(0)


class Recording:
    """An Interference that only writes down what is called."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def fate(self, session: int, kind: str, path: str) -> Fate:
        self.kinds.append(kind)
        return Fate()


REQUEST_LOST = Fate(request_lost=True)
REPLY_LOST = Fate(reply_lost=True)
FINE = Fate()
