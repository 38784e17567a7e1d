"""The tree, its sessions and its changes in one SQLite file. Blocking: one worker thread owns it.

* WAL and ``synchronous=FULL``: a transaction is durable when it returns.
* Every transaction holds SQLite's write lock from its first statement and checks its own session's lease under it: a
  process that was stopped past its lease cannot write, and one that is stopped *inside* a transaction keeps everybody
  else from acting on its absence until it goes on or dies.
* A session ends when its lease has run out, or at once when its process is gone; whoever notices deletes its
  ephemeral values.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeVar

from bookkeeper.errors import (
    MetadataError,
    MetadataFormatError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    SessionExpiredError,
)
from bookkeeper.meta.stores.process_identity import ProcessIdentity, is_dead, network_file_system, this_process
from bookkeeper.meta.stores.tree import Transaction, TreeNode
from bookkeeper.real.private import make_private, make_private_file, require_own

T = TypeVar("T")
Key = tuple[str, str]
"""What is watched: ("value" or "family", path)."""

FORMAT: Final = 2
"""2: nodes know which transaction created them. A file of format 1 becomes one of 2 when it is opened; programs that
know only 1 refuse it from then on."""

BUSY_S: Final = 5.0
"""Seconds that a transaction waits for another process's transaction."""

_SCHEMA = """
CREATE TABLE nodes (
    path TEXT PRIMARY KEY, parent TEXT NOT NULL, value BLOB NOT NULL, version INTEGER NOT NULL,
    created_ms INTEGER NOT NULL, tx INTEGER NOT NULL, owner INTEGER,
    children_made INTEGER NOT NULL, children_changed INTEGER NOT NULL, born INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX nodes_by_parent ON nodes (parent);
CREATE INDEX nodes_by_owner ON nodes (owner) WHERE owner IS NOT NULL;
CREATE TABLE sessions (
    id INTEGER PRIMARY KEY AUTOINCREMENT, boot TEXT NOT NULL, namespace TEXT NOT NULL, pid INTEGER NOT NULL,
    started INTEGER NOT NULL, lease_until REAL NOT NULL
);
CREATE TABLE state (tx INTEGER NOT NULL);
INSERT INTO state VALUES (0);
INSERT INTO nodes VALUES ('/', '', x'', 0, 0, 0, NULL, 0, 0, 0);
"""
_COLUMNS = "value, version, created_ms, tx, owner, children_made, children_changed, born"
_FROM_1 = "ALTER TABLE nodes ADD COLUMN born INTEGER NOT NULL DEFAULT 0"


@dataclass(frozen=True, slots=True)
class FileChanges:
    """The changes that one poll of the file found."""

    changed: list[Key] = field(default_factory=list)


def _keep_private(path: str) -> None:
    """Make the file readable to its owner only, because it holds ledgers' passwords.

    What SQLite keeps beside it gets the same mode. A file of an earlier version that others may read is made private.
    Errors are passed over: SQLite then reports them better."""
    with contextlib.suppress(OSError):
        make_private_file(path)
    for name in (path, *_beside(path)):
        with contextlib.suppress(OSError):
            make_private(name)


def _beside(path: str) -> tuple[str, ...]:
    """The files that SQLite keeps beside its file, and believes."""
    return f"{path}-wal", f"{path}-shm", f"{path}-journal"


_REASONS: Final = {
    sqlite3.SQLITE_CANTOPEN: "this user may not open the file, or not write into its directory",
    sqlite3.SQLITE_READONLY: "this user may read the file and not write it, but every session is written into it",
    sqlite3.SQLITE_NOTADB: "the file holds something else than metadata in SQLite",
}


def reason(error: sqlite3.Error) -> str:
    """Why SQLite did not do it, for people."""
    kind = getattr(error, "sqlite_errorcode", 0) & 0xFF  # without what tells kinds of one kind apart
    return _REASONS.get(kind, str(error))


