"""The metadata store in ZooKeeper. Only this file and zookeeper_client.py import its client.

* SUSPENDED is reported at once and treated like a loss. After LOST the client makes a new session by itself.
* Listeners, watches and completions run on the client's threads and only enqueue onto the loop.
* Reads wait for a reconnection and are repeated. A write goes through :meth:`ZooKeeperStore._write`: it is sent once.
  If no reply comes, MetadataUnavailableError is raised; nothing in the client repeats the write.
* A watch that fired, or was dropped with a connection, is set again, and its callback comes *after* that: no
  change between a caller's read and the new watch is missed.
* A client that has stopped (authentication refused) is not restarted: every call raises the reason.
* The highest transaction seen is remembered across sessions. If a new session shows less, writes stop. A new session
  sends no write before this was checked. Servers that were put back to an older state report no error: they close the
  connection of every client that has seen more. So while there is no contact, a second client, which has seen nothing,
  reads what they show.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar

from kazoo import exceptions as zk
from kazoo.protocol.states import KazooState, WatchedEvent

from bookkeeper.errors import (
    ClientClosedError,
    KeyExistsError,
    MetadataError,
    MetadataForbiddenError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    NoSuchKeyError,
    SessionExpiredError,
)
from bookkeeper.ids import Address
from bookkeeper.meta.store import (
    Check,
    Create,
    Delete,
    Operation,
    SessionState,
    Set,
    Version,
    Versioned,
    Watch,
    check_creation,
    check_path,
    once_more,
    parent_of,
)
from bookkeeper.meta.stores.access_list import AclEntry
from bookkeeper.meta.stores.credentials import Credentials
from bookkeeper.meta.stores.watches import SessionWatches, WatchRegistry
from bookkeeper.meta.stores.write_batcher import WriteBatcher
from bookkeeper.meta.stores.zookeeper_client import OPEN, new_client, rights, translate
from bookkeeper.seams import Seams, Worker

SESSION_TIMEOUT_S: Final = 10.0
"""Seconds that a session lasts without contact, unless the caller says otherwise. An operation waits for its answer as
long as a session lasts, and never longer than this."""

PATIENCE_S: Final = 2.0
"""Seconds without contact after which a starting client tries the servers' ports: if none listens, it gives up."""

PROBE_S: Final = 1.0

CLOSE_S: Final = 3.0
"""Seconds that a close waits for the session's end. If servers hang, the client alone would wait longer."""


ASIDE_S: Final = 1.0
"""Seconds without contact until a second client reads what the servers show, and seconds between two such reads."""

ASIDE_WAIT_S: Final = 6.0
"""Seconds that the second client waits for a session: a server that has just come back is slow."""

ASIDE_TRIES: Final = 60
"""Seconds between two checks of whether the second client is still needed."""
DEFAULT_PORT: Final = 2181

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())

_STATES = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.LOST,
}
_AFTERMATH = (zk.RolledBackError, zk.RuntimeInconsistency)

T = TypeVar("T")
_VALUE, _FAMILY = "value", "family"
_NOWHERE: Final = "/bookkeeper-py-who-am-i"


@dataclass(frozen=True, slots=True)
class _Numbered(Create):
    """Creates a value whose name gets the parent's next number."""


_Asked = tuple[Operation, int]
"""A write, and the session in which it was asked for."""


