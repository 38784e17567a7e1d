"""A metadata service inside this process: for tests, the simulator, and a cluster that lives in one process.

One :class:`MemoryCluster` is the service, each :class:`MemoryStore` a session with it. Nothing is left to chance: an
operation takes effect one turn of the loop after its call, watches follow by ``loop.call_soon``.

Faults happen only on request: :meth:`MemoryCluster.expire` ends a session, :meth:`~MemoryCluster.suspend` and
:meth:`~MemoryCluster.resume` cut one off, :meth:`~MemoryCluster.begin_outage` everybody; an :class:`Interference`
delays requests and replies, loses them, or ends a session when it has done a write; :meth:`~MemoryStore.lag` shows one
session the past until it syncs; :meth:`~MemoryCluster.snapshot` and :meth:`~MemoryCluster.restore` bring back an old
state.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bookkeeper.errors import (
    ClientClosedError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    SessionExpiredError,
)
from bookkeeper.meta.store import SessionState, Watch, once_more, parent_of
from bookkeeper.meta.stores.tree import Transaction, Tree, TreeNode
from bookkeeper.meta.stores.tree_store import TreeStore
from bookkeeper.meta.stores.watches import WatchRegistry

T = TypeVar("T")

OPERATION_TIMEOUT_S = 10.0
"""Seconds that an operation waits for the service to come back."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What happens to one operation on its way."""

    delay_before_s: float = 0.0
    request_lost: bool = False
    reply_lost: bool = False
    delay_after_s: float = 0.0
    session_ends: bool = False
    """The service has done it, and ends the session before the reply."""


class Interference(Protocol):
    """Decides the fate of each operation; the simulator implements it."""

    def fate(self, session: int, kind: str, path: str) -> Fate:
        """The fate of one operation; ``kind`` is the method's name. Lost reads are repeated, lost writes unknown."""


class MemoryTree:
    """A Tree in a dict, with an undo log."""

    def __init__(self) -> None:
        self.nodes: dict[str, TreeNode] = {"/": TreeNode(b"", 0, 0, 0, None)}
        self._names: dict[str, dict[str, None]] = {}
        self._undo: list[tuple[str, TreeNode | None]] = []

    def find(self, path: str) -> TreeNode | None:
        return self.nodes.get(path)

    def put(self, path: str, node: TreeNode) -> None:
        self._undo.append((path, self.nodes.get(path)))
        self._place(path, node)

    def remove(self, path: str) -> None:
        self._undo.append((path, self.nodes[path]))
        self._place(path, None)

    def names(self, path: str) -> list[str]:
        return sorted(self._names.get(path, ()))

    def written_after(self, transaction: int) -> list[str]:
        return [path for path, node in self.nodes.items() if node.transaction > transaction]

    def owned(self, session: int) -> list[str]:
        return sorted(path for path, node in self.nodes.items() if node.owner == session)

    def commit(self) -> None:
        self._undo.clear()

    def rollback(self) -> None:
        while self._undo:
            self._place(*self._undo.pop())

    def load(self, nodes: dict[str, TreeNode]) -> None:
        """Replace the tree's state."""
        for path in [path for path in self.nodes if path not in nodes]:
            self._place(path, None)
        for path, node in nodes.items():
            self._place(path, node)
        self._undo.clear()

    def _place(self, path: str, node: TreeNode | None) -> None:
        siblings = self._names.setdefault(parent_of(path), {})
        name = path.rpartition("/")[2]
        if node is None:
            del self.nodes[path]
            siblings.pop(name, None)
        else:
            self.nodes[path] = node
            if name:
                siblings[name] = None


@dataclass(frozen=True, slots=True)
class MemorySnapshot:
    """A state of the service."""

    nodes: dict[str, TreeNode]
    transaction: int


