"""Performs what a ``LedgerWriter`` asks for, and reports to it what happened.

There is one ``match`` over the effects and one handler per report. :mod:`bookkeeper.ledger.write` decides everything
about quorums, order and the protocol's state.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, assert_never

from bookkeeper.client.bookie_request import failure_of
from bookkeeper.client.bookies.back_pressure import BackPressure
from bookkeeper.client.closing_advice import advise_closed
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.services import ClientServices
from bookkeeper.client.tasks import Tasks
from bookkeeper.client.write.add_channel import AddChannel
from bookkeeper.client.write.append_futures import AppendFutures
from bookkeeper.client.write.change_log import ChangeLog
from bookkeeper.client.write.incarnation_watch import pauses, watch_incarnation
from bookkeeper.client.write.lac_sender import LacSender
from bookkeeper.client.write.metadata_writes import STORE_AWAY, change_ensemble, choose_stand_ins, close_ledger
from bookkeeper.client.write.missing_copies import CATCH_UP_S
from bookkeeper.client.write.packets import Framing, Packets
from bookkeeper.client.write.pending_forces import PendingForces
from bookkeeper.client.write.repair_marks import RepairMarks
from bookkeeper.client.write.retry_pauses import RetryPauses
from bookkeeper.encryption import EntrySealer
from bookkeeper.errors import (
    BookKeeperError,
    ClientClosedError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    NoSuchLedgerError,
    in_words,
)
from bookkeeper.ids import BookieId
from bookkeeper.ledger import DigestScheme, LedgerMetadata
from bookkeeper.ledger import write as writer_machine
from bookkeeper.ledger.write import LedgerWriter
from bookkeeper.net.connection import AddRun
from bookkeeper.seams import Buffer
from bookkeeper.wire import Dialect, Reply, Status, error_of
from bookkeeper.wire import ForceLedger as ForceRequest

_log = logging.getLogger(__name__)

# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_OK: Final = Status.OK


def _always() -> bool:
    return True


def _nothing() -> None: ...


class WriterShell:
    """The writer of one ledger with its channels, packets and timer. :class:`WriteHandle` stands in front of it."""

    def __init__(
        self,
        services: ClientServices,
        record: LedgerView,
        digest: DigestScheme,
        append_futures: AppendFutures,
        *,
        sealer: EntrySealer | None = None,
        deferred_sync: bool = False,
    ) -> None:
        self.services = services
        self.record = record
        self.writer = LedgerWriter(record.metadata, services.config.writer(deferred_sync=deferred_sync))
        self.closing: asyncio.Future[None] | None = None
        self.is_idle: Callable[[], bool] = _always
        """Says whether the handle has no appends that it has not yet given to this shell."""
        self.on_progress: Callable[[], None] = _nothing
        """Called when entries were confirmed or failed, so that there may be room again."""
        self.on_close_ended: Callable[[], None] = _nothing
        """Called when a close has succeeded or failed."""
        self._loop = asyncio.get_running_loop()
        self._sealer = sealer
        self._append_futures = append_futures
        self._spec = record.metadata.spec
        self._tail = services.tails.begin(record.ledger_id)
        self._unencoded: Sequence[Buffer] = ()
        self._deferred = deferred_sync
        self._forces = PendingForces()
        self._stream_id = services.streams.next()
        dialect = Dialect.V2 if services.config.protocol == "v2" else Dialect.V3
        framing = Framing(dialect, record.ledger_id, digest, self._stream_id, deferred_sync)
        self._packets = Packets(self._spec, framing)
        self._channels: dict[BookieId, AddChannel] = {}
        self._watches: dict[BookieId, tuple[asyncio.Task[None], asyncio.Event]] = {}
        self._back_pressure = BackPressure(self._loop, services.seams.rng, self._send_again)
        self._retry_pauses = RetryPauses(partial(pauses, services))
        self._change_log = ChangeLog(record.ledger_id)
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False
        self._caught_up: asyncio.Event | None = None
        """Made when the ledger is closed and a bookie lags; set when none does any more."""
        self._tasks = Tasks(f"ledger {record.ledger_id}", on_error=self._on_broken)
        self._marks = RepairMarks(services, record.ledger_id, self._tasks)
        self._lac_sender = LacSender(
            services, record.ledger_id, digest, self.writer, self._tasks, lambda: self.is_idle()
        )
        self._stop_listening = services.watcher.on_appeared(self._on_appeared)
        self._confirmed = services.metrics.counter("entries_confirmed", "Appends that were acknowledged")
        self._changes = services.metrics.counter("ensemble_changes", "Ensemble changes that were committed")
        self._missed = services.metrics.counter("ledgers_underreplicated", "Ledgers closed with copies missing")

    # -- commands -----------------------------------------------------------------------------------------

    def open_channels(self) -> None:
        """Connect to the ensemble ahead of the first append."""
        for position, bookie in enumerate(self.record.metadata.last_fragment.ensemble):
            self._channel(bookie, position)

    def add(self, payloads: Sequence[Buffer], futures: Sequence[asyncio.Future[Any]] = ()) -> None:
        """Give the machine a run. It chooses the ids; each future gets one. Of an encrypted ledger it gets, and sends,
        what was sealed: sizes and lengths are those.

        Raises: the error that ended the handle.
        """
        writer = self.writer
        if self._sealer is not None and writer.error is None:
            try:
                payloads = self._sealer.seal(writer.progress.next_entry, payloads)
            except Exception as error:  # nothing of it was sent, and nothing can follow
                self._append_futures.expect_each(writer.progress.next_entry, futures)
                self._on_broken(error)
                return
        alone = len(payloads) == 1 and not writer.progress.pending_bytes
        first, effects = writer.add(list(map(len, payloads)), self._loop.time())
        self._append_futures.expect_each(first, futures)
        self._unencoded = payloads
        self._perform(effects, alone=alone)

    async def force(self) -> None:
        """Make durable what is acknowledged now. Raises: as ``WriteHandle.force``."""
        number, effects = self.writer.force(self._loop.time())
        future = self._forces.expect(number)
        self._perform(effects)
        await future

    async def close(self, *, force: bool) -> None:
        """Close the ledger. All callers share one future. Raises: as ``WriteHandle.close``."""
        ended = self.closing is not None and self.closing.done()
        if self.closing is None or (ended and self.writer.may_close_again(self.closing.exception(), force=force)):
            effects = self.writer.close(self._loop.time(), force=force)
            self.closing = self._loop.create_future()
            self.closing.add_done_callback(self._on_close_ended)
            self._perform(effects)
        config = self.services.config
        limit_ms = 2 * config.metadata_timeout_ms + (config.force_timeout_ms if self._deferred else 0)
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await asyncio.shield(self.closing)
        except TimeoutError:
            raise MetadataUnavailableError(
                f"ledger {self.record.ledger_id} could not be closed: an ensemble change that comes first waits for "
                "the metadata store; a recovery (bk ledger recover, or open_ledger) will close the ledger"
            ) from None
        finally:
            if self.closing.done():
                await self.end(ClientClosedError("the ledger handle is closed"))

    def _on_close_ended(self, closing: asyncio.Future[None]) -> None:
        """Stop this shell, also if nobody waits for the close any more: nothing of this handle stays in the client."""
        closing.exception()  # marks it as read, so that asyncio logs nothing
        self.stop(ClientClosedError("the ledger handle is closed"))
        self.on_close_ended()
        self._detach_handle()

    async def end(self, error: BookKeeperError) -> None:
        """Stop everything and give ``error`` to callers that still wait. The ledger stays as it is. Idempotent.

        A close that is under way ends, too, with an unknown outcome.
        """
        self.stop(error)
        await self._tasks.close()
        self._tasks.leave()
        if self.closing is None:
            self._detach_handle()
        elif not self.closing.done():
            self.closing.set_exception(
                ClientClosedError(
                    f"the handle of ledger {self.record.ledger_id} was abandoned while it closed the ledger; the "
                    "metadata say whether it is closed, and a recovery (bk ledger recover, or open_ledger) closes it"
                )
            )

    def _detach_handle(self) -> None:
        """Drop the callbacks to the handle, so that handle and shell are no cycle and are freed with the last
        reference: a cycle of about a hundred objects for each ledger would be left to the collector."""
        self.is_idle, self.on_progress, self.on_close_ended = _always, _nothing, _nothing
        self._back_pressure.end()

    def stop(self, error: BookKeeperError) -> None:
        """The part of ``end`` that does not wait. An ensemble change or close that is under way goes on."""
        if self._ended:
            return
        self._ended = True
        self.services.tails.end(self.record.ledger_id)
        self._stop_listening()
        self._back_pressure.stop()
        self._lac_sender.stop()
        if self._timer is not None:
            self._timer.cancel()
        for channel in self._channels.values():
            channel.detach()
        self._channels.clear()
        for task, _ in self._watches.values():
            task.cancel()
        self._watches.clear()
        self._append_futures.fail(self.writer.progress.last_acknowledged + 1, error)
        self._forces.fail_all(error)
        self._packets.drop_all()
        self.on_progress()

    # -- effects ------------------------------------------------------------------------------------------

    def _perform(self, effects: Iterable[writer_machine.Effect], *, alone: bool = False) -> None:
        for effect in effects:
            match effect:
                case writer_machine.SendAdds():
                    channel = self._channel(effect.bookie, effect.position)
                    pieces = self._packets.frames(effect.position, effect.first, effect.count)
                    for piece in pieces:
                        channel.send(piece, alone=alone and len(pieces) == 1)
                case writer_machine.Confirm():
                    self._confirmed.value += effect.count
                    self._append_futures.confirm(effect.first + effect.count)
                    self._tail.confirm(self.writer.progress.last_add_confirmed)
                    self.on_progress()
                case writer_machine.Release():
                    self._packets.release(self._releasable(effect.upto) if self._back_pressure else effect.upto)
                case writer_machine.Encode():
                    self._encode(effect)
                case writer_machine.PublishLac():
                    self._lac_sender.publish_soon(effect)
                case writer_machine.WakeAt():
                    if self._timer is not None:
                        self._timer.cancel()
                    self._timer = self._loop.call_at(effect.time, self._on_tick)
                case writer_machine.FailAdds():
                    self._append_futures.fail(effect.first, effect.error)
                case writer_machine.ChangeEnsemble():
                    self._tasks.start(self._change_ensemble(effect), "ensemble change")
                case writer_machine.WatchIncarnation():
                    self._watch_incarnation(effect.bookie)
                case writer_machine.SendForce():
                    self._send_force(effect)
                case writer_machine.ForceDone():
                    self._forces.done(effect.number)
                    self._tail.confirm(self.writer.progress.last_add_confirmed)
                case writer_machine.ForceFailed():
                    self._forces.fail(effect.error, effect.number)
                case writer_machine.CloseFailed():
                    assert self.closing is not None
                    if not self.closing.done():
                        self.closing.set_exception(effect.error)
                case writer_machine.ResumeCallers():
                    self.on_progress()
                case writer_machine.CloseMetadata():
                    self._tasks.start(self._close_metadata(effect), "close")
                case writer_machine.MarkMissing():
                    self._marks.missing.note(effect.bookie, effect.first, effect.last)
                    if self.closing is None:  # at once: this writer may never close
                        self._marks.mark_soon()
                case _:
                    assert_never(effect)

    def _encode(self, run: writer_machine.Encode) -> None:
        payloads, self._unencoded = self._unencoded, ()
        assert len(payloads) == run.count
        self._packets.encode(run, payloads)
        self._tail.keep(run.first, payloads)

    def _channel(self, bookie: BookieId, position: int) -> AddChannel:
        channel = self._channels.get(bookie)
        if channel is None:
            channel = self._channels[bookie] = self._new_channel(bookie, position)
            channel.open()
        return channel

    def _new_channel(self, bookie: BookieId, position: int) -> AddChannel:
        adds = (self._stream_id, self.record.ledger_id, self._spec)
        callbacks = (self._on_replies, self._on_channel_failed)
        channel = AddChannel(self.services.pool, self._tasks, bookie, position, *adds, *callbacks)
        return self._change_log.track(channel)

    def _send_force(self, force: writer_machine.SendForce) -> None:
        bookie, number = force.bookie, force.number

        def answered(reply: Reply | BookKeeperError) -> None:
            now = self._loop.time()
            error = failure_of(reply, f"force of ledger {self.record.ledger_id} on {bookie}")
            if error is None:
                self._report(self.writer.on_forced(bookie, number, now))
            else:
                self._report(self.writer.on_force_failed(bookie, number, error, now))

        def send() -> None:
            channel = self._channels.get(bookie)
            if channel is not None:
                limit_s = 2 * self.services.config.force_timeout_ms / 1000  # the machine's own limit comes first
                channel.request(ForceRequest(self.record.ledger_id), limit_s, answered)

        if force.after_s:
            self._loop.call_later(force.after_s, send)
        else:
            send()

    def _watch_incarnation(self, bookie: BookieId) -> None:
        """Forget what was sent to this bookie, and wait for it to come back."""
        if (channel := self._channels.pop(bookie, None)) is not None:
            channel.drop()
        self._unwatch(bookie)
        self._back_pressure.forget(bookie)
        self.services.watcher.quarantine(bookie)
        delays = self._retry_pauses.on_failed(bookie, self._loop.time())
        news = asyncio.Event()
        task = self._tasks.start(self._await_return(bookie, news, delays), f"wait for {bookie}")
        self._watches[bookie] = (task, news)

    def _unwatch(self, bookie: BookieId) -> None:
        task, _ = self._watches.pop(bookie, (None, None))
        if task is not None:
            task.cancel()

    # -- reports ------------------------------------------------------------------------------------------

    def _on_replies(self, channel: AddChannel, batch: list[AddRun]) -> None:
        now = self._loop.time()
        writer = self.writer
        for first, count, status in batch:
            if status is _OK:
                if self._back_pressure:
                    self._back_pressure.on_accepted(channel.bookie, first, count)
                if effects := writer.on_acks(channel.bookie, first, count, now):
                    self._perform(effects)
                    if channel.closed:  # an effect dropped it: nothing is sent to it any more
                        return
                continue
            if status is Status.TOO_MANY_REQUESTS:
                self._back_pressure.on_refused(channel.bookie, first, count)
                continue
            where = f"add of entry {first} to ledger {self.record.ledger_id} on {channel.bookie}"
            self._report(writer.on_bookie_failed(channel.bookie, error_of(status, where), now))
            if channel.closed:
                return
        if self._caught_up is not None and not writer.is_lagging:
            self._caught_up.set()

    def _releasable(self, upto: int) -> int:
        lowest = self._back_pressure.lowest
        return upto if lowest is None else min(upto, lowest - 1)

    def _send_again(self, bookie: BookieId, first: int, count: int) -> bool:
        kept_from = self._packets.first
        if kept_from is None:
            kept_from = self.writer.progress.next_entry
        effects = self.writer.send_again(bookie, first, count, kept_from)
        self._report(effects)
        return any(isinstance(effect, writer_machine.SendAdds) for effect in effects)

    def _on_channel_failed(self, channel: AddChannel, error: BookKeeperError) -> None:
        self._report(self.writer.on_bookie_failed(channel.bookie, error, self._loop.time()))

    def _on_tick(self) -> None:
        self._timer = None
        self._report(self.writer.on_tick(self._loop.time()))

    def _on_appeared(self, bookies: frozenset[BookieId]) -> None:
        for bookie in sorted(bookies):
            if bookie in self._watches:
                self._watches[bookie][1].set()
        self._report(self.writer.on_spares_changed(self._loop.time()))

    async def _change_ensemble(self, change: writer_machine.ChangeEnsemble) -> None:
        def choose(metadata: LedgerMetadata, failed: Sequence[BookieId]) -> dict[BookieId, BookieId]:
            return dict(choose_stand_ins(self.services, metadata, failed))

        result = await change_ensemble(self.services, self.record, change, choose)
        now = self._loop.time()
        if isinstance(result, writer_machine.ChangeFailure):
            self._change_log.log_failed(change.failed, result)
            self._report(self.writer.on_change_failed(result, now))
            return
        self._changes.add()
        members = result.last_fragment.ensemble
        self._change_log.log_changed(change.first_entry, members, change.failed)
        for bookie in [bookie for bookie in self._channels if bookie not in members]:
            self._channels.pop(bookie).drop()
            self._back_pressure.forget(bookie)
        for bookie in [bookie for bookie in self._watches if bookie not in members]:
            self._unwatch(bookie)
        self._report(self.writer.on_ensemble_changed(result, now))

    async def _await_return(self, bookie: BookieId, news: asyncio.Event, delays: Iterator[float]) -> None:
        try:
            connection, metadata = await watch_incarnation(self.services, self.record, bookie, news, delays)
        except NoSuchLedgerError:
            self._report(self.writer.on_change_failed(writer_machine.ChangeFailure.DELETED, self._loop.time()))
            return
        self._watches.pop(bookie, None)
        self._retry_pauses.on_returned(bookie, self._loop.time())
        self._change_log.log_returned(bookie)
        ensemble = metadata.last_fragment.ensemble
        if bookie in ensemble and bookie not in self._channels:
            channel = self._channels[bookie] = self._new_channel(bookie, ensemble.index(bookie))
            channel.open(connection)
        self._report(self.writer.on_bookie_returned(bookie, metadata, self._loop.time()))

    async def _close_metadata(self, end: writer_machine.CloseMetadata) -> None:
        assert self.closing is not None
        for bookie, first, last in self._back_pressure.pending():
            if first <= end.last_entry:
                self._marks.missing.note(bookie, first, min(last, end.last_entry))
        self._back_pressure.stop()
        timeout_s = self.services.config.metadata_timeout_ms / 1000
        try:
            metadata = await close_ledger(self.services, self.record, end.last_entry, end.length, timeout_s)
        except BookKeeperError as error:
            self._report(self.writer.on_close_failed(error, self._loop.time()))
            if not self.closing.done():
                self.closing.set_exception(error)
            return
        away = bool(self._marks.missing)
        await self._await_lagging()
        if self.writer.progress.next_entry:  # of a ledger without any entry no bookie has heard
            advise_closed(self.services, self.record.ledger_id, metadata.last_fragment.ensemble)
        self._report(self.writer.on_closed(metadata, self._loop.time()))
        if self._marks.missing:
            self._missed.add()
            text = "ledger %d is closed, and copies are missing or not acknowledged yet; it is marked for repair: %s"
            _log.log(logging.WARNING if away else logging.INFO, text, self.record.ledger_id, self._marks.missing)
            await self._marks.mark()
        if not self.closing.done():
            self.closing.set_result(None)

    async def _await_lagging(self) -> None:
        """Wait up to ``CATCH_UP_S`` for the acknowledgements of lagging bookies, which are usually on their way."""
        if self.writer.is_lagging:
            self._caught_up = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CATCH_UP_S):
                    await self._caught_up.wait()

    def _report(self, effects: Iterable[writer_machine.Effect]) -> None:
        """Perform the effects of an event. If it ended the writer, stop this shell."""
        self._perform(effects)
        if self.writer.error is not None and self.closing is None:
            self.stop(self.writer.error)

    def fail(self, error: BookKeeperError) -> None:
        """Accept and confirm nothing from now on, because of ``error``."""
        self._perform(self.writer.on_broken(error))
        self.stop(error)

    def refresh_metadata(self) -> None:
        """Read the metadata, which may have changed while the session with their store was in doubt."""
        if not self._ended and self.closing is None:
            self._tasks.start(self._check_deleted(), "read the metadata")

    async def _check_deleted(self) -> None:
        try:
            await self.record.refresh()
        except NoSuchLedgerError:
            self._report(self.writer.on_change_failed(writer_machine.ChangeFailure.DELETED, self._loop.time()))
        except STORE_AWAY:
            pass  # the client reads again when its session has returned

    def _on_broken(self, error: BaseException) -> None:
        """Stop this handle, because one of its tasks ended with an unexpected error."""
        if isinstance(error, MetadataRolledBackError):
            _log.critical("the writers and readers of this process stop: %s", error)
            self.services.metadata.present.alarm = error  # the error concerns every user of these metadata
            if self.closing is not None and not self.closing.done():
                self.closing.set_exception(error)
            return self.fail(error)
        text = "the writer of ledger %d stops because of an unexpected error; a recovery will decide where it ends"
        _log.error(text, self.record.ledger_id, exc_info=error)
        failure = ClientClosedError(
            f"the writer of ledger {self.record.ledger_id} stopped because of an unexpected error, which its log shows "
            f"({type(error).__name__}: {in_words(error)}); a recovery will decide where the ledger ends"
        )
        failure.__cause__ = error
        if self.closing is not None and not self.closing.done():
            self.closing.set_exception(failure)
        self.fail(failure)  # otherwise it would accept appends that nobody sends
        return None
