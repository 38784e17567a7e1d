"""The shell around :class:`~bookkeeper.bookie.bookie.Bookie` for one connection: it cuts frames and sends replies.

A plain add: a chunk arrives in a connection's buffer; ``codec.split_adds`` cuts it into runs with their
disk records and their replies; the bookie checks each run once; the engine takes the records; when their group
is durable, the replies of the chunk leave in one write. The replies of deferred adds leave when the engine has the
records. Other frames go through the wire's codec to ``Bookie.handle``, in the order in which they came.

The bookie never waits for a client. The bookie stops reading from a client that sends faster than the disk
writes, or asks for more than it reads, until there is room (:mod:`~bookkeeper.bookie.connections.flow_control`
decides). A client loses its connection when it sends malformed frames, or a frame too slowly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from bookkeeper import codec, wire
from bookkeeper.access.principal import NOBODY, Principal
from bookkeeper.bookie.connections.add_chunk import ChunkCutter, add_range, copy_run, replies_of
from bookkeeper.bookie.connections.admission import READ_CHARGE, Share, may_use_reserve, reply_charge
from bookkeeper.bookie.connections.connection_access import ConnectionAccess
from bookkeeper.bookie.connections.flow_control import TURN_REQUESTS, UNSENT_HIGH, FlowControl, ReplyFlow
from bookkeeper.bookie.connections.request_log import ANSWERED, SLOW_S
from bookkeeper.bookie.connections.server import Connections
from bookkeeper.bookie.ownership.operation import READ
from bookkeeper.codec import Adds, Reads, Run
from bookkeeper.ids import LedgerId, counted_address
from bookkeeper.net.frame_protocol import FrameProtocol
from bookkeeper.volumes.after_all import PartlyFailedError, concerns
from bookkeeper.wire import Dialect, Status

# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_OK: Final = Status.OK


class ServerConnection(FrameProtocol):
    """One client's connection."""

    def __init__(self, server: Connections) -> None:
        super().__init__(frame_max=server.frame_max, unsent_high=UNSENT_HIGH, memory=server.memory)
        self.server = server
        self.bookie = server.bookie
        self.admission = server.admission
        self.share: Share | None = None
        """What its client has in progress over all connections; None: the client is not authenticated."""
        self.counts = server.counts
        self.detector = wire.DialectDetector()
        self.flow = FlowControl()
        self.host = ""
        self.principal: Principal = NOBODY
        """The client. It does not change after the handshake."""
        self.fences_noted: dict[LedgerId, None] = {}
        """Ledgers whose fence by this connection is in the audit log."""
        self.access: ConnectionAccess | None = None
        """What the client may do; None: everything."""
        self._polls: dict[Callable[[wire.Reply], None], LedgerId] = {}
        """The replies of long polls that wait, and their ledgers. They end with the connection."""
        self._reads = False
        """Whether the previous chunk began with plain reads."""
        self._lazy_replies = 0  # notices whose replies follow those of adds
        self._cutter = ChunkCutter(server.frame_max, server.bookie.engine.landing, server.scratch)
        self._time: Callable[[], float] = lambda: 0.0

    # -- the connection's life ----------------------------------------------------------------------------

    def on_open(self) -> None:
        assert self._transport is not None and self._loop is not None
        self._time = self._loop.time
        name = self._transport.get_extra_info("peername")
        self.host = str(name[0]) if isinstance(name, tuple) and name else ""
        self.account = counted_address(self.host)
        if not self.server.on_opened(self):
            self.abort()
        self.on_access()

    def on_closed(self, error: BaseException | None) -> None:
        self.admission.forget(self, self.share)
        self.server.on_ended(self, error)
        for reply in list(self._polls):
            self.bookie.drop_poll(reply)

    def on_access(self) -> None:
        """Drop the cached permissions. A long poll that is not allowed any more ends."""
        control = self.server.access
        if control is None or not control.is_on:
            self.access = None
            return
        self.access = ConnectionAccess(self, control, self.server.audit, self.server.warnings, self._time)
        for reply, ledger_id in list(self._polls.items()):
            if not self.access.is_allowed(ledger_id, READ):
                self.bookie.drop_poll(reply, Status.UNAUTHORIZED)

    @property
    def is_polling(self) -> bool:
        """Whether its client waits in a long poll."""
        return bool(self._polls)

    def on_writable(self, writable: bool) -> None:
        """Stop reading from a client that does not read its replies."""
        if not writable and self.flow.on_stalled(self._time()):
            self.pause_reading()
        elif writable and self.flow.on_unstalled():
            self.resume_reading()

    # -- requests -----------------------------------------------------------------------------------------

    def on_bytes(self, buffer: bytearray, start: int, end: int) -> int:
        used = start
        self.flow.has_received = True
        if self._reads:  # this chunk probably begins like the previous one
            used = self._take_reads(buffer, start, end)
            self._reads = used > start
        if used < end and not self.reading_paused:
            used = self._take_frames(buffer, used, end)
        flow = self.flow
        if used < end:
            flow.on_partial_frame(self._time(), progress=used > start)
        else:
            flow.on_no_partial_frame()
        if flow.on_chunk_end(crowded=not self.closed and self.admission.is_crowded_for(self.share)):
            self.admission.wait(self, self._on_room, self.share)
            self.pause_reading()
        if flow.taken >= TURN_REQUESTS and flow.pause_for_turn():
            self._yield_turn()
        return used - start

    def _on_room(self) -> None:
        if self.flow.on_room():
            self.resume_reading()

    def _take_frames(self, buffer: bytearray, start: int, end: int) -> int:
        """Handle all complete frames. Returns where the rest begins.

        Raises:
            MalformedFrameError: the rest does not begin with a frame.
        """
        adds = self._cutter.cut(buffer, start, end, self.detector.v2)
        used = adds.used
        if not adds.slow:
            self.detector.v2 = adds.v2
            if adds.runs:
                self._take_runs(adds, 0, len(adds.runs))
        else:
            used = self._take_in_order(buffer, adds)
        if adds.error is not None and used == adds.used:
            raise adds.error
        return used

    def pause_reading(self) -> None:
        self.flow.on_no_partial_frame()  # while this side does not read, no time counts against the client
        super().pause_reading()

    def _take_in_order(self, buffer: bytearray, adds: Adds) -> int:
        """Handle runs and other frames in the order in which they came; stop early when too many replies are unread."""
        done = used = 0
        for (frame_start, frame_end), after in zip(adds.slow, adds.slow_after, strict=True):
            if frame_start < used:
                continue  # a read that was taken together with earlier ones
            if after > done:  # first: what is returned below counts them as used
                self._take_runs(adds, done, after)
                done = after
            if self.flow.pause_for_replies(self.unsent):
                self._await_replies()
                return frame_start - 4
            used = self._take_reads(buffer, frame_start - 4, adds.used)
            if self.reading_paused:
                return used
            if used < frame_start:
                self._handle_frame(bytes(memoryview(buffer)[frame_start:frame_end]))
            else:
                self._reads = True
        if len(adds.runs) > done:
            self._take_runs(adds, done, len(adds.runs))
        self.detector.v2 = adds.v2
        return adds.used

    def _await_replies(self) -> None:
        """Stop here until replies have left. The rest of the chunk is cut again afterwards."""
        if self.flow.replies is ReplyFlow.AWAITING_FLUSH:
            self._yield_turn()
        else:
            self.pause_reading()

    def _yield_turn(self) -> None:
        """Go on in the next turn of the loop."""
        self.pause_reading()
        if self._loop is not None:
            self._loop.call_soon(self._on_flushed)  # after the flush: by then a stalled client is known

    def _on_flushed(self) -> None:
        if self.flow.on_flushed():
            self.resume_reading()

    def _take_runs(self, adds: Adds, first_run: int, end_run: int) -> None:
        """Hand runs to the bookie. Their replies leave when they are durable; deferred and refused ones at once."""
        chosen = adds.runs[first_run:end_run]
        reserved = chosen[0].recovery
        for at in range(1, len(chosen)):
            if chosen[at].recovery is not reserved:  # each kind by itself: they are admitted by different limits
                self._take_runs(adds, first_run, first_run + at)
                self._take_runs(adds, first_run + at, end_run)
                return
        self.flow.on_taken(len(chosen))
        i0, i1 = chosen[0].i0, chosen[-1].i1
        charge = adds.record_ends[i1 - 1] - (adds.record_ends[i0 - 1] if i0 else adds.record_start)
        if not reserved:
            self.flow.on_charged()
        if not self.admission.admit(charge, reserved=reserved, share=self.share):
            self.counts.adds_refused.add(i1 - i0)
            self.write(codec.fail_acks(adds.acks, adds.ack_ends, i0, i1, Status.TOO_MANY_REQUESTS))
            return
        if self.access is not None:
            chosen, charge = self._select_permitted(self.access, adds, chosen, charge)
        if self.bookie.verifies and chosen:
            chosen, charge = self._select_verified(adds, chosen, charge)
        if chosen:
            self._store(adds, chosen, charge)

    def _select_permitted(
        self, access: ConnectionAccess, adds: Adds, chosen: list[Run], charge: int
    ) -> tuple[list[Run], int]:
        """Refuse the runs that the client may not add, and let those wait whose ledger's owner is not known yet.

        Returns the other runs and their charge.
        """
        rest: list[Run] = []
        for run in chosen:
            status = access.judge_run(run, adds)
            if status is _OK:
                rest.append(run)
                continue
            one = copy_run(adds, run)
            charge -= len(one.records)
            if status is None:
                access.resolve_run(run, partial(self._on_permitted, one))
            else:
                self._refuse_run(one, status)
        return rest, charge

    def _on_permitted(self, adds: Adds, status: Status) -> None:
        """Store or refuse a run that waited for permission."""
        if status is _OK and self.access is not None:
            status = self.access.charge_run(adds.runs[0], adds)
        if status is not _OK:
            self._refuse_run(adds, status)
            return
        chosen, charge = adds.runs, len(adds.records)
        if self.bookie.verifies:
            chosen, charge = self._select_verified(adds, chosen, charge)
        if chosen:
            self._store(adds, chosen, charge)

    def _refuse_run(self, adds: Adds, status: Status) -> None:
        """Refuse a run that was admitted."""
        count = len(adds.ack_ends)
        self.admission.release(len(adds.records), self.share)
        self.counts.adds_refused.add(count)
        self.write(codec.fail_acks(adds.acks, adds.ack_ends, 0, count, status))

    def _select_verified(self, adds: Adds, chosen: list[Run], charge: int) -> tuple[list[Run], int]:
        """Let the runs wait whose ledgers must first be looked up in the metadata.

        Returns the other runs and their charge.
        """
        rest: list[Run] = []
        for run in chosen:
            ledger_id, regular = LedgerId(run.ledger_id), not run.recovery
            if not self.bookie.must_verify(ledger_id, regular=regular):
                rest.append(run)
                continue
            one = copy_run(adds, run)
            charge -= len(one.records)
            self.bookie.verify(ledger_id, run.master_key, partial(self._on_verified, one), regular=regular)
        return rest, charge

    def _on_verified(self, adds: Adds, status: Status) -> None:
        """Store or refuse a run that waited for the metadata."""
        if status is Status.NO_LEDGER:
            status = Status.FENCED  # to an add a ledger without metadata is a deleted one
        if status is _OK:
            self._store(adds, adds.runs, len(adds.records))
            return
        if status is Status.UNAUTHORIZED:
            self.server.audit.note_wrong_key(self, "ADD", adds.runs[0].ledger_id)
        self._refuse_run(adds, status)

    def _store(self, adds: Adds, chosen: list[Run], charge: int) -> None:
        """Store runs that admission and the metadata allow."""
        counts = self.counts
        taken: list[tuple[int, int]] = []
        stored: list[tuple[int, int]] = []
        accepted = refused = deferred = 0
        for run in chosen:
            status = self.bookie.add_run(run, adds)
            if status is _OK:
                accepted += run.i1 - run.i0
                if run.deferred:
                    deferred += run.i1 - run.i0
                    add_range(stored, run)
                else:
                    add_range(taken, run)
            else:
                refused += run.i1 - run.i0
                if status is Status.UNAUTHORIZED:
                    self.server.audit.note_wrong_key(self, "ADD", run.ledger_id)
                self.server.request_log.log_run(self.peer, run, adds, status, 0.0)
                self.write(codec.fail_acks(adds.acks, adds.ack_ends, run.i0, run.i1, status))
        counts.adds_refused.value += refused
        if not accepted:
            self.admission.release(charge, self.share)
            return
        counts.adds.value += accepted
        counts.add_runs.value += len(chosen)
        counts.add_bytes.value += charge
        if stored:
            counts.adds_deferred.add(deferred)
            self.write(replies_of(adds, stored))
            if not taken:
                self.admission.release(charge, self.share)
                self.bookie.engine.start_writing()
                return
        begun = self._time()

        def durable(error: BaseException | None) -> None:
            self.admission.release(charge, self.share)
            took = self._time() - begun
            if error is None:
                (self.write if self._lazy_replies else self.write_alone)(replies_of(adds, taken))
                counts.add_seconds.observe(took, accepted - deferred)
                counts.add_summary.observe(took, accepted - deferred)
                if took >= SLOW_S:
                    self.server.request_log.log_run(self.peer, chosen[0], adds, _OK, took)
                return
            counts.add_failures.observe(took, accepted - deferred)
            self.server.request_log.log_run(self.peer, chosen[0], adds, Status.IO_ERROR, took)
            for first, last in self._write_durable(adds, chosen, taken, error):  # whether they are stored is unknown
                self.write(codec.fail_acks(adds.acks, adds.ack_ends, first, last, Status.IO_ERROR))

        self.bookie.engine.when_durable(durable)

    def _write_durable(
        self, adds: Adds, chosen: list[Run], taken: list[tuple[int, int]], error: BaseException
    ) -> list[tuple[int, int]]:
        """Where only some disks have failed, answer adds that the others made durable. Returns those that failed."""
        if not isinstance(error, PartlyFailedError):
            return taken
        kept: list[tuple[int, int]] = []
        failed: list[tuple[int, int]] = []
        for run in chosen:
            if any(first <= run.i0 < last for first, last in taken):
                add_range(kept if concerns(error, run.ledger_id) is None else failed, run)
        if kept:
            self.write(replies_of(adds, kept))
        return failed

    def _take_reads(self, buffer: bytearray, start: int, end: int) -> int:
        """Answer the plain reads at the beginning of the bytes. Returns where the rest begins.

        Entries in memory are answered in runs. The others take the general path, in the order in which they came. Stops
        early when too many replies are unread; reading is paused then.
        """
        reads = codec.split_reads(buffer, start, end, self.frame_max, self.detector.v2)
        ends = reads.ends
        at, done, count = start, 0, len(ends)
        while done < count and not self.reading_paused:
            if self.flow.pause_for_replies(self.unsent):
                self._await_replies()
                break
            if answered := self._answer_cached(reads, done, ends[done] - at):
                done += answered
            else:
                self._handle_frame(bytes(memoryview(buffer)[at + 4 : ends[done]]))
                done += 1
            at = ends[done - 1]
        return at

    def _answer_cached(self, reads: Reads, first: int, size: int) -> int:
        """Answer the reads from ``first`` on whose entries are in memory. The frame of ``first`` has ``size`` bytes.
        Returns how many were answered."""
        if self.access is not None and not self.access.is_allowed(LedgerId(reads.ledger_ids[first]), READ):
            return 0
        if not self.admission.has_room(size + READ_CHARGE, self.share):
            return 0
        began = self._time()
        try:
            answers = self.bookie.engine.try_read_cached(reads, first, self.frame_max)
        except Exception:  # the general path meets the same error and reports it
            return 0
        if answers is None or not answers.n:
            return 0
        frames, count, _ = answers
        size = len(frames)
        self.detector.v2 = reads.v2
        self.flow.on_run_answered(size // count)
        self.counts.reads_found(count, self._time() - began, size)
        self.write_alone(frames)
        return count

    def _handle_frame(self, body: bytes) -> None:
        """Handle one frame that is neither a plain add nor a cached read.

        Raises:
            MalformedFrameError: the frame is not a request.
        """
        self.flow.on_taken()
        if (judged := self._decode_and_judge(body)) is None:
            return
        header, request, verdict = judged
        charge = len(body) + reply_charge(request)
        reserved = may_use_reserve(request)
        if not reserved:
            self.flow.on_charged()
        if not self.admission.admit(charge, reserved=reserved, share=self.share):
            self.server.request_log.log_request(self.peer, header, request, Status.TOO_MANY_REQUESTS, 0.0)
            self._answer(header, wire.failure(request, Status.TOO_MANY_REQUESTS))
            return
        begun = self._time()
        answered = denied = False
        polled: list[Callable[[wire.Reply], None]] = []  # a closure that named itself would be a cycle
        counted = not (isinstance(request, wire.ReadEntry) and request.long_poll)
        if counted:
            self.flow.on_request_waits()
        self._lazy_replies += (lazy := isinstance(request, wire.WriteLac))

        def reply(answer: wire.Reply) -> None:
            nonlocal answered
            assert not answered, "a request was answered twice"
            answered = True
            self._lazy_replies -= lazy
            self.admission.release(charge, self.share)
            took = self._time() - begun
            if took >= SLOW_S or answer.status not in ANSWERED:
                self.server.request_log.log_request(self.peer, header, request, answer.status, took)
            if not denied:
                self.server.audit.note_answered(self, header, request, answer.status)
            size = self._answer(header, answer)
            if counted and isinstance(request, wire.ReadEntry | wire.BatchRead):
                self.counts.read(answer.status, took, size)
            if polled:
                self._polls.pop(polled.pop(), None)
            if counted and self.flow.on_answered(size, self.unsent):
                self.resume_reading()

        def on_permission(status: Status) -> None:
            nonlocal denied
            if status is _OK and not self.closed:
                self.bookie.handle(header, request, reply)
            else:
                denied = True
                reply(wire.failure(request, Status.IO_ERROR if status is _OK else status))
            if isinstance(request, wire.ReadEntry) and request.long_poll and not answered:
                self._polls[reply] = request.ledger_id
                polled.append(reply)

        if verdict is None and self.access is not None:
            self.access.resolve(request, on_permission)
        else:
            on_permission(_OK)

    def _decode_and_judge(self, body: bytes) -> tuple[wire.RequestHeader, wire.Request, Status | None] | None:
        """The request in a frame, with OK, or with None if its permission is not known yet. Returns None if the frame
        or the request was refused and answered.

        Raises:
            MalformedFrameError: the frame is not a request.
        """
        decoded = self.detector.decode(body)
        if isinstance(decoded, wire.RefusedFrame):
            self.counts.request(decoded.header.op, decoded.status)
            self.server.request_log.log_request(self.peer, decoded.header, None, decoded.status, 0.0)
            self.write(decoded.frame)
            return None
        header, request = decoded
        if self.access is None:
            return header, request, _OK
        if isinstance(request, wire.GetBookieInfo):
            request = self.access.without_forbidden_advice(request)
        verdict = self.access.judge(request)
        if verdict is Status.UNAUTHORIZED or verdict is Status.TOO_MANY_REQUESTS:
            self._answer(header, wire.failure(request, verdict))
            return None
        return header, request, verdict

    def _answer(self, header: wire.RequestHeader, reply: wire.Reply) -> int:
        """Send a reply. Returns its size in bytes."""
        self.counts.request(header.op, reply.status)
        if self.closed:
            return 0
        if reply.status is Status.UNKNOWN_STATE and header.dialect is Dialect.V2:
            reply = replace(reply, status=Status.IO_ERROR)  # also means unknown; v2 has no 107
        pieces = wire.reply_pieces(header, reply)
        if sum(map(len, pieces)) > self.frame_max:  # the entry just fitted into an add, and its reply is larger
            pieces = wire.reply_pieces(header, wire.too_large(reply))
        for piece in pieces:
            self.write(piece)
        return sum(map(len, pieces))
