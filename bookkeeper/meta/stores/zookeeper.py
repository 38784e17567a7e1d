"""The metadata store in ZooKeeper: the operations of :mod:`bookkeeper.meta.store`, asked in one session.

:mod:`~bookkeeper.meta.stores.zookeeper_session` has the session (contact, reads that are repeated, writes that are sent
once, servers that were put back to an older state), :mod:`~bookkeeper.meta.stores.zookeeper_watches` the watches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from bookkeeper.errors import (
    KeyExistsError,
    MetadataError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    NoSuchKeyError,
)
from bookkeeper.meta.store import (
    Create,
    Delete,
    Operation,
    SessionState,
    Set,
    ValueFollower,
    Version,
    Versioned,
    Watch,
    check_creation,
    check_path,
    parent_of,
)
from bookkeeper.meta.stores.access_list import AclEntry
from bookkeeper.meta.stores.credentials import Credentials
from bookkeeper.meta.stores.write_batcher import WriteBatcher
from bookkeeper.meta.stores.zookeeper_client import (
    OPEN,
    ConnectionLog,
    Numbered,
    cause_of,
    is_unknown_identity,
    new_client,
    new_transaction,
    rights,
    translate,
)
from bookkeeper.meta.stores.zookeeper_follower import ZooKeeperFollower
from bookkeeper.meta.stores.zookeeper_session import SESSION_TIMEOUT_S, ZooKeeperSession
from bookkeeper.meta.stores.zookeeper_watches import FAMILY, VALUE, ZooKeeperWatches
from bookkeeper.seams import Seams

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())

_NOWHERE: Final = "/bookkeeper-py-who-am-i"


@dataclass(frozen=True, slots=True)
class _Group:
    """Operations that are done together or not at all."""

    operations: tuple[Operation, ...]


_Asked = tuple[Operation | _Group, int]
"""A write, and the session in which it was asked for."""


class ZooKeeperStore:
    """One session with a ZooKeeper ensemble: a MetadataStore."""

    def __init__(self, session: ZooKeeperSession, *, identified: bool) -> None:
        self.identified = identified
        """Whether there are credentials, so that only this identity may use what the session creates."""
        self._session = session
        self._client = session.client
        self._watches = ZooKeeperWatches(session)
        self._batcher: WriteBatcher[_Asked, Any] = WriteBatcher(self._send_one, self._send_many, _size, _parts)

    @classmethod
    async def open(
        cls,
        hosts: str,
        seams: Seams,
        *,
        chroot: str = "",
        credentials: Credentials | None = None,
        session_timeout_s: float = SESSION_TIMEOUT_S,
        connect_timeout_s: float = SESSION_TIMEOUT_S,
    ) -> ZooKeeperStore:
        """Connect to ``host:port,host:port``. ``chroot`` is put before every path; it must exist.

        Raises:
            MetadataUnavailableError: no server answered within ``connect_timeout_s``, or none listens.
            MetadataForbiddenError: the credentials were refused, or ZooKeeper gave the session no identity.
            ConfigError: digest credentials would be sent in clear text.
        """
        who = credentials or Credentials()
        log = ConnectionLog()
        client = new_client(f"{hosts}{chroot}", who, session_timeout_s, log)
        session = ZooKeeperSession(
            client,
            seams.workers.worker("zookeeper"),
            hosts=hosts,
            who=who,
            timeout_s=min(session_timeout_s, SESSION_TIMEOUT_S),
            stranger=lambda: new_client(f"{hosts}{chroot}", who, session_timeout_s),
        )
        store = cls(session, identified=who.identified)
        client.start_async()
        try:
            await session.first_contact(seams, connect_timeout_s)
            log.show()
            if who.identified:
                await store._check_identity()
        except BaseException:
            await store.close()
            raise
        return store

    async def _check_identity(self) -> None:
        """Raise unless ZooKeeper knows this session's identity.

        Sends a transaction that can never succeed and asks for a node that only its creator may use. A session without
        identity gets an error that says so; any other session is told that the transaction failed.
        """
        request = self._client.transaction()
        request.create(_NOWHERE)
        request.check(f"{_NOWHERE}/x", 0)
        try:
            results = await self._session.write("authentication", request.commit_async)
        except MetadataUnavailableError:
            raise self._session.broken or MetadataUnavailableError(
                f"ZooKeeper did not answer our credentials ({self._session.who}): a server that does not know their "
                "scheme keeps silent; set the scheme up there, or choose another one"
            ) from None
        if is_unknown_identity(results[0]):
            raise translate("authentication", results[0], self._session.who)

    @property
    def session(self) -> SessionState:
        return self._session.state

    @property
    def session_id(self) -> int:
        """The number of the session; 0 before the first."""
        return self._session.session_id

    @property
    def last_transaction(self) -> int:
        """The highest transaction that this store has seen."""
        return self._session.last_transaction

    @property
    def rolled_back(self) -> MetadataRolledBackError | None:
        return self._session.rolled_back

    async def check_not_rolled_back(self, transaction: int) -> None:
        await self._session.check_not_rolled_back(transaction)

    # -- reads ---------------------------------------------------------------------------------------------

    async def get(self, path: str) -> Versioned[bytes]:
        value, stat = await self._session.read(f"get {path}", partial(self._client.get_async, check_path(path)))
        return Versioned(value, Version(stat.version), stat.ctime, stat.mzxid, stat.czxid)

    async def exists(self, path: str) -> Version | None:
        stat = await self._session.read(f"exists {path}", partial(self._client.exists_async, check_path(path)))
        return None if stat is None else Version(stat.version)

    async def owner(self, path: str) -> int | None:
        stat = await self._session.read(f"owner {path}", partial(self._client.exists_async, check_path(path)))
        if stat is None:
            raise NoSuchKeyError(path)
        return stat.ephemeralOwner or None

    async def children(self, path: str) -> list[str]:
        names = await self._session.read(f"children {path}", partial(self._client.get_children_async, check_path(path)))
        return sorted(names)

    async def sync(self, path: str) -> None:
        await self._session.read(f"sync {path}", partial(self._client.sync_async, check_path(path)))

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
        kind = Numbered if sequential else Create
        operation = kind(check_path(path), value, ephemeral)
        while True:
            try:
                return await self._put(operation), Version(0)
            except NoSuchKeyError:
                if not parents:
                    raise
            try:
                await self.create(parent_of(path), parents=True)
            except KeyExistsError:
                pass

    async def create_numbered(self, prefix: str, count: int) -> list[str]:
        one = Numbered(check_path(prefix), b"", ephemeral=True)
        paths: list[str] = await self._put(_Group((one,) * count))
        return paths

    async def set(self, path: str, value: bytes, expected: Version | None, *, created_txn: int = 0) -> Version:
        if created_txn:
            await self._check_creation(path, created_txn)
        stat = await self._put(Set(check_path(path), value, expected))
        if created_txn and stat.czxid != created_txn:
            _log.critical(
                "%s was deleted and created anew just before a write: it has replaced version %d of the new value",
                path,
                expected,
            )
            raise MetadataError(
                f"{path} was deleted and created anew between the read and the write: a value that was meant for the "
                f"old one has replaced version {expected} of the new one"
            )
        return Version(stat.version)

    async def _check_creation(self, path: str, created_txn: int) -> None:
        await self.sync(path)
        stat = await self._session.read(f"exists {path}", partial(self._client.exists_async, check_path(path)))
        if stat is None:
            raise NoSuchKeyError(path)
        check_creation(path, stat.czxid, created_txn)

    async def delete(self, path: str, expected: Version | None) -> None:
        await self._put(Delete(check_path(path), expected))

    async def multi(self, operations: Sequence[Operation]) -> list[Version | None]:
        for operation in operations:
            check_path(operation.path)
        results = await self._put(_Group(tuple(operations)))
        return [_version_of(operation, result) for operation, result in zip(operations, results, strict=True)]

    async def _send_group(self, operations: Sequence[Operation]) -> list[Any]:
        request = new_transaction(self._client, operations)
        results: list[Any] = await self._session.write("multi", request.commit_async)
        failures = [result for result in results if isinstance(result, Exception)]
        if failures:
            cause = cause_of(failures)
            raise translate("multi", cause, self._session.who) from cause
        return results

    # -- single writes go together (write_batcher) ------------------------------------------------------------

    async def _put(self, operation: Operation | _Group) -> Any:
        """Send one write together with others of this turn, after checking that it may be sent."""
        session, name = self._session.may_write(), _name(operation)
        await self._session.contact(name, self._session.loop.time() + self._session.timeout_s)
        self._session.check_session(name, session)
        return await self._batcher.put((operation, session))

    async def _send_one(self, asked: _Asked) -> Any:
        client = self._client
        operation, session = asked
        self._session.check_session(_name(operation), session)
        match operation:
            case _Group(operations):
                return await self._send_group(operations)
            case Create(path, value, ephemeral):
                numbered = isinstance(operation, Numbered)
                send = partial(client.create_async, path, value, ephemeral=ephemeral, sequence=numbered)
            case Set(path, value, expected):
                send = partial(client.set_async, path, value, _expected(expected))
            case Delete(path, expected):
                send = partial(client.delete_async, path, _expected(expected))
        return await self._session.write(_name(operation), send)

    async def _send_many(self, asked: Sequence[_Asked]) -> list[Any] | None:
        if any(session != self._session.session_id for _, session in asked):
            return None
        parts = [_operations(each) for each in asked]
        together = [operation for operations in parts for operation in operations]
        what = f"{_name(asked[0][0])} and {len(asked) - 1} more"
        answers = iter(await self._session.write(what, new_transaction(self._client, together).commit_async))
        results = [[next(answers) for _ in operations] for operations in parts]
        if any(isinstance(answer, Exception) for each in results for answer in each):
            return None
        return [each if isinstance(one, _Group) else each[0] for (one, _), each in zip(asked, results, strict=True)]

    # -- access lists, which other stores do not have ------------------------------------------------------

    async def access(self, path: str) -> list[AclEntry]:
        """The access list of one value. Raises: NoSuchKeyError, MetadataForbiddenError."""
        acl, _ = await self._session.read(f"access {path}", partial(self._client.get_acls_async, check_path(path)))
        return [AclEntry(entry.id.scheme, entry.id.id, rights(entry.perms)) for entry in acl]

    async def take(self, path: str) -> None:
        """Give a value the access list that this session gives to what it creates.

        Raises:
            NoSuchKeyError, MetadataForbiddenError.
        """
        acl = self._client.default_acl or OPEN
        await self._session.write(f"take {path}", partial(self._client.set_acls_async, check_path(path), acl))

    # -- watches and session -------------------------------------------------------------------------------

    def watch(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._watches.add(VALUE, path, callback)

    def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._watches.add(FAMILY, path, callback)

    def follow_values(self) -> ValueFollower:
        return ZooKeeperFollower(self._session)

    async def close(self) -> None:
        if not self._session.closed:
            self._watches.close()
            await self._session.close()

    def on_session(self, callback: Callable[[SessionState], None]) -> Watch:
        return self._session.states.add(callback)


def _expected(version: Version | None) -> int:
    return -1 if version is None else version


def _version_of(operation: Operation, result: Any) -> Version | None:
    match operation:
        case Create():
            return Version(0)
        case Set():
            return Version(result.version)
    return None


def _name(operation: object) -> str:
    """The operation in words for messages: ``create /a/b``."""
    if isinstance(operation, _Group):
        return "multi"
    kind = "create" if isinstance(operation, Create) else type(operation).__name__.lower()
    return f"{kind} {getattr(operation, 'path', '')}"


def _operations(asked: _Asked) -> Sequence[Operation]:
    one = asked[0]
    return one.operations if isinstance(one, _Group) else (one,)


def _parts(asked: _Asked) -> int:
    return len(_operations(asked))


def _size(asked: _Asked) -> int:
    return sum(
        len(each.path) + 64 + (len(each.value) if isinstance(each, Create | Set) else 0) for each in _operations(asked)
    )
