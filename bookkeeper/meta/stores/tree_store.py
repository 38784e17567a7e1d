"""What the stores over a tree have in common: a call is one job of a transaction, and a store says how it is done."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TypeVar

from bookkeeper.errors import MetadataRolledBackError
from bookkeeper.meta.store import Operation, SessionState, ValueFollower, Version, Versioned, Watch, check_path
from bookkeeper.meta.stores.followers import TreeFollower
from bookkeeper.meta.stores.tree import Transaction, Tree, find
from bookkeeper.meta.stores.watches import SessionWatches

T = TypeVar("T")


class TreeStore(ABC):
    """The calls of a MetadataStore that read and write values; the derived class has the session and the watches."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._sessions = SessionWatches(loop, SessionState.CONNECTED)
        self._alarm: MetadataRolledBackError | None = None
        self._closed = False

    @property
    def session(self) -> SessionState:
        return self._sessions.state

    @property
    def rolled_back(self) -> MetadataRolledBackError | None:
        return self._alarm

    def on_session(self, callback: Callable[[SessionState], None]) -> Watch:
        return self._sessions.add(callback)

    @abstractmethod
    async def _read(self, kind: str, path: str, job: Callable[[Tree], T]) -> T:
        """Have a job read the tree; ``kind`` is the method's name."""

    @abstractmethod
    async def _write(self, kind: str, path: str, job: Callable[[Transaction], T]) -> T:
        """Have a job change the tree, all or nothing."""

    @abstractmethod
    def _newest(self) -> int:
        """The newest transaction that a read sees, asked within its job."""

    # -- reads ---------------------------------------------------------------------------------------------

    async def get(self, path: str) -> Versioned[bytes]:
        node = await self._read("get", path, lambda tree: find(tree, path))
        return Versioned(node.value, Version(node.version), node.created_ms, node.transaction, node.created_txn)

    async def exists(self, path: str) -> Version | None:
        node = await self._read("exists", path, lambda tree: tree.find(check_path(path)))
        return None if node is None else Version(node.version)

    async def owner(self, path: str) -> int | None:
        return (await self._read("owner", path, lambda tree: find(tree, path))).owner

    async def children(self, path: str) -> list[str]:
        def names(tree: Tree) -> list[str]:
            find(tree, path)
            return tree.names(path)

        return await self._read("children", path, names)

    async def sync(self, path: str) -> None:
        await self._read("sync", path, lambda tree: None)

    def follow_values(self) -> ValueFollower:
        return TreeFollower(self.get, lambda job: self._read("changed", "/", job), self._newest)

    # -- writes --------------------------------------------------------------------------------------------

    async def create(
        self,
        path: str,
        value: bytes = b"",
        *,
        ephemeral: bool = False,
        sequential: bool = False,
        parents: bool = False,
    ) -> tuple[str, Version]:
        def job(transaction: Transaction) -> tuple[str, Version]:
            return transaction.create(path, value, ephemeral=ephemeral, sequential=sequential, parents=parents)

        return await self._write("create", path, job)

    async def create_numbered(self, prefix: str, count: int) -> list[str]:
        def job(transaction: Transaction) -> list[str]:
            options = {"ephemeral": True, "sequential": True, "parents": False}
            return [transaction.create(prefix, b"", **options)[0] for _ in range(count)]

        return await self._write("create", prefix, job)

    async def set(self, path: str, value: bytes, expected: Version | None, *, created_txn: int = 0) -> Version:
        return await self._write("set", path, lambda transaction: transaction.set(path, value, expected, created_txn))

    async def delete(self, path: str, expected: Version | None) -> None:
        await self._write("delete", path, lambda transaction: transaction.delete(path, expected))

    async def multi(self, operations: Sequence[Operation]) -> list[Version | None]:
        path = operations[0].path if operations else "/"
        return await self._write("multi", path, lambda transaction: transaction.run(operations))
