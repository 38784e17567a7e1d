"""From request to reply: who may add, what a fence does, and when each request is answered.

A process has one :class:`Bookie`, on the loop's thread. It knows no sockets and no bytes of the wire; the engine owns
the disk. Each request gets exactly one reply:

* An add, an explicit LAC and a force are answered when they are durable.
* A deferred add is answered when it is stored and can be read. A crash may still lose it: only a force that is
  answered later promises that it stays. The journal writes it soon anyway.
* A request with a fence is answered when the fence is durable, also with "no such entry".
* "No such entry" is answered only if the engine is sure. Every doubt becomes UNKNOWN_STATE or IO_ERROR.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, Protocol

from bookkeeper import wire
from bookkeeper.bookie.identity.ledger_keys import LedgerKeys
from bookkeeper.bookie.identity.stale_adds import StaleAdds
from bookkeeper.codec import ENTRY_HEADER, Adds, Run
from bookkeeper.errors import (
    BookKeeperError,
    InvariantError,
    LedgerFencedError,
    NoSuchEntryError,
    NoSuchLedgerError,
)
from bookkeeper.ids import NO_ENTRY, EntryId, IdRanges, LedgerId
from bookkeeper.rate_limited_log import RateLimitedLogger
from bookkeeper.storage.engine import PackedEntries
from bookkeeper.volumes import Volumes
from bookkeeper.volumes.after_all import concerns
from bookkeeper.wire import Status
from bookkeeper.wire.availability import GROUP, HEADER, encode_availability

log = logging.getLogger(__name__)

Reply = Callable[[wire.Reply], None]
"""Takes the one reply to a request; may be called inside :meth:`Bookie.handle` or later."""

AUTH_DISABLED: Final = "AuthDisabledPlugin"
"""What a bookie without authentication answers to an AUTH message; clients take it as "authenticated"."""

# As a global: to look a member up in its class costs ten times as much (CPython 3.11).
_OK: Final = Status.OK

Act = Callable[[], None]

BATCH_OVERHEAD: Final = 24 + 8 + 4
"""Bytes of a batch reply that count against the size asked for before its first entry."""


def refusal_of(request: wire.Request, status: Status) -> Status:
    """What is answered to a request that the metadata do not allow. To an add a ledger without metadata is a deleted
    one. A fence that was not made is no negative, of nothing: whoever recovers would count this bookie as fenced."""
    if status is not Status.NO_LEDGER:
        return status
    if isinstance(request, wire.AddEntry):
        return Status.FENCED
    return Status.NO_LEDGER if isinstance(request, wire.WriteLac) else Status.UNKNOWN_STATE


class Timer(Protocol):
    """A timer as the loop's ``call_later`` returns it."""

    def cancel(self) -> None: ...


