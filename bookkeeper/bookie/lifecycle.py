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
from typing import TYPE_CHECKING, Any

from bookkeeper.bookie.bookie import Bookie
from bookkeeper.bookie.bookie_start import BookieStart
from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.connections.bookie_port import BookiePort
from bookkeeper.bookie.garbage.garbage_collector import GarbageCollector
from bookkeeper.bookie.health.bookie_metrics import refresh_metrics
from bookkeeper.bookie.health.health import BookieHealth, health, liveness, readiness
from bookkeeper.bookie.health.health_server import HealthServer
from bookkeeper.bookie.health.metadata_contact import MetadataContact
from bookkeeper.bookie.health.own_lag import OwnLag, watch_own_lag
from bookkeeper.bookie.identity.bookie_identity import read_identity, refuse_java
from bookkeeper.bookie.identity.completion import Completion
from bookkeeper.bookie.identity.damaged_ledgers import DamagedLedgers
from bookkeeper.bookie.identity.disk_identity import DiskIdentity
from bookkeeper.bookie.identity.ledger_keys import LedgerKeys
from bookkeeper.bookie.identity.progress_publisher import ProgressPublisher
from bookkeeper.bookie.identity.seen_metadata import SeenMetadata
from bookkeeper.bookie.identity.stale_adds import StaleAdds
from bookkeeper.bookie.identity.state_files import check_state_files
from bookkeeper.bookie.identity.suspect_ledgers import SuspectLedgers
from bookkeeper.bookie.ledger_directories import LedgerDirectories
from bookkeeper.bookie.read_only_order import ReadOnlyOrder
from bookkeeper.errors import DirectoryLockedError, MetadataError, in_words
from bookkeeper.ids import Address, BookieId, LedgerId
from bookkeeper.meta import Metadata, Registration, ServiceInfo
from bookkeeper.meta.records.bookies import FOREIGN_WAIT_S
from bookkeeper.meta.records.read_only import ReadOnlyOrders
from bookkeeper.meta.records.rollback import RollbackWatch
from bookkeeper.meta.store import SessionState, Watch
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Lock, Seams
from bookkeeper.storage.engine import EngineState
from bookkeeper.volumes import Volumes

if TYPE_CHECKING:
    from bookkeeper.bookie.health.health_pages import Health

log = logging.getLogger(__name__)


