"""Registration and discovery of bookies.

* A writable bookie has an ephemeral value ``available/<id>``, a read-only one ``available/readonly/<id>``. A change of
  mode creates the new value first, so for a moment both exist: such a bookie counts as writable.
* After a session was lost, the bookie registers again by itself, in its present mode. A value of another session is
  waited out, never deleted; its owner tells whether it is ours.
* A bookie with a cookie is registered only while it has one: a bookie that was forgotten does not come back.
* Watches of the bookies are also called on a timer.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import (
    BookieUnavailableError,
    ClientClosedError,
    CookieError,
    IllegalOperationError,
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataFormatError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    NoClusterError,
    NoSuchKeyError,
    SessionExpiredError,
    in_words,
)
from bookkeeper.ids import Address, BookieId, is_bookie_id
from bookkeeper.meta.records import service_info
from bookkeeper.meta.records.cookies import Cookies
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.records.service_info import ServiceInfo
from bookkeeper.meta.store import (
    OUTCOME_UNKNOWN,
    Check,
    Create,
    Delete,
    MetadataStore,
    SessionState,
    Version,
    Watch,
    parent_of,
)

_log = logging.getLogger(__name__)

FOREIGN_WAIT_S: Final = 15.0
"""Seconds that a first registration waits for another session's value of the same id; a later one waits for ever."""

RELIST_S: Final = 30.0
"""Seconds between the calls of a watch's timer."""

RETRY_S: Final = 0.5
"""Seconds until the next try after a registration failed."""

GOODBYE_S: Final = 2.0
"""Seconds that a bookie which stops waits for the store to remove its registration."""