class SqliteFile:
    """One connection, one session at a time."""

    def __init__(
        self, path: str, *, monotonic: Callable[[], float], wall_ms: Callable[[], int], lease_s: float
    ) -> None:
        self.path = path
        self._monotonic = monotonic
        self._wall_ms = wall_ms
        self._lease_s = lease_s
        self._here = this_process()
        self._seen: tuple[int, int] | None = None
        self._stamps: dict[Key, object] = {}
        self._others: list[tuple[int, ProcessIdentity, float]] = []
        self._renew_at = 0.0
        self.session = 0
        self.last_transaction = 0
        if kind := network_file_system(os.path.dirname(path) or "."):
            raise MetadataError(
                f"{path} lies on a network file system ({kind}), where SQLite's locks fail: put it on a local disk"
            )
        if not os.path.isdir(directory := os.path.dirname(path) or "."):
            raise MetadataError(f"{path} cannot be made: there is no directory {directory}")
        if os.path.isdir(path):
            raise MetadataUnavailableError(f"{path} is a directory, but the metadata are a file")
        _keep_private(path)
        for name in (path, *_beside(path)):
            require_own(name)
        with self._translated():
            self._db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        try:
            self._prepare()
            self._files = self._identity()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """End the session if possible, and close the file."""
        try:
            if self.session:
                with self._locked():
                    self._end([self.session])
        except (MetadataError, sqlite3.Error):
            pass  # it ends with its lease, or as soon as this process has ended
        finally:
            self._db.close()

    # -- Tree ----------------------------------------------------------------------------------------------

    def find(self, path: str) -> TreeNode | None:
        row = self._db.execute(f"SELECT {_COLUMNS} FROM nodes WHERE path = ?", (path,)).fetchone()
        return None if row is None else TreeNode(*row)

    def put(self, path: str, node: TreeNode) -> None:
        parent = "" if path == "/" else path.rpartition("/")[0] or "/"
        columns = (node.value, node.version, node.created_ms, node.transaction, node.owner)
        counts = (node.children_made, node.children_changed, node.created_txn)
        self._db.execute("REPLACE INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (path, parent, *columns, *counts))

    def remove(self, path: str) -> None:
        self._db.execute("DELETE FROM nodes WHERE path = ?", (path,))

    def names(self, path: str) -> list[str]:
        rows = self._db.execute("SELECT path FROM nodes WHERE parent = ? ORDER BY path", (path,))
        return sorted(row[0].rpartition("/")[2] for row in rows)

    def written_after(self, transaction: int) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT path FROM nodes WHERE tx > ?", (transaction,))]

    def owned(self, session: int) -> list[str]:
        return [row[0] for row in self._db.execute("SELECT path FROM nodes WHERE owner = ? ORDER BY path", (session,))]

    def other_sessions(self) -> int:
        """How many other sessions have not ended."""
        others = [other for other in self._sessions() if other[0] != self.session]
        return sum(not self._gone(process, lease) for _, process, lease in others)

    # -- jobs ----------------------------------------------------------------------------------------------

    def read(self, job: Callable[[SqliteFile], T]) -> T:
        """Read a snapshot of the file. Raises: MetadataRolledBackError: it shows less than was seen before."""
        with self._translated():
            self._check_files()
            self._db.execute("BEGIN")
            try:
                self._notice(self._newest())  # first: that something is not there would be believed
                return job(self)
            finally:
                self._db.execute("ROLLBACK")

    def write(self, session: int, job: Callable[[Transaction], T]) -> T:
        """Write all changes or none. They are durable when this returns.

        Raises:
            SessionExpiredError: ``session`` has ended, or its lease has run out.
            MetadataUnavailableError: another process held the lock for too long, or the disk failed.
            MetadataRolledBackError: the file shows less than was seen before.
        """
        self._check_files()
        with self._locked():
            self._check_lease(session)
            self._end([other for other, process, lease in self._sessions() if self._gone(process, lease)])
            return self._run(session, job)

    def open_session(self) -> int:
        """Begin a session of this process. Sessions that have ended are removed first."""
        with self._locked():
            self._end([other for other, process, lease in self._sessions() if self._gone(process, lease)])
            process = self._here
            cursor = self._db.execute(
                "INSERT INTO sessions (boot, namespace, pid, started, lease_until) VALUES (?, ?, ?, ?, ?)",
                (process.boot, process.namespace, process.pid, process.started, self._lease_end()),
            )
            assert cursor.lastrowid is not None
            self.session = cursor.lastrowid
        self._renew_at = self._monotonic() + self._lease_s / 3
        return self.session

    def watch(self, key: Key) -> None:
        """Begin to watch keys: :meth:`poll` reports changes from now on."""
        with self._translated():
            self._stamps.setdefault(key, self._stamp(key))

    def poll(self, keys: Collection[Key]) -> FileChanges:
        """Renew the session, end sessions of dead processes, and find the ``keys`` that changed since the last poll.

        Raises:
            SessionExpiredError: this session has ended.
        """
        with self._translated():
            self._check_files()
            (version,) = self._db.execute("PRAGMA data_version").fetchone()
            seen = (version, self._db.total_changes)
            if seen != self._seen:
                self._notice(self._newest())
                self._others = [other for other in self._sessions() if other[0] != self.session]
        if self._monotonic() >= self._renew_at:
            self._renew()
        if any(self._gone(process, lease) for _, process, lease in self._others):
            self.write(self.session, lambda transaction: None)
        for key in [key for key in self._stamps if key not in keys]:
            del self._stamps[key]
        if seen == self._seen:
            return FileChanges()
        self._seen = seen
        return FileChanges(self._changed())

    # -- parts ---------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        with self._translated():
            (mode,) = self._db.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                raise MetadataError(
                    f"{self.path}: SQLite cannot use a write-ahead log on this file system (it has {mode})"
                )
            self._db.execute("PRAGMA synchronous = FULL")
            self._db.execute("BEGIN IMMEDIATE")
            (version,) = self._db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in filter(None, map(str.strip, _SCHEMA.split(";"))):
                    self._db.execute(statement)
            elif version == 1:
                self._db.execute(_FROM_1)
            if version in (0, 1):
                self._db.execute(f"PRAGMA user_version = {FORMAT}")
            self._db.execute("COMMIT")
            if version not in (0, 1, FORMAT):
                raise MetadataFormatError(
                    f"{self.path} has format {version}, but this program reads format {FORMAT}: use a newer version"
                )

    def _run(self, session: int, job: Callable[[Transaction], T]) -> T:
        self._notice(self._newest())
        number = self.last_transaction = self.last_transaction + 1
        transaction = Transaction(self, session=session, number=number, now_ms=self._wall_ms())
        result = job(transaction)
        self._db.execute("UPDATE state SET tx = ?", (number,))
        return result

    def _end(self, sessions: list[int]) -> None:
        for session in sessions:
            self._run(session, lambda transaction, session=session: transaction.end_session(session))  # type: ignore[misc]
            self._db.execute("DELETE FROM sessions WHERE id = ?", (session,))

    def _check_lease(self, session: int) -> None:
        row = self._db.execute("SELECT lease_until FROM sessions WHERE id = ?", (session,)).fetchone()
        if session != self.session or row is None or row[0] <= self._monotonic():
            raise SessionExpiredError(f"session {session} with {self.path} has ended")

    def _renew(self) -> None:
        with self._locked():
            self._check_lease(self.session)
            self._db.execute("UPDATE sessions SET lease_until = ? WHERE id = ?", (self._lease_end(), self.session))
        self._renew_at = self._monotonic() + self._lease_s / 3

    def _lease_end(self) -> float:
        return self._monotonic() + self._lease_s

    def _sessions(self) -> list[tuple[int, ProcessIdentity, float]]:
        rows = self._db.execute("SELECT id, boot, namespace, pid, started, lease_until FROM sessions ORDER BY id")
        return [(row[0], ProcessIdentity(*row[1:5]), row[5]) for row in rows]

    def _gone(self, process: ProcessIdentity, lease_until: float) -> bool:
        return lease_until <= self._monotonic() or is_dead(process, self._here)

    def _changed(self) -> list[Key]:
        changed = []
        with self._translated():
            for key, old in self._stamps.items():
                new = self._stamp(key)
                if new != old:
                    self._stamps[key] = new
                    changed.append(key)
        return changed

    def _stamp(self, key: Key) -> object:
        kind, path = key
        node = self.find(path)
        if node is None:
            return None
        return node.transaction if kind == "value" else node.children_changed

    def _newest(self) -> int:
        return int(self._db.execute("SELECT tx FROM state").fetchone()[0])

    def _notice(self, transaction: int) -> None:
        if transaction < self.last_transaction:
            raise MetadataRolledBackError(
                f"{self.path} shows an older state: transaction {self.last_transaction} was seen before, but "
                f"the newest is {transaction} now"
            )
        self.last_transaction = transaction

    def _check_files(self) -> None:
        """Check that the names still lead to the files that are open here. Putting a copy back replaces one of them.

        Raises: MetadataRolledBackError: a file was replaced.
        """
        if self._identity() != self._files:
            raise MetadataRolledBackError(
                f"{self.path} was replaced while this process had it open: another state of the metadata was put in "
                "its place"
            )

    def _identity(self) -> list[tuple[int, int]]:
        found = []
        for path in (self.path, f"{self.path}-wal"):
            try:
                status = os.stat(path)
                found.append((status.st_dev, status.st_ino))
            except FileNotFoundError:
                found.append((0, 0))
        return found

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Run a transaction that holds the write lock from its beginning."""
        with self._translated():
            self._db.execute("BEGIN IMMEDIATE")
            committed = self.last_transaction
            try:
                committed = max(committed, self._newest())
                yield
                self._db.execute("COMMIT")
            except BaseException:
                self.last_transaction = committed  # ours came to nothing; what others had done was seen
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise MetadataUnavailableError(f"{self.path}: {reason(error)}") from error
