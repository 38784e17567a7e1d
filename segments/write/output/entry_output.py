"""Writes groups of appends to the stream, entry after entry and segment after segment.

    groups --> entries --> the open segment's ledger --> durable: the waiting callers get their results
                  ^                   |
                  |                   | a failed add, a roll
                  |                   v
               backlog  <---  the segment ends, the next one begins

While segments change, groups wait in the backlog. A failed add ends the segment without ending the writer: the ledger
is recovered, which decides about every entry under way. What the recovery found is durable; the rest is written again,
in order, to the next segment, and cannot appear in the old one any more.

A roll that fails is postponed, and the segment stays open. Another owner's claim ends this writer for good. So does an
entry that cannot be encoded, which is a bug: the waiting callers get an error, and nothing is written behind the gap.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final

from bookkeeper.amounts import counted
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookKeeperError, ClientClosedError, MetadataUnavailableError
from bookkeeper.outcome import Outcome
from segments.chain import PAGES_ROLL, StreamSegment
from segments.config import StreamConfig
from segments.error_translation import stream_error
from segments.errors import (
    OwnershipLostError,
    SegmentEmptyError,
    StreamClosedError,
    StreamCorruptError,
    StreamError,
    StreamInvariantError,
    StreamNotReadyError,
)
from segments.write.appends.grouping import Group
from segments.write.ledgers.ledger_allocator import LedgerAllocator
from segments.write.ledgers.open_segment import OpenSegment
from segments.write.output.changed_settings import ReadConfig, refresh_settings
from segments.write.output.entry_sender import EntrySender, OutputEvents
from segments.write.output.flight import Flight, OrderedGroup, fail_group, groups_of
from segments.write.segment.roll_waiters import RollWaiters
from segments.write.segment.rolling import RollReason, roll_limits
from segments.write.segment.segment_change import (
    EndedSegment,
    begin_segment,
    bug_error,
    close_ledger,
    recovered_end,
    release_stream,
    retry_until_reached,
)
from segments.write.segment.segment_machine import (
    Failover,
    SegmentMachine,
    outcome_of_rest,
    take_found,
    unsent,
)
from segments.write.state.stream_owner import StreamOwner, error_for_caller
from segments.write.state.write_state import WriteState

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, WriteHandle

_log = logging.getLogger(__name__)

AHEAD_S: Final = 1.0
"""The ledger of the next segment is made so long after a segment began: a writer that is closed sooner needs none."""


class EntryOutput:
    """The open end of a stream. Belongs to the loop that made it."""

    def __init__(
        self,
        client: BookKeeper,
        owner: StreamOwner,
        allocator: LedgerAllocator,
        state: WriteState,
        config: StreamConfig,
        tasks: Tasks,
        events: OutputEvents,
        location: str = "",
        read_config: ReadConfig | None = None,
    ) -> None:
        self._client, self._name, self._events = client, owner.node.name, events
        self._clock, self._rng = client.services.seams.clock, client.services.seams.rng
        self._broken = partial(bug_error, self._name)
        self.sender = EntrySender(client, self._name, state, config, events)
        self._machine = SegmentMachine(roll_limits(config))
        self._owner, self._allocator, self._tasks = owner, allocator, tasks
        self._location = location
        self._read_config = read_config
        self._loop = asyncio.get_running_loop()
        self._change: asyncio.Task[None] | None = None
        self._roll_waiters = RollWaiters()
        self._timer: asyncio.TimerHandle | None = None
        self._ahead: asyncio.TimerHandle | None = None

    @property
    def ended(self) -> StreamError | None:
        """Why nothing can be written any more."""
        return self._machine.ended

    def control(self) -> None:
        """Write an entry that lets readers see what is durable, unless the segment is changing."""
        if self._machine.is_open:
            self.sender.control()

    def submit(self, group: Group) -> None:
        """Write a group, now or as soon as a segment is open."""
        if self.ended is not None:
            self._refuse(group, self.ended)
        elif self._machine.take(group):
            try:
                self._append(group)
            except Exception as error:  # raised in a callback of the loop it would leave all callers waiting
                self._end(broken := self._broken(error))
                self._settle_unsent(group, broken)
                self._end_broken(broken)

    def _append(self, group: Group) -> None:
        if self.sender.append(group):
            self._written()

    def _settle_durable(self, flight: Flight) -> None:
        """An entry is durable: give its callers their results.

        Raises:
            StreamInvariantError: the entry could not be accounted for, which is a bug. Its callers have this error.
        """
        try:
            self.sender.on_durable(flight)
        except Exception as error:
            broken = self._broken(error, "is durable and was not taken note of")
            if flight.ordered is not None and flight.is_last:
                self._refuse(flight.ordered.group, broken, Outcome.APPLIED)
            raise broken from error

    def _on_acknowledged(self, flight: Flight) -> None:
        has_records = flight.ordered is not None and flight.is_last
        try:
            self._settle_durable(flight)
            if has_records and self.sender.config.flush.visibility == "control" and not self.sender.under_way:
                self.control()
        except Exception as error:
            self._end_broken(error if isinstance(error, StreamInvariantError) else self._broken(error))

    def _on_broken(self, error: BaseException) -> None:
        self._end_broken(self._broken(error, "failed in an unknown way"))

    def _end_broken(self, broken: StreamInvariantError) -> None:
        self._end(broken)
        self._tasks.start(self._settle_rest(broken), "end the writer")

    def _settle_unsent(self, group: Group, error: StreamError) -> None:
        """Refuse a group whose last entry was not sent: it is not in the stream, even if its earlier pieces are."""
        segment = self.sender.open_segment
        flights = segment.flights if segment is not None else ()
        own = [flight for flight in flights if flight.ordered is not None and flight.ordered.group is group]
        if unsent(own):
            for flight in own:
                flight.ordered = None
            self._refuse(group, error)

    def _written(self) -> None:
        self._machine.rolling.on_records(self._loop.time())
        if self._next_change() is not None:
            self._begin_change()
        elif self._timer is None:
            self._set_timer()

    async def begin(self, handle: WriteHandle, recovered: EndedSegment | None) -> None:
        """Start the first segment of this writer, on a ledger that was obtained; the step ends the last one of the
        former owner.

        Raises:
            OwnershipLostError, StreamUnavailableError, StreamConfigError, ChainStepError.
        """
        await self._begin(handle, recovered, patient=False)

    async def _begin(
        self,
        handle: WriteHandle,
        before: EndedSegment | None,
        again: Iterable[OrderedGroup] = (),
        *,
        patient: bool = True,
    ) -> None:
        room = self._owner.make_room
        await (retry_until_reached(room, f"room in the node of stream {self._name}") if patient else room())
        now_ms = self._clock.wall_ms()
        change = partial(begin_segment, segment=before, ledger_id=handle.id, now_ms=now_ms, location=self._location)
        step = partial(self._owner.step, change)
        chain = await (retry_until_reached(step, f"the next segment of stream {self._name}") if patient else step())
        self._allocator.mark_used()
        number = chain.recent[-1].number
        self._machine.on_open(number, self._loop.time(), self._rng.random())
        rest = deque(again)
        try:
            self.sender.begin_segment(
                OpenSegment(handle, number, self._on_acknowledged, self._on_failed, self._on_broken)
            )
        except Exception as error:
            broken = self._broken(error)
            for lost in rest:
                self._refuse(lost.group, broken)
            raise broken from error
        while rest or self._machine.waiting:  # nobody waits here: what ends this segment, too, does so at a later turn
            log = rest.popleft() if rest else None
            group = self._machine.next_waiting() if log is None else log.group
            try:
                if log is None:
                    self._append(group)
                else:
                    self.sender.write(log)
                    self._written()
            except Exception as error:
                self._end(broken := self._broken(error))
                for unsent in (group, *(log.group for log in rest)):
                    self._settle_unsent(unsent, broken)
                raise broken from error
        self._events.on_progress()
        if chain.removing:
            self._tasks.start(self._allocator.sweep(), "delete ledgers that are not needed")
        if self._ahead is not None:
            self._ahead.cancel()
        self._ahead = self._loop.call_later(AHEAD_S, self._allocator.prepare)

    def _on_failed(self, segment: OpenSegment[Flight], error: BookKeeperError) -> None:
        if self._machine.on_failed(segment.number):
            self._begin_change()

    def _begin_change(self) -> None:
        if not self._tasks.closed and self._machine.begin_change():
            self._change = self._tasks.start(self._changes(), "change the segment")

    async def _changes(self) -> None:
        """Do what is to be done to the segments, until nothing is."""
        try:
            while (what := self._next_change()) is not None:
                segment = self.sender.open_segment
                assert segment is not None
                await (self._replace(segment) if what is Failover.REPLACE else self._roll(segment, what))
        except StreamError as error:
            await self.fail(error)
        except Exception as error:
            await self.fail(self._broken(error))
        finally:
            self._end_change()
            self._set_timer()

    def _end_change(self) -> None:
        self._change = None
        self._machine.end_change()

    def _next_change(self) -> Failover | RollReason | None:
        return self._machine.next_change(self._loop.time(), self.sender.sent_records, self.sender.sent_bytes)

    async def _roll(self, segment: OpenSegment[Flight], reason: RollReason) -> None:
        """End the segment and start the next one, or postpone that."""
        try:
            await refresh_settings(self._name, self.sender, self._machine.rolling, self._allocator, self._read_config)
            handle = await self._allocator.obtain()
        except OwnershipLostError:
            raise
        except StreamError as error:
            self._put_off(error)
            return
        try:
            await self._owner.ensure_current()
            await self._owner.make_room()
            if len(self._owner.chain.pages) >= PAGES_ROLL:
                raise StreamNotReadyError(
                    f"stream {self._name} has {counted(self._owner.chain.count, 'segment')}, too many "
                    "to begin another one: "
                    "truncate it, and let segments be longer (its settings roll.…)"
                )
        except OwnershipLostError:
            self._allocator.give_back()
            raise
        except StreamError as error:
            self._allocator.give_back()
            self._put_off(error)
            return
        self._machine.stop()
        try:
            contents = await self._finish(segment)
        except BookKeeperError as error:
            self._allocator.give_back()
            segment.fail(error)
            return
        try:
            await self._begin(handle, contents)
        except BaseException:
            self._allocator.give_back()
            raise
        self.sender.metrics.rolled(reason).add()
        self._notify_roll_waiters(contents.number)

    async def _finish(self, segment: OpenSegment[Flight], *, patient: bool = True) -> EndedSegment:
        """Wait for the segment's entries, write its footer, close its ledger."""
        await segment.wait_until_durable()
        footer = self.sender.footer()
        await segment.wait_until_durable()
        await close_ledger(segment.handle, patient=patient)
        return self.sender.ended(footer)

    def _put_off(self, error: StreamError) -> None:
        self.sender.metrics.put_off.add()
        again = self._machine.rolling.put_off(self._loop.time()) - self._loop.time()
        number = self._machine.number
        _log.warning("segment %d of stream %s goes on: it could not be rolled: %s", number, self._name, error)
        self._roll_waiters.put_off(self._name, number, again, error)

    async def _replace(self, segment: OpenSegment[Flight]) -> None:
        """The ledger has failed: recover it, which decides about the entries under way, and start the next segment."""
        if isinstance(segment.failure, ClientClosedError):
            raise StreamClosedError(f"the client of stream {self._name} was closed: {segment.failure}")
        self.sender.metrics.failed.add()
        _log.warning("segment %d of stream %s ends: %s", segment.number, self._name, segment.failure)
        await retry_until_reached(self._owner.ensure_current, f"the node of stream {self._name}")
        unknown = await segment.abandon()
        end = partial(recovered_end, self._client, self._name, segment.number, segment.handle.id)
        last = await retry_until_reached(end, f"the end of segment {segment.number} of stream {self._name}")
        if last < self.sender.tally.last_entry:
            raise StreamCorruptError(
                f"segment {segment.number} of stream {self._name} ends at entry {last} after its recovery, but entry "
                f"{self.sender.tally.last_entry} was acknowledged",
                stream=self._name,
            )
        self._settle_recovered(unknown, last)
        obtain = partial(retry_until_reached, self._allocator.obtain, f"a ledger for stream {self._name}")
        handle = await obtain()
        try:
            await self._begin(handle, self.sender.ended(), groups_of(unknown))
        except BaseException:
            self._allocator.give_back()
            raise
        self._notify_roll_waiters(segment.number)

    def _settle_recovered(self, unknown: deque[Flight], last: int) -> None:
        """A recovery found the entries up to ``last``: they are durable. Raises StreamInvariantError, at the end."""
        broken: StreamInvariantError | None = None
        for flight in take_found(unknown, last):
            try:
                self._settle_durable(flight)
            except StreamInvariantError as error:
                broken = error
        if broken is not None:
            raise broken

    def roll(self) -> asyncio.Future[StreamSegment]:
        """End the segment now; the future gets it when it is completed."""
        roller: asyncio.Future[StreamSegment] = self._loop.create_future()
        if self.ended is not None:
            roller.set_exception(error_for_caller(self.ended, Outcome.REJECTED))
        elif not self._machine.request_roll(self.sender.sent_records):
            empty = f"segment {self._machine.number} of stream {self._name} has no records"
            roller.set_exception(SegmentEmptyError(empty))
        else:
            self._roll_waiters.add(roller)
            self._begin_change()
        return roller

    def _notify_roll_waiters(self, number: int) -> None:
        """The segment of this number ended. One without a durable record is not listed; its records were sent again."""
        self._roll_waiters.on_segment_ended(self._name, number, self._owner.chain.find(number), self.sender.segment)

    def _set_timer(self) -> None:
        """Set the timer for the next time at which the segment may be due."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wake = self._machine.wake_at(self.sender.sent_records, self.sender.sent_bytes)
        if wake is not None and not self._tasks.closed:
            self._timer = self._loop.call_at(wake, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._next_change() is not None:
            self._begin_change()
        else:
            self._set_timer()

    def check_owner(self) -> None:
        """The node may have changed: check whether another writer has claimed the stream."""
        if not self._tasks.closed and self._machine.begin_change():
            self._change = self._tasks.start(self._check_owner(), "check the stream's owner")

    async def _check_owner(self) -> None:
        try:
            await self._owner.ensure_current()
        except OwnershipLostError as error:
            await self.fail(error)
        except StreamError as error:
            _log.info("whether stream %s has another owner is not known now: %s", self._name, error)
        finally:
            self._end_change()
        if self._next_change() is not None:
            self._begin_change()

    async def fail(self, error: StreamError) -> None:
        """End for good with ``error``, and settle every pending append with its outcome. Returns when that is done; may
        be called again.
        """
        if self._end(error) or self._machine.waiting or self.sender.under_way:
            await self._settle(self.ended or error)

    def _end(self, error: StreamError) -> bool:
        """Accept nothing more. False: it had ended already."""
        if not self._machine.end(error):
            return False
        self._stop_timers()
        self._events.on_ended(error)
        return True

    async def _settle_rest(self, error: StreamError) -> None:
        if self._change is not None:
            self._change.cancel()
            await asyncio.wait([self._change])
        await self._settle(error)

    async def _settle(self, error: StreamError) -> None:
        if (segment := self.sender.open_segment) is not None:
            unknown = await segment.abandon()
            last = await self._owner.successor_end(error, segment.number) if unknown else None
            if last is not None:
                with suppress(StreamInvariantError):  # its callers have the error, and the writer ends in any case
                    self._settle_recovered(unknown, last)
            for log in groups_of(unknown):
                self._refuse(log.group, error, outcome_of_rest(last))
            unknown.clear()
        while (group := self._machine.next_waiting()) is not None:
            self._refuse(group, error)
        self._roll_waiters.fail(partial(error_for_caller, error, Outcome.UNKNOWN))

    def _refuse(self, group: Group, error: StreamError, outcome: Outcome = Outcome.REJECTED) -> None:
        fail_group(group, partial(error_for_caller, error, outcome))
        self._events.on_settled(group)

    async def close(self, *, complete: bool, seal: bool = False) -> None:
        """End the segment after everything is settled, and release the stream.

        Raises:
            StreamMetadataError: the metadata store is away; the next owner completes the segment. OwnershipLostError.
        """
        while self.ended is None and self._change is not None:
            await asyncio.wait([self._change])
        if self.ended is not None or (segment := self.sender.open_segment) is None:
            return
        self._machine.close()
        self._stop_timers()
        if not complete:
            await segment.abandon()
        else:
            await self._complete(segment, seal=seal)
        self._machine.end(StreamClosedError(f"the writer of stream {self._name} is closed", stream=self._name))

    async def _complete(self, segment: OpenSegment[Flight], *, seal: bool) -> None:
        try:
            last = await self._finish(segment, patient=False)
        except MetadataUnavailableError as error:
            raise stream_error(error, f"closing the last segment of stream {self._name}", self._name) from error
        except BookKeeperError as error:
            await self._owner.ensure_current()
            _log.warning(
                "the ledger of segment %d of stream %s is closed by recovery: %s", segment.number, self._name, error
            )
            unknown = await segment.abandon()
            self._settle_recovered(
                unknown, await recovered_end(self._client, self._name, segment.number, segment.handle.id)
            )
            last = self.sender.ended()
        change = partial(release_stream, segment=last, now_ms=self._clock.wall_ms(), seal=seal)
        await self._owner.step(change)

    async def abort(self, error: StreamError) -> None:
        """End at once: nothing is flushed, and waiting callers get an error. The next owner completes the segment."""
        if self._change is not None:
            self._change.cancel()
            await asyncio.wait([self._change])
        await self.fail(error)

    def _stop_timers(self) -> None:
        for timer in (self._timer, self._ahead):
            if timer is not None:
                timer.cancel()
        self._timer = self._ahead = None
