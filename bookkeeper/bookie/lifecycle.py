"""A bookie from start to stop.

Start: listen (and close connections that come too early) -> read the identity -> check the cookie -> read the published
progress of the disk -> on an empty disk: read which ledgers there are -> count the start -> open the disk -> serve ->
register. A client that finds the registration finds a bookie that serves.

Running: the registration follows the disk's state (writable, read-only); deleted ledgers are collected; the progress of
the disk is published. A disk that fails ends the bookie, and :meth:`BookieServer.run_until_failure` returns the reason.

Stop: unregister -> accept nothing -> wait for requests in progress -> close the disk cleanly -> close connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from bookkeeper.auth.config import TLS
from bookkeeper.auth.provider_loader import server_provider
from bookkeeper.bookie.bookie import Bookie
from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.connections.admission import Admission
from bookkeeper.bookie.connections.early_listener import EarlyListener
from bookkeeper.bookie.connections.server import Connections
from bookkeeper.bookie.connections.server_connection import ServerConnection
from bookkeeper.bookie.garbage.garbage_collector import GarbageCollector
from bookkeeper.bookie.health.health import BookieHealth, health, liveness, readiness
from bookkeeper.bookie.health.health_server import HealthServer
from bookkeeper.bookie.identity.bookie_identity import (
    IDENTITY,
    PENDING,
    BookieIdentity,
    read_identity,
    refuse_java,
    refuse_strangers,
    remove_files,
    settle_cookie,
    undo_first_start,
    write_identity,
)
from bookkeeper.bookie.identity.completion import Completion
from bookkeeper.bookie.identity.disk_identity import (
    BIRTH,
    NO_LEDGER,
    DiskIdentity,
    newest,
    read_disk_identity,
    survey,
    write_disk_identity,
)
from bookkeeper.bookie.identity.progress_publisher import ProgressPublisher
from bookkeeper.bookie.identity.seen_metadata import SeenMetadata
from bookkeeper.bookie.identity.stale_adds import StaleAdds
from bookkeeper.bookie.identity.suspect_ledgers import SuspectLedgers
from bookkeeper.errors import (
    BookKeeperError,
    CookieError,
    DirectoryLockedError,
    KeyExistsError,
    MetadataError,
    MetadataFormatError,
    NoSuchKeyError,
    in_words,
)
from bookkeeper.ids import Address, BookieId, LedgerId, bookie_id
from bookkeeper.meta import Metadata, Registration, ServiceInfo
from bookkeeper.meta.records.bookies import FOREIGN_WAIT_S
from bookkeeper.meta.records.cookies import Cookie
from bookkeeper.meta.records.disks import DiskRecord
from bookkeeper.meta.records.rollback import RollbackWatch
from bookkeeper.meta.store import SessionState, Watch, settled_create, update
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Lock, Seams
from bookkeeper.storage.directory_id import ForeignDirectoryError, is_unused
from bookkeeper.storage.durable_file import replace_file
from bookkeeper.storage.engine import Engine, EngineState

if TYPE_CHECKING:
    from bookkeeper.bookie.connections.connection_security import ConnectionSecurity
    from bookkeeper.bookie.health.health_pages import Health

log = logging.getLogger(__name__)

OPENED = "boot"
"""File with the number of the last start that had the disk open. If it exists, an empty disk is a lost disk."""

GOODBYE_S: Final = 1.0
"""Seconds that a stopping bookie waits for connections to end properly; then it cuts them off."""


class BookieServer:
    """One bookie in this process. ``start`` once, ``stop`` once."""

    def __init__(self, config: BookieConfig, seams: Seams, metadata: Metadata) -> None:
        self.config = config
        self.metrics = Metrics("bookie_")
        self.give_back_memory: Callable[[], object] = lambda: None
        """Returns freed memory to the system, where the process is this bookie's own."""
        self._engine: Engine | None = None
        self.bookie_id: BookieId
        self.boot = 0
        """The number of this start, counted in the metadata store."""
        self.first_start = False
        self._seams = seams
        self._metadata = metadata
        self._admission = Admission(config.in_progress_bytes, config.reserved_bytes)
        self._connections: Connections | None = None
        self._early_listener: EarlyListener | None = None
        self._security: ConnectionSecurity | None = None
        """None if connections are neither encrypted nor authenticated."""
        self._address: Address | None = None
        self._registration: Registration | None = None
        self._http: HealthServer | None = None
        self._lock: Lock | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._state_changed = asyncio.Event()
        self._failure: asyncio.Future[str] | None = None
        self._garbage: GarbageCollector | None = None
        self._seen_metadata: SeenMetadata | None = None
        self._disk_identity: DiskIdentity | None = None
        self._stale_adds: StaleAdds | None = None
        self._completion: Completion | None = None
        self._publisher: ProgressPublisher | None = None
        self._running = False
        self._chose_identity = False
        """Whether this start has written the identity into the directory."""
        self._session_watch: Watch | None = None
        self._contact_lost_at: float | None = None
        """When contact with the metadata store was lost, by the monotonic clock; None while it stands."""

    @property
    def engine(self) -> Engine:
        """The storage engine."""
        assert self._engine is not None, "not started"
        return self._engine

    async def collect_garbage(self) -> set[LedgerId]:
        """Make one garbage pass now; see :class:`GarbageCollector`."""
        assert self._garbage is not None, "not started"
        return await self._garbage.one_pass()

    @property
    def address(self) -> Address:
        """The address under which clients reach this bookie."""
        assert self._address is not None, "not started"
        return Address.parse(self.config.advertise) if self.config.advertise else self._address

    @property
    def http_address(self) -> Address | None:
        """The address of /healthz and /metrics; None if they are off."""
        return self._http.address if self._http is not None else None

    # -- start --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start to serve and register. On an error nothing keeps running; files may stay behind.

        Raises:
            DirectoryLockedError: another process uses the directory.
            CookieError: the directory belongs to another bookie, or the bookie's disk is gone.
            KeyExistsError: another bookie is registered under this id.
            StorageError, MetadataError, OSError: the disk, the metadata store or the network failed.
        """
        loop = asyncio.get_running_loop()
        self._failure = loop.create_future()
        try:
            await self._start()
        except (Exception, asyncio.CancelledError) as error:  # not GeneratorExit: nothing can be awaited then
            if isinstance(error, Exception):
                await self._undo_first_start()
            await self._abandon()
            if self._engine is not None and self._engine.state not in (EngineState.FAILED, EngineState.CLOSED):
                await self._close_engine()
            raise

    async def _undo_first_start(self) -> None:
        """Remove the cookie and identity of a first start that failed before the bookie served."""
        if not self._chose_identity or self._connections is not None:
            return
        disk, directory = self._seams.disk, self.config.directory
        try:
            if self.first_start:
                if self._engine is not None and self._engine.state is not EngineState.FAILED:
                    await self._close_engine()
                await undo_first_start(disk, self._metadata.cookies, self._cookie, self._directories)
            elif any(disk.exists(os.path.join(place, PENDING)) for place in self._directories):
                return  # whether the cookie was made is not known: the next start goes on from here
            remove_files(disk, [os.path.join(directory, name) for name in (OPENED, BIRTH, IDENTITY)])
        except (BookKeeperError, OSError) as error:
            log.warning(
                "bookie %s did not start, and its cookie could not be removed (%s): it stays a known bookie of the "
                "cluster until it is started again, or forgotten with bk bookies forget",
                self.bookie_id,
                in_words(error),
            )

    async def _start(self) -> None:
        config, disk = self.config, self._seams.disk
        refuse_java(disk, [config.directory, config.storage.journal_dir, config.storage.ledger_dir])
        disk.make_directories(config.directory)
        try:
            self._lock = disk.lock(os.path.join(config.directory, "bookie.lock"))
        except BlockingIOError as error:
            raise DirectoryLockedError(
                f"another process uses {config.directory}: a bookie runs there already; stop it, or choose another "
                "directory"
            ) from error
        self._security = self._new_security()
        identity = read_identity(disk, config.directory)
        await self._bind(identity)
        chosen = self._identify(identity)
        refuse_strangers(disk, self._cookie, self._directories)
        self._seen_metadata = seen = SeenMetadata(self._metadata, disk, config.directory, self.bookie_id)
        await seen.check()
        self.first_start = await self._settle_cookie(chosen)
        self._publisher = ProgressPublisher(self._metadata, self.bookie_id, self._seams.rng)
        await self._publisher.look()
        served_before = await self._last_start() > 0
        self.boot = await self._next_boot()  # first: from now on nobody names it for what it held before
        self._disk_identity = await self._settle_disk_identity(served_before)
        self._engine = await self._open_engine()
        self._start_http()  # the last thing that may be refused: nobody was served before
        await self._publisher.opened(self.engine, (self._disk_identity or DiskIdentity()).highest)
        self._serve()
        encrypts = self._security is not None and self._security.mode != "off"
        info = ServiceInfo.bookie(self.address, tls=encrypts, http=self.http_address)
        read_only = self._wants_read_only()
        self._registration = await self._metadata.bookies.register(
            self.bookie_id,
            info,
            read_only=read_only,
            foreign_wait_s=max(FOREIGN_WAIT_S, config.metadata_session_s + 5),
            with_cookie=True,
        )
        self._running = True
        self._session_watch = self._metadata.store.on_session(self._on_session)
        self._on_session(self._metadata.store.session)
        self._garbage = GarbageCollector(self.engine, self._metadata, config, self._seams, self.metrics, seen)
        stale_adds, completion = self._stale_adds, self._completion
        assert stale_adds is not None and completion is not None, "it serves"
        limbo = SuspectLedgers(
            self.engine, self._metadata, self.bookie_id, self._state_changed.set, stale_adds.cover, completion
        )
        present = RollbackWatch(self._metadata.store, self._metadata.present, self._on_rollback)
        tell = self._publisher.run(self.engine, lambda: stale_adds.highest, self._superseded)
        works = (self._follow_state(), self._watch_space(), self._garbage.run(), limbo.run(), stale_adds.run())
        for work in (*works, tell, present.run(), seen.counter.run(seen.remember)):
            self._tasks.append(asyncio.create_task(work))
        if self._security is not None:
            self._tasks.append(asyncio.create_task(self._security.run(self._seams.clock.wall_ms)))
        log.info("bookie %s serves at %s, boot %d", self.bookie_id, self.address, self.boot)

    def _new_security(self) -> ConnectionSecurity | None:
        """Raises: ConfigError: a file or a provider that cannot be used, by name."""
        config, seams = self.config, self._seams
        provider = server_provider(config.auth)
        if config.tls.mode == "off" and provider is None:
            return None
        from bookkeeper.bookie.connections.connection_security import (
            ConnectionSecurity,  # most bookies neither encrypt nor authenticate
        )

        asks_tls = config.auth_provider == TLS
        return ConnectionSecurity(seams.net, config.tls, provider, self.metrics, seams.rng, asks_tls=asks_tls)

    async def _bind(self, identity: BookieIdentity | None) -> None:
        """Take the port. Connections are closed until the bookie serves."""
        wanted = Address.parse(self.config.listen)
        if wanted.port == 0 and identity is not None:
            wanted = Address(wanted.host, identity.port)
        self._early_listener = early_listener = EarlyListener()
        early_listener.listener = await self._seams.net.listen(wanted, early_listener.accept)
        self._address = early_listener.listener.address

    def _identify(self, identity: BookieIdentity | None) -> BookieIdentity:
        """Determine the bookie's identity. On a first start it is not written yet, because the start may be refused."""
        config = self.config
        assert self._address is not None
        if identity is None:
            name = config.bookie_id or str(self.address)
            identity = BookieIdentity(bookie_id(name), self._address.port)
        elif config.bookie_id is not None and config.bookie_id != identity.bookie_id:
            raise CookieError(
                f"{config.directory} belongs to bookie {identity.bookie_id}, not to {config.bookie_id}; "
                "start each bookie with its own directories and its own id"
            )
        self.bookie_id = identity.bookie_id
        return identity

    def _keep_identity(self, identity: BookieIdentity) -> None:
        if read_identity(self._seams.disk, self.config.directory) is None:
            self._chose_identity = True
            write_identity(self._seams.disk, self.config.directory, identity)

    async def _settle_cookie(self, identity: BookieIdentity) -> bool:
        """Make or check the cookie. Writes the identity before the cookie, and only if nothing forbids the start."""
        disk = self._seams.disk
        for directory in self._directories:
            disk.make_directories(directory)
        first = await settle_cookie(
            disk,
            self._metadata.cookies,
            self._cookie,
            self._directories,
            last_start=await self._last_start(),
            before=lambda: self._keep_identity(identity),
        )
        self._keep_identity(identity)
        return first

    @property
    def _directories(self) -> list[str]:
        """The directories of the bookie's data."""
        return list(dict.fromkeys([self.config.storage.journal_dir, self.config.storage.ledger_dir]))

    @property
    def _cookie(self) -> Cookie:
        return Cookie(
            bookie_id=self.bookie_id,
            journal_dirs=(self.config.storage.journal_dir,),
            ledger_dirs=(self.config.storage.ledger_dir,),
            instance_id=self._metadata.instance_id,
        )

    async def _settle_disk_identity(self, served_before: bool) -> DiskIdentity | None:
        """Read ``birth.json``. On empty storage, or if the file is gone or outdated, look at all ledgers instead."""
        disk, directory = self._seams.disk, self.config.directory
        seen, which = self._known_disk.highest if self._known_disk is not None else NO_LEDGER, "an empty disk"
        if disk.exists(os.path.join(directory, OPENED)):
            self._refuse_emptied()
            disk_identity, doubt = self._remembered_disk_identity()
            if doubt is None:
                return disk_identity
            log.error("bookie %s reads the metadata of all ledgers again, because %s", self.bookie_id, doubt)
            seen, which = (
                max(seen, (disk_identity or DiskIdentity()).highest),
                "a disk that has changed since its last start",
            )
        disk_identity = await survey(self._metadata, self.bookie_id, served_before=served_before)
        disk_identity = disk_identity.with_highest(LedgerId(seen))
        if disk_identity == DiskIdentity() and not disk.exists(os.path.join(directory, BIRTH)):
            return None
        write_disk_identity(disk, directory, disk_identity, self.bookie_id)
        if disk_identity.suspects:
            log.error(
                "bookie %s starts on %s, but %d ledgers name it: it may have lost entries of them. It answers "
                "'unknown' for what is missing until they are closed and whole here again",
                self.bookie_id,
                which,
                len(disk_identity.suspects),
            )
        return disk_identity

    async def _doubt_rebuilt(self, engine: Engine) -> None:
        """Treat all present ledgers as older than the disk, because the index was built anew from the entry logs.

        A new index may have forgotten that a ledger is deleted: once its logs are gone, nothing else here says so. So
        adds to these ledgers wait for metadata. The mark is durable before the directory knows of this start: a later
        start finds a whole index and cannot tell how it was made.
        """
        highest = await newest(self._metadata, max(engine.ledgers(), default=NO_LEDGER))
        self._disk_identity = (self._disk_identity or DiskIdentity()).with_highest(highest)
        write_disk_identity(self._seams.disk, self.config.directory, self._disk_identity, self.bookie_id)

    def _refuse_emptied(self) -> None:
        """Refuse an empty ledger directory of a bookie that has served. Called before anything is written there."""
        if is_unused(self._seams.disk, self.config.storage):
            raise CookieError(
                f"{self.config.storage.ledger_dir} is empty, but {self.bookie_id} has served before: mount its disk; "
                "if that is lost, join with empty directories under another --bookie-id"
            )

    def _remembered_disk_identity(self) -> tuple[DiskIdentity | None, str | None]:
        """What ``birth.json`` says, and why it cannot be trusted; None if it can."""
        disk, directory, known = self._seams.disk, self.config.directory, self._known_disk
        try:
            disk_identity = read_disk_identity(disk, directory, self.bookie_id)
        except CookieError as error:
            return None, str(error)
        if known is not None and self._opened() < known.boot:
            return (
                disk_identity,
                f"{directory} was put back from an older copy, or its file {OPENED} is missing or damaged",
            )
        if known is not None and (disk_identity or DiskIdentity()).highest < known.highest:
            return disk_identity, f"{os.path.join(directory, BIRTH)} is missing or was put back from an older copy"
        return disk_identity, None

    def _opened(self) -> int:
        """The number of the last start that had the disk open, as the directory says; 0 if it does not."""
        try:
            return int(self._seams.disk.read_file(os.path.join(self.config.directory, OPENED)))
        except (FileNotFoundError, ValueError):
            return 0

    @property
    def _known_disk(self) -> DiskRecord | None:
        return self._publisher.record if self._publisher is not None else None

    async def _last_start(self) -> int:
        """The store's transaction in which the last start of this id was counted; 0 before the first."""
        store = self._metadata.store
        await store.sync(self._boot_path)
        try:
            return (await store.get(self._boot_path)).transaction
        except NoSuchKeyError:
            return 0

    @property
    def _boot_path(self) -> str:
        """The path in the store under which this bookie's starts are counted."""
        return self._metadata.own("boot", self.bookie_id)

    async def _next_boot(self) -> int:
        """Count this start. Returns a number that no earlier start of this bookie had."""
        store, path = self._metadata.store, self._boot_path
        if await store.exists(path) is None:
            with contextlib.suppress(KeyExistsError):
                await settled_create(store, path, b"0", parents=True)

        known = self._known_disk
        least = max(self._opened(), known.starting if known is not None else 0)

        def following(value: bytes) -> bytes:
            try:
                return b"%d" % (max(int(value), least) + 1)
            except ValueError as error:
                raise MetadataFormatError(f"{path} is not a number") from error

        return int((await update(store, path, following)).value)

    async def _open_engine(self) -> Engine:
        """Open the engine in a worker: replay may take long, and the loop must keep its session alive."""
        loop = asyncio.get_running_loop()
        assert self._publisher is not None
        known = await self._publisher.claim(self.boot, self._seams.disk, self.config.storage)
        if known.boot:
            known = replace(known, boot=max(known.boot, self._opened()))
        worker = self._seams.workers.worker(f"{self.bookie_id} open")
        try:
            engine = await worker.call(
                lambda: Engine.open(
                    self.config.storage,
                    self._seams.disk,
                    self._seams.workers,
                    boot=self.boot,
                    known=known,
                    monotonic=self._seams.clock.monotonic,
                    call_later=loop.call_later,
                )
            )
        except ForeignDirectoryError as error:
            raise await self._publisher.named(error) from error
        finally:
            worker.close()
        self._engine, report = engine, engine.report  # from here on whoever fails closes it
        if report.rebuilt or report.last_boot > self._opened():
            await self._doubt_rebuilt(engine)
        replace_file(self._seams.disk, os.path.join(self.config.directory, OPENED), b"%d\n" % self.boot)
        if report.limbo_reason:
            log.error(
                "bookie %s may have lost acknowledged data: %s. For every ledger that names it, it refuses adds and "
                "answers 'unknown' for missing entries, until the ledger is closed and whole here again. "
                "`bk ledger recover` closes a ledger, `bk bookies drain` moves its data to other bookies",
                self.bookie_id,
                report.limbo_reason,
            )
        for place in report.quarantined:
            log.error("bookie %s found damage and set it aside: %s", self.bookie_id, place)
        engine.on_state(self._on_state)
        engine.on_pressure(self._pressed, lambda: self._admission.set_pressure(False))
        return engine

    def _superseded(self, reason: str) -> None:
        """End this bookie: another process has started under its id."""
        if self._failure is not None and not self._failure.done():
            self._failure.set_result(reason)

    def _serve(self) -> None:
        config, disk = self.config, self._seams.disk
        loop = asyncio.get_running_loop()
        self._completion = Completion(self.engine, self._metadata, self.bookie_id, config, self._seams, self.metrics)
        self._stale_adds = StaleAdds(
            self.engine, self._metadata, self.bookie_id, disk, config.directory, self._disk_identity, self._completion
        )
        bookie = Bookie(
            self.engine,
            call_later=loop.call_later,
            wall_ms=self._seams.clock.wall_ms,
            read_only=config.read_only,
            frame_max=config.frame_max,
            batch_read_bytes=config.batch_read_bytes,
            long_polls_max=config.long_polls_max,
            long_poll_max_s=config.long_poll_max_s,
        )
        if self._disk_identity is not None or self.engine.in_limbo:
            bookie.stale_adds = self._stale_adds
        self._connections = Connections(
            bookie,
            self._admission,
            self.metrics,
            frame_max=config.frame_max,
            connections_max=config.connections_max,
            connections_per_host_max=config.connections_per_host_max,
            slow_frame_s=config.slow_frame_s,
            receive_bytes=config.receive_bytes,
            give_back=self.give_back_memory,
        )
        self._connections.begin()
        assert self._early_listener is not None
        connections, security = self._connections, self._security
        self._early_listener.accepting = (
            partial(ServerConnection, connections) if security is None else lambda: security.connection(connections)
        )

    def _start_http(self) -> None:
        if not self.config.http_listen:
            return
        worker = self._seams.workers.worker(f"{self.bookie_id} http")
        wanted = Address.parse(self.config.http_listen)
        pages: dict[str, Health] = {
            "/healthz": self.health,
            "/livez": lambda: liveness(self.condition()),
            "/readyz": lambda: readiness(self.condition()),
        }
        try:
            self._http = HealthServer.start(wanted, pages, self.metrics, self._refresh_metrics, worker)
        except OSError as error:
            text = f"cannot listen at {wanted} for health and metrics: {in_words(error)}; choose another --http"
            raise OSError(error.errno, text) from error

    # -- running ------------------------------------------------------------------------------------------

    def reload(self) -> None:
        """Read changed certificates now."""
        if self._security is not None:
            self._security.refresh()

    async def run_until_failure(self) -> str:
        """Wait until the disk fails or another process takes over; returns the reason. Cancel it before a stop."""
        assert self._failure is not None, "not started"
        return await asyncio.shield(self._failure)

    def condition(self) -> BookieHealth:
        """The bookie's condition now. May be called from any thread."""
        engine = self.engine
        lost_at = self._contact_lost_at
        return BookieHealth(
            bookie_id=self.bookie_id,
            boot=self.boot,
            running=self._running,
            disk=engine.state.value,
            failed=engine.state in (EngineState.FAILED, EngineState.CLOSED),
            read_only=self._wants_read_only(),
            registered=self._registration is not None and self._registration.present,
            metadata=self._metadata.store.session.value,
            without_metadata_s=None if lost_at is None else self._seams.clock.monotonic() - lost_at,
            limbo=engine.report.limbo_reason if engine.in_limbo else None,
            ledgers_lost_before=self._stale_adds.suspects if self._stale_adds is not None else 0,
            garbage_age_s=self._garbage.age_s if self._garbage is not None else None,
            doing=self._completion.sentences() if self._completion is not None else (),
            nothing_is_collected=self._garbage.refused if self._garbage is not None else None,
            kept_though_unknown=self._garbage.kept if self._garbage is not None else 0,
        )

    def health(self) -> dict[str, Any]:
        """The content of /healthz."""
        return health(self.condition())

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._contact_lost_at = None
        elif self._contact_lost_at is None:
            self._contact_lost_at = self._seams.clock.monotonic()
            if self._running:
                log.warning(
                    "bookie %s has lost contact with the metadata store (session %s): it serves its open ledgers on, "
                    "and registers again by itself when the store is back",
                    self.bookie_id,
                    state.value,
                )

    def _wants_read_only(self) -> bool:
        """Whether to register as read-only: by order, for the disk's state, or while limbo concerns every ledger. In
        that limbo every ledger counts as fenced here, and the first append to a new ledger would fail."""
        engine = self.engine
        return self.config.read_only or not engine.takes_new_ledgers or engine.state is not EngineState.WRITABLE

    def _pressed(self) -> None:
        """Too many adds wait for the journal: slow the clients down. Not on a full disk: there the adds may wait for
        good, no more of them come, and reads go on."""
        self._admission.set_pressure(self.engine.state is EngineState.WRITABLE)

    def _on_state(self, state: EngineState, reason: str) -> None:
        level = logging.INFO if state in (EngineState.CLOSED, EngineState.WRITABLE) else logging.WARNING
        log.log(level, "bookie %s is %s: %s", self.bookie_id, state.value, reason)
        if state is EngineState.FAILED and self._failure is not None and not self._failure.done():
            self._failure.set_result(reason)
        if state is not EngineState.WRITABLE:
            self._admission.set_pressure(False)
        self._state_changed.set()

    def _on_rollback(self, alarm: MetadataError) -> None:
        assert self._seen_metadata is not None, "it runs"
        self._seen_metadata.remember()
        log.critical(
            "bookie %s finds the metadata in an older state: %s. It serves what it has, and drops nothing. To register "
            "it again, put back the newest metadata, or accept the loss (bk metadata accept-rollback), and start it "
            "again",
            self.bookie_id,
            alarm,
        )

    async def _follow_state(self) -> None:
        """Keep the registration's mode equal to the bookie's, also after many changes in a row."""
        assert self._registration is not None
        while True:
            await self._state_changed.wait()
            self._state_changed.clear()
            await self._registration.set_read_only(self._wants_read_only())

    async def _watch_space(self) -> None:
        while True:
            await asyncio.sleep(self.config.space_check_s)
            try:
                self.engine.check_space()
            except OSError:
                log.exception(
                    "bookie %s cannot read how much disk space is free: it tries again in %g s",
                    self.bookie_id,
                    self.config.space_check_s,
                )

    # -- numbers ------------------------------------------------------------------------------------------

    def _refresh_metrics(self) -> None:
        gauge = self.metrics.gauge
        engine, admission = self.engine, self._admission
        for name in engine.stats.__slots__ if hasattr(engine.stats, "__slots__") else vars(engine.stats):
            gauge(f"storage_{name}", f"Counter {name} of the storage engine since this start.").value = getattr(
                engine.stats, name
            )
        gauge(
            "journal_bytes_in_flight", "Bytes of entries that are accepted and not yet durable."
        ).value = engine.journal_bytes_in_flight
        gauge("writable", "1 while the bookie takes new entries, else 0.").value = 0 if self._wants_read_only() else 1
        registered = self._registration is not None and self._registration.present
        text = "1 while the bookie is registered, so that clients find it, else 0."
        gauge("registered", text).value = 1 if registered else 0
        gauge(
            "in_progress_bytes", "Bytes of requests that are accepted and not yet answered."
        ).value = admission.in_progress
        gauge(
            "paused_connections", "Times the bookie stopped reading from a connection because too much was in progress."
        ).value = admission.pauses
        gauge("refused_requests", "Requests refused because too much was in progress.").value = admission.refused
        gauge("insecure", "1 if the bookie serves a network without authentication, else 0.").value = (
            1 if self.config.insecure else 0
        )
        if self._stale_adds is not None:
            text = "Ledgers older than the disk of which this bookie may have lost entries."
            gauge("suspect_ledgers", text).value = self._stale_adds.suspects
        if self._garbage is not None and (age := self._garbage.age_s) is not None:
            gauge("garbage_pass_age_seconds", "Seconds since the last garbage pass that succeeded.").value = age

    # -- stop ---------------------------------------------------------------------------------------------

    async def stop(self, *, drain: bool = True) -> None:
        """Stop cleanly. With ``drain`` wait up to ``drain_s`` for requests in progress. Idempotent."""
        if not self._running:
            return
        self._running = False
        await self._end_tasks()
        if self._completion is not None:
            await self._completion.close()
        assert self._connections is not None
        assert self._early_listener is not None
        if self._garbage is not None and self._seen_metadata is not None:
            with contextlib.suppress(OSError):  # what was noted last stands
                self._seen_metadata.remember()
        if self._registration is not None:
            await self._registration.unregister()
        self._early_listener.close()
        self._connections.bookie.end_polls()
        if self._stale_adds is not None and self._metadata.store.session is not SessionState.CONNECTED:
            self._stale_adds.close()  # adds that wait for metadata that are not to be had
        if drain:
            await self._drain()
        try:
            if self.engine.state is not EngineState.FAILED:
                await self._close_engine()
        finally:
            await self._abandon()

    async def _close_engine(self) -> None:
        await self._close_disk()
        if self._publisher is not None and self._stale_adds is not None:
            await self._publisher.stopped(self.engine, self._stale_adds.highest)

    async def _close_disk(self) -> None:
        closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: BaseException | None) -> None:
            if not closed.done():
                closed.set_result(None) if error is None else closed.set_exception(error)

        self.engine.close(done)
        await closed

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + self.config.drain_s
        while self._admission.in_progress and loop.time() < end:  # noqa: ASYNC110  # seldom, and soon over
            await asyncio.sleep(0.01)

    @staticmethod
    async def _hang_up(connections: Connections) -> None:
        """Close every connection and wait for its end. Encrypted ones get time to close TLS, then they are cut off."""
        loop = asyncio.get_running_loop()
        connections.close()
        end = loop.time() + GOODBYE_S
        while connections.connections and loop.time() < end:  # noqa: ASYNC110  # seldom, and soon over
            await asyncio.sleep(0.001)
        for connection in list(connections.connections):
            connection.abort()
        while connections.connections and loop.time() < end + GOODBYE_S:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    async def _end_tasks(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):  # one that had ended early does not keep the disk from its clean stop
                log.error(
                    "bookie %s: a background task had failed before the bookie stopped", self.bookie_id, exc_info=result
                )

    async def _abandon(self) -> None:
        """Release everything but the disk."""
        await self._end_tasks()
        if self._stale_adds is not None:
            self._stale_adds.close()
        if self._session_watch is not None:
            self._session_watch.close()
        if self._registration is not None:
            await self._registration.unregister()
        if self._early_listener is not None:
            self._early_listener.close()
        if self._connections is not None:
            await self._hang_up(self._connections)
        if self._security is not None:
            self._security.close()
        if self._http is not None:
            self._http.close()
            self._http = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
