"""A cluster in a dict: ledgers that are appended, fenced, closed and deleted, over the real metadata store in memory.

Every call is a step at which a test can kill the caller (``die_after``) or let it fail (``fail_at``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

from bookkeeper.errors import (
    BookieUnavailableError,
    BookKeeperError,
    IllegalOperationError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchEntryError,
    NoSuchLedgerError,
    UnauthorizedError,
)
from bookkeeper.meta.stores.memory import Fate, MemoryCluster, MemoryStore


class Died(BaseException):
    """The process ends here."""


@dataclass
class Ledger:
    id: int
    password: bytes
    tags: dict[str, bytes]
    entries: list[bytes] = field(default_factory=list)
    fenced: bool = False
    closed: bool = False


class Cluster:
    """What all clients share."""

    def __init__(self) -> None:
        self.ledgers: dict[int, Ledger] = {}
        self.metadata = MemoryCluster()
        self.lagging = False
        """Readers of an open ledger learn of its last entry late."""
        self.orphans_allowed = False
        self._next = 0
        self._stop_after: int | None = None
        self.fail_at: tuple[str, BookKeeperError] | None = None
        self.steps: list[str] = []

    def client(self) -> Client:
        return Client(self)

    def step(self, name: str) -> None:
        self.steps.append(name)
        if self._stop_after is not None:
            if self._stop_after <= 0:
                raise Died(name)
            self._stop_after -= 1
        if self.fail_at is not None and self.fail_at[0] == name:
            _, error = self.fail_at
            self.fail_at = None
            raise error

    def die_after(self, steps: int | None) -> None:
        self._stop_after = steps

    def find(self, ledger: int, password: bytes | None) -> Ledger:
        if ledger not in self.ledgers:
            raise NoSuchLedgerError(f"no ledger {ledger}")
        if password is not None and self.ledgers[ledger].password != password:
            raise UnauthorizedError(f"ledger {ledger}")
        return self.ledgers[ledger]

    def new(self, password: bytes, tags: dict[str, bytes]) -> Ledger:
        self._next += 1
        self.ledgers[self._next] = Ledger(self._next, password, tags)
        return self.ledgers[self._next]


class Store:
    """A session of the metadata store whose every call is a step before and after it takes effect."""

    def __init__(self, cluster: Cluster, store: MemoryStore) -> None:
        self._cluster, self._store = cluster, store

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if name not in ("get", "exists", "sync", "set", "create", "delete", "multi"):
            return found

        async def call(*args: Any, **options: Any) -> Any:
            self._cluster.step(name)
            result = await found(*args, **options)
            if name in ("set", "create", "delete", "multi"):
                self._cluster.step(f"{name} done")
            return result

        return call


class Metadata:
    def __init__(self, store: Any) -> None:
        self.store = store

    def own(self, *parts: str) -> str:
        return "/".join(("/ledgers-py", *parts))


class Client:
    """The part of BookKeeper that journals use."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.metadata_store = Metadata(Store(cluster, cluster.metadata.connect()))
        self.services: Any = SimpleNamespace(seams=SimpleNamespace(rng=Random(self.metadata_store.store.session_id)))
        self.created_with: dict[str, Any] = {}

    async def create_ledger(self, *, password: bytes, custom_metadata: dict[str, bytes], **options: Any) -> Writer:
        self.cluster.step("create_ledger")
        self.created_with = options
        writer = Writer(self.cluster, self.cluster.new(password, custom_metadata))
        self.cluster.step("create_ledger done")
        return writer

    async def open_ledger(self, ledger: int, password: bytes | None, *, recovery: bool = True) -> Reader:
        self.cluster.step("open_ledger")
        found = self.cluster.find(ledger, password)
        if recovery:
            found.fenced = found.closed = True
            self.cluster.step("recovered")
        return Reader(self.cluster, found)

    async def require_key(self, ledger: int) -> None:
        """Nothing is encrypted here."""

    async def delete_ledger(self, ledger: int) -> None:
        self.cluster.step("delete_ledger")
        if self.cluster.ledgers.pop(ledger, None) is None:
            raise NoSuchLedgerError(f"no ledger {ledger}")

    async def close(self) -> None:
        pass


class Writer:
    def __init__(self, cluster: Cluster, ledger: Ledger) -> None:
        self._cluster, self._ledger = cluster, ledger
        self.id = ledger.id
        self.last_add_confirmed = -1

    def append_nowait(self, payload: bytes) -> asyncio.Future[int]:
        return asyncio.ensure_future(self.append(payload))

    async def append(self, payload: bytes) -> int:
        self._cluster.step("append")
        if self.id not in self._cluster.ledgers:
            raise NoSuchLedgerError(f"no ledger {self.id}")
        if self._ledger.fenced:
            raise LedgerFencedError(f"ledger {self.id}")
        self._ledger.entries.append(payload)
        self._cluster.step("append done")
        self.last_add_confirmed = len(self._ledger.entries) - 1
        return self.last_add_confirmed

    async def append_many(self, payloads: Sequence[bytes]) -> range:
        ids = [await self.append(payload) for payload in payloads]
        return range(ids[0], ids[-1] + 1)

    async def close(self) -> None:
        self._cluster.step("close")
        if self._ledger.closed:
            raise LedgerClosedError(f"ledger {self.id}")
        self._ledger.closed = self._ledger.fenced = True

    async def abandon(self) -> None:
        pass

    async def __aenter__(self) -> Writer:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()


class Reader:
    def __init__(self, cluster: Cluster, ledger: Ledger) -> None:
        self._cluster, self._ledger = cluster, ledger
        self.id = ledger.id
        self.last_add_confirmed = self._seen()

    def _seen(self) -> int:
        behind = 2 if self._cluster.lagging and not self._ledger.closed else 1
        return max(-1, len(self._ledger.entries) - behind)

    async def read_last_add_confirmed(self) -> int:
        self.last_add_confirmed = self._seen()
        return self.last_add_confirmed

    async def read_entry(self, entry: int) -> bytes:
        if entry > self.last_add_confirmed:
            raise IllegalOperationError(f"entry {entry} is past {self.last_add_confirmed}")
        return await self.read_unconfirmed(entry)

    async def read_unconfirmed(self, entry: int) -> bytes:
        self._cluster.step("read")
        if self.id not in self._cluster.ledgers:
            raise NoSuchLedgerError(f"no ledger {self.id}")
        if entry >= len(self._ledger.entries):
            raise NoSuchEntryError(f"entry {entry}")
        return self._ledger.entries[entry]

    async def read_batches(self, first: int, last: int) -> AsyncIterator[tuple[int, Sequence[bytes]]]:
        for entry in range(first, last + 1, 2):
            yield entry, [await self.read_entry(each) for each in range(entry, min(entry + 2, last + 1))]

    async def close(self) -> None:
        pass

    async def __aenter__(self) -> Reader:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        pass


class LostReplies:
    """The n-th write of the metadata store is done, and its reply is lost."""

    def __init__(self, n: int) -> None:
        self.left = n

    def fate(self, session: int, kind: str, path: str) -> Fate:
        if kind in ("set", "create", "delete", "multi"):
            self.left -= 1
            return Fate(reply_lost=self.left == -1)
        return Fate()


def unavailable() -> BookKeeperError:
    return BookieUnavailableError("no bookie answers")
