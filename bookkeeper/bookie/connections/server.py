"""The shell around :class:`~bookkeeper.bookie.bookie.Bookie`: connections in, frames cut, replies out.

The life of a plain add: a chunk arrives in a connection's buffer; ``runs.split_adds`` cuts it into runs with their disk
records and their replies; the bookie's rules look at each run once; the engine takes the records; when their group
is durable, the replies of the chunk leave in one write. Those of deferred adds leave when the engine has the records
(W11). Frames that are no plain adds go, in their place in the order, through the wire's codec to ``Bookie.handle``.

A peer is never waited for: whoever sends faster than the disk takes, or asks for more than it reads, is not read
until there is room (X32); whoever sends nonsense, or a frame too slowly, loses the connection (X30, X34).
"""

from __future__ import annotations

import asyncio
import logging
from array import array
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from bookkeeper import codec, wire
from bookkeeper.bookie.bookie import Bookie
from bookkeeper.bookie.connections.admission import Admission
from bookkeeper.bookie.connections.request_log import ANSWERED, SLOW_S, RequestLog
from bookkeeper.bookie.identity.stale_adds import StaleAdds
from bookkeeper.codec import Adds, Reads, Run
from bookkeeper.errors import MalformedFrameError
from bookkeeper.ids import LedgerId
from bookkeeper.metrics import Counter as Counted
from bookkeeper.metrics import Metrics
from bookkeeper.net.frame_protocol import FrameProtocol
from bookkeeper.net.receive_memory import NO_LIMIT, RECEIVE_BUFFER, ReceiveMemory
from bookkeeper.wire import Dialect, Status

log = logging.getLogger(__name__)

READ_CHARGE: Final = 16 * 1024
"""Bytes a single read is charged with while it is in progress: its reply's size is not known before."""

UNSENT_HIGH: Final = 4 * 1024 * 1024
"""Bytes of replies a peer may leave unread before its requests are no longer looked at."""

TYPICAL_REPLY: Final = 64 * 1024
"""Bytes a reply is thought to have before the first one tells; it bounds what may wait for the disk at once."""

SWEEP_S: Final = 5.0
"""Seconds between two looks for peers that are too slow."""

CROWDED_FRAME_S: Final = 2.0
"""Seconds a peer may take for the rest of a large frame while others wait for the memory that it holds."""

CROWDED_SWEEP_S: Final = 0.5
"""Seconds between two looks meanwhile."""

CROWD: Final = 500
"""So many connections that have ended are worth giving memory back."""

CROWD_BYTES: Final = 16 * 1024 * 1024
"""So many bytes of unfinished frames that are gone are worth it."""

LOG_GAP_S: Final = 1.0
"""Least time between two log lines about misbehaving peers (X38)."""


class ServerMetrics:
    """What a server counts; per chunk and per request that is no plain add, never per add."""

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self._requests: dict[tuple[wire.Operation, Status], Counted] = {}
        self.adds = metrics.counter("adds_total", "Plain adds accepted.")
        self.adds_deferred = metrics.counter("adds_deferred_total", "Of them, those answered before they are durable.")
        self.add_runs = metrics.counter("add_runs_total", "Runs of consecutive plain adds accepted.")
        self.add_bytes = metrics.counter("add_bytes_total", "Bytes of entries accepted by plain adds.")
        self.adds_refused = metrics.counter("adds_refused_total", "Plain adds refused.")
        self.add_seconds = metrics.histogram(
            "add_seconds", "Arrival of a chunk of adds to its replies, deferred ones apart."
        )
        self.connections = metrics.gauge("connections", "Open connections.")
        self.connections_refused = metrics.counter("connections_refused_total", "Connections over a limit.")
        self.malformed = metrics.counter("malformed_frames_total", "Connections ended for what they sent.")
        self.too_slow = metrics.counter("slow_peers_total", "Connections ended for their slowness.")

    def request(self, op: wire.Operation, status: Status) -> None:
        """Count a request that went the general way."""
        counter = self._requests.get((op, status))
        if counter is None:
            text = "Requests that are no plain adds, by outcome."
            counter = self.metrics.counter("requests_total", text, op=op.name.lower(), status=status.name)
            self._requests[op, status] = counter
        counter.value += 1

    def reads_found(self, count: int) -> None:
        """Count reads that were answered at once, like those that went the general way."""
        self.request(wire.Operation.READ, Status.OK)
        self._requests[wire.Operation.READ, Status.OK].value += count - 1


