"""The metadata store in a SQLite file, shared by the processes of one machine.

A worker owns the file, :class:`~bookkeeper.meta.stores.sqlite_file.SqliteFile`. This module keeps the session alive,
polls the file every 50 ms, turns changes into callbacks, and begins a new session if one was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from bookkeeper.errors import (
    ClientClosedError,
    MetadataError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    SessionExpiredError,
)
from bookkeeper.meta.store import SessionState, Watch, check_path, once_more
from bookkeeper.meta.stores.sqlite_file import FileChanges, Key, SqliteFile
from bookkeeper.meta.stores.tree import Transaction, Tree
from bookkeeper.meta.stores.tree_store import TreeStore
from bookkeeper.meta.stores.watches import WatchRegistry
from bookkeeper.seams import Seams, Worker

T = TypeVar("T")

POLL_S: Final = 0.05
LEASE_S: Final = 10.0
"""Seconds after which a session ends unless it is renewed; it is renewed after a third of them."""


class SqliteStore(TreeStore):
    """One session with a SQLite file: a MetadataStore."""

    def __init__(self, file: SqliteFile, worker: Worker, session: int) -> None:
        super().__init__(asyncio.get_running_loop())
        self._file = file
        self._worker = worker
        self._watched: WatchRegistry[Key] = WatchRegistry(self._loop)
        self._timer: asyncio.TimerHandle | None = None
        self.session_id = session
        self._schedule()

    @classmethod
    async def open(cls, path: str, seams: Seams, *, lease_s: float = LEASE_S) -> SqliteStore:
        """Open a file, or create it in an existing directory.

        Raises:
            MetadataError: the file lies on a network file system.
            MetadataFormatError: it is a file of another kind.
            MetadataUnavailableError: it cannot be opened, or stays locked for too long.
        """
        worker = seams.workers.worker("sqlite")
        clock = seams.clock
        make = partial(SqliteFile, path, monotonic=clock.monotonic, wall_ms=clock.wall_ms, lease_s=lease_s)
        try:
            file = await worker.call(make)
            return cls(file, worker, await worker.call(file.open_session))
        except BaseException:
            worker.close()
            raise

    @property
    def last_transaction(self) -> int:
        return self._file.last_transaction

    async def check_not_rolled_back(self, transaction: int) -> None:
        await self.sync("/")
        if self.last_transaction < transaction:
            self._alarm = MetadataRolledBackError(
                f"transaction {transaction} was seen before, now the newest is {self.last_transaction}"
            )
            raise once_more(self._alarm)

    def _newest(self) -> int:
        return self._file.last_transaction

    # -- watches and session -------------------------------------------------------------------------------

    def watch(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._subscribe(("value", check_path(path)), callback)

    def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._subscribe(("family", check_path(path)), callback)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        await asyncio.shield(self._worker.call(self._file.close))
        self._worker.close()
        self._sessions.change(SessionState.LOST)

    def _subscribe(self, key: Key, callback: Callable[[], None]) -> Watch:
        subscription = self._watched.add(key, callback)
        self._worker.submit(partial(self._file.watch, key), lambda _, error: None if error is None else self._doubt())
        return subscription

    async def other_sessions(self) -> int:
        """How many sessions besides this one have this file open now."""
        return await self._read("sessions", "/", lambda tree: self._file.other_sessions())

    # -- the look every 50 ms ------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if not self._closed:
            self._timer = self._loop.call_later(POLL_S, self._poll)

    def _poll(self) -> None:
        if not self._closed:
            self._worker.submit(partial(self._file.poll, self._watched.keys()), self._polled)

    def _polled(self, changes: FileChanges | None, error: BaseException | None) -> None:
        if self._closed:
            return
        if changes is not None:
            if self.session is SessionState.SUSPENDED:
                self._sessions.change(SessionState.CONNECTED)
                self._doubt()
            self._watched.fire(changes.changed)
            self._schedule()
        elif isinstance(error, SessionExpiredError):
            self._lose()
            self._schedule()
        elif isinstance(error, MetadataError):
            self._note(error)
            self._schedule()
        else:
            self._sessions.change(SessionState.LOST)
            self._loop.call_exception_handler({"message": "the look at a SQLite store failed", "exception": error})

    def _note(self, error: MetadataError) -> None:
        if isinstance(error, MetadataRolledBackError):
            self._alarm = error
        if self.session is SessionState.CONNECTED:
            self._sessions.change(SessionState.SUSPENDED)
            self._doubt()

    def _lose(self) -> None:
        """Report that the session has ended, and begin another."""
        if self.session is SessionState.LOST:
            return
        self._sessions.change(SessionState.LOST)
        self._doubt()
        self._open_session()

    def _open_session(self) -> None:
        if not self._closed:
            self._worker.submit(self._file.open_session, self._opened)

    def _opened(self, session: int | None, error: BaseException | None) -> None:
        if self._closed:
            return
        if session is None:
            self._loop.call_later(POLL_S, self._open_session)
            return
        self.session_id = session
        self._sessions.change(SessionState.CONNECTED)
        self._doubt()

    def _doubt(self) -> None:
        """Fire all watches, because everything that is watched may have changed."""
        self._watched.fire_all()

    # -- one way to the file -------------------------------------------------------------------------------

    async def _read(self, kind: str, path: str, job: Callable[[Tree], T]) -> T:
        self._check_open()
        try:
            return await self._worker.call(lambda: self._file.read(job))
        except MetadataRolledBackError as alarm:
            self._alarm = alarm
            raise

    async def _write(self, kind: str, path: str, job: Callable[[Transaction], T]) -> T:
        self._check_open()
        session = self.session_id
        if self._alarm is not None:
            raise once_more(self._alarm)
        if not await self._sessions.connected(LEASE_S):
            raise MetadataUnavailableError(f"this process has no session with {self._file.path} now")
        if session != self.session_id:
            raise SessionExpiredError(f"session {session} with {self._file.path} has ended")
        self._check_open()
        try:
            return await self._worker.call(lambda: self._file.write(session, job))
        except SessionExpiredError:
            if session == self.session_id:
                self._lose()
            raise
        except MetadataRolledBackError as alarm:
            self._alarm = alarm
            raise

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosedError("the metadata store was closed")