class MemoryCluster:
    """The service. Sessions may live on several loops and threads."""

    def __init__(self, wall_ms: Callable[[], int] = lambda: 0) -> None:
        self._wall_ms = wall_ms
        self._tree = MemoryTree()
        self._sessions: dict[int, MemoryStore] = {}
        self._last_session = 0
        self._lock = threading.RLock()
        self.transaction = 0
        self.outage = False
        self.interference: Interference | None = None

    def connect(self) -> MemoryStore:
        """A new session; call it on the loop that will use it."""
        with self._lock:
            store = MemoryStore(self, asyncio.get_running_loop())
            store.session_id = self.new_session(store)
            if self.outage:
                store.cut_off()
        return store

    # -- what can go wrong ---------------------------------------------------------------------------------

    def expire(self, store: MemoryStore) -> None:
        """End a session. Its client learns of it at once, or when it is no longer cut off."""
        with self._lock:
            self.end_session(store.session_id)
            store.call(store.on_expired)

    def suspend(self, store: MemoryStore) -> None:
        """Cut one session off from the service; the session itself goes on."""
        store.call(store.cut_off)

    def resume(self, store: MemoryStore) -> None:
        """Let a suspended session reach the service again."""
        store.call(store.let_back)

    def begin_outage(self) -> None:
        """Cut off all sessions from the service."""
        self.outage = True
        for store in list(self._sessions.values()):
            store.call(store.cut_off)

    def end_outage(self) -> None:
        self.outage = False
        for store in list(self._sessions.values()):
            store.call(store.let_back)

    def snapshot(self) -> MemorySnapshot:
        """Make a backup of the service's state."""
        with self._lock:
            return MemorySnapshot(dict(self._tree.nodes), self.transaction)

    def restore(self, backup: MemorySnapshot) -> None:
        """Go back to a backup and lose everything since. Connected sessions notice soon, as those of SQLite do: before
        new writes pass what they have seen."""
        with self._lock:
            self._tree.load(backup.nodes)
            self.transaction = backup.transaction
            for store in list(self._sessions.values()):
                store.call(store.check_soon)

    def dump(self) -> dict[str, TreeNode]:
        """All nodes by path."""
        with self._lock:
            return dict(sorted(self._tree.nodes.items()))

    # -- for sessions --------------------------------------------------------------------------------------

    def new_session(self, store: MemoryStore) -> int:
        with self._lock:
            self._last_session += 1
            self._sessions[self._last_session] = store
            return self._last_session

    def end_session(self, session: int) -> None:
        """Remove a session and its ephemeral values."""
        with self._lock:
            if self._sessions.pop(session, None) is not None:
                self.write(session, lambda transaction: transaction.end_session(session))

    def is_live(self, session: int) -> bool:
        return session in self._sessions

    def read(self, job: Callable[[MemoryTree], T]) -> T:
        with self._lock:
            return job(self._tree)

    def write(self, session: int, job: Callable[[Transaction], T]) -> T:
        """Run a transaction and tell everybody's watches."""
        with self._lock:
            number = self.transaction + 1
            transaction = Transaction(self._tree, session=session, number=number, now_ms=self._wall_ms())
            try:
                result = job(transaction)
            except BaseException:
                self._tree.rollback()
                raise
            self._tree.commit()
            self.transaction = number
            for store in list(self._sessions.values()):
                store.on_change(list(transaction.values), list(transaction.families))
            return result


