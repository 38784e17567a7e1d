"""Connections to bookies, made when needed and shared by all handles of one client.

There is one connection per (bookie, dialect, purpose). Adds, single reads and fences share
``ConnectionPurpose.MAIN``. Batch reads use a v2 connection. Explicit LACs use a v3 connection, which is the main one
unless the client speaks v2. Replies of protocol v2 carry only a ledger and an entry; so in v2 the adds of a recovery
have a connection of their own, where they cannot take the replies of a writer of the same ledger.

After a failed attempt the pool does not try a bookie again for a time that grows (``reconnect_delay_*``). Meanwhile a
request for a connection fails at once with the last error, so that a read goes on to the next copy without waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from bookkeeper.client.config import ClientConfig
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import (
    BookieError,
    BookieUnavailableError,
    BookKeeperError,
    ClientClosedError,
    SecureConnectionError,
    in_words,
)
from bookkeeper.ids import Address, BookieId, EntryId, LedgerId
from bookkeeper.net.backoff import Backoff
from bookkeeper.net.client_handshake import ClientSecurity
from bookkeeper.net.connection import BookieConnection
from bookkeeper.seams import Net, Rng
from bookkeeper.wire import Dialect, GetBookieInfo, ReadEntry

log = logging.getLogger(__name__)

GOODBYE_S: Final = 1.0
"""How many seconds closing waits for connections to end in good order, as TLS wants it."""

SIGN_OF_LIFE_S: Final = 600.0
"""Seconds between two signs of life of a connection that a writer uses."""

NO_LEDGER: Final = LedgerId(-1)
"""What a sign of life reads in protocol v2: no bookie has it, and none says anything but that."""


class ConnectionPurpose(Enum):
    """The purpose of a connection."""

    MAIN = "main"
    BATCH = "batch"
    LAC = "lac"
    RECOVERY = "recovery"


# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_MAIN: Final = ConnectionPurpose.MAIN


class _Key(NamedTuple):
    bookie: BookieId
    dialect: Dialect
    purpose: ConnectionPurpose


@dataclass(slots=True)
class _Pause:
    """Why and until when a bookie is not tried again."""

    until: float
    delays: Iterator[float]
    error: BookieError


class BookiePool:
    """All connections of one client to bookies."""

    def __init__(
        self, net: Net, rng: Rng, config: ClientConfig, address_of: Callable[[BookieId], Awaitable[Address]]
    ) -> None:
        self._net = net
        self._security: ClientSecurity | None = None
        self._rng = rng
        self._config = config
        self._address_of = address_of
        self._dialect = Dialect.V2 if config.protocol == "v2" else Dialect.V3
        self._backoff = Backoff(
            first_s=config.reconnect_delay_min_ms / 1000, max_s=config.reconnect_delay_max_ms / 1000
        )
        self._main: dict[BookieId, BookieConnection] = {}
        self._batch: dict[BookieId, BookieConnection] = {}
        self._lac = self._main if self._dialect is Dialect.V3 else {}
        self._recovery = self._main if self._dialect is Dialect.V3 else {}
        self._connecting: dict[_Key, asyncio.Task[BookieConnection]] = {}
        self._pauses: dict[BookieId, _Pause] = {}
        self._addresses: dict[BookieId, Address] = {}
        self._told: set[BookieId] = set()
        """Bookies whose address somebody has told, and to which no connection has failed since."""
        self._explained: set[BookieId] = set()
        """Bookies whose refusal is in the log already."""
        self._users: dict[BookieConnection, int] = {}
        self._sign: asyncio.TimerHandle | None = None
        """When the next sign of life is due; None while nobody has a stream."""
        self._retired: list[BookieConnection] = []
        self._open: dict[BookieConnection, None] = {}
        """All connections that have not ended yet, retired ones included."""
        self._all_ended: asyncio.Future[None] | None = None
        self._tasks = Tasks("connections to bookies", on_error=lambda error: None)  # every waiter gets it itself

    def ready(self, bookie: BookieId, use: ConnectionPurpose = ConnectionPurpose.MAIN) -> BookieConnection | None:
        """The connection that stands now, if there is one."""
        connection = self._standing(use).get(bookie)
        return connection if connection is not None and not connection.closed else None

    async def get(self, bookie: BookieId, use: ConnectionPurpose = ConnectionPurpose.MAIN) -> BookieConnection:
        """The connection; makes it if there is none. Callers at the same time share one attempt.

        Raises:
            BookieUnavailableError: the bookie cannot be reached, or could not be a moment ago.
            ClientClosedError: the client was closed.
        """
        if self._retired:
            self._close_unused()
        if (connection := self.ready(bookie, use)) is not None:
            return connection
        if self._tasks.closed:
            raise ClientClosedError(f"no connection to {bookie}: the client is closed")
        key = self._key(bookie, use)
        if (attempt := self._connecting.get(key)) is None:
            pause = self._pauses.get(bookie)
            if pause is not None and asyncio.get_running_loop().time() < pause.until:
                raise BookieUnavailableError(
                    f"{bookie} could not be reached a moment ago: {pause.error}"
                ) from pause.error
            attempt = self._connecting[key] = self._tasks.start(self._connect(key), f"connect {bookie}")
            attempt.add_done_callback(lambda _: self._connecting.pop(key, None))
        try:
            return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if attempt.cancelled():
                raise ClientClosedError(f"no connection to {bookie}: the client is closed") from None
            raise

    @property
    def has_pauses(self) -> bool:
        """Whether any bookie is in a pause now."""
        return bool(self._pauses)

    def pause_left(self, bookie: BookieId) -> float:
        """Seconds until this bookie may be tried again; 0 if it may be tried now."""
        pause = self._pauses.get(bookie)
        return max(0.0, pause.until - asyncio.get_running_loop().time()) if pause is not None else 0.0

    def forgive(self, bookie: BookieId) -> None:
        """End this bookie's pause, because something has changed: it may be tried at once."""
        if (pause := self._pauses.get(bookie)) is not None:
            pause.until = 0.0

    def learn(self, addresses: Mapping[BookieId, Address]) -> None:
        """Take addresses from somebody who has just asked for them. Each is used until a connection to it fails."""
        self._addresses |= addresses
        self._told |= addresses.keys()

    async def look_up(self, bookies: Iterable[BookieId]) -> None:
        """Ask for the addresses of those bookies that have none here, so that connecting to them needs no metadata
        store. An address that cannot be read is asked for again by whoever connects."""
        unknown = [bookie for bookie in bookies if bookie not in self._addresses]
        if not unknown:
            return
        found = await asyncio.gather(*map(self._address, unknown), return_exceptions=True)
        self.learn(
            {bookie: address for bookie, address in zip(unknown, found, strict=True) if isinstance(address, Address)}
        )

    async def address(self, bookie: BookieId) -> Address:
        """The bookie's address, as last known. Raises: BookieUnavailableError: it has none."""
        return self._addresses.get(bookie) or await self._address(bookie)

    def enlist(self, connection: BookieConnection) -> None:
        """Keep this connection open for a user with a stream on it, until :meth:`dismiss`.

        Bookies close connections over which nothing comes for an hour. A writer may be silent for longer, and to it a
        lost connection is a bookie that may have crashed; so the connection shows a sign of life now and then.
        """
        self._users[connection] = self._users.get(connection, 0) + 1
        if self._sign is None:
            self._sign = asyncio.get_running_loop().call_later(SIGN_OF_LIFE_S, self._show_life)

    def _show_life(self) -> None:
        """Ask for nothing, over every connection with a stream."""
        self._sign = None
        for connection in self._users:
            if not connection.closed and not connection.outstanding:
                nothing = GetBookieInfo(0) if connection.dialect is Dialect.V3 else ReadEntry(NO_LEDGER, EntryId(0))
                connection.request_nowait(nothing, self._config.request_timeout_ms / 1000, lambda reply: None)
        if self._users:
            self._sign = asyncio.get_running_loop().call_later(SIGN_OF_LIFE_S, self._show_life)

    def dismiss(self, connection: BookieConnection) -> None:
        """Undo one ``enlist``."""
        left = self._users.pop(connection, 0) - 1
        if left > 0:
            self._users[connection] = left
        self._close_unused()

    def retire(self, bookie: BookieId, connection: BookieConnection) -> None:
        """Give this connection to no new user, and close it when it is unused. The next :meth:`get` makes a new one."""
        for standing in (self._main, self._batch, self._lac, self._recovery):
            if standing.get(bookie) is connection:
                del standing[bookie]
                self._retired.append(connection)
        self._close_unused()

    def _close_unused(self) -> None:
        for connection in list(self._retired):
            if connection.closed or (connection not in self._users and not connection.outstanding):
                self._retired.remove(connection)
                connection.close()

    async def close(self) -> None:
        """Close every connection. Returns when they have ended, so that the loop may be closed. Idempotent."""
        if self._sign is not None:
            self._sign.cancel()
            self._sign = None
        self._users.clear()
        await self._tasks.close()
        for connection in list(self._open):
            connection.close()
        await self._wait_until_all_ended()
        for connection in list(self._open):
            connection.abort()  # what was written to a bookie that does not read is lost
        await self._wait_until_all_ended()

    async def _wait_until_all_ended(self) -> None:
        if self._open:
            self._all_ended = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._all_ended], timeout=GOODBYE_S)

    def _standing(self, use: ConnectionPurpose) -> dict[BookieId, BookieConnection]:
        if use is _MAIN:
            return self._main
        match use:
            case ConnectionPurpose.BATCH:
                return self._batch
            case ConnectionPurpose.LAC:
                return self._lac
            case ConnectionPurpose.RECOVERY:
                return self._recovery

    def _key(self, bookie: BookieId, use: ConnectionPurpose) -> _Key:
        if use is ConnectionPurpose.BATCH:
            return _Key(bookie, Dialect.V2, ConnectionPurpose.BATCH)
        if use is ConnectionPurpose.LAC and self._dialect is Dialect.V2:
            return _Key(bookie, Dialect.V3, ConnectionPurpose.LAC)
        if use is ConnectionPurpose.RECOVERY and self._dialect is Dialect.V2:
            return _Key(bookie, Dialect.V2, ConnectionPurpose.RECOVERY)
        return _Key(bookie, self._dialect, ConnectionPurpose.MAIN)

    async def _connect(self, key: _Key) -> BookieConnection:
        bookie = key.bookie
        try:
            connection = await self._reach(key)
        except BookieError as error:
            raise self._pause(bookie, error) from error
        if not connection.closed:
            self._open[connection] = None
            connection.on_closing.append(self._on_ended)
        if self._tasks.closed:
            connection.close()
            raise ClientClosedError(f"no connection to {bookie}: the client is closed")
        self._pauses.pop(bookie, None)
        standing = self._standing(key.purpose)
        standing[bookie] = connection
        connection.on_closing.append(lambda closed: self._on_closing(standing, bookie, closed))
        return connection

    async def _reach(self, key: _Key) -> BookieConnection:
        """A new connection: at the address that somebody has told, or if that leads nowhere at the one in the store."""
        bookie = key.bookie
        if bookie not in self._told:
            return await self._connect_to(await self._address(bookie), key)
        told = self._addresses[bookie]
        try:
            return await self._connect_to(told, key)
        except BookieError:
            self._told.discard(bookie)
            if (address := await self._address(bookie)) == told:
                raise
            return await self._connect_to(address, key)

    async def _connect_to(self, address: Address, key: _Key) -> BookieConnection:
        return await self._secured().connect(
            address,
            key.bookie,
            key.dialect,
            timeout_s=self._config.connect_timeout_ms / 1000,
            frame_max=self._config.frame_size_max,
        )

    def begin(self) -> None:
        """Read keys and certificates, if there are any.

        Raises:
            ConfigError: names a file or a provider that cannot be used.
        """
        self._secured()

    def _secured(self) -> ClientSecurity:
        if self._security is None:
            self._security = ClientSecurity(self._net, self._rng, self._config.tls, self._config.auth)
        return self._security

    async def _address(self, bookie: BookieId) -> Address:
        """The bookie's address now; the last known one if the metadata store does not answer."""
        known = self._addresses.get(bookie)
        try:
            async with asyncio.timeout(self._config.connect_timeout_ms / 1000):
                address = self._addresses[bookie] = await self._address_of(bookie)
                return address
        except (BookKeeperError, TimeoutError) as error:
            if known is not None:
                return known
            if isinstance(error, BookieError):
                raise
            raise BookieUnavailableError(f"the address of {bookie} cannot be read: {in_words(error)}") from error

    def _pause(self, bookie: BookieId, error: BookieError) -> BookieUnavailableError:
        pause = self._pauses.get(bookie)
        delays = pause.delays if pause is not None else self._backoff.delays(self._rng)
        now = asyncio.get_running_loop().time()
        self._pauses[bookie] = _Pause(now + next(delays), delays, error)
        if isinstance(error, SecureConnectionError):
            self._explain(bookie, error)
        text = str(error)
        return BookieUnavailableError(text if bookie in text else f"{bookie}: {text}")

    def _on_ended(self, connection: BookieConnection) -> None:
        self._open.pop(connection, None)
        if not self._open and self._all_ended is not None and not self._all_ended.done():
            self._all_ended.set_result(None)

    def _on_closing(
        self, standing: dict[BookieId, BookieConnection], bookie: BookieId, connection: BookieConnection
    ) -> None:
        if standing.get(bookie) is connection:
            del standing[bookie]
        if (refusal := connection.refusal) is not None:
            self._explain(bookie, refusal)
        else:
            self._explained.discard(bookie)  # it served this client: a later refusal is news

    def _explain(self, bookie: BookieId, refusal: BookieError) -> None:
        """Log once why a bookie does not serve this client. An append reports only that the bookie failed, but somebody
        has to remove the reason."""
        if bookie not in self._explained:
            self._explained.add(bookie)
            log.warning("bookie %s does not serve this client: %s", bookie, refusal)