class ServerConnection(FrameProtocol):
    """One client's connection."""

    def __init__(self, server: Connections) -> None:
        super().__init__(frame_max=server.frame_max, unsent_high=UNSENT_HIGH, memory=server.memory)
        self.server = server
        self.bookie = server.bookie
        self.admission = server.admission
        self.counts = server.counts
        self.detector = wire.DialectDetector()
        self.host = ""
        self.partial_since: float | None = None
        """Since when an unfinished frame is all there is (X34)."""
        self.stalled_since: float | None = None
        """Since when the peer does not take its replies."""
        self._polls: dict[Callable[[wire.Reply], None], None] = {}
        """Long polls that wait: they end with the connection."""
        self._waiting = 0
        """Requests (long polls apart) that will be answered later."""
        self._typical = TYPICAL_REPLY
        """Bytes a reply to one of them may have, going by the latest."""
        self._stopped = False
        """Not read until one of them is answered."""
        self._brought = False
        """This chunk held requests that have no reserve: whoever only fences and recovers is always read (X33)."""
        self._reads = False
        """The chunk before began with plain reads."""
        self._now: Callable[[], float] = lambda: 0.0

    # -- the connection's life ----------------------------------------------------------------------------

    def on_open(self) -> None:
        assert self._transport is not None
        assert self._loop is not None
        self._now = self._loop.time
        name = self._transport.get_extra_info("peername")
        self.host = self.account = str(name[0]) if isinstance(name, tuple) and name else ""
        if not self.server.opened(self):
            self.abort()

    def on_closed(self, error: BaseException | None) -> None:
        self.admission.forget(self)
        self.server.ended(self, error)
        for reply in list(self._polls):
            self.bookie.drop_poll(reply)

    def on_writable(self, writable: bool) -> None:
        """A peer that does not read its replies is not read either."""
        if writable:
            self.stalled_since = None
            self.resume_reading()
        else:
            self.stalled_since = self._now()
            self.pause_reading()

    # -- requests -----------------------------------------------------------------------------------------

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        used = start
        if self._reads:  # like the chunk before
            used = self._take_reads(buffer, start, end)
            self._reads = used > start
        if used < end and not self.reading_paused:
            used = self._take_frames(buffer, used, end)
        if used > start or self.partial_since is None:
            self.partial_since = self._now() if used < end else None
        brought, self._brought = self._brought, False
        if brought and self.admission.crowded and not self.closed and self.admission.wait(self, self.resume_reading):
            self.pause_reading()
        return used - start

    def _take_frames(self, buffer: bytearray, start: int, end: int) -> int:
        """Whatever frames there are; where those begin that are left.

        Raises:
            MalformedFrameError: the next one is none.
        """
        adds = codec.split_adds(buffer, start, end, self.frame_max, self.detector.v2, self.server.scratch)
        assert not adds.full, "a record is smaller than its frame"
        used = adds.used
        if not adds.slow:
            self.detector.v2 = adds.v2
            if adds.runs:
                self._take(adds, 0, len(adds.runs))
        else:
            used = self._in_order(buffer, adds)
        if adds.error is not None and used == adds.used:
            raise adds.error
        return used

    def pause_reading(self) -> None:
        self.partial_since = None  # the peer is not to blame for what we do not read
        super().pause_reading()

    def _in_order(self, buffer: bytearray, adds: Adds) -> int:
        """Runs and other frames in the order in which they came; stop early when too many replies are unread."""
        done = used = 0
        for (frame_start, frame_end), after in zip(adds.slow, adds.slow_after, strict=True):
            if frame_start < used:
                continue  # a read among those that were taken together
            if after > done:  # first: what is returned below counts them as used
                self._take(adds, done, after)
                done = after
            if self.unsent + self._waiting * self._typical > UNSENT_HIGH and self._loop is not None:
                self._stop(self._loop)
                return frame_start - 4
            used = self._take_reads(buffer, frame_start - 4, adds.used)
            if self.reading_paused:
                return used
            if used < frame_start:
                self._general(bytes(memoryview(buffer)[frame_start:frame_end]))
            else:
                self._reads = True
        if len(adds.runs) > done:
            self._take(adds, done, len(adds.runs))
        self.detector.v2 = adds.v2
        return adds.used

    def _stop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at no more requests until replies have left; what is left of the chunk is cut again then."""
        self.pause_reading()
        if self._waiting:
            self._stopped = True
        else:
            loop.call_soon(self.resume_reading)  # after the flush: a slow peer is paused again by then

    def _replied(self, size: int) -> None:
        """One of those that waited is answered with ``size`` bytes."""
        self._waiting -= 1
        self._typical = max(size, self._typical - self._typical // 8, 1024)
        if self._stopped and (not self._waiting or self.unsent + self._waiting * self._typical <= UNSENT_HIGH):
            self._stopped = False
            self.resume_reading()

    def _take(self, adds: Adds, first_run: int, end_run: int) -> None:
        """Hand runs to the bookie; their replies leave when they are durable, of deferred ones and refusals at once."""
        chosen = adds.runs[first_run:end_run]
        i0, i1 = chosen[0].i0, chosen[-1].i1
        charge = adds.record_ends[i1 - 1] - (adds.record_ends[i0 - 1] if i0 else adds.record_start)
        counts = self.counts
        self._brought = True
        if not self.admission.admit(charge):
            counts.adds_refused.add(i1 - i0)
            self.write(codec.fail_acks(adds.acks, adds.ack_ends, i0, i1, Status.TOO_MANY_REQUESTS))
            return
        stale_adds = self.bookie.stale_adds
        if stale_adds is not None:
            chosen, charge = self._ask_first(stale_adds, adds, chosen, charge)
        if chosen:
            self._store(adds, chosen, charge)

    def _ask_first(self, stale_adds: StaleAdds, adds: Adds, chosen: list[Run], charge: int) -> tuple[list[Run], int]:
        """Set the runs aside whose ledgers metadata must vouch for (W10a); the others, and their charge."""
        rest: list[Run] = []
        for run in chosen:
            if not stale_adds.must_ask(LedgerId(run.ledger_id)):
                rest.append(run)
                continue
            alone = _alone(adds, run)
            charge -= len(alone.records)
            stale_adds.ask(LedgerId(run.ledger_id), partial(self._vouched, alone))
        return rest, charge

    def _vouched(self, adds: Adds, status: Status) -> None:
        """A run that waited: store it, or refuse it."""
        charge, count = len(adds.records), len(adds.ack_ends)
        if status is Status.OK:
            self._store(adds, adds.runs, charge)
            return
        self.admission.release(charge)
        self.counts.adds_refused.add(count)
        self.write(codec.fail_acks(adds.acks, adds.ack_ends, 0, count, status))

    def _store(self, adds: Adds, chosen: list[Run], charge: int) -> None:
        """What admission and metadata have let in."""
        counts = self.counts
        taken: list[tuple[int, int]] = []
        stored: list[tuple[int, int]] = []
        accepted = refused = deferred = 0
        for run in chosen:
            status = self.bookie.add_run(run, adds)
            if status is Status.OK:
                accepted += run.i1 - run.i0
                if run.deferred:
                    deferred += run.i1 - run.i0
                    _extend(stored, run)
                else:
                    _extend(taken, run)
            else:
                refused += run.i1 - run.i0
                self.server.requests.run(self.host, run, adds.entry_ids[run.i0], status, 0.0)
                self.write(codec.fail_acks(adds.acks, adds.ack_ends, run.i0, run.i1, status))
        counts.adds_refused.value += refused
        if not accepted:
            self.admission.release(charge)
            return
        counts.adds.value += accepted
        counts.add_runs.value += len(chosen)
        counts.add_bytes.value += charge
        if stored:
            counts.adds_deferred.add(deferred)
            self.write(_cut(adds, stored))
            if not taken:
                self.admission.release(charge)
                self.bookie.engine.start_writing()
                return
        begun = self._now()

        def durable(error: BaseException | None) -> None:
            self.admission.release(charge)
            took = self._now() - begun
            if error is None:
                self.write_alone(_cut(adds, taken))
                counts.add_seconds.observe(took, accepted - deferred)
                if took >= SLOW_S:
                    self.server.requests.run(self.host, chosen[0], adds.entry_ids[chosen[0].i0], Status.OK, took)
                return
            self.server.requests.run(self.host, chosen[0], adds.entry_ids[chosen[0].i0], Status.IO_ERROR, took)
            for first, last in taken:  # whether they are stored nobody knows
                self.write(codec.fail_acks(adds.acks, adds.ack_ends, first, last, Status.IO_ERROR))

        self.bookie.engine.when_durable(durable)

    def _take_reads(self, buffer: bytearray, start: int, end: int) -> int:
        """Answer the plain reads that the bytes begin with; where those begin that are left.

        What is at hand is answered in runs, the others go the general way, in their place in the order. Stops early
        when too many replies are unread: reading is paused then.
        """
        reads = codec.split_reads(buffer, start, end, self.frame_max, self.detector.v2)
        at, done, count = start, 0, len(reads.ends)
        while done < count and not self.reading_paused:
            if self.unsent + self._waiting * self._typical > UNSENT_HIGH and self._loop is not None:
                self._stop(self._loop)
                break
            if answered := self._answer_at_hand(reads, done, reads.ends[done] - at):
                done += answered
            else:
                self._general(bytes(memoryview(buffer)[at + 4 : reads.ends[done]]))
                done += 1
            at = reads.ends[done - 1]
        return at

    def _answer_at_hand(self, reads: Reads, first: int, size: int) -> int:
        """Answer the reads from ``first`` on (whose frame has ``size`` bytes) that need not wait; how many."""
        if not self.admission.has_room(size + READ_CHARGE):
            return 0
        try:
            answers = self.bookie.engine.answer_at_hand(reads, first, self.frame_max)
        except Exception:  # met again, and told, on the general way
            return 0
        if answers is None or not answers.n:
            return 0
        self.detector.v2 = reads.v2
        self._brought = True
        self._typical = max(len(answers.frames) // answers.n, self._typical - self._typical // 8, 1024)
        self.counts.reads_found(answers.n)
        self.write_alone(answers.frames)
        return answers.n

    def _general(self, body: bytes) -> None:
        """One frame that is no plain add.

        Raises:
            MalformedFrameError: it is no request at all.
        """
        decoded = self.detector.decode(body)
        if isinstance(decoded, wire.RefusedFrame):
            self.counts.request(decoded.header.op, decoded.status)
            self.server.requests.request(self.host, decoded.header, None, decoded.status, 0.0)
            self.write(decoded.frame)
            return
        header, request = decoded
        charge = len(body) + _reply_charge(request)
        reserved = _goes_first(header, request)
        self._brought = self._brought or not reserved
        if not self.admission.admit(charge, reserved=reserved):
            self.server.requests.request(self.host, header, request, Status.TOO_MANY_REQUESTS, 0.0)
            self._answer(header, wire.failure(request, Status.TOO_MANY_REQUESTS))
            return
        begun = self._now()
        answered = False
        counted = not (isinstance(request, wire.ReadEntry) and request.long_poll)
        self._waiting += counted

        def reply(answer: wire.Reply) -> None:
            nonlocal answered
            assert not answered, "a request was answered twice (B13)"
            answered = True
            self.admission.release(charge)
            took = self._now() - begun
            if took >= SLOW_S or answer.status not in ANSWERED:
                self.server.requests.request(self.host, header, request, answer.status, took)
            size = self._answer(header, answer)
            if counted:
                self._replied(size)
            else:
                self._polls.pop(reply, None)

        self.bookie.handle(header, request, reply)
        if not counted and not answered:
            self._polls[reply] = None

    def _answer(self, header: wire.RequestHeader, reply: wire.Reply) -> int:
        """Send a reply; its size in bytes."""
        self.counts.request(header.op, reply.status)
        if self.closed:
            return 0
        if reply.status is Status.UNKNOWN_STATE and header.dialect is Dialect.V2:
            reply = replace(reply, status=Status.IO_ERROR)  # as unknown as that; Apache's v2 client knows no 107
        frame = wire.encode_reply(header, reply)
        if len(frame) > self.frame_max:  # an entry that just fitted into an add
            frame = wire.encode_reply(header, _too_large(reply))
        self.write(frame)
        return len(frame)


class Connections:
    """All connections of one bookie."""

    def __init__(
        self,
        bookie: Bookie,
        admission: Admission,
        metrics: Metrics,
        *,
        frame_max: int,
        connections_max: int,
        connections_per_host_max: int,
        slow_frame_s: float,
        receive_bytes: int = NO_LIMIT,
        give_back: Callable[[], object] = lambda: None,
    ) -> None:
        """``give_back``: returns freed memory to the system; called after many connections have ended."""
        self.bookie = bookie
        self.admission = admission
        self.counts = ServerMetrics(metrics)
        self.frame_max = frame_max
        self.connections: dict[ServerConnection, None] = {}
        self.scratch = bytearray(max(frame_max, RECEIVE_BUFFER) + 4096)
        """Where a chunk's records are built; the engine copies them before the next chunk comes."""
        self.memory = ReceiveMemory(receive_bytes)
        self._give_back = give_back
        self._ended = 0
        """Connections that have ended since memory was given back."""
        self._connections_max = connections_max
        self._per_host_max = connections_per_host_max
        self._per_host: Counter[str] = Counter()
        self._slow_frame_s = slow_frame_s
        self._sweeper: asyncio.TimerHandle | None = None
        self._last_log = float("-inf")
        self._unlogged = 0
        self.requests = RequestLog(lambda: asyncio.get_running_loop().time())

    def connection(self) -> ServerConnection:
        """The protocol object of a connection that is being accepted."""
        return ServerConnection(self)

    def begin(self) -> None:
        """Watch for peers that are too slow, until :meth:`close`."""
        self._sweep_later()

    def close(self) -> None:
        """End every connection, after what was written is sent."""
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for connection in list(self.connections):
            connection.close()

    # -- what connections tell ----------------------------------------------------------------------------

    def opened(self, connection: ServerConnection) -> bool:
        """False if there are too many."""
        if len(self.connections) >= self._connections_max or self._per_host[connection.host] >= self._per_host_max:
            self.counts.connections_refused.add()
            self._complain("a connection from %s is one too many", connection.host)
            return False
        self.connections[connection] = None
        self._per_host[connection.host] += 1
        self.counts.connections.value = len(self.connections)
        return True

    def ended(self, connection: ServerConnection, error: BaseException | None) -> None:
        if connection not in self.connections:
            return
        del self.connections[connection]
        self._ended += 1
        self._per_host[connection.host] -= 1
        if not self._per_host[connection.host]:
            del self._per_host[connection.host]
        self.counts.connections.value = len(self.connections)
        if isinstance(error, MalformedFrameError):
            self.counts.malformed.add()
            self._complain("the connection from %s was closed: %.200s", connection.host, error)

    # -- peers that are too slow --------------------------------------------------------------------------

    def _sweep_later(self) -> None:
        loop = asyncio.get_running_loop()
        gap = min(SWEEP_S, self._slow_frame_s)
        self._sweeper = loop.call_later(min(gap, CROWDED_SWEEP_S) if self.memory.crowded else gap, self._sweep)

    def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        limit = now - self._slow_frame_s
        crowded = now - min(CROWDED_FRAME_S, self._slow_frame_s) if self.memory.crowded else limit
        for connection in list(self.connections):
            slow_sender = (
                not connection.reading_paused
                and connection.partial_since is not None
                and connection.partial_since < (crowded if connection.keeps_memory else limit)
            )
            if slow_sender or (connection.stalled_since is not None and connection.stalled_since < limit):
                self.counts.too_slow.add()
                what = "a frame takes too long" if slow_sender else "replies are not taken"
                self._complain("the connection from %s was closed: %s", connection.host, what)
                connection.abort(TimeoutError(what))
        self._tidy_memory()
        self._sweep_later()

    def _tidy_memory(self) -> None:
        """What a crowd has left behind goes back to the system: freed memory between other memory stays with the
        process by itself. Not for the few connections that come and go all the time."""
        memory = self.memory
        if self._ended >= CROWD or memory.peak - memory.held >= CROWD_BYTES:
            self._ended, memory.peak = 0, memory.held
            self._give_back()

    def _complain(self, text: str, *details: object) -> None:
        """Log, at most one line a second (X38)."""
        now = asyncio.get_running_loop().time()
        if now - self._last_log < LOG_GAP_S:
            self._unlogged += 1
            return
        log.warning(text + (f" ({self._unlogged} more of this kind)" if self._unlogged else ""), *details)
        self._last_log, self._unlogged = now, 0


