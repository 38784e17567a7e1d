"""The session with ZooKeeper: contact, reads that are repeated, writes that are sent once.

* SUSPENDED is reported at once and treated like a loss. After LOST the client makes a new session by itself.
* Listeners and completions run on the client's threads and only enqueue onto the loop.
* Reads wait for a reconnection and are repeated. A write is sent once. If no reply comes, MetadataUnavailableError is
  raised; nothing in the client repeats the write.
* A client that has stopped (authentication refused) is not restarted: every call raises the reason.
* The highest transaction seen is remembered across sessions. If a new session shows less, writes stop. A new session
  sends no write before this was checked. Servers that were put back to an older state report no error: they close the
  connection of every client that has seen more. So while there is no contact, a second client, which has seen nothing,
  reads what they show.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from kazoo import exceptions as zk
from kazoo.protocol.states import KazooState

from bookkeeper.errors import (
    ClientClosedError,
    MetadataError,
    MetadataForbiddenError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    SessionExpiredError,
)
from bookkeeper.ids import Address
from bookkeeper.meta.store import SessionState, once_more
from bookkeeper.meta.stores.credentials import Credentials
from bookkeeper.meta.stores.watches import SessionWatches
from bookkeeper.meta.stores.zookeeper_client import translate
from bookkeeper.seams import Seams, Worker

SESSION_TIMEOUT_S: Final = 10.0
"""Seconds that a session lasts without contact, unless the caller says otherwise. An operation waits for its answer as
long as a session lasts, and never longer than this."""

PATIENCE_S: Final = 2.0
"""Seconds without contact after which a starting client tries the servers' ports: if none listens, it gives up."""

PROBE_S: Final = 1.0

CLOSE_S: Final = 3.0
"""Seconds that a close waits for the session's end. If servers hang, the client alone would wait longer."""

SIDE_PROBE_S: Final = 1.0
"""Seconds without contact until a second client reads what the servers show, and seconds between two such reads."""

SIDE_PROBE_WAIT_S: Final = 6.0
"""Seconds that the second client waits for a session: a server that has just come back is slow."""

SIDE_PROBE_TRIES: Final = 60
"""Seconds between two checks of whether the second client is still needed."""

DEFAULT_PORT: Final = 2181

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())

_STATES = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.LOST,
}