class Bookie:
    """Answers the requests of all connections; the module says when."""

    def __init__(
        self,
        engine: Volumes,
        *,
        call_later: Callable[[float, Callable[[], None]], Timer],
        wall_ms: Callable[[], int],
        read_only: bool = False,
        frame_max: int,
        batch_read_bytes: int,
        long_polls_max: int,
        long_poll_max_s: float,
    ) -> None:
        self.engine = engine
        self.read_only = read_only
        """Whether the operator has ordered read-only. The disk's state may forbid adds as well."""
        self.stale_adds: StaleAdds | None = None
        """Checks regular adds to ledgers older than the disk; None if there can be no such ledger."""
        self.ledger_keys: LedgerKeys | None = None
        """Checks whatever would make a ledger begin to exist here; None where nobody knows who the clients are."""
        self.long_polls = 0
        """Long polls that wait now."""
        self._call_later = call_later
        self._wall_ms = wall_ms
        self._frame_max = frame_max
        self._batch_read_bytes = min(batch_read_bytes, frame_max)
        self._long_polls_max = long_polls_max
        self._long_poll_max_s = long_poll_max_s
        self._wake_on_fence: dict[LedgerId, list[Callable[[], None]]] = {}
        self._polls: dict[Reply, _LongPoll] = {}
        self._log = RateLimitedLogger(log, lambda: asyncio.get_running_loop().time())

    # -- adds, in runs ------------------------------------------------------------------------------------

    def add_run(self, run: Run, adds: Adds) -> Status:
        """Take a run of plain adds.

        With OK the caller answers the run when :meth:`Engine.when_durable` says so; a deferred run it answers now, and
        it calls :meth:`Engine.start_writing` after the last run of a chunk. With any other status the caller answers
        that status now. Where :meth:`must_verify` is true, the caller has called :meth:`verify` before."""
        if self.read_only and not run.recovery:
            return Status.READ_ONLY
        try:
            self.engine.append(run, adds, recovery=run.recovery)
        except Exception as error:  # every failure has a status; none may end the connection
            return self._status_of(error)
        return _OK

    # -- what the metadata are asked first ----------------------------------------------------------------

    @property
    def verifies(self) -> bool:
        """Whether :meth:`must_verify` can be true at all."""
        return self.stale_adds is not None or self.ledger_keys is not None

    def must_verify(self, ledger_id: LedgerId, *, regular: bool) -> bool:
        """Whether a request that brings a key has to wait for :meth:`verify`. ``regular``: it is an add of a writer."""
        if self.ledger_keys is not None and self.ledger_keys.must_verify(ledger_id):
            return True
        return regular and self.stale_adds is not None and self.stale_adds.must_verify(ledger_id)

    def verify(self, ledger_id: LedgerId, key: bytes, then: Callable[[Status], None], *, regular: bool) -> None:
        """Call ``then`` with OK when the metadata allow the request, else with the status to refuse it with."""
        stale_adds, keys = self.stale_adds, self.ledger_keys

        def known(status: Status) -> None:
            if status is Status.OK and regular and stale_adds is not None and stale_adds.must_verify(ledger_id):
                stale_adds.verify(ledger_id, then)
            else:
                then(status)

        if keys is not None and keys.must_verify(ledger_id):
            keys.verify(ledger_id, key, known)
        else:
            known(Status.OK)

    def _when_allowed(
        self, request: wire.AddEntry | wire.WriteLac | wire.ReadEntry | wire.BatchRead, reply: Reply, act: Act
    ) -> None:
        """``act`` now, or when the metadata allow it; else the refusal."""
        regular = isinstance(request, wire.AddEntry) and not request.recovery
        if not self.must_verify(request.ledger_id, regular=regular):
            act()
            return

        def judged(status: Status) -> None:
            if status is not Status.OK:
                reply(wire.failure(request, refusal_of(request, status)))
                return
            try:
                act()
            except Exception as error:
                reply(wire.failure(request, self._status_of(error)))

        assert request.master_key is not None, "what brings none is refused before"
        self.verify(request.ledger_id, request.master_key, judged, regular=regular)

    # -- everything else ----------------------------------------------------------------------------------

    def handle(self, header: wire.RequestHeader, request: wire.Request, reply: Reply) -> None:
        """Perform ``request``. ``reply`` is called exactly once, now or later."""
        try:
            match request:
                case wire.AddEntry():
                    self._add(request, reply)
                case wire.ReadEntry():
                    self._read(request, reply)
                case wire.BatchRead():
                    self._batch_read(request, reply)
                case wire.ReadLac():
                    self._read_lac(request, reply)
                case wire.WriteLac():
                    self._write_lac(request, reply)
                case wire.ForceLedger():
                    self.engine.force(request.ledger_id, lambda error: reply(self._ended(request, error)))
                case wire.GetBookieInfo():
                    self._info(request, reply)
                case wire.ListEntries():
                    self._list(request, reply)
                case wire.Auth():
                    reply(wire.AuthReply(Status.OK, AUTH_DISABLED, b""))
                case wire.StartTls():
                    reply(wire.BareReply(Status.BAD_REQUEST))
        except Exception as error:  # raised before anything was promised: the engine's calls raise or call back
            reply(wire.failure(request, self._status_of(error)))

    def _add(self, request: wire.AddEntry, reply: Reply) -> None:
        if request.ledger_id < 0 or request.entry_id < 0 or len(request.entry) < ENTRY_HEADER:
            reply(wire.failure(request, Status.BAD_REQUEST))
            return
        if self.read_only and not request.recovery:
            reply(wire.failure(request, Status.READ_ONLY))
            return
        self._when_allowed(request, reply, lambda: self._store(request, reply))

    def _store(self, request: wire.AddEntry, reply: Reply) -> None:
        self.engine.append_entry(request.ledger_id, request.master_key, request.entry, recovery=request.recovery)
        if request.deferred_sync and not request.recovery:  # what a recovery writes back is to stay
            self.engine.start_writing()
            reply(self._ended(request, None))
        else:
            self.engine.when_durable(lambda error: reply(self._ended(request, error)))

    def end_polls(self) -> None:
        """End all long polls with the entries there are, because the bookie stops."""
        for waiting in list(self._wake_on_fence.values()):
            for wake in list(waiting):
                wake()

    def drop_poll(self, reply: Reply, status: Status = Status.OK) -> None:
        """If ``reply`` waits for a long poll, end it without a read: its client has gone, or may not read any more."""
        if (poll := self._polls.get(reply)) is not None:
            poll.drop(status)

    # -- reads --------------------------------------------------------------------------------------------

    def _read(self, request: wire.ReadEntry, reply: Reply) -> None:
        if request.ledger_id < 0:
            reply(wire.failure(request, Status.NO_LEDGER))
        elif request.entry_id < NO_ENTRY:
            reply(wire.failure(request, Status.BAD_REQUEST))
        elif request.fence:
            self._fenced(request, request.master_key, reply, lambda: self._read_now(request, reply, with_lac=False))
        elif request.long_poll:
            self._long_poll(request, reply)
        else:
            self._read_now(request, reply)

    def _fenced(
        self, request: wire.ReadEntry | wire.BatchRead, key: bytes | None, reply: Reply, go_on: Callable[[], None]
    ) -> None:
        """Fence the ledger and go on when the fence is durable. Until then nothing is answered."""
        if key is None:
            reply(wire.failure(request, Status.UNAUTHORIZED))
            return

        def durable(error: BaseException | None) -> None:
            if error is not None:
                self._status_of(error)
                reply(wire.failure(request, Status.IO_ERROR))
                return
            try:
                go_on()
            except Exception as failure:
                reply(wire.failure(request, self._status_of(failure)))

        def fence() -> None:
            self.engine.fence(request.ledger_id, key, durable)
            for wake in self._wake_on_fence.pop(request.ledger_id, ()):
                wake()

        self._when_allowed(request, reply, fence)

    def _read_now(
        self, request: wire.ReadEntry, reply: Reply, *, with_lac: bool = True, stamp_ms: int | None = None
    ) -> None:
        ledger_id, entry_id = request.ledger_id, request.entry_id

        def got(entry: bytes | BaseException) -> None:
            if isinstance(entry, BaseException):
                reply(wire.failure(request, self._status_of(entry)))
                return
            lac = self._lac(ledger_id) if with_lac else None
            reply(wire.ReadReply(Status.OK, ledger_id, entry_id, entry, lac, stamp_ms))

        self.engine.read(ledger_id, entry_id, got)

    def _long_poll(self, request: wire.ReadEntry, reply: Reply) -> None:
        """Answer when the LAC is above ``previous_lac``, the ledger gets fenced, or time is up."""
        assert request.previous_lac is not None
        if request.piggyback and request.entry_id != NO_ENTRY:
            reply(wire.failure(request, Status.BAD_REQUEST))
            return
        ledger_id = request.ledger_id
        known = self.engine.lac(ledger_id)  # raises: no such ledger, or cannot tell
        wait_s = min((request.timeout_ms or 0) / 1000, self._long_poll_max_s)
        if known > request.previous_lac or wait_s <= 0 or self.long_polls >= self._long_polls_max:
            self._read_polled(request, reply, None)
            return
        _LongPoll(self, request, reply, wait_s)

    def _read_polled(self, request: wire.ReadEntry, reply: Reply, stamp_ms: int | None) -> None:
        if not request.piggyback:
            self._read_now(request, reply, stamp_ms=stamp_ms)
            return
        assert request.previous_lac is not None
        ledger_id = request.ledger_id
        lac = self.engine.lac(ledger_id)
        nothing_new = wire.ReadReply(Status.OK, ledger_id, NO_ENTRY, None, lac)
        if lac <= request.previous_lac:
            reply(nothing_new)
            return
        following = EntryId(max(request.previous_lac, -1) + 1)

        def got(entry: bytes | BaseException) -> None:
            if isinstance(entry, NoSuchEntryError):  # with striping another bookie has it
                reply(nothing_new)
            elif isinstance(entry, BaseException):
                reply(wire.failure(request, self._status_of(entry)))
            else:
                reply(wire.ReadReply(Status.OK, ledger_id, following, entry, lac, stamp_ms))

        self.engine.read(ledger_id, following, got)

    def _batch_read(self, request: wire.BatchRead, reply: Reply) -> None:
        if request.ledger_id < 0:
            reply(wire.failure(request, Status.NO_LEDGER))
        elif request.first_entry < 0:
            reply(wire.failure(request, Status.BAD_REQUEST))
        elif request.fence:
            self._fenced(request, request.master_key, reply, lambda: self._batch_read_now(request, reply))
        else:
            self._batch_read_now(request, reply)

    def _batch_read_now(self, request: wire.BatchRead, reply: Reply) -> None:
        def got(packed: PackedEntries | BaseException) -> None:
            if isinstance(packed, BaseException):
                reply(wire.failure(request, self._status_of(packed)))
                return
            ids = (request.ledger_id, request.first_entry, request.request_id)
            reply(wire.BatchReply(Status.OK, *ids, packed.body))

        size_max = max(1, min(request.size_max, self._batch_read_bytes) - BATCH_OVERHEAD)
        self.engine.read_batch(request.ledger_id, request.first_entry, max(0, request.count_max), size_max, got)

    # -- the last add confirmed ---------------------------------------------------------------------------

    def _read_lac(self, request: wire.ReadLac, reply: Reply) -> None:
        """The explicit LAC and the last entry, whichever is there; NO_ENTRY if neither is."""
        try:
            explicit = self.engine.explicit_lac(request.ledger_id)
        except NoSuchLedgerError:
            reply(wire.failure(request, Status.NO_ENTRY))
            return
        lac_body = explicit[1] if explicit is not None else None

        def got(entry: bytes | BaseException) -> None:
            if isinstance(entry, bytes):
                reply(wire.LacReply(Status.OK, request.ledger_id, lac_body, entry))
            elif lac_body is not None:
                reply(wire.LacReply(Status.OK, request.ledger_id, lac_body))
            elif isinstance(entry, NoSuchEntryError | NoSuchLedgerError):
                reply(wire.failure(request, Status.NO_ENTRY))
            else:
                reply(wire.failure(request, self._status_of(entry)))

        self.engine.read(request.ledger_id, NO_ENTRY, got)

    def _write_lac(self, request: wire.WriteLac, reply: Reply) -> None:
        if request.ledger_id < 0:
            reply(wire.failure(request, Status.BAD_REQUEST))
            return
        if self.read_only:
            reply(wire.failure(request, Status.READ_ONLY))
            return
        ids = (request.ledger_id, request.master_key, request.lac, request.body)

        def write() -> None:
            try:
                self.engine.set_explicit_lac(*ids, lambda error: reply(self._ended(request, error)))
            except LedgerFencedError:  # fencing does not stop it: this one was deleted
                reply(wire.failure(request, Status.NO_LEDGER))

        self._when_allowed(request, reply, write)

    # -- about the bookie ---------------------------------------------------------------------------------

    def _info(self, request: wire.GetBookieInfo, reply: Reply) -> None:
        if request.closed_ledger is not None and request.closed_ledger >= 0:
            self.engine.ledger_closed(request.closed_ledger)
        space = self.engine.space() if request.requested & 3 else None
        total = space.total if space is not None and request.requested & 1 else None
        free = space.free if space is not None and request.requested & 2 else None
        reply(wire.InfoReply(Status.OK, total, free))

    def _list(self, request: wire.ListEntries, reply: Reply) -> None:
        """What is listed is durable when it is answered: a repair calls a ledger whole by such lists."""
        body = encode_availability(self._listed(request.ledger_id))
        if len(body) > self._frame_max - 64:
            reply(wire.failure(request, Status.IO_ERROR))  # more holes than fit into a frame: it cannot be told
            return
        found = wire.ListReply(Status.OK, request.ledger_id, body)

        def durable(error: BaseException | None) -> None:
            reply(found if error is None else wire.failure(request, self._status_of(error)))

        self.engine.force(LedgerId(-1), durable)

    def _listed(self, ledger_id: LedgerId) -> Iterable[tuple[int, int]]:
        """(first, last) of each run of entries of a ledger. A negative id asks for ranges of ledgers instead."""
        if ledger_id >= 0:
            return ((run.first, run.first + run.count - 1) for run in self.engine.entries(ledger_id))
        start, dropped = wire.requested_ledgers(ledger_id)
        ids = self.engine.dropped if dropped else IdRanges((held, held) for held in sorted(self.engine.ledgers()))
        most = (self._frame_max - 64 - HEADER.size) // GROUP.size
        return islice(((max(first, start), last) for first, last in ids if last >= start), most)

    # -- inside -------------------------------------------------------------------------------------------

    def _lac(self, ledger_id: LedgerId) -> int | None:
        try:
            return self.engine.lac(ledger_id)
        except BookKeeperError:  # dropped or doubtful since it was read
            return None

    def _ended(self, request: wire.Request, error: BaseException | None) -> wire.Reply:
        """The success reply to a request that is answered with a status alone."""
        if isinstance(request, wire.AddEntry):
            error = concerns(error, request.ledger_id)
        if error is not None:
            return wire.failure(request, self._status_of(error))
        match request:
            case wire.AddEntry():
                return wire.AddReply(Status.OK, request.ledger_id, request.entry_id)
            case wire.WriteLac():
                return wire.WriteLacReply(Status.OK, request.ledger_id)
            case wire.ForceLedger():
                return wire.ForceReply(Status.OK, request.ledger_id)
            case _:
                raise AssertionError(f"{request} is answered with more than a status")

    def _status_of(self, error: BaseException) -> Status:
        """The status that a client gets for ``error``. An unforeseen error goes into the log, once a second from each
        place, for whoever causes one may cause many; the client gets an *unknown* status."""
        if isinstance(error, BookKeeperError | OSError) and not isinstance(error, InvariantError):
            return wire.status_of(error)
        self._log.error("a request failed with an unexpected error: its client gets an I/O error", error)
        return Status.IO_ERROR


