"""A bookie from start to stop.

Start: listen (closing whoever comes too early) -> who am I -> cookie -> what is known of the disk -> on an empty disk:
which ledgers are there -> boot number -> open the disk -> serve -> register. A client that finds the registration finds
a bookie that serves.

Running: the registration follows the disk (writable, read-only); deleted ledgers are collected; how far the
disk is becomes known outside it; a disk that failed ends the bookie:
:meth:`BookieServer.run_until_failure` returns why.

Stop: unregister -> accept nothing -> wait for what is in progress -> close the disk cleanly -> close connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from bookkeeper.auth.config import TLS
from bookkeeper.auth.provider_loader import server_provider
from bookkeeper.bookie.bookie import Bookie
from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.connections.admission import Admission
from bookkeeper.bookie.connections.early_listener import EarlyListener
from bookkeeper.bookie.connections.server import Connections
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
"""File with the number of the last start that had the disk open: from the first on, an empty disk is a lost one."""

GOODBYE_S: Final = 1.0
"""Seconds that connections have to end in good order when the bookie stops; then they are cut off."""


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
        """Counts this bookie's starts."""
        self.first_start = False
        self._seams = seams
        self._metadata = metadata
        self._admission = Admission(config.in_progress_bytes, config.reserved_bytes)
        self._connections: Connections | None = None
        self._early_listener: EarlyListener | None = None
        self._security: ConnectionSecurity | None = None
        """Only where connections are encrypted or clients authenticated."""
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
        """This start wrote down whose directory it is."""
        self._session_watch: Watch | None = None
        self._contact_lost_at: float | None = None
        """Since when there is no contact with the metadata service, by the monotonic clock."""

    @property
    def engine(self) -> Engine:
        """The disk."""
        assert self._engine is not None, "not started"
        return self._engine

    async def collect_garbage(self) -> set[LedgerId]:
        """One garbage pass now; see :class:`GarbageCollector`."""
        assert self._garbage is not None, "not started"
        return await self._garbage.one_pass()

    @property
    def address(self) -> Address:
        """Where clients reach this bookie."""
        assert self._address is not None, "not started"
        return Address.parse(self.config.advertise) if self.config.advertise else self._address

    @property
    def http_address(self) -> Address | None:
        """Where /healthz and /metrics are."""
        return self._http.address if self._http is not None else None

    # -- start --------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Serve and be registered, or raise and have left nothing behind but files.

        Raises:
            DirectoryLockedError: another process has the directory.
            CookieError: the directory is another bookie's, or the bookie's disk is gone.
            KeyExistsError: another bookie is registered under this id.
            StorageError, MetadataError, OSError
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
        """A bookie whose first start failed before it served leaves nothing behind that says it is there."""
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
                "bookie %s is known to the cluster, though it did not start: %s", self.bookie_id, in_words(error)
            )

    async def _start(self) -> None:
        config, disk = self.config, self._seams.disk
        refuse_java(disk, [config.directory, config.storage.journal_dir, config.storage.ledger_dir])
        disk.make_directories(config.directory)
        try:
            self._lock = disk.lock(os.path.join(config.directory, "bookie.lock"))
        except BlockingIOError as error:
            raise DirectoryLockedError(f"another process uses {config.directory}") from error
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
        """Take the port; until the bookie serves, whoever connects is sent away."""
        wanted = Address.parse(self.config.listen)
        if wanted.port == 0 and identity is not None:
            wanted = Address(wanted.host, identity.port)
        self._early_listener = early_listener = EarlyListener()
        early_listener.listener = await self._seams.net.listen(wanted, early_listener.accept)
        self._address = early_listener.listener.address

    def _identify(self, identity: BookieIdentity | None) -> BookieIdentity:
        """Who this is; of a first start not kept yet, for it may be refused."""
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
        """Make or check the cookie; the identity is on disk before it is, and only if nothing forbids it."""
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
        """Where its data are."""
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
        """On empty storage, or if what was seen then is gone, look at the ledgers there are; else that."""
        disk, directory = self._seams.disk, self.config.directory
        seen, which = self._known_disk.highest if self._known_disk is not None else NO_LEDGER, "an empty disk"
        if disk.exists(os.path.join(directory, OPENED)):
            self._refuse_emptied()
            disk_identity, doubt = self._remembered_disk_identity()
            if doubt is None:
                return disk_identity
            log.error("bookie %s looks at all ledgers again, for %s", self.bookie_id, doubt)
            seen, which = max(seen, (disk_identity or DiskIdentity()).highest), "a disk that is not as it was left"
        disk_identity = await survey(self._metadata, self.bookie_id, served_before=served_before)
        disk_identity = disk_identity.with_highest(LedgerId(seen))
        if disk_identity == DiskIdentity() and not disk.exists(os.path.join(directory, BIRTH)):
            return None
        write_disk_identity(disk, directory, disk_identity, self.bookie_id)
        if disk_identity.suspects:
            log.error(
                "bookie %s starts on %s, but %d ledgers name it: what it had of them is lost, and it answers "
                "'unknown' about it until they are closed and whole here again",
                self.bookie_id,
                which,
                len(disk_identity.suspects),
            )
        return disk_identity

    async def _doubt_rebuilt(self, engine: Engine) -> None:
        """An index that was built anew from the logs may have forgotten that a ledger is deleted: once its logs
        are gone nothing else here says so. Adds to ledgers that may be older wait for metadata.

        Durable before the start counts as one that had the disk open: whoever comes after one that ended before this
        finds a whole index, and cannot tell how it was made.
        """
        highest = await newest(self._metadata, max(engine.ledgers(), default=NO_LEDGER))
        self._disk_identity = (self._disk_identity or DiskIdentity()).with_highest(highest)
        write_disk_identity(self._seams.disk, self.config.directory, self._disk_identity, self.bookie_id)

    def _refuse_emptied(self) -> None:
        """Before anything is written: a later start would take what this one makes for the bookie's."""
        if is_unused(self._seams.disk, self.config.storage):
            raise CookieError(f"{self.config.storage.ledger_dir} is empty, but {self.bookie_id} is no new bookie")

    def _remembered_disk_identity(self) -> tuple[DiskIdentity | None, str | None]:
        """What ``birth.json`` says, and why it cannot be all."""
        disk, directory, known = self._seams.disk, self.config.directory, self._known_disk
        try:
            disk_identity = read_disk_identity(disk, directory, self.bookie_id)
        except CookieError as error:
            return None, str(error)
        if known is not None and self._opened() < known.boot:
            return (
                disk_identity,
                f"{directory} was put back from an older copy, or its file {OPENED!r} is missing or damaged",
            )
        if known is not None and (disk_identity or DiskIdentity()).highest < known.highest:
            return disk_identity, f"{os.path.join(directory, BIRTH)} is missing or was put back from an older copy"
        return disk_identity, None

    def _opened(self) -> int:
        """The number of the last start that had the disk open, by the directory; 0 if it does not say."""
        try:
            return int(self._seams.disk.read_file(os.path.join(self.config.directory, OPENED)))
        except (FileNotFoundError, ValueError):
            return 0

    @property
    def _known_disk(self) -> DiskRecord | None:
        return self._publisher.record if self._publisher is not None else None

    async def _last_start(self) -> int:
        """The store's transaction of the last start of this id; 0 before the first."""
        store = self._metadata.store
        await store.sync(self._boot_path)
        try:
            return (await store.get(self._boot_path)).transaction
        except NoSuchKeyError:
            return 0

    @property
    def _boot_path(self) -> str:
        """Where the store keeps the number of this bookie's starts."""
        return self._metadata.own("boot", self.bookie_id)

    async def _next_boot(self) -> int:
        """A number no earlier start of this bookie had."""
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
        """In a worker: replay may take long, and the loop has a session to keep alive."""
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
                "bookie %s may have lost acknowledged data: %s. It denies nothing, and counts as fenced, for every "
                "ledger that names it until that is closed and whole here again: `bk ledger recover` closes one, "
                "`bk bookies drain` brings its data elsewhere",
                self.bookie_id,
                report.limbo_reason,
            )
        for place in report.quarantined:
            log.error("bookie %s: damaged: %s", self.bookie_id, place)
        engine.on_state(self._on_state)
        engine.on_pressure(self._pressed, lambda: self._admission.set_pressure(False))
        return engine

    def _superseded(self, reason: str) -> None:
        """Two processes must not be one bookie."""
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
            connections.connection if security is None else lambda: security.connection(connections)
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
        """Look for changed certificates now."""
        if self._security is not None:
            self._security.refresh()

    async def run_until_failure(self) -> str:
        """Wait until the disk fails; why it did. Cancel it to go on to :meth:`stop`."""
        assert self._failure is not None, "not started"
        return await asyncio.shield(self._failure)

    def condition(self) -> BookieHealth:
        """How this bookie is; from any thread."""
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
        """What /healthz shows."""
        return health(self.condition())

    def _on_session(self, state: SessionState) -> None:
        if state is SessionState.CONNECTED:
            self._contact_lost_at = None
        elif self._contact_lost_at is None:
            self._contact_lost_at = self._seams.clock.monotonic()
            if self._running:
                log.warning("bookie %s has no contact with the metadata service: %s", self.bookie_id, state.value)

    def _wants_read_only(self) -> bool:
        """By order, by the disk's state, or while limbo concerns every ledger: all count as fenced here then,
        and a new one that got this bookie into its ensemble would end with its first append."""
        engine = self.engine
        return self.config.read_only or not engine.takes_new_ledgers or engine.state is not EngineState.WRITABLE

    def _pressed(self) -> None:
        """Too much waits for the journal. Not on a full disk: there it may wait for good, nothing more joins it, and
        reads go on."""
        self._admission.set_pressure(self.engine.state is EngineState.WRITABLE)

    def _on_state(self, state: EngineState, reason: str) -> None:
        level = logging.INFO if state is EngineState.CLOSED else logging.WARNING
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
            "bookie %s serves what it has, and drops nothing any more: %s. It is registered again when it is started "
            "with metadata that are whole, or that an operator has accepted (bk metadata accept-rollback)",
            self.bookie_id,
            alarm,
        )

    async def _follow_state(self) -> None:
        """The registration says what the disk allows, also after many changes in a row."""
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
                log.exception("bookie %s cannot tell its free space", self.bookie_id)

    # -- numbers ------------------------------------------------------------------------------------------

    def _refresh_metrics(self) -> None:
        gauge = self.metrics.gauge
        engine, admission = self.engine, self._admission
        for name in engine.stats.__slots__ if hasattr(engine.stats, "__slots__") else vars(engine.stats):
            gauge(f"storage_{name}", "Of the storage engine, since this start.").value = getattr(engine.stats, name)
        gauge("journal_bytes_in_flight", "Accepted and not yet durable.").value = engine.journal_bytes_in_flight
        gauge("writable", "1 while new entries are taken.").value = 0 if self._wants_read_only() else 1
        registered = self._registration is not None and self._registration.present
        text = "1 while clients find this bookie: its registration stands, as far as is known."
        gauge("registered", text).value = 1 if registered else 0
        gauge("in_progress_bytes", "Requests accepted and not yet answered.").value = admission.in_progress
        gauge("paused_connections", "Times a connection was not read for want of room.").value = admission.pauses
        gauge("refused_requests", "Requests refused for want of room.").value = admission.refused
        gauge("insecure", "1 if open to a network without authentication.").value = 1 if self.config.insecure else 0
        if self._stale_adds is not None:
            text = "Ledgers of which an earlier disk of this bookie may have had entries."
            gauge("suspect_ledgers", text).value = self._stale_adds.suspects
        if self._garbage is not None and (age := self._garbage.age_s) is not None:
            gauge("garbage_pass_age_seconds", "Since the last garbage pass that came to its end.").value = age

    # -- stop ---------------------------------------------------------------------------------------------

    async def stop(self, *, drain: bool = True) -> None:
        """Stop cleanly; with ``drain`` wait up to ``drain_s`` for what is in progress. Idempotent."""
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
        """End every connection and wait until it has ended: encrypted ones exchange last words, or are cut off."""
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
                log.error("bookie %s: its background work had failed", self.bookie_id, exc_info=result)

    async def _abandon(self) -> None:
        """Let go of everything but the disk."""
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