class BookieServer:
    """One bookie in this process. ``start`` once, ``stop`` once."""

    def __init__(self, config: BookieConfig, seams: Seams, metadata: Metadata) -> None:
        self.config = config
        self.metrics = Metrics("bookie_")
        self.give_back_memory: Callable[[], object] = lambda: None
        """Returns freed memory to the system, where the process is this bookie's own."""
        self.say_stage: Callable[[str], object] = lambda stage: None
        """Told what the start does next; whoever waits for it sees that it goes on."""
        self.ledger_directories: LedgerDirectories | None = None
        """What is done with ledger directories; None: not started."""
        self._begun = BookieStart(config, seams, metadata)
        self._seams = seams
        self._metadata = metadata
        self.port = BookiePort(config, seams, self.metrics)
        self._registration: Registration | None = None
        self._http: HealthServer | None = None
        self._lock: Lock | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._state_changed = asyncio.Event()
        self._failure: asyncio.Future[str] | None = None
        self._garbage: GarbageCollector | None = None
        self._seen_metadata: SeenMetadata | None = None
        self._stale_adds: StaleAdds | None = None
        self._completion: Completion | None = None
        self._damaged: DamagedLedgers | None = None
        self._orders = ReadOnlyOrders(metadata.store, metadata.paths)
        self._order: ReadOnlyOrder | None = None
        self._publisher: ProgressPublisher | None = None
        self._running = False
        self._session_watch: Watch | None = None
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
    def engine(self) -> Volumes:
        """What the bookie stores ledgers in."""
        assert self._begun.engine is not None, "not started"
        return self._begun.engine

    @property
    def data_directories(self) -> list[str]:
        """Every directory with journal or ledgers that is in use."""
        if self.ledger_directories is None:
            return self.config.data_directories
        return self.ledger_directories.in_use

    @property
    def is_open(self) -> bool:
        """Is the disk open, or was it?"""
        return self._begun.engine is not None

    async def collect_garbage(self) -> set[LedgerId]:
        """Make one garbage pass now; see :class:`GarbageCollector`."""
        assert self._garbage is not None, "not started"
        return await self._garbage.one_pass()

    async def logs(self) -> list[dict[str, object]]:
        """For each entry log what lives in it; see :meth:`GarbageCollector.log_report`."""
        assert self._garbage is not None, "not started"
        return await self._garbage.log_report()

    def directory_sentences(self) -> tuple[str, ...]:
        """What people should know of several ledger directories."""
        return self.ledger_directories.sentences() if self.ledger_directories is not None else ()

    def repairs(self) -> tuple[str, ...]:
        """What is copied back and what has become whole, for people."""
        copied = self._completion.sentences() if self._completion is not None else ()
        return (*copied, *(self._damaged.sentences() if self._damaged is not None else ()))

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
        loop = asyncio.get_running_loop()
        self._failure = loop.create_future()
        try:
            await self._start()
        except (Exception, asyncio.CancelledError) as error:  # not GeneratorExit: nothing can be awaited then
            if isinstance(error, Exception) and self.port.connections is None:  # else it may have served somebody
                await self._begun.undo_first_start(error, self._close_engine)
            await self._abandon()
            if self.is_open and self.engine.state not in (EngineState.FAILED, EngineState.CLOSED):
                await self._close_engine()
            raise

    async def _start(self) -> None:
        config, disk = self.config, self._seams.disk
        refuse_java(disk, [config.directory, *config.data_directories])
        disk.make_directories(config.directory)
        try:
            self._lock = disk.lock(os.path.join(config.directory, "bookie.lock"))
        except BlockingIOError as error:
            raise DirectoryLockedError(
                f"another process uses {config.directory}: a bookie runs there already; stop it, or choose another "
                "directory"
            ) from error
        self.port.secure()
        begun = self._begun
        await begun.finish_undoing()
        identity = read_identity(disk, config.directory)
        port = await self.port.bind(identity.port if identity is not None else None)
        begun.identify(identity, self.address, port)
        begun.refuse_strangers()
        self._seen_metadata = seen = SeenMetadata(self._metadata, disk, config.directory, self.bookie_id)
        await seen.check()
        await begun.settle_cookie()
        self._publisher = publisher = ProgressPublisher(self._metadata, self.bookie_id, self._seams.rng)
        begun.known = await publisher.look()
        served_before = await begun.last_start() > 0
        await begun.count()  # first: from now on nobody names it for what it held before
        await begun.settle_disk_identity(served_before=served_before)
        self.say_stage("opening storage")
        engine = await self._open_engine(publisher)
        self._start_http()  # the last thing that may be refused: nobody was served before
        await publisher.opened(engine, (begun.disk_identity or DiskIdentity()).highest)
        self._order = ReadOnlyOrder(self._orders, self.bookie_id, self._on_order)
        await self._order.read()
        self._serve()
        info = ServiceInfo.bookie(self.address, tls=self.port.encrypts, http=self.http_address)
        read_only = self._wants_read_only()
        self.say_stage("registering")
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
        tell = publisher.run(engine, lambda: stale_adds.highest, self._superseded)
        rate = self.config.storage.scrub_bytes_per_s
        self._damaged = damaged = DamagedLedgers(self.engine, self.bookie_id, completion, self.metrics, rate)
        works = (self._follow_state(), self._watch_space(), self._garbage.run(), limbo.run(), stale_adds.run())
        lag = watch_own_lag(self._lag, self._seams.clock, log)
        others = (damaged.run(), self._order.run(), tell, present.run(), seen.counter.run(seen.remember), lag)
        for work in (*works, *others):
            self._tasks.append(asyncio.create_task(work))
        if self.ledger_directories is not None:
            self.ledger_directories.publishes(lambda: stale_adds.highest)
            self._tasks.append(asyncio.create_task(self.ledger_directories.run()))
        if self.port.security is not None:
            self._tasks.append(asyncio.create_task(self.port.security.run(self._seams.clock.wall_ms)))
        self.engine.scrubber.begin()
        log.info("bookie %s serves at %s, boot %d", self.bookie_id, self.address, self.boot)

    async def _open_engine(self, publisher: ProgressPublisher) -> Volumes:
        engine = await self._begun.open_volumes(publisher)
        engine.on_state(self._on_state)
        engine.scrubber.report_problem = self._on_problem
        directory, disk = self.config.directory, self._seams.disk
        engine.scrubber.state_files = lambda: check_state_files(disk, directory, self.data_directories, self.bookie_id)
        self.ledger_directories = LedgerDirectories(engine, self._begun, publisher, self.config, self._seams.disk)
        engine.on_pressure(self._pressed, lambda: self.port.admission.set_pressure(False))
        return engine

    def _on_problem(self, text: str, error: BaseException | None) -> None:
        log.error("bookie %s: %s", self.bookie_id, text, exc_info=error)

    def _superseded(self, reason: str) -> None:
        """End this bookie: another process has started under its id."""
        if self._failure is not None and not self._failure.done():
            self._failure.set_result(reason)

    def _serve(self) -> None:
        config, disk = self.config, self._seams.disk
        loop = asyncio.get_running_loop()
        self._completion = Completion(self.engine, self._metadata, self.bookie_id, config, self._seams, self.metrics)
        disk_identity = self._begun.disk_identity
        self._stale_adds = StaleAdds(
            self.engine, self._metadata, self.bookie_id, disk, config.directory, disk_identity, self._completion
        )
        bookie = Bookie(
            self.engine,
            call_later=loop.call_later,
            wall_ms=self._seams.clock.wall_ms,
            read_only=self._is_ordered_read_only,
            frame_max=config.frame_max,
            batch_read_bytes=config.batch_read_bytes,
            long_polls_max=config.long_polls_max,
            long_poll_max_s=config.long_poll_max_s,
        )
        if disk_identity is not None or self.engine.in_limbo:
            bookie.stale_adds = self._stale_adds
        if self.port.security is not None:
            bookie.ledger_keys = LedgerKeys(self.engine, self._metadata, self.bookie_id, self.metrics)
        self.port.serve(bookie, self.give_back_memory)

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
        self.port.refresh()

    async def run_until_failure(self) -> str:
        """Wait until the disk fails or another process takes over; returns the reason. Cancel it before a stop."""
        assert self._failure is not None, "not started"
        return await asyncio.shield(self._failure)

    def condition(self) -> BookieHealth:
        """The bookie's condition now. May be called from any thread."""
        engine = self.engine
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
            ledgers_lost_before=self._stale_adds.suspects if self._stale_adds is not None else 0,
            garbage_age_s=self._garbage.age_s if self._garbage is not None else None,
            doing=(
                *self.directory_sentences(),
                *self.repairs(),
                *engine.sentences(),
                *engine.compactor.sentences(),
                *engine.scrubber.sentences(),
            ),
            nothing_is_collected=self._garbage.refused if self._garbage is not None else None,
            kept_though_unknown=self._garbage.kept if self._garbage is not None else 0,
        )

    def health(self) -> dict[str, Any]:
        """The content of /healthz."""
        return health(self.condition())

    def _refresh_metrics(self) -> None:
        refresh_metrics(
            self.metrics,
            self.engine,
            self.port.admission,
            self.condition(),
            insecure=self.config.insecure,
            suspects=self._stale_adds.suspects if self._stale_adds is not None else None,
        )

    def _on_session(self, state: SessionState) -> None:
        self._contact.on_session(state, self.bookie_id if self._running else None)

    @property
    def _is_ordered_read_only(self) -> bool:
        """By its configuration, or from afar."""
        return self.config.read_only or (self._order is not None and self._order.by is not None)

    def _on_order(self, ordered: bool) -> None:
        """An operator has ordered the bookie to be read-only, or has taken that back."""
        assert self.port.connections is not None, "it serves"
        self.port.connections.bookie.read_only = self._is_ordered_read_only
        self._state_changed.set()

    def _wants_read_only(self) -> bool:
        """Whether to register as read-only: by order, for the disk's state, or while limbo concerns every ledger. In
        that limbo every ledger counts as fenced here, and the first append to a new ledger would fail."""
        engine = self.engine
        return self._is_ordered_read_only or not engine.takes_new_ledgers or engine.state is not EngineState.WRITABLE

    def _pressed(self) -> None:
        """Too many adds wait for the journal: slow the clients down. Not on a full disk: there the adds may wait for
        good, no more of them come, and reads go on."""
        self.port.admission.set_pressure(self.engine.state is EngineState.WRITABLE)

    def _on_state(self, state: EngineState, reason: str) -> None:
        level = logging.INFO if state in (EngineState.CLOSED, EngineState.WRITABLE) else logging.WARNING
        log.log(level, "bookie %s is %s: %s", self.bookie_id, state.value, reason)
        if state is EngineState.FAILED and self._failure is not None and not self._failure.done():
            self._failure.set_result(reason)
        if state is not EngineState.WRITABLE:
            self.port.admission.set_pressure(False)
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
        if self._completion is not None:
            await self._completion.close()
        assert self.port.connections is not None
        if self._garbage is not None and self._seen_metadata is not None:
            with contextlib.suppress(OSError):  # what was noted last stands
                self._seen_metadata.remember()
        if self._registration is not None:
            await self._registration.unregister()
        self.port.close()
        self.port.connections.bookie.end_polls()
        if self._stale_adds is not None and self._metadata.store.session is not SessionState.CONNECTED:
            self._stale_adds.close()  # adds that wait for metadata that are not to be had
        if drain:
            await self.port.drain()
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
        if self._publisher is not None:
            await self._publisher.close()
        if self._stale_adds is not None:
            self._stale_adds.close()
        if self._session_watch is not None:
            self._session_watch.close()
        if self._registration is not None:
            await self._registration.unregister()
        await self.port.hang_up()
        if self._http is not None:
            self._http.close()
            self._http = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None
