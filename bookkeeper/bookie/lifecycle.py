"""A bookie from start to stop.

Start: lock -> read the identity -> listen (and close connections that come too early) -> check the metadata and the
cookie -> read the published progress of the disk -> count the start -> on an empty disk: read which ledgers there are
-> open the disk -> serve -> register. A client that finds the registration finds a bookie that serves.

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
from functools import partial
from typing import TYPE_CHECKING, Any

from bookkeeper.audit import NO_AUDIT, AuditLog, open_audit_log
from bookkeeper.bookie.assembly import BookieParts, BookieReports, build_bookie
from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.connections.bookie_port import BookiePort
from bookkeeper.bookie.connections.connection_audit import ConnectionAudit
from bookkeeper.bookie.control.ledger_directories import LedgerDirectories
from bookkeeper.bookie.health.apache_names import ApacheNames, Sources
from bookkeeper.bookie.health.apache_routes import ROUTES, HealthSnapshot, Route
from bookkeeper.bookie.health.bookie_metrics import refresh_metrics
from bookkeeper.bookie.health.health import BookieHealth, PageReply, health, liveness, readiness
from bookkeeper.bookie.health.health_server import HealthServer
from bookkeeper.bookie.health.metadata_contact import MetadataContact
from bookkeeper.bookie.health.own_lag import OwnLag, watch_own_lag
from bookkeeper.bookie.identity.bookie_identity import read_identity, refuse_java
from bookkeeper.bookie.identity.progress_publisher import ProgressPublisher
from bookkeeper.bookie.identity.seen_metadata import SeenMetadata
from bookkeeper.bookie.start.bookie_start import BookieStart
from bookkeeper.errors import DirectoryLockedError, MetadataError, MetadataRolledBackError, in_words
from bookkeeper.ids import Address, BookieId, LedgerId
from bookkeeper.ledger.location import Location
from bookkeeper.meta import Metadata, Registration, ServiceInfo
from bookkeeper.meta.access_coverage import warn_of_java_bookies
from bookkeeper.meta.records.bookies import FOREIGN_WAIT_S
from bookkeeper.meta.store import SessionState
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Seams
from bookkeeper.storage.engine import EngineState
from bookkeeper.volumes import Volumes
from bookkeeper.volumes.after_all import wait_until_done

if TYPE_CHECKING:
    from bookkeeper.bookie.health.health_pages import Health

log = logging.getLogger(__name__)


class BookieServer:
    """One bookie in this process. ``start`` once, ``stop`` once."""

    def __init__(self, config: BookieConfig, seams: Seams, metadata: Metadata) -> None:
        self.config = config
        self.metrics = Metrics("bookie_")
        self._apache_names = ApacheNames()
        self.metrics.include(self._apache_names.metrics)
        self.give_back_memory: Callable[[], object] = lambda: None
        """Returns freed memory to the system, where the process is this bookie's own."""
        self.report_stage: Callable[[str], object] = lambda stage: None
        """Called with what the start does next, so that others see that it goes on."""
        self.port = BookiePort(config, seams, self.metrics)
        self.audit: AuditLog = NO_AUDIT
        """Who did what, or was refused; switched off before the start."""
        self._begun = BookieStart(config, seams, metadata)
        self._seams = seams
        self._metadata = metadata
        self._parts: BookieParts | None = None
        """What works on the open disk; None before it is open."""
        self._http: HealthServer | None = None
        self._registration: Registration | None = None
        self._running = False
        self._tasks: list[asyncio.Task[None]] = []
        self._held = contextlib.AsyncExitStack()
        """What the start has taken, to be given back in reverse."""
        self._state_changed = asyncio.Event()
        self._failed = asyncio.Event()
        self._failure = ""
        """Why the bookie ends, once it has failed."""
        self._lag = OwnLag(seams.clock.monotonic(), seams.clock.wall_ms())
        self._contact = MetadataContact(config.metadata_session_s, seams.clock, self._lag)

    @property
    def bookie_id(self) -> BookieId:
        """The id of this bookie, once its directory or its address has told it."""
        return self._begun.bookie_id

    @property
    def boot(self) -> int:
        """The number of this start, counted in the metadata store; 0 before."""
        return self._begun.boot

    @property
    def first_start(self) -> bool:
        """Whether this bookie has never served before."""
        return self._begun.first_start

    @property
    def parts(self) -> BookieParts:
        """What works on the open disk."""
        assert self._parts is not None, "not started"
        return self._parts

    @property
    def engine(self) -> Volumes:
        """What the bookie stores ledgers in."""
        return self.parts.engine

    @property
    def ledger_directories(self) -> LedgerDirectories:
        """What is done with ledger directories."""
        return self.parts.directories

    @property
    def data_directories(self) -> list[str]:
        """Every directory with journal or ledgers that is in use."""
        return self.config.data_directories if self._parts is None else self._parts.directories.in_use

    @property
    def is_open(self) -> bool:
        """Is the disk open, or was it?"""
        return self._parts is not None

    async def collect_garbage(self) -> set[LedgerId]:
        """Make one garbage pass now; see :class:`GarbageCollector`."""
        return await self.parts.garbage.one_pass()

    @property
    def waiting_garbage(self) -> tuple[int, float, int]:
        """See :attr:`GarbageCollector.waiting`; and how many deleted ledgers are kept because they can come back."""
        return (*self.parts.garbage.waiting, self.parts.garbage.restorable)

    async def logs(self) -> list[dict[str, object]]:
        """For each entry log what lives in it; see :meth:`GarbageCollector.log_report`."""
        return await self.parts.garbage.log_report()

    def directory_sentences(self) -> tuple[str, ...]:
        """What people should know of several ledger directories."""
        return self.parts.directories.sentences()

    def repairs(self) -> tuple[str, ...]:
        """What is copied back and what has become whole, for people."""
        return (*self.parts.completion.sentences(), *self.parts.damaged.sentences())

    @property
    def address(self) -> Address:
        """The address under which clients reach this bookie."""
        return self.port.address

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
        try:
            await self._start()
        except (Exception, asyncio.CancelledError) as error:  # not GeneratorExit: nothing can be awaited then
            if isinstance(error, Exception) and self.port.connections is None:  # else it may have served somebody
                await self._begun.undo_first_start(error, self._close_engine)
            await self._held.aclose()
            raise

    async def _start(self) -> None:
        self._take_directory()
        publisher, seen = await self._settle_identity()
        self._parts = parts = await self._open(publisher, seen)
        self._start_http()  # the last thing that may be refused: nobody was served before
        await publisher.opened(parts.engine, parts.stale_adds.highest)
        await parts.order.read()
        parts.policy.audit = self.audit
        await parts.learn_access()
        await warn_of_java_bookies(self._metadata, parts.policy.policy.mode)
        self._serve()
        await self._register()
        self._begin_works()
        parts.engine.scrubber.begin()
        log.info("bookie %s serves at %s, boot %d", self.bookie_id, self.address, self.boot)
        for refusal in parts.engine.refusals():
            log.warning("%s", refusal)

    def _take_directory(self) -> None:
        """Lock the directory, and refuse one of Java's bookie. Open the audit log."""
        config, disk = self.config, self._seams.disk
        refuse_java(disk, [config.directory, *config.data_directories])
        disk.make_directories(config.directory)
        try:
            lock = disk.lock(os.path.join(config.directory, "bookie.lock"))
        except BlockingIOError as error:
            raise DirectoryLockedError(
                f"another process uses {config.directory}: a bookie runs there already; stop it, or choose another "
                "directory"
            ) from error
        self._held.callback(lock.release)
        audit = open_audit_log(config.audit, self._seams.clock, disk, self._seams.workers, self.metrics)
        self._held.callback(audit.close)
        self.audit = audit
        self.port.audit = ConnectionAudit(audit)

    async def _settle_identity(self) -> tuple[ProgressPublisher, SeenMetadata]:
        """Take the port, and settle who the bookie is, how often it has started, and what its disk may have lost."""
        begun = self._begun
        self.port.secure()
        await begun.finish_undoing()
        identity = read_identity(self._seams.disk, self.config.directory)
        self._held.push_async_callback(self._close_open_engine)  # after the port was hung up
        self._held.push_async_callback(self.port.close_and_wait)
        port = await self.port.bind(identity.port if identity is not None else None)
        begun.identify(identity, self.address, port)
        begun.refuse_strangers()
        seen = SeenMetadata(self._metadata, self._seams.disk, self.config.directory, self.bookie_id)
        await seen.check()
        await begun.settle_cookie()
        publisher = ProgressPublisher(self._metadata, self.bookie_id, self._seams.rng)
        begun.known = await publisher.read()
        served_before = await begun.last_start() > 0
        await begun.count()  # first: from now on nobody names it for what it held before
        await begun.settle_disk_identity(served_before=served_before)
        return publisher, seen

    async def _open(self, publisher: ProgressPublisher, seen: SeenMetadata) -> BookieParts:
        """Open the disk, and make what works on it."""
        self.report_stage("opening storage")
        engine = await self._begun.open_volumes(publisher)
        reports = BookieReports(
            on_state=self._on_state,
            on_pressure=self._on_pressure,
            on_relief=lambda: self.port.admission.set_pressure(False),
            on_mode=self._state_changed.set,
            on_order=self._on_order,
            on_rollback=self._on_rollback,
            on_superseded=self._fail,
        )
        checks_keys = self.port.security is not None
        parts = build_bookie(
            self._begun, engine, publisher, seen, self.metrics, reports, checks_keys=checks_keys, audit=self.audit
        )
        self._held.push_async_callback(publisher.close)
        self._held.callback(parts.stale_adds.close)
        self._held.callback(parts.access.close)
        return parts

    def _serve(self) -> None:
        bookie = self.parts.bookie
        bookie.read_only = self._is_ordered_read_only
        self.port.serve(bookie, self.give_back_memory, self.parts.access)

    async def _register(self) -> None:
        config = self.config
        info = ServiceInfo.bookie(self.address, tls=self.port.encrypts, http=self.http_address)
        read_only = self._wants_read_only()
        if config.location is not None:
            await self._metadata.locations.put(self.bookie_id, Location.parse(config.location))
        self.report_stage("registering")
        self._registration = registration = await self._metadata.bookies.register(
            self.bookie_id,
            info,
            read_only=read_only,
            foreign_wait_s=max(FOREIGN_WAIT_S, config.metadata_session_s + 5),
            with_cookie=True,
        )
        self._held.push_async_callback(registration.unregister)
        self._running = True
        self._held.callback(self._metadata.store.on_session(self._on_session).close)
        self._on_session(self._metadata.store.session)

    def _begin_works(self) -> None:
        works = [*self.parts.works(), self._follow_state(), self._watch_space()]
        works.append(watch_own_lag(self._lag, self._seams.clock, log))
        if self.port.security is not None:
            works.append(self.port.security.run())
        self._held.push_async_callback(self._end_tasks)
        self._tasks += map(asyncio.create_task, works)

    def pages(self) -> dict[str, Health]:
        """What is shown to everybody who reaches the pages, by route."""
        pages: dict[str, Health] = {
            "/healthz": self.health,
            "/livez": lambda: liveness(self.condition()),
            "/readyz": lambda: readiness(self.condition()),
        }
        return pages | {path: partial(self._probe, route) for path, route in ROUTES.items()}

    def _start_http(self) -> None:
        if not self.config.http_listen:
            return
        worker = self._seams.workers.worker(f"{self.bookie_id} http")
        wanted = Address.parse(self.config.http_listen)
        try:
            self._http = http = HealthServer.start(wanted, self.pages(), self.metrics, self.refresh_metrics, worker)
        except OSError as error:
            text = f"cannot listen at {wanted} for health and metrics: {in_words(error)}; choose another --http"
            raise OSError(error.errno, text) from error
        self._held.callback(http.close)

    def _probe(self, route: Route) -> PageReply:
        engine, stats = self.engine, self.engine.stats
        compactor = engine.compactor
        return route(
            HealthSnapshot(
                self.condition(), engine.space(), compactor.is_running, stats.compactions, compactor.is_suspended
            )
        )

    # -- running ------------------------------------------------------------------------------------------

    def reload(self) -> None:
        """Read changed certificates now."""
        self.port.refresh()

    async def run_until_failure(self) -> str:
        """Wait until the disk fails or another process takes over; returns the reason. Cancel it before a stop."""
        await self._failed.wait()
        return self._failure

    def _fail(self, reason: str) -> None:
        """End this bookie. The first reason stands."""
        self._failure = self._failure or reason
        self._failed.set()

    def condition(self) -> BookieHealth:
        """The bookie's condition now. May be called from any thread."""
        parts, engine, garbage = self.parts, self.engine, self.parts.garbage
        return BookieHealth(
            bookie_id=self.bookie_id,
            boot=self.boot,
            running=self._running,
            disk=engine.state.value,
            failed=engine.state in (EngineState.FAILED, EngineState.CLOSED),
            read_only=self._wants_read_only(),
            registered=self._registration is not None and self._registration.present,
            metadata=self._metadata.store.session.value,
            without_metadata_s=self._contact.lost_for_s,
            limbo=engine.report.limbo_reason if engine.in_limbo else None,
            ledgers_in_doubt=parts.stale_adds.doubted,
            garbage_age_s=garbage.age_s,
            doing=(
                *self.directory_sentences(),
                *self.repairs(),
                *engine.refusals(),
                *engine.sentences(),
                *engine.compactor.sentences(),
                *engine.scrubber.sentences(),
            ),
            nothing_is_collected=garbage.refused,
            kept_though_unknown=garbage.kept,
        )

    def health(self) -> dict[str, Any]:
        """The content of /healthz."""
        return health(self.condition())

    def refresh_metrics(self) -> None:
        """Bring :attr:`metrics` up to date. May be called from any thread."""
        refresh_metrics(
            self.metrics,
            self.engine,
            self.port.admission,
            self.condition(),
            insecure=self.config.insecure,
            doubted=self.parts.stale_adds.doubted,
        )
        if self.port.connections is not None:
            sources = Sources(self.port.connections.counts, self.engine, self.condition())
            self._apache_names.refresh(sources, self._seams.clock.monotonic())

    def _on_session(self, state: SessionState) -> None:
        self._contact.on_session(state, self.bookie_id if self._running else None)

    @property
    def _is_ordered_read_only(self) -> bool:
        """By its configuration, from afar, or because the metadata are older than they were: whoever knew them has
        ended, and who comes anew would write under ids that were given out, beside entries that are here."""
        put_back = isinstance(self._metadata.present.alarm, MetadataRolledBackError)
        return self.config.read_only or self.parts.order.by is not None or put_back

    def _on_order(self, ordered: bool) -> None:
        """An operator has ordered the bookie to be read-only, or has taken that back."""
        self.parts.bookie.read_only = self._is_ordered_read_only
        self._state_changed.set()

    def _wants_read_only(self) -> bool:
        """Whether to register as read-only: by order, for the disk's state, or while limbo concerns every ledger. In
        that limbo every ledger counts as fenced here, and the first append to a new ledger would fail."""
        engine = self.engine
        return self._is_ordered_read_only or not engine.takes_new_ledgers or engine.state is not EngineState.WRITABLE

    def _on_pressure(self) -> None:
        """Too many adds wait for the journal: slow the clients down. Not on a full disk: there the adds may wait for
        good, no more of them come, and reads go on."""
        self.port.admission.set_pressure(self.engine.state is EngineState.WRITABLE)

    def _on_state(self, state: EngineState, reason: str) -> None:
        level = logging.INFO if state in (EngineState.CLOSED, EngineState.WRITABLE) else logging.WARNING
        log.log(level, "bookie %s is %s: %s", self.bookie_id, state.value, reason)
        if state is EngineState.FAILED:
            self._fail(reason)
        if state is not EngineState.WRITABLE:
            self.port.admission.set_pressure(False)
        self._state_changed.set()

    def _on_rollback(self, alarm: MetadataError) -> None:
        self.parts.seen.remember()
        self.parts.bookie.read_only = self._is_ordered_read_only
        log.critical(
            "bookie %s finds the metadata in an older state: %s. It serves what it has, takes no new entries, and "
            "drops nothing. To register it again, put back the newest metadata, or accept the loss (bk metadata "
            "accept-rollback), and start it again",
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
                self.engine.finish_logs()
            except OSError:
                log.exception(
                    "bookie %s cannot read how much disk space is free: it tries again in %g s",
                    self.bookie_id,
                    self.config.space_check_s,
                )

    # -- stop ---------------------------------------------------------------------------------------------

    async def stop(self, *, drain: bool = True) -> None:
        """Stop cleanly. With ``drain`` wait up to ``drain_s`` for requests in progress. Idempotent."""
        if not self._running:
            return
        self._running = False
        await self._end_tasks()
        parts = self.parts
        await parts.completion.close()
        with contextlib.suppress(OSError):  # what was noted last stands
            parts.seen.remember()
        if self._registration is not None:
            await self._registration.unregister()
        self.port.close()
        parts.bookie.end_polls()
        if self._metadata.store.session is not SessionState.CONNECTED:
            parts.stale_adds.close()  # adds that wait for metadata that are not to be had
        if drain:
            await self.port.drain()
        try:
            if parts.engine.state is not EngineState.FAILED:
                await self._close_engine()
        finally:
            await self._held.aclose()

    async def _close_open_engine(self) -> None:
        """Close the disk if a start that failed has opened it."""
        if self._begun.engine is not None and self._begun.engine.state not in (EngineState.FAILED, EngineState.CLOSED):
            await self._close_engine()

    async def _close_engine(self) -> None:
        engine = self._begun.engine
        assert engine is not None, "it is open"
        await wait_until_done(engine.close)
        if self.port.connections is not None:  # somebody may have been served
            await self.parts.publisher.stopped(self.engine, self.parts.stale_adds.highest)

    async def _end_tasks(self) -> None:
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(result, Exception):  # one that had ended early does not keep the disk from its clean stop
                log.error(
                    "bookie %s: a background task had failed before the bookie stopped", self.bookie_id, exc_info=result
                )