class _LongPoll:
    """One long poll. A new LAC, a fence, the time limit or the end of the connection ends it, once."""

    __slots__ = ("_bookie", "_forget", "_reply", "_request", "_timer")

    def __init__(self, bookie: Bookie, request: wire.ReadEntry, reply: Reply, wait_s: float) -> None:
        self._bookie = bookie
        self._request = request
        self._reply: Reply | None = reply
        bookie.long_polls += 1
        bookie._polls[reply] = self
        self._timer = bookie._call_later(wait_s, self._end)
        self._forget = bookie.engine.on_lac(request.ledger_id, self._risen)
        bookie._wake_on_fence.setdefault(request.ledger_id, []).append(self._end)

    def _risen(self, lac: int) -> None:
        assert self._request.previous_lac is not None
        if self._reply is not None and lac <= self._request.previous_lac:
            self._forget = self._bookie.engine.on_lac(self._request.ledger_id, self._risen)
            return
        self._end(self._bookie._wall_ms())

    def _end(self, stamp_ms: int | None = None) -> None:
        bookie, request = self._bookie, self._request
        if (reply := self._over()) is None:
            return
        try:
            bookie._read_polled(request, reply, stamp_ms)
        except Exception as error:
            reply(wire.failure(request, bookie._status_of(error)))

    def drop(self, status: Status) -> None:
        """End the poll with an empty reply; where the client has gone, admission still needs one to count."""
        if (reply := self._over()) is not None:
            reply(wire.ReadReply(status, self._request.ledger_id, NO_ENTRY))

    def _over(self) -> Reply | None:
        """Stop waiting. Returns the reply to call; None if it was called before."""
        reply, self._reply = self._reply, None
        if reply is None:
            return None
        bookie, request = self._bookie, self._request
        bookie.long_polls -= 1
        del bookie._polls[reply]
        self._timer.cancel()
        self._forget()
        waiting = bookie._wake_on_fence.get(request.ledger_id, [])
        if self._end in waiting:
            waiting.remove(self._end)
            if not waiting:
                del bookie._wake_on_fence[request.ledger_id]
        return reply