class ZooKeeperStore:
    """One session with a ZooKeeper ensemble: a MetadataStore."""

    def __init__(
        self,
        client: Any,
        worker: Worker,
        *,
        hosts: str,
        who: Credentials,
        timeout_s: float,
        stranger: Callable[[], Any] | None = None,
    ) -> None:
        self._client = client
        self._stranger = stranger
        """Makes a second client of the same servers, which has seen nothing."""
        self._hosts = hosts
        self._who = who.name
        self.identified = who.identified
        """Whether there are credentials, so that only this identity may use what the session creates."""
        self._worker = worker
        self._timeout_s = timeout_s
        self._loop = asyncio.get_running_loop()
        self._sessions = SessionWatches(self._loop, SessionState.SUSPENDED)
        self._watched: dict[str, WatchRegistry[str]] = {
            _VALUE: WatchRegistry(self._loop),
            _FAMILY: WatchRegistry(self._loop),
        }
        self._events: dict[tuple[str, str], Callable[[WatchedEvent], None]] = {}
        self._arming: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._in_flight: dict[asyncio.Future[Any], None] = {}
        self._batcher: WriteBatcher[_Asked, Any] = WriteBatcher(self._send_one, self._send_many, _size)
        self._verifying: asyncio.Task[None] | None = None
        self._aside: asyncio.Task[None] | None = None
        self._broken: MetadataError | None = None
        self._closed = False
        self.session_id = 0
        self.last_transaction = 0

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
        client = new_client(f"{hosts}{chroot}", who, session_timeout_s)
        worker = seams.workers.worker("zookeeper")
        store = cls(
            client,
            worker,
            hosts=hosts,
            who=who,
            timeout_s=min(session_timeout_s, SESSION_TIMEOUT_S),
            stranger=lambda: new_client(f"{hosts}{chroot}", who, session_timeout_s),
        )
        client.add_listener(store._on_kazoo_state)
        client.start_async()
        try:
            await store._first_contact(seams, connect_timeout_s)
            if who.identified:
                await store._check_identity()
        except BaseException:
            await store.close()
            raise
        return store

    async def _first_contact(self, seams: Seams, timeout_s: float) -> None:
        patience = min(PATIENCE_S, timeout_s)
        if await self._sessions.connected(patience):
            return
        if self._broken is not None:
            raise once_more(self._broken)
        refusals = await asyncio.gather(*(_refusal(server, seams) for server in self._hosts.split(",")))
        if all(refusals):
            raise MetadataUnavailableError(f"no ZooKeeper server answers: {'; '.join(map(str, refusals))}")
        if not await self._sessions.connected(timeout_s - patience):
            raise self._broken or MetadataUnavailableError(f"no ZooKeeper server answers at {self._hosts}")

    async def _check_identity(self) -> None:
        """Raise unless ZooKeeper knows this session's identity.

        Sends a transaction that can never succeed and asks for a node that only its creator may use. A session without
        identity gets an error that says so; any other session is told that the transaction failed.
        """
        request = self._client.transaction()
        request.create(_NOWHERE)
        request.check(f"{_NOWHERE}/x", 0)
        try:
            results = await self._write("authentication", request.commit_async)
        except MetadataUnavailableError:
            raise self._broken or MetadataUnavailableError(
                f"ZooKeeper did not answer our credentials ({self._who}): a server that does not know their scheme "
                "keeps silent; set the scheme up there, or choose another one"
            ) from None
        if isinstance(results[0], zk.InvalidACLError):
            raise translate("authentication", results[0], self._who)

    @property
    def session(self) -> SessionState:
        return self._sessions.state

    @property
    def rolled_back(self) -> MetadataRolledBackError | None:
        return self._broken if isinstance(self._broken, MetadataRolledBackError) else None

    # -- reads ---------------------------------------------------------------------------------------------

    async def get(self, path: str) -> Versioned[bytes]:
        value, stat = await self._read(f"get {path}", partial(self._client.get_async, check_path(path)))
        return Versioned(value, Version(stat.version), stat.ctime, stat.mzxid, stat.czxid)

    async def exists(self, path: str) -> Version | None:
        stat = await self._read(f"exists {path}", partial(self._client.exists_async, check_path(path)))
        return None if stat is None else Version(stat.version)

    async def owner(self, path: str) -> int | None:
        stat = await self._read(f"owner {path}", partial(self._client.exists_async, check_path(path)))
        if stat is None:
            raise NoSuchKeyError(path)
        return stat.ephemeralOwner or None

    async def children(self, path: str) -> list[str]:
        names = await self._read(f"children {path}", partial(self._client.get_children_async, check_path(path)))
        return sorted(names)

    async def sync(self, path: str) -> None:
        await self._read(f"sync {path}", partial(self._client.sync_async, check_path(path)))

    async def check_not_rolled_back(self, transaction: int) -> None:
        await self.sync("/")
        newest = self._client.last_zxid
        self._compare(newest, transaction)

    def _compare(self, newest: int, transaction: int) -> None:
        if newest < transaction:
            self._broken = MetadataRolledBackError(
                f"ZooKeeper at {self._hosts} shows an older state: transaction {transaction:#x} was seen before, but "
                f"the newest is {newest:#x} now"
            )
            raise once_more(self._broken)

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
        kind = _Numbered if sequential else Create
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
        stat = await self._read(f"exists {path}", partial(self._client.exists_async, check_path(path)))
        if stat is None:
            raise NoSuchKeyError(path)
        check_creation(path, stat.czxid, created_txn)

    async def delete(self, path: str, expected: Version | None) -> None:
        await self._put(Delete(check_path(path), expected))

    async def multi(self, operations: Sequence[Operation]) -> list[Version | None]:
        request = self._transaction(operations)
        results = await self._write("multi", request.commit_async)
        failures = [result for result in results if isinstance(result, Exception)]
        if failures:
            cause = next((failure for failure in failures if not isinstance(failure, _AFTERMATH)), failures[0])
            raise translate("multi", cause, self._who) from cause
        return [_version_of(operation, result) for operation, result in zip(operations, results, strict=True)]

    def _transaction(self, operations: Sequence[Operation]) -> Any:
        request = self._client.transaction()
        for operation in operations:
            match operation:
                case Create(path, value, ephemeral):
                    numbered = isinstance(operation, _Numbered)
                    request.create(check_path(path), value, ephemeral=ephemeral, sequence=numbered)
                case Set(path, value, expected):
                    request.set_data(check_path(path), value, _expected(expected))
                case Delete(path, expected):
                    request.delete(check_path(path), _expected(expected))
                case Check(path, expected):
                    request.check(check_path(path), _expected(expected))
        return request

    # -- single writes go together (write_batcher) ------------------------------------------------------------

    async def _put(self, operation: Operation) -> Any:
        """Send one write together with others of this turn, after checking that it may be sent."""
        session = self._may_write(operation)
        await self._contact(_name(operation), self._loop.time() + self._timeout_s)
        self._check_session(operation, session)
        return await self._batcher.put((operation, session))

    async def _send_one(self, asked: _Asked) -> Any:
        client = self._client
        operation, session = asked
        self._check_session(operation, session)
        match operation:
            case Create(path, value, ephemeral):
                numbered = isinstance(operation, _Numbered)
                send = partial(client.create_async, path, value, ephemeral=ephemeral, sequence=numbered)
            case Set(path, value, expected):
                send = partial(client.set_async, path, value, _expected(expected))
            case Delete(path, expected):
                send = partial(client.delete_async, path, _expected(expected))
        return await self._write(_name(operation), send)

    async def _send_many(self, asked: Sequence[_Asked]) -> list[Any] | None:
        operations = [operation for operation, session in asked if session == self.session_id]
        if len(operations) < len(asked):
            return None
        what = f"{_name(operations[0])} and {len(operations) - 1} more"
        results = await self._write(what, self._transaction(operations).commit_async)
        return None if any(isinstance(result, Exception) for result in results) else results

    # -- access lists, which other stores do not have ------------------------------------------------------

    async def access(self, path: str) -> list[AclEntry]:
        """The access list of one value. Raises: NoSuchKeyError, MetadataForbiddenError."""
        acl, _ = await self._read(f"access {path}", partial(self._client.get_acls_async, check_path(path)))
        return [AclEntry(entry.id.scheme, entry.id.id, rights(entry.perms)) for entry in acl]

    async def take(self, path: str) -> None:
        """Give a value the access list that this session gives to what it creates.

        Raises:
            NoSuchKeyError, MetadataForbiddenError.
        """
        acl = self._client.default_acl or OPEN
        await self._write(f"take {path}", partial(self._client.set_acls_async, check_path(path), acl))

    # -- watches and session -------------------------------------------------------------------------------

    def watch(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._subscribe(_VALUE, path, callback)

    def watch_children(self, path: str, callback: Callable[[], None]) -> Watch:
        return self._subscribe(_FAMILY, path, callback)

    def on_session(self, callback: Callable[[SessionState], None]) -> Watch:
        return self._sessions.add(callback)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for task in [*self._arming.values(), *filter(None, [self._verifying, self._aside])]:
            task.cancel()
        for future in list(self._in_flight):
            if not future.done():
                future.set_exception(ClientClosedError("the metadata store was closed"))
        try:
            await asyncio.wait_for(asyncio.shield(self._worker.call(self._stop_client)), CLOSE_S)
            self._worker.close()
        except TimeoutError:  # its threads are daemons: they end by themselves, or with the process
            _log.warning(
                "ZooKeeper did not confirm the end of the session within %g s: the session ends when it expires",
                CLOSE_S,
            )
        self._sessions.change(SessionState.LOST)

    def _stop_client(self) -> None:
        self._client.stop()
        self._client.close()

    # -- the session, from the client's threads -------------------------------------------------------

    def _hop(self, job: Callable[..., None], *arguments: object) -> None:
        try:
            self._loop.call_soon_threadsafe(job, *arguments)
        except RuntimeError:
            pass  # the loop is closed: nobody is left to tell

    def _on_kazoo_state(self, state: str) -> None:
        identity = self._client.client_id
        self._hop(self._on_state, _STATES[state], identity[0] if identity else 0, self._client.client_state)

    def _on_state(self, state: SessionState, session_id: int, detail: str) -> None:
        if self._closed:
            return
        if state is SessionState.LOST and detail in ("AUTH_FAILED", "CLOSED"):
            self._broken = (
                MetadataForbiddenError(f"ZooKeeper refused our credentials ({self._who}): {detail}")
                if detail == "AUTH_FAILED"
                else MetadataError(f"the ZooKeeper client stopped: {detail}")
            )
            for future in self._in_flight:  # the client may have dropped them without a word
                if not future.done():
                    future.set_exception(MetadataUnavailableError(str(self._broken)))
        renewed = state is SessionState.CONNECTED and session_id != self.session_id
        if renewed:
            if self.session_id and self.session is not SessionState.LOST:
                self._sessions.change(SessionState.LOST)
            self.session_id = session_id
            if self._verifying is not None:
                self._verifying.cancel()
                self._verifying = None
            if self.last_transaction:
                self._verifying = self._loop.create_task(self._verify(session_id, self.last_transaction))
        self._sessions.change(state)
        if state is not SessionState.CONNECTED and self.last_transaction and self._aside is None:
            self._aside = self._loop.create_task(self._look_aside())
        for kind, registry in self._watched.items():
            registry.fire_all()
            if state is SessionState.CONNECTED:
                for path in registry.keys():  # noqa: SIM118
                    self._arm(kind, path)

    async def _verify(self, session: int, transaction: int) -> None:
        """Compare a new session with what was seen before. Tries until the store answers; writes wait meanwhile."""
        while session == self.session_id and not self._closed:
            try:
                await self.check_not_rolled_back(transaction)
                return
            except MetadataRolledBackError as alarm:
                _log.critical("%s; this process writes nothing more", alarm)
                return
            except ClientClosedError:
                return
            except MetadataError as error:
                if self._broken is not None:
                    return  # every call says why
                _log.info("writes wait: the state of the metadata could not be checked in a new session (%s)", error)
                await asyncio.sleep(0.02)

    async def _look_aside(self) -> None:
        """While there is no contact, check whether the servers show less than was seen and refuse us for that."""
        try:
            while not await self._sessions.connected(ASIDE_S) and self._broken is None and not self._closed:
                newest = await self._worker.call(self._newest_to_a_stranger)
                if newest is not None and self.session is not SessionState.CONNECTED:
                    self._compare(newest, self.last_transaction)
        except MetadataRolledBackError as alarm:
            _log.critical("%s; this process writes nothing more", alarm)
        finally:
            self._aside = None

    def _newest_to_a_stranger(self) -> int | None:
        """The newest transaction that the second client reads after a sync; None if no server answers. Blocks the
        worker's thread."""
        if self._stranger is None:
            return None
        client = self._stranger()
        try:
            connected = client.start_async()
            for _ in range(ASIDE_TRIES):
                if self._closed:
                    return None
                if connected.wait(ASIDE_WAIT_S / ASIDE_TRIES):
                    break
            client.sync_async("/").get(timeout=ASIDE_WAIT_S / 2)
            return int(client.last_zxid)
        except Exception:  # whatever it met: it has learned nothing
            return None
        finally:
            client.stop()
            client.close()

    # -- watches --------------------------------------------------------------------------------------

    def _subscribe(self, kind: str, path: str, callback: Callable[[], None]) -> Watch:
        subscription = self._watched[kind].add(check_path(path), callback)
        self._arm(kind, path)
        return subscription

    def _arm(self, kind: str, path: str) -> None:
        key = (kind, path)
        if key not in self._arming and not self._closed and path in self._watched[kind]:
            self._arming[key] = task = self._loop.create_task(self._set_watch(kind, path))
            task.add_done_callback(lambda done: self._arming.pop(key, None))

    async def _set_watch(self, kind: str, path: str) -> None:
        event = self._events.setdefault((kind, path), partial(self._on_kazoo_event, kind, path))
        exists = partial(self._client.exists_async, path, watch=event)
        try:
            if kind == _VALUE:
                await self._read(f"watch {path}", exists)
            else:
                await self._watch_family(path, event, exists)
        except (MetadataError, ClientClosedError):
            return  # no contact: everything is set again with the next CONNECTED
        self._watched[kind].fire([path])

    async def _watch_family(self, path: str, event: Callable[[WatchedEvent], None], exists: Callable[[], Any]) -> None:
        while True:
            try:
                await self._read(f"watch {path}", partial(self._client.get_children_async, path, watch=event))
                return
            except NoSuchKeyError:
                if await self._read(f"watch {path}", exists) is None:
                    return

    def _on_kazoo_event(self, kind: str, path: str, event: WatchedEvent) -> None:
        self._hop(self._on_event, kind, path, event.type)

    def _on_event(self, kind: str, path: str, event_type: str) -> None:
        if path not in self._watched[kind]:
            self._events.pop((kind, path), None)
        elif (arming := self._arming.get((kind, path))) is not None:
            arming.add_done_callback(lambda done: self._arm(kind, path))
        elif event_type != "NONE":
            self._arm(kind, path)

    # -- one way to the service ----------------------------------------------------------------------------

    async def _read(self, what: str, send: Callable[[], Any]) -> Any:
        """Repeat the read until there is an answer or the time is up."""
        deadline = self._loop.time() + self._timeout_s
        while True:
            await self._contact(what, deadline)
            try:
                return await self._ask(what, send, deadline)
            except (MetadataUnavailableError, SessionExpiredError):
                if self._loop.time() >= deadline:
                    raise
                await asyncio.sleep(0.02)

    async def _write(self, what: str, send: Callable[[], Any]) -> Any:
        """Send a write once.

        Raises:
            MetadataUnavailableError: it was sent and no answer came. It may have been done, or be done soon.
            SessionExpiredError: the session ended before or while it was sent.
        """
        session, deadline = self._may_write(what), self._loop.time() + self._timeout_s
        await self._verified_contact(what, deadline)
        self._may_write(what)
        self._check_session(what, session)
        return await self._ask(what, send, deadline)

    async def _verified_contact(self, what: str, deadline: float) -> None:
        """Wait for contact in a session that was compared with earlier ones. Raises: as ``_contact``."""
        await self._contact(what, deadline)
        while (verifying := self._verifying) is not None and not verifying.done():
            if not (await asyncio.wait([verifying], timeout=max(0.0, deadline - self._loop.time())))[0]:
                raise MetadataUnavailableError(
                    f"{what} was not sent: in a new session ZooKeeper's state could not be compared with the one seen "
                    "before"
                )
            await self._contact(what, deadline)

    def _may_write(self, what: object) -> int:
        """The session for a write that is asked for now. Raises: MetadataRolledBackError."""
        if isinstance(self._broken, MetadataRolledBackError):
            raise once_more(self._broken)
        return self.session_id

    def _check_session(self, what: object, session: int) -> None:
        if session != self.session_id:
            name = what if isinstance(what, str) else _name(what)
            raise SessionExpiredError(f"{name}: session {session:#x} has ended")

    async def _contact(self, what: str, deadline: float) -> None:
        if self._closed:
            raise ClientClosedError("the metadata store was closed")
        connected = self.session is SessionState.CONNECTED
        if self._broken is not None and not (connected and isinstance(self._broken, MetadataRolledBackError)):
            raise once_more(self._broken)
        if not await self._sessions.connected(max(0.0, deadline - self._loop.time())):
            if (alarm := self.rolled_back) is not None:
                raise once_more(alarm)
            raise MetadataUnavailableError(f"{what}: there is no contact with ZooKeeper at {self._hosts}")

    async def _ask(self, what: str, send: Callable[[], Any], deadline: float) -> Any:
        future: asyncio.Future[Any] = self._loop.create_future()
        self._in_flight[future] = None
        send().rawlink(lambda result: self._hop(_finish, future, result))
        try:
            async with asyncio.timeout_at(deadline):
                return await future
        except TimeoutError as error:
            raise MetadataUnavailableError(f"{what}: no answer from ZooKeeper") from error
        except zk.KazooException as error:
            raise translate(what, error, self._who) from error
        finally:
            del self._in_flight[future]
            self.last_transaction = max(self.last_transaction, self._client.last_zxid)


def _finish(future: asyncio.Future[Any], result: Any) -> None:
    if future.done():
        return
    try:
        future.set_result(result.get(block=False))
    except Exception as error:  # whatever the client met is the answer
        future.set_exception(error)


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
    kind = "create" if isinstance(operation, Create) else type(operation).__name__.lower()
    return f"{kind} {getattr(operation, 'path', '')}"


def _size(asked: _Asked) -> int:
    operation = asked[0]
    value = operation.value if isinstance(operation, Create | Set) else b""
    return len(value) + len(operation.path) + 64


async def _refusal(server: str, seams: Seams) -> str | None:
    """Why no server can be reached at the address; None if one listens."""
    host, colon, port = server.rpartition(":")
    address = Address(host.strip("[]"), int(port)) if colon and port.isdecimal() else Address(server, DEFAULT_PORT)
    try:
        connection = await seams.net.connect(address, _ConnectionProbe, timeout_s=PROBE_S)
    except OSError as error:
        return f"{address}: {error.strerror or error or type(error).__name__}"
    connection.hang_up()
    return None


class _ConnectionProbe(asyncio.Protocol):
    """Connects to a port and does nothing else."""

    _transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def hang_up(self) -> None:
        if self._transport is not None:
            self._transport.close()