class ZooKeeperSession:
    """The client's session: whether there is contact, whether the servers went back, and every question asked in it."""

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
        self.client = client
        self.loop = asyncio.get_running_loop()
        self.states = SessionWatches(self.loop, SessionState.SUSPENDED)
        self.on_change: Callable[[SessionState], None] = lambda state: None
        """Called after every change of the session's state."""
        self.broken: MetadataError | None = None
        """Why nothing is asked, or nothing is written, any more."""
        self.closed = False
        self.session_id = 0
        self.last_transaction = 0
        self.timeout_s = timeout_s
        self.who = who.name
        self._stranger = stranger
        """Makes a second client of the same servers, which has seen nothing."""
        self._hosts = hosts
        self._worker = worker
        self._in_flight: dict[asyncio.Future[Any], None] = {}
        self._verifying: asyncio.Task[None] | None = None
        self._aside: asyncio.Task[None] | None = None
        client.add_listener(self._on_kazoo_state)

    @property
    def state(self) -> SessionState:
        return self.states.state

    @property
    def rolled_back(self) -> MetadataRolledBackError | None:
        return self.broken if isinstance(self.broken, MetadataRolledBackError) else None

    async def first_contact(self, seams: Seams, timeout_s: float) -> None:
        """Wait for a server. Raises: MetadataUnavailableError, or why the client has stopped."""
        patience = min(PATIENCE_S, timeout_s)
        if await self.states.connected(patience):
            return
        if self.broken is not None:
            raise once_more(self.broken)
        refusals = await asyncio.gather(*(_refusal(server, seams) for server in self._hosts.split(",")))
        if all(refusals):
            raise MetadataUnavailableError(f"no ZooKeeper server answers: {'; '.join(map(str, refusals))}")
        if not await self.states.connected(timeout_s - patience):
            raise self.broken or MetadataUnavailableError(f"no ZooKeeper server answers at {self._hosts}")

    async def check_not_rolled_back(self, transaction: int) -> None:
        """Raises: MetadataRolledBackError: the servers do not know this transaction any more."""
        await self.read("sync /", partial(self.client.sync_async, "/"))
        newest = self.client.last_zxid
        self._compare(newest, transaction)

    def _compare(self, newest: int, transaction: int) -> None:
        if newest < transaction:
            self.broken = MetadataRolledBackError(
                f"ZooKeeper at {self._hosts} shows an older state: transaction {transaction:#x} was seen before, but "
                f"the newest is {newest:#x} now"
            )
            raise once_more(self.broken)

    async def close(self) -> None:
        """End the session. Idempotent."""
        if self.closed:
            return
        self.closed = True
        for task in filter(None, [self._verifying, self._aside]):
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
        self.states.change(SessionState.LOST)

    def _stop_client(self) -> None:
        self.client.stop()
        self.client.close()

    # -- from the client's threads -------------------------------------------------------------------------

    def hop(self, job: Callable[..., None], *arguments: object) -> None:
        try:
            self.loop.call_soon_threadsafe(job, *arguments)
        except RuntimeError:
            pass  # the loop is closed: nobody is left to tell

    def _on_answer(self, future: asyncio.Future[Any], result: Any) -> None:
        answer: Any = None
        error: Exception | None = None
        try:
            answer = result.get(block=False)  # here: so the loop's thread does not wait for the result's lock
        except Exception as failure:  # whatever the client met is the answer
            error = failure
        self.hop(_finish, future, answer, error)

    def _on_kazoo_state(self, state: str) -> None:
        identity = self.client.client_id
        self.hop(self._on_state, _STATES[state], identity[0] if identity else 0, self.client.client_state)

    def _on_state(self, state: SessionState, session_id: int, detail: str) -> None:
        if self.closed:
            return
        if state is SessionState.LOST and detail in ("AUTH_FAILED", "CLOSED"):
            self.broken = (
                MetadataForbiddenError(f"ZooKeeper refused our credentials ({self.who}): {detail}")
                if detail == "AUTH_FAILED"
                else MetadataError(f"the ZooKeeper client stopped: {detail}")
            )
            for future in self._in_flight:  # the client may have dropped them without a word
                if not future.done():
                    future.set_exception(MetadataUnavailableError(str(self.broken)))
        renewed = state is SessionState.CONNECTED and session_id != self.session_id
        if renewed:
            if self.session_id and self.state is not SessionState.LOST:
                self.states.change(SessionState.LOST)
            self.session_id = session_id
            if self._verifying is not None:
                self._verifying.cancel()
                self._verifying = None
            if self.last_transaction:
                self._verifying = self.loop.create_task(self._verify(session_id, self.last_transaction))
        self.states.change(state)
        if state is not SessionState.CONNECTED and self.last_transaction and self._aside is None:
            self._aside = self.loop.create_task(self._probe_other_server())
        self.on_change(state)

    async def _verify(self, session: int, transaction: int) -> None:
        """Compare a new session with what was seen before. Tries until the store answers; writes wait meanwhile."""
        while session == self.session_id and not self.closed:
            try:
                await self.check_not_rolled_back(transaction)
                return
            except MetadataRolledBackError as alarm:
                _log.critical("%s; this process writes nothing more", alarm)
                return
            except ClientClosedError:
                return
            except MetadataError as error:
                if self.broken is not None:
                    return  # every call says why
                _log.info("writes wait: the state of the metadata could not be checked in a new session (%s)", error)
                await asyncio.sleep(0.02)

    async def _probe_other_server(self) -> None:
        """While there is no contact, check whether the servers show less than was seen and refuse us for that."""
        try:
            while not await self.states.connected(SIDE_PROBE_S) and self.broken is None and not self.closed:
                newest = await self._worker.call(self._newest_by_new_session)
                if newest is not None and self.state is not SessionState.CONNECTED:
                    self._compare(newest, self.last_transaction)
        except MetadataRolledBackError as alarm:
            _log.critical("%s; this process writes nothing more", alarm)
        finally:
            self._aside = None

    def _newest_by_new_session(self) -> int | None:
        """The newest transaction that the second client reads after a sync; None if no server answers. Blocks the
        worker's thread."""
        if self._stranger is None:
            return None
        client = self._stranger()
        try:
            connected = client.start_async()
            for _ in range(SIDE_PROBE_TRIES):
                if self.closed:
                    return None
                if connected.wait(SIDE_PROBE_WAIT_S / SIDE_PROBE_TRIES):
                    break
            client.sync_async("/").get(timeout=SIDE_PROBE_WAIT_S / 2)
            return int(client.last_zxid)
        except Exception:  # whatever it met: it has learned nothing
            return None
        finally:
            client.stop()
            client.close()

    # -- one way to the service ----------------------------------------------------------------------------

    async def read(self, what: str, send: Callable[[], Any]) -> Any:
        """Repeat the read until there is an answer or the time is up."""
        deadline = self.loop.time() + self.timeout_s
        while True:
            await self.contact(what, deadline)
            try:
                return await self._request(what, send, deadline)
            except (MetadataUnavailableError, SessionExpiredError):
                if self.loop.time() >= deadline:
                    raise
                await asyncio.sleep(0.02)

    async def write(self, what: str, send: Callable[[], Any]) -> Any:
        """Send a write once.

        Raises:
            MetadataUnavailableError: it was sent and no answer came. It may have been done, or be done soon.
            SessionExpiredError: the session ended before or while it was sent.
        """
        session, deadline = self.may_write(), self.loop.time() + self.timeout_s
        await self._verified_contact(what, deadline)
        self.may_write()
        self.check_session(what, session)
        return await self._request(what, send, deadline)

    async def _verified_contact(self, what: str, deadline: float) -> None:
        """Wait for contact in a session that was compared with earlier ones. Raises: as ``_contact``."""
        await self.contact(what, deadline)
        while (verifying := self._verifying) is not None and not verifying.done():
            if not (await asyncio.wait([verifying], timeout=max(0.0, deadline - self.loop.time())))[0]:
                raise MetadataUnavailableError(
                    f"{what} was not sent: in a new session ZooKeeper's state could not be compared with the one seen "
                    "before"
                )
            await self.contact(what, deadline)

    def may_write(self) -> int:
        """The session for a write that is asked for now. Raises: MetadataRolledBackError."""
        if isinstance(self.broken, MetadataRolledBackError):
            raise once_more(self.broken)
        return self.session_id

    def check_session(self, what: str, session: int) -> None:
        """Raises: SessionExpiredError: it is another session now."""
        if session != self.session_id:
            raise SessionExpiredError(f"{what}: session {session:#x} has ended")

    async def contact(self, what: str, deadline: float) -> None:
        """Wait for contact. Raises: MetadataUnavailableError, or why there will be none."""
        if self.closed:
            raise ClientClosedError("the metadata store was closed")
        connected = self.state is SessionState.CONNECTED
        if connected and self.broken is None:
            return
        if self.broken is not None and not (connected and isinstance(self.broken, MetadataRolledBackError)):
            raise once_more(self.broken)
        if not await self.states.connected(max(0.0, deadline - self.loop.time())):
            if (alarm := self.rolled_back) is not None:
                raise once_more(alarm)
            raise MetadataUnavailableError(f"{what}: there is no contact with ZooKeeper at {self._hosts}")

    async def _request(self, what: str, send: Callable[[], Any], deadline: float) -> Any:
        future: asyncio.Future[Any] = self.loop.create_future()
        self._in_flight[future] = None
        send().rawlink(partial(self._on_answer, future))
        try:
            async with asyncio.timeout_at(deadline):
                return await future
        except TimeoutError as error:
            raise MetadataUnavailableError(f"{what}: no answer from ZooKeeper") from error
        except zk.KazooException as error:
            raise translate(what, error, self.who) from error
        finally:
            del self._in_flight[future]
            self.last_transaction = max(self.last_transaction, self.client.last_zxid)


def _finish(future: asyncio.Future[Any], answer: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(answer)
    else:
        future.set_exception(error)


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