def _alone(adds: Adds, run: Run) -> Adds:
    """One run with bytes of its own, which may wait while the chunk's buffers are used again."""
    i0, i1 = run.i0, run.i1
    begin = adds.record_ends[i0 - 1] if i0 else adds.record_start
    ack_begin = adds.ack_ends[i0 - 1] if i0 else 0
    return adds._replace(
        records=bytes(memoryview(adds.records)[begin : adds.record_ends[i1 - 1]]),
        record_start=0,
        record_ends=array("q", [end - begin for end in adds.record_ends[i0:i1]]),
        acks=bytes(memoryview(adds.acks)[ack_begin : adds.ack_ends[i1 - 1]]),
        ack_ends=array("q", [end - ack_begin for end in adds.ack_ends[i0:i1]]),
        entry_ids=adds.entry_ids[i0:i1],
        runs=[run._replace(i0=0, i1=i1 - i0)],
        slow=[],
        slow_after=[],
    )


def _extend(ranges: list[tuple[int, int]], run: Run) -> None:
    """The run's adds are of these."""
    if ranges and ranges[-1][1] == run.i0:
        ranges[-1] = (ranges[-1][0], run.i1)
    else:
        ranges.append((run.i0, run.i1))


def _cut(adds: Adds, taken: list[tuple[int, int]]) -> bytes | memoryview:
    """The success replies of these adds."""
    if taken == [(0, len(adds.ack_ends))]:
        return adds.acks
    view = memoryview(adds.acks)
    slices = [view[adds.ack_ends[i0 - 1] if i0 else 0 : adds.ack_ends[i1 - 1]] for i0, i1 in taken]
    return slices[0] if len(slices) == 1 else b"".join(slices)


