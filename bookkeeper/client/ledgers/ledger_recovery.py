"""Closes a ledger whose writer is gone: the shell around ``LedgerRecovery``.

The shell performs the machine's effects and reports what happened. It keeps the payloads that were found as long as
they are needed. :mod:`bookkeeper.ledger.recovery` decides what a bookie's answer or silence means.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from typing import Final, assert_never

from bookkeeper.client.bookie_request import entry_of, failure_of, new_request_id, send_request
from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.closing_advice import advise_closed
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.services import ClientServices
from bookkeeper.client.tasks import Tasks
from bookkeeper.client.write.metadata_writes import STORE_AWAY, refresh_until_answered
from bookkeeper.client.write.missing_copies import CATCH_UP_S
from bookkeeper.errors import (
    BookKeeperError,
    LedgerClosedError,
    MetadataConflictError,
    MetadataError,
    RecoveryInconclusiveError,
    in_words,
)
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger import DigestScheme, LedgerMetadata, classify
from bookkeeper.ledger import recovery as recovery_machine
from bookkeeper.ledger.recovery import LedgerRecovery
from bookkeeper.meta import Versioned
from bookkeeper.wire import HIGH_PRIORITY, AddEntry, ReadEntry, Reply, Status

_log = logging.getLogger(__name__)

AGAIN_S: Final = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
"""Pauses in seconds before an entry is written back again to a bookie that has no room for it."""


async def recover(services: ClientServices, record: LedgerView, digest: DigestScheme) -> LedgerMetadata:
    """Fence the ledger, find its end, and close it. Returns the metadata that are stored then.

    There are at most ``recovery_attempts`` attempts. After each the metadata are read again: another client, which
    reaches other bookies, may have closed the ledger or changed its fragments meanwhile.

    Raises:
        RecoveryInconclusiveError: too few of its bookies answer. The ledger stays in recovery; nothing is lost.
        UnauthorizedError: the bookies hold another password.
        NoSuchLedgerError: the ledger was deleted.
        MetadataUnavailableError: the metadata store does not answer.
    """
    config = services.config
    request_id = new_request_id(services)
    _log.info("ledger %d is fenced and recovered [request %s]", record.ledger_id, request_id, extra=_named(request_id))
    for attempt in range(1, config.recovery_attempts + 1):
        shell = _RecoveryShell(services, record, digest, request_id)
        try:
            return await shell.run()
        except RecoveryInconclusiveError as error:
            if await _is_closed_by_now(record):
                return record.metadata
            if attempt == config.recovery_attempts:
                error.args = (f"{error} [request {request_id}]",)
                raise
            _log.warning(
                "attempt %d of %d to recover ledger %d was inconclusive (%s): it is repeated in %g s [request %s]",
                attempt,
                config.recovery_attempts,
                record.ledger_id,
                in_words(error),
                config.recovery_retry_ms / 1000,
                request_id,
                extra=_named(request_id),
            )
            await asyncio.sleep(config.recovery_retry_ms / 1000)
    raise AssertionError("at least one attempt is made")


def _named(request_id: str) -> dict[str, str]:
    """The id as a field of a line of JSON."""
    return {"request_id": request_id}


async def _is_closed_by_now(record: LedgerView) -> bool:
    """Read the metadata again and say whether the ledger is closed. If the store does not answer, the last known
    metadata stand.

    Raises: NoSuchLedgerError.
    """
    try:
        await record.refresh()
    except STORE_AWAY as error:
        _log.warning(
            "the metadata of ledger %d cannot be read (%s): its recovery goes on with those read before",
            record.ledger_id,
            in_words(error),
        )
    return record.metadata.is_closed


class _RecoveryShell:
    """One attempt to recover a ledger."""

    def __init__(self, services: ClientServices, record: LedgerView, digest: DigestScheme, request_id: str) -> None:
        """``request_id``: of the whole recovery; bookies' logs show it beside each of its requests."""
        self._services = services
        self._request_id = request_id
        self._record = record
        self._digest = digest
        self._ledger_id = record.ledger_id
        self._machine = LedgerRecovery(services.config.recovery())
        self._begun: Versioned[LedgerMetadata] = record.versioned
        self._payloads: dict[int, bytes] = {}
        self._packets: dict[tuple[int, int, int], bytes] = {}
        self._unacknowledged: set[tuple[BookieId, EntryId]] = set()
        """What was written back, and where it is not known to be stored."""
        self._caught_up = asyncio.Event()
        """Set when there is nothing of that."""
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._done: asyncio.Future[LedgerMetadata] = self._loop.create_future()
        self._tasks = Tasks(f"recovery of ledger {record.ledger_id}", on_error=self._fail)

    async def run(self) -> LedgerMetadata:
        try:
            self._perform(self._machine.start(self._loop.time()))
            metadata = await self._done
            await self._mark_lacking(metadata)
            advise_closed(self._services, self._ledger_id, metadata.last_fragment.ensemble)
            return metadata
        finally:
            if self._timer is not None:
                self._timer.cancel()
            await self._tasks.close()

    async def _mark_lacking(self, metadata: LedgerMetadata) -> None:
        """Mark the ledger as under-replicated if a bookie that it names may lack what was written back."""
        if self._unacknowledged:  # usually they are on their way
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CATCH_UP_S):
                    await self._caught_up.wait()
        named = set(metadata.last_fragment.ensemble)
        lacking = sorted({bookie for bookie, _ in self._unacknowledged} & named)
        if not lacking:
            return
        who = ", ".join(lacking)
        text = (
            "ledger %d is recovered, and %s did not acknowledge all of what was written back: it is marked for repair "
            "[request %s]"
        )
        _log.info(text, self._ledger_id, who, self._request_id, extra=_named(self._request_id))
        try:
            marks = self._services.metadata.under_replication
            await marks.mark(self._ledger_id, lacking, self._services.seams.clock.wall_ms())
        except MetadataError as error:
            text = "ledger %d could not be marked as under-replicated, though %s may lack entries: %s"
            _log.warning(text, self._ledger_id, who, in_words(error))

    def _fail(self, error: BaseException) -> None:
        if not self._done.done():
            self._done.set_exception(error)

    # -- effects ------------------------------------------------------------------------------------------

    def _perform(self, effects: Iterable[recovery_machine.Effect]) -> None:
        for effect in effects:
            if self._done.done():  # the recovery has ended or was given up: later answers have no effect
                return
            match effect:
                case recovery_machine.RecoveryRead():
                    self._read(effect)
                case recovery_machine.WriteBack():
                    self._write_back(effect)
                case recovery_machine.ForgetPayloads():
                    self._forget(effect.upto)
                case recovery_machine.FenceRead():
                    self._fence(effect.bookie)
                case recovery_machine.WakeAt():
                    if self._timer is not None:
                        self._timer.cancel()
                    self._timer = self._loop.call_at(effect.time, self._on_time)
                case recovery_machine.BeginRecovery():
                    self._tasks.start(self._begin(), "begin")
                case recovery_machine.FindStandIns():
                    self._loop.call_soon(self._find_stand_ins, effect)
                case recovery_machine.CloseRecovered():
                    self._tasks.start(self._close(effect), "close")
                case recovery_machine.RecoveryDone():
                    if not self._done.done():
                        self._done.set_result(effect.metadata)
                case recovery_machine.RecoveryFailed():
                    self._fail(effect.error)
                case _:
                    assert_never(effect)

    def _on_time(self) -> None:
        self._timer = None
        self._perform(self._machine.on_tick(self._loop.time()))

    def _fence(self, bookie: BookieId) -> None:
        request = ReadEntry(self._ledger_id, NO_ENTRY, master_key=self._digest.master_key, fence=True)

        def answered(reply: Reply | BookKeeperError) -> None:
            now = self._loop.time()
            try:
                entry = entry_of(
                    reply, self._digest, self._ledger_id, None, f"fence of ledger {self._ledger_id} on {bookie}"
                )
            except BookKeeperError as error:
                effects = self._machine.on_fence_answer(bookie, classify(error), None, now, error)
            else:
                effects = self._machine.on_fence_answer(bookie, classify(None), entry.last_add_confirmed, now)
            self._perform(effects)

        send_request(self._services, self._tasks, bookie, request, answered, request_id=self._request_id)

    def _read(self, read: recovery_machine.RecoveryRead) -> None:
        bookie, entry_id = read.bookie, read.entry_id
        key = self._digest.master_key if read.fence else None
        request = ReadEntry(self._ledger_id, entry_id, master_key=key, fence=read.fence, priority=HIGH_PRIORITY)

        def answered(reply: Reply | BookKeeperError) -> None:
            now = self._loop.time()
            what = f"recovery read of entry {entry_id} of ledger {self._ledger_id} on {bookie}"
            if (failure := failure_of(reply, what)) is not None:  # the machine keeps it: raised, it would hold frames
                self._perform(self._machine.on_read_answer(bookie, entry_id, classify(failure), now, error=failure))
                return
            try:
                entry = entry_of(reply, self._digest, self._ledger_id, entry_id, what)
            except BookKeeperError as error:
                effects = self._machine.on_read_answer(bookie, entry_id, classify(error), now, error=error)
            else:
                self._payloads.setdefault(entry_id, entry.payload)
                effects = self._machine.on_read_answer(bookie, entry_id, classify(None), now, length=entry.length)
            self._perform(effects)

        send_request(self._services, self._tasks, bookie, request, answered, request_id=self._request_id)

    def _write_back(self, write: recovery_machine.WriteBack) -> None:
        bookie, entry_id = write.bookie, write.entry_id
        shape = (entry_id, write.lac, write.length)
        packet = self._packets.get(shape)
        if packet is None:
            payload = self._payloads[entry_id]
            packet = self._digest.seal(self._ledger_id, entry_id, write.lac, write.length, payload)
            self._packets[shape] = packet
        request = AddEntry(
            self._ledger_id, entry_id, self._digest.master_key, packet, recovery=True, priority=HIGH_PRIORITY
        )

        self._unacknowledged.add((bookie, entry_id))
        self._caught_up.clear()
        self._add(bookie, request, AGAIN_S)

    def _add(self, bookie: BookieId, request: AddEntry, pauses: tuple[float, ...]) -> None:
        """Write an entry back. A bookie that has no room for it, or a quota that is used up, is asked again after these
        pauses: another bookie would have none either."""
        if self._done.done():
            return
        entry_id = request.entry_id

        def answered(reply: Reply | BookKeeperError) -> None:
            if pauses and not isinstance(reply, BookKeeperError) and reply.status is Status.TOO_MANY_REQUESTS:
                self._loop.call_later(pauses[0], self._add, bookie, request, pauses[1:])
                return
            now = self._loop.time()
            what = f"recovery add of entry {entry_id} to ledger {self._ledger_id} on {bookie}"
            error = failure_of(reply, what)
            if error is None:
                self._unacknowledged.discard((bookie, entry_id))
                if not self._unacknowledged:
                    self._caught_up.set()
                self._perform(self._machine.on_written(bookie, entry_id, now))
            else:
                self._perform(self._machine.on_write_failed(bookie, entry_id, error, now))

        use = ConnectionPurpose.RECOVERY
        send_request(self._services, self._tasks, bookie, request, answered, use=use, request_id=self._request_id)

    def _forget(self, upto: int) -> None:
        for entry_id in [entry for entry in self._payloads if entry <= upto]:
            del self._payloads[entry_id]
        for shape in [shape for shape in self._packets if shape[0] <= upto]:
            del self._packets[shape]

    def _find_stand_ins(self, wanted: recovery_machine.FindStandIns) -> None:
        watcher = self._services.watcher
        for bookie in wanted.failed:
            watcher.quarantine(bookie)
        chosen = self._services.placement.replace(
            self._record.metadata.spec,
            wanted.ensemble,
            wanted.failed,
            watcher.candidates(),
            avoided=watcher.quarantined(),
        )
        self._perform(self._machine.on_stand_ins(chosen, self._loop.time()))

    async def _begin(self) -> None:
        """Write the state IN_RECOVERY, or find it written. After a write of unknown outcome read the metadata again."""
        try:
            while True:
                stored = self._record.versioned
                if stored.value.is_closed or (new := stored.value.begin_recovery()) == stored.value:
                    break
                try:
                    await self._record.write(new, stored)
                except (MetadataConflictError, *STORE_AWAY):
                    await self._reread()
        except BookKeeperError as error:
            self._perform(self._machine.on_store_failed(error, self._loop.time()))
            return
        self._begun = stored
        self._perform(self._machine.on_begun(stored.value, self._loop.time()))

    async def _close(self, end: recovery_machine.CloseRecovered) -> None:
        """Close by compare-and-set at the version that this recovery began with."""
        begun = self._begun
        try:
            new = begun.value.close_recovered(end.last_entry, end.length, end.fragments)
            metadata = await self._record.write(new, begun)
            effects = self._machine.on_closed(metadata, self._loop.time())
        except (MetadataConflictError, LedgerClosedError):
            effects = await self._adopt_stored()
        except STORE_AWAY:
            effects = await self._adopt_stored()  # what is stored decides, whoever wrote it
        except BookKeeperError as error:
            effects = self._machine.on_store_failed(error, self._loop.time())
        self._perform(effects)

    async def _adopt_stored(self) -> list[recovery_machine.Effect]:
        """Read what is stored and report it, after a close that lost or whose outcome is unknown."""
        try:
            await self._reread()
        except BookKeeperError as error:
            return self._machine.on_store_failed(error, self._loop.time())
        self._begun = self._record.versioned
        return self._machine.on_close_lost(self._record.metadata, self._loop.time())

    async def _reread(self) -> None:
        what = " is not recovered: the metadata store does not answer ({}); open or recover it again later"
        await refresh_until_answered(self._services, self._record, what)