class Registration:
    """A bookie's registration, kept up until it is unregistered."""

    def __init__(
        self,
        store: MetadataStore,
        paths: Paths,
        bookie: BookieId,
        info: bytes,
        read_only: bool,
        with_cookie: bool = False,
    ) -> None:
        self._store = store
        self._bookie = bookie
        self._cookie = paths.cookie(bookie) if with_cookie else None
        self._forgotten_logged = False
        """Whether the log says already that the bookie was forgotten."""
        self._places = {False: paths.available_bookie(bookie), True: paths.read_only_bookie(bookie)}
        self._info = info
        self._read_only = read_only
        self._wake = asyncio.Event()
        self._published = asyncio.Event()
        self._session = 0
        self._watches: list[Watch] = []
        self._keeper: asyncio.Task[None] | None = None

    @property
    def read_only(self) -> bool:
        """Whether the bookie is, or is about to be, registered as read-only."""
        return self._read_only

    @property
    def present(self) -> bool:
        """Whether the registration stands, as far as is known; False while the session is in doubt."""
        return (
            self._published.is_set()
            and self._session == self._store.session_id
            and self._store.session is SessionState.CONNECTED
        )

    async def set_read_only(self, read_only: bool) -> None:
        """Change the mode. Returns when it is published; tries again by itself while the store is away."""
        if read_only != self._read_only:
            self._read_only = read_only
            self._published.clear()
            self._wake.set()
        await self._published.wait()

    async def unregister(self, timeout_s: float = GOODBYE_S) -> None:
        """Remove the registration. Idempotent. If the store does not answer within ``timeout_s``, it stays until the
        session ends."""
        if self._keeper is None:
            return
        for watch in self._watches:
            watch.close()
        self._keeper.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._keeper
        self._keeper = None
        self._published.clear()
        try:
            async with asyncio.timeout(timeout_s):
                for path in self._places.values():
                    await self._withdraw(path)
        except (SessionExpiredError, ClientClosedError):
            pass
        except MetadataRolledBackError as error:  # nothing is written there any more
            _log.info("bookie %s stays registered until its session ends: %s", self._bookie, in_words(error))
        except (MetadataUnavailableError, TimeoutError):
            _log.warning(
                "the metadata store does not answer: bookie %s stays registered until its session ends",
                self._bookie,
            )

    async def start(self, foreign_wait_s: float) -> None:
        """Publish for the first time, then keep it published."""
        try:
            async with asyncio.timeout(foreign_wait_s):
                await self._publish()
        except TimeoutError as error:
            raise KeyExistsError(
                f"bookie {self._bookie} is registered by another session: another process runs as this bookie, or an "
                "earlier one was killed and its session has not expired yet; stop the other one, or start again later"
            ) from error
        self._watches = [self._store.watch(path, self._wake.set) for path in self._places.values()]
        self._keeper = asyncio.create_task(self._keep(), name=f"registration {self._places[False]}")

    async def _keep(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._publish()
            except ClientClosedError:
                return
            except (MetadataError, CookieError, OSError) as error:
                self._published.clear()
                if isinstance(error, CookieError) and not self._forgotten_logged:
                    self._forgotten_logged = True
                    _log.critical("bookie %s is not registered any more: %s", self._bookie, in_words(error))
                await asyncio.sleep(RETRY_S)
                self._wake.set()

    async def _publish(self) -> None:
        """Create the value of the present mode, then remove the other mode's."""
        while True:
            read_only, session = self._read_only, self._store.session_id
            if not await self._claim(self._places[read_only]):
                continue
            await self._withdraw(self._places[not read_only])
            if read_only is self._read_only and session == self._store.session_id:
                self._session = session
                self._published.set()
                return

    async def _claim(self, path: str) -> bool:
        """Create the value, or find that it is ours. Returns False if the session has ended.

        If this session has published the value before, it is only read: a write that can only fail would go through the
        service's log, ahead of the writes of clients that have just found this bookie.
        """
        if self.present:
            with contextlib.suppress(NoSuchKeyError):
                if await self._is_ours(path) and await self._is_known():
                    return True
        while True:
            try:
                await self._create(path)
                return True
            except KeyExistsError:
                pass
            except MetadataUnavailableError:
                await self._store.sync(path)
            except SessionExpiredError:
                return False
            try:
                if await self._is_ours(path):
                    return True
                await self._wait_out(path)
            except NoSuchKeyError:
                continue

    async def _create(self, path: str) -> None:
        """Create the value. Raises: CookieError: the bookie was forgotten, as the very write finds."""
        if self._cookie is None:
            await self._store.create(path, self._info, ephemeral=True, parents=True)
            return
        while True:
            try:
                await self._store.multi([Check(self._cookie, None), Create(path, self._info, ephemeral=True)])
                return
            except NoSuchKeyError as error:
                await self._store.sync(self._cookie)
                if await self._store.exists(self._cookie) is None:
                    raise CookieError(
                        f"the cluster has forgotten {self._bookie} (bk bookies forget): empty its directories to let "
                        "it join as a new bookie"
                    ) from error
            with contextlib.suppress(KeyExistsError):
                await self._store.create(parent_of(path), parents=True)

    async def _is_known(self) -> bool:
        """Whether the bookie has a cookie, or needs none. Called after :meth:`_is_ours`, which has synced."""
        return self._cookie is None or await self._store.exists(self._cookie) is not None

    async def _is_ours(self, path: str) -> bool:
        """Whether the value belongs to this session. Raises: NoSuchKeyError."""
        await self._store.sync(path)
        return await self._store.owner(path) == self._store.session_id

    async def _wait_out(self, path: str) -> None:
        """Wait until another session's value may have gone.

        The watch is set only here. A new watch fires once for everyone who watches this path; set at every look, it
        would find its own value and be set again, for ever."""
        gone = asyncio.Event()
        watch = self._store.watch(path, gone.set)
        try:
            if not await self._is_ours(path):
                await gone.wait()
        finally:
            watch.close()

    async def _withdraw(self, path: str) -> None:
        """Delete the value if it is ours."""
        while True:
            try:
                if await self._store.owner(path) == self._store.session_id:
                    await self._store.delete(path, None)
                return
            except NoSuchKeyError:
                return
            except MetadataUnavailableError:
                await self._store.sync(path)


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One incarnation of a bookie, as the store shows it.

    A bookie of this package counts each start in a value that outlives its cookie, and does so before it reads which
    ledgers name it. For any other bookie the cookie stands in: it changes when the bookie joins again with an empty
    disk."""

    conditions: tuple[Check, ...]
    """Conditions for a write that must hold in this incarnation only."""
    cookie_created_txn: int
    """Transaction that created the cookie; 0 if there is none."""


class Bookies:
    """The bookies of one cluster."""

    def __init__(self, store: MetadataStore, paths: Paths, cookies: Cookies) -> None:
        self._store = store
        self._paths = paths
        self._cookies = cookies
        self._last_seen: dict[BookieId, ServiceInfo] = {}

    async def register(
        self,
        bookie: BookieId,
        info: ServiceInfo,
        *,
        read_only: bool = False,
        foreign_wait_s: float = FOREIGN_WAIT_S,
        with_cookie: bool = False,
    ) -> Registration:
        """Register a bookie and keep it registered; with ``with_cookie`` only while it has a cookie.

        Raises:
            CookieError: with ``with_cookie``: it has no cookie.
            KeyExistsError: another session holds this id and did not end within ``foreign_wait_s``.
        """
        registration = Registration(self._store, self._paths, bookie, service_info.encode(info), read_only, with_cookie)
        await registration.start(foreign_wait_s)
        return registration

    async def writable(self) -> list[BookieId]:
        """Bookies that take new entries, sorted. Raises: NoClusterError."""
        return await self._names(self._paths.available)

    async def read_only(self) -> list[BookieId]:
        """Bookies that are registered as read-only and not as writable, sorted. Raises: NoClusterError."""
        writable = set(await self.writable())
        try:
            return [bookie for bookie in await self._names(self._paths.read_only) if bookie not in writable]
        except NoClusterError:
            return []

    async def registered(self) -> set[BookieId]:
        """Bookies that are up, writable or read-only. Raises: NoClusterError."""
        return {*await self.writable(), *await self.read_only()}

    async def address(self, bookie: BookieId) -> Address:
        """The address of a registered bookie; its last known one while the store is out of reach.

        Raises:
            BookieUnavailableError: it is not registered.
        """
        return (await self.service_info(bookie)).address(bookie)

    async def service_info(self, bookie: BookieId) -> ServiceInfo:
        """What a registered bookie publishes; what it published last while the store is out of reach.

        Raises:
            BookieUnavailableError: it is not registered.
        """
        seen = self._last_seen.get(bookie)
        if seen is not None and self._store.session is not SessionState.CONNECTED:
            return seen
        for path in (self._paths.available_bookie(bookie), self._paths.read_only_bookie(bookie)):
            try:
                found = await self._store.get(path)
            except NoSuchKeyError:
                continue
            except MetadataUnavailableError:
                if seen is None:
                    raise
                return seen
            try:
                info = service_info.decode(found.value)
            except MetadataFormatError as error:
                raise MetadataFormatError(f"{bookie}: {error}") from error
            self._last_seen[bookie] = info
            return info
        self._last_seen.pop(bookie, None)
        raise BookieUnavailableError(f"bookie {bookie} is not registered")

    async def incarnation(self, bookie: BookieId) -> Incarnation:
        """The bookie's present incarnation, read after a sync.

        Before a write with its conditions, check that it is still the present one: the versions of a new cookie begin
        again, and Apache's bookies count no starts."""
        cookie, boot = self._paths.cookie(bookie), self._paths.own("boot", bookie)
        await self._store.sync(cookie)
        conditions, created_txn = [], 0
        with contextlib.suppress(NoSuchKeyError):
            found = await self._store.get(cookie)
            conditions, created_txn = [Check(cookie, found.version)], found.created_txn
        if (starts := await self._store.exists(boot)) is not None:
            conditions.append(Check(boot, starts))
        return Incarnation(tuple(conditions), created_txn)

    async def known(self) -> list[BookieId]:
        """Every bookie that has a cookie, sorted."""
        return await self._cookies.known()

    async def times_named(self, bookie: BookieId) -> Version:
        """A version that changes when a new ledger names this bookie although it is absent.

        Raises: MetadataUnavailableError.
        """
        path = self._paths.own("named", bookie)
        while True:
            await self._store.sync(path)
            if (found := await self._store.exists(path)) is not None:
                return found
            with contextlib.suppress(KeyExistsError, *OUTCOME_UNKNOWN):
                await self._store.create(path, parents=True)

    async def forget(self, bookie: BookieId, cookie: Version, named: Version) -> None:
        """Remove the cookie of this version, in one write that fails if the bookie is registered.

        A store cannot check that a value is absent, so the write creates the registrations and removes them again. It
        also fails if a ledger that was created since :meth:`times_named` returned ``named`` names the bookie.

        Raises:
            IllegalOperationError: it is registered, or its cookie was changed or removed meanwhile. Nothing was done.
            MetadataUnavailableError: it is not known whether the cookie was removed.
        """
        store, path = self._store, self._paths.cookie(bookie)
        places = [self._paths.available_bookie(bookie)]
        if await store.exists(self._paths.read_only) is not None:
            places.append(self._paths.read_only_bookie(bookie))
        absent = [operation for place in places for operation in (Create(place), Delete(place, None))]
        unsure = False
        while True:
            try:
                await store.multi([*absent, Check(self._paths.own("named", bookie), named), Delete(path, cookie)])
                return
            except KeyExistsError as error:
                raise IllegalOperationError(
                    f"{bookie} was registered meanwhile and is not forgotten: stop it, then forget it"
                ) from error
            except NoSuchKeyError as error:
                if unsure:  # most likely this call removed it
                    return
                raise IllegalOperationError(
                    f"{bookie} has no cookie any more: somebody else has forgotten it"
                ) from error
            except MetadataConflictError as error:
                raise IllegalOperationError(
                    f"{bookie} is not forgotten: its cookie was changed meanwhile, or a new ledger names it; look at "
                    "`bk bookies list`, and try again"
                ) from error
            except OUTCOME_UNKNOWN:
                unsure = True
                await store.sync(path)

    def watch(self, callback: Callable[[], None]) -> Watch:
        """Call back, on the loop, when a bookie may have come, gone or changed its mode; also on a slow timer."""
        return _BookiesWatch(self._store, (self._paths.available, self._paths.read_only), callback)

    async def _names(self, path: str) -> list[BookieId]:
        try:
            names = await self._store.children(path)
        except NoSuchKeyError as error:
            raise NoClusterError(f"{path} does not exist: there is no cluster here; `bk init` makes one") from error
        return [BookieId(name) for name in names if is_bookie_id(name)]


class _BookiesWatch:
    def __init__(self, store: MetadataStore, paths: tuple[str, ...], callback: Callable[[], None]) -> None:
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._watches = [store.watch_children(path, callback) for path in paths]
        self._timer = self._loop.call_later(RELIST_S, self._tick)

    def close(self) -> None:
        self._timer.cancel()
        for watch in self._watches:
            watch.close()

    def _tick(self) -> None:
        self._timer = self._loop.call_later(RELIST_S, self._tick)
        self._callback()