class MemoryStore(TreeStore):
    """One session: a MetadataStore."""

    def __init__(self, cluster: MemoryCluster, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._cluster = cluster
        self._values: WatchRegistry[str] = WatchRegistry(loop)
        self._families: WatchRegistry[str] = WatchRegistry(loop)
        self._past: tuple[MemoryTree, int] | None = None
        """The state and transaction that reads show while the session lags; None if it does not."""
        self.session_id = 0
        self.last_transaction = 0

    async def check_not_rolled_back(self, transaction: int) -> None:
        now = await self._read("sync", "/", lambda tree: self._cluster.transaction)
        if now < transaction:
            self._alarm = self._rolled_back(transaction)
            raise once_more(self._alarm)

    def _newest(self) -> int:
        return self._cluster.transaction if self._past is None else self._past[1]

    # -- watches and session -------------------------------------------------------------------------------

    def watch(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._values.add(path, callback)

    def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._families.add(path, callback)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._cluster.end_session(self.session_id)
            self._sessions.change(SessionState.LOST)

    # -- called by the cluster, and by who tests ------------------------------------------------------------

    def lag(self) -> None:
        """Let reads show the service as it was at this session's last sync or write, like a server of a replicated
        service that is behind the others."""
        past = MemoryTree()
        snapshot = self._cluster.snapshot()
        past.load(snapshot.nodes)
        self._past = past, snapshot.transaction

    def catch_up(self) -> None:
        """End the lag. Everything that is watched may have changed meanwhile."""
        self._past = None
        self.call(self._doubt)

    def call(self, job: Callable[[], None]) -> None:
        """Run ``job`` on this session's loop: now if this is it, else soon."""
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            job()
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(job)

    def on_change(self, values: list[str], families: list[str]) -> None:
        def fire() -> None:
            self._values.fire(values)
            self._families.fire(families)

        if self.session is SessionState.CONNECTED:
            self.call(fire)

    def cut_off(self) -> None:
        if not self._closed:
            self._sessions.change(SessionState.SUSPENDED)
            self._doubt()

    def let_back(self) -> None:
        if self._closed:
            return
        if not self._cluster.is_live(self.session_id):
            self._renew()
        elif self.session is not SessionState.CONNECTED:
            self._sessions.change(SessionState.CONNECTED)
            self._doubt()

    def on_expired(self) -> None:
        if not self._closed and self.session is SessionState.CONNECTED and not self._cluster.is_live(self.session_id):
            self._renew()

    def _renew(self) -> None:
        self._sessions.change(SessionState.LOST)
        self.session_id = self._cluster.new_session(self)
        if self._past is not None:
            self.lag()
        self._saw(self._cluster.transaction)
        self._sessions.change(SessionState.CONNECTED)
        self._doubt()

    def _doubt(self) -> None:
        """Fire all watches, because everything that is watched may have changed."""
        self._values.fire_all()
        self._families.fire_all()

    # -- one way to the service ----------------------------------------------------------------------------

    async def _read(self, kind: str, path: str, job: Callable[[Tree], T]) -> T:
        while True:
            fate = await self._enter(kind, path)
            if fate.request_lost or fate.reply_lost:
                await asyncio.sleep(fate.delay_after_s)
                continue
            if self._past is not None and kind == "sync":
                self.lag()
            self._saw(self._cluster.transaction if self._past is None else self._past[1])
            result = self._cluster.read(job) if self._past is None else job(self._past[0])
            if fate.delay_after_s:
                await asyncio.sleep(fate.delay_after_s)
            return result

    async def _write(self, kind: str, path: str, job: Callable[[Transaction], T]) -> T:
        session = self.session_id
        fate = await self._enter(kind, path)
        if self._alarm is not None:
            raise once_more(self._alarm)
        if session != self.session_id or not self._cluster.is_live(session):
            raise SessionExpiredError(f"{kind} {path}: session {session} has ended")
        if fate.request_lost:
            raise MetadataUnavailableError(f"{kind} {path}: no answer")
        try:
            result = self._cluster.write(self.session_id, job)
        finally:  # a refusal is an answer, too: it shows how far the service has come
            if self._past is not None:
                self.lag()
            if not fate.reply_lost:
                self._saw(self._cluster.transaction)
        if fate.session_ends:
            self._cluster.expire(self)
        if fate.delay_after_s:
            await asyncio.sleep(fate.delay_after_s)
        if session != self.session_id or not self._cluster.is_live(session):
            raise SessionExpiredError(f"{kind} {path}: session {session} has ended, and no answer has come")
        if fate.reply_lost or self.session is SessionState.SUSPENDED:
            raise MetadataUnavailableError(f"{kind} {path}: no answer")
        return result

    async def _enter(self, kind: str, path: str) -> Fate:
        if self._closed:
            raise ClientClosedError("the metadata store was closed")
        interference = self._cluster.interference
        fate = Fate() if interference is None else interference.fate(self.session_id, kind, path)
        await asyncio.sleep(fate.delay_before_s)
        if not await self._sessions.connected(OPERATION_TIMEOUT_S):
            raise MetadataUnavailableError(f"{kind} {path}: no contact with the metadata store")
        if self._closed:
            raise ClientClosedError("the metadata store was closed")
        return fate

    def check_soon(self) -> None:
        """Check soon whether the service is in an older state."""
        self._loop.call_soon(self._check)

    def _check(self) -> None:
        """Check now. A session that is cut off, or lags, notices later."""
        if self._sessions.state is SessionState.CONNECTED and self._past is None:
            self._saw(self._cluster.transaction)

    def _saw(self, transaction: int) -> None:
        if transaction < self.last_transaction and self._alarm is None:
            self._alarm = self._rolled_back(self.last_transaction)
        self.last_transaction = max(self.last_transaction, transaction)

    def _rolled_back(self, seen: int) -> MetadataRolledBackError:
        now = self._cluster.transaction
        return MetadataRolledBackError(
            f"the metadata store shows an older state: transaction {seen} was seen before, but the newest is {now} now"
        )