def _goes_first(header: wire.RequestHeader, request: wire.Request) -> bool:
    """Served from the reserve: fences, recovery, high priority, and a force, which lets go of what its writer keeps."""
    if header.priority > 0:
        return True
    match request:
        case wire.ForceLedger():
            return True
        case wire.ReadEntry() | wire.BatchRead():
            return request.fence
        case wire.AddEntry():
            return request.recovery
        case _:
            return False


def _reply_charge(request: wire.Request) -> int:
    match request:
        case wire.ReadEntry():
            return 0 if request.long_poll else READ_CHARGE
        case wire.BatchRead():
            return max(READ_CHARGE, min(request.size_max, 1024 * 1024))
        case wire.ReadLac() | wire.ListEntries():
            return READ_CHARGE
        case _:
            return 0


def _too_large(reply: wire.Reply) -> wire.Reply:
    """What is answered when the answer does not fit into a frame."""
    match reply:
        case wire.ReadReply():
            return wire.ReadReply(Status.IO_ERROR, reply.ledger_id, reply.entry_id)
        case wire.BatchReply():
            return wire.BatchReply(Status.IO_ERROR, reply.ledger_id, reply.entry_id, reply.request_id)
        case wire.LacReply():
            if reply.lac_body is not None:
                return wire.LacReply(Status.OK, reply.ledger_id, reply.lac_body)
            return wire.LacReply(Status.IO_ERROR, reply.ledger_id)
        case _:
            return reply
