"""Which log a record goes to, what is in memory, what is written and when, where each ledger has a log. A pure machine:
no I/O, no clock.

Of each log

    BLOCK            written                  journalled             end
      | in its file  |  in memory: being written, |  in memory: not    |
      |              |  and to be written         |  durable yet       |

``take`` gives a record its place, at ``end``, and copies its bytes into memory. The journal makes them durable
(``made_durable``). When half of the buffer may be written (``due``), ``plan`` says which bytes are written where, which
files are made, and which descriptors are closed; ``wrote`` and ``not_written`` report what came of it. While that goes
on the other half fills; when it is full, too, the next group has to wait.

A log takes records until it ``has ended``: because it is full, because its ledger is deleted, was said to be closed, or
had no record for a while. A checkpoint finishes logs that have ended (``finished``), or removes them (``removed``).

Always true, and derived again by :meth:`LedgerLogs.validate_state`:

    - only what is durable in the journal is written to a log (K33)
    - every byte of a log is in its file or in memory, in one of them, and none is missing between (K34)
    - a log whose file has unsynced bytes keeps the descriptor that wrote them (K5)
    - a ledger has one log that takes its records, and what a checkpoint finishes takes none any more
    - the bytes in memory are counted, and those that may be written are at most half of the buffer and one group (P12)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.codec import RECORD_HEADER
from bookkeeper.errors import check
from bookkeeper.seams import Buffer
from bookkeeper.storage.base.durable_file import BLOCK
from bookkeeper.storage.index.entry_index import LOG_SHIFT, OFFSET_MASK

SHARED: Final = -1
"""The owner of the log for records that must outlive the log of their ledger; it is no ledger's id."""


class MemoryPiece:
    """Records of one log that are in memory, one after the other."""

    __slots__ = ("begin", "data", "log_id")

    def __init__(self, log_id: int, begin: int) -> None:
        self.log_id, self.begin = log_id, begin
        self.data = bytearray()

    @property
    def end(self) -> int:
        return self.begin + len(self.data)

    @property
    def name(self) -> str:
        return f"the memory of log {self.log_id}"

    def read(self, offset: int, size: int) -> bytes:
        """The bytes from ``offset`` of the log on, at most ``size``: a copy, because the memory grows and moves."""
        at = offset - self.begin
        with memoryview(self.data) as view:
            return bytes(view[at : at + size])

    def record_from(self, offset: int) -> bytes:
        """The record at ``offset`` of the log."""
        return self.read(offset, RECORD_HEADER + int.from_bytes(self.read(offset, 4), "big"))


class LedgerLog:
    """One log. Only :class:`LedgerLogs` writes its fields."""

    __slots__ = ("ended", "journalled", "log_id", "made", "open", "owner", "synced", "tail", "used_at", "writing")

    def __init__(self, log_id: int, owner: int, now: float) -> None:
        self.log_id, self.owner = log_id, owner
        self.tail = MemoryPiece(log_id, BLOCK)
        """Where new records go."""
        self.writing: MemoryPiece | None = None
        """What is being written. It does not change."""
        self.journalled = BLOCK
        """Everything below this offset is durable in the journal."""
        self.synced = BLOCK
        """Everything below this offset is synced in the file."""
        self.made = False
        """Its file exists."""
        self.open = False
        """The descriptor that writes it is open."""
        self.ended = False
        """It takes no more records."""
        self.used_at = now
        """When a record of it last became durable."""

    @property
    def end(self) -> int:
        """Where the next record goes."""
        return self.tail.begin + len(self.tail.data)

    @property
    def written(self) -> int:
        """Everything below this offset is in the file."""
        return self.tail.begin if self.writing is None else self.writing.begin

    @property
    def unsynced(self) -> bool:
        """Its file has bytes that no sync has taken, or that are being written."""
        return self.synced < self.tail.begin

    def piece(self, offset: int) -> MemoryPiece | None:
        """The memory that holds the record at ``offset``; None: the file does."""
        if offset >= self.tail.begin:
            return self.tail
        return self.writing if self.writing is not None and offset >= self.writing.begin else None


@dataclass(slots=True)
class GroupPart:
    """What one group has in one log."""

    end: int
    """Behind its last record."""
    usage: dict[int, list[int]]
    """Ledger -> [bytes, records]."""


@dataclass(frozen=True, slots=True)
class LogWrite:
    """Bytes that are to be written to one log."""

    log_id: int
    offset: int
    data: Buffer
    make: bool
    """The file must be made first."""
    keep: bool
    """The descriptor stays open; else the file is synced and closed."""


@dataclass(slots=True)
class WritePlan:
    """What a job of the worker does."""

    writes: list[LogWrite] = field(default_factory=list)
    give_way: list[tuple[int, bool]] = field(default_factory=list)
    """Logs that are not written now, and whose descriptors make room for others: (log, whether it must be synced)."""


class LedgerLogs:
    """Owned by the loop's thread."""

    def __init__(
        self,
        begin_log: Callable[[bool], int | None],
        log_ended: Callable[[int], None],
        *,
        log_bytes: int,
        buffer_bytes: int,
        open_max: int,
        idle_s: float,
    ) -> None:
        """
        Args:
            begin_log: the id of a new log. With True it is a shared one; else None says that there are too few ids left
                for logs of single ledgers.
            log_ended: told that a log takes no more records.
            log_bytes: a log of so many bytes ends.
            buffer_bytes: when half of it may be written, it is.
            open_max: logs whose writing descriptor stays open.
            idle_s: a log without a new record for so long ends; 0: it does not.
        """
        self._begin_log, self._log_ended = begin_log, log_ended
        self._log_bytes, self._half, self._open_max, self._idle_s = log_bytes, buffer_bytes // 2, open_max, idle_s
        self._taking: dict[int, LedgerLog] = {}
        """Owner -> the log that takes its records."""
        self._logs: dict[int, LedgerLog] = {}
        """Every log that is not finished, by id."""
        self._ready: dict[int, LedgerLog] = {}
        """Logs with bytes that may be written and are not being written."""
        self._recent: OrderedDict[int, LedgerLog] = OrderedDict()
        """Logs whose descriptors are open, the one that was written longest ago first."""
        self._now = 0.0
        self.buffered = 0
        """Bytes in memory."""
        self.writable = 0
        """Those of them that may be written and are not being written."""
        self.writing = False
        """A plan is being carried out."""
        self.must_share = False
        """There are too few ids left for logs of single ledgers: new ones share a log."""

    # -- where records go ---------------------------------------------------------------------------------

    def take(self, owner: int, records: Buffer) -> LedgerLog:
        """Copy records to the end of the owner's log. It is begun if need be; they begin at its end before."""
        log = self._taking.get(owner)
        if log is None or log.end >= self._log_bytes:
            log = self._begin(owner)
        log.tail.data += records
        self.buffered += len(records)
        return log

    def _begin(self, owner: int) -> LedgerLog:
        """A further log for an owner. (Where there are several directories, this is where one is chosen.)"""
        self.end_of(owner)
        log_id = self._begin_log(owner == SHARED)
        if log_id is None:
            self.must_share = True
            return self._shared()
        log = self._logs[log_id] = self._taking[owner] = LedgerLog(log_id, owner, self._now)
        return log

    def _shared(self) -> LedgerLog:
        log = self._taking.get(SHARED)
        return log if log is not None and log.end < self._log_bytes else self._begin(SHARED)

    def end_of(self, owner: int) -> bool:
        """The log of this owner takes no more records. False: there is none."""
        log = self._taking.pop(owner, None)
        if log is None:
            return False
        log.ended = True
        self._log_ended(log.log_id)
        return True

    def end_all(self) -> None:
        """No log takes more records."""
        for owner in list(self._taking):
            self.end_of(owner)

    def end_idle(self, now: float) -> int:
        """End the logs that had no record for long. Returns how many they were."""
        self._now = now
        if not self._idle_s:
            return 0
        idle = [
            owner
            for owner, log in self._taking.items()
            if now - log.used_at >= self._idle_s and log.end <= log.journalled
        ]
        for owner in idle:
            self.end_of(owner)
        return len(idle)

    # -- what is where ------------------------------------------------------------------------------------

    def holding(self, found: int) -> MemoryPiece | None:
        """The memory that holds the record at this place; None: a file does."""
        log = self._logs.get(found >> LOG_SHIFT)
        return None if log is None else log.piece(found & OFFSET_MASK)

    def log(self, log_id: int) -> LedgerLog | None:
        """A log that is not finished; not to be changed."""
        return self._logs.get(log_id)

    def ended_of(self, owners: Callable[[int], bool]) -> list[int]:
        """The logs that have ended, are not finished, and belong to one of these ledgers."""
        return [log.log_id for log in self._logs.values() if log.ended and log.owner != SHARED and owners(log.owner)]

    @property
    def have_ended(self) -> bool:
        """A log has ended and is not finished."""
        return len(self._logs) > len(self._taking)

    # -- what is written ----------------------------------------------------------------------------------

    def made_durable(self, parts: Mapping[int, GroupPart], now: float) -> None:
        """A group is durable in the journal: so much of each log may be written."""
        self._now = now
        for log_id, part in parts.items():
            log = self._logs[log_id]
            check(
                log.journalled <= part.end <= log.end, "K34", f"log {log_id} is durable up to {part.end} of {log.end}"
            )
            self.writable += part.end - log.journalled
            log.journalled, log.used_at = part.end, now
            self._ready[log_id] = log

    @property
    def due(self) -> bool:
        """It is time to write. If that is being done already, the next group has to wait."""
        return self.writable >= self._half

    def plan(self) -> WritePlan:
        """Everything that may be written, one write for each log, in an order in which no more than ``open_max``
        descriptors are open wherever it ends. To be reported by :meth:`wrote` and :meth:`not_written` for each write,
        then :meth:`ended_writing`."""
        assert not self.writing, "one plan at a time"
        self.writing, ready, self._ready = True, self._ready, {}
        self.writable = 0
        for log_id, log in ready.items():
            log.writing = self._cut(log)
            self._recent[log_id] = log
            self._recent.move_to_end(log_id)
        plan = WritePlan()
        while len(self._recent) > self._open_max:
            log_id, log = self._recent.popitem(last=False)
            if log_id not in ready:
                plan.give_way.append((log_id, log.unsynced))
        for keep, log_id in sorted((log_id in self._recent, log_id) for log_id in ready):  # those that close come first
            log = ready[log_id]
            assert log.writing is not None
            plan.writes.append(LogWrite(log_id, log.writing.begin, log.writing.data, not log.made, keep))
        return plan

    def _cut(self, log: LedgerLog) -> MemoryPiece:
        """Take what is durable out of the tail."""
        piece, count = log.tail, log.journalled - log.tail.begin
        check(0 < count <= len(piece.data), "K33", f"{count} bytes of log {log.log_id} are to be written")
        log.tail = MemoryPiece(log.log_id, log.journalled)
        if count < len(piece.data):
            log.tail.data += piece.read(log.journalled, len(piece.data))
            del piece.data[count:]
        return piece

    def wrote(self, write: LogWrite) -> bool:
        """These bytes are in the file; where the descriptor is not kept they are synced. False: nobody knows the log
        any more."""
        log = self._logs.get(write.log_id)
        if log is None:
            return False
        assert log.writing is not None
        log.made, log.open, log.writing = True, write.keep, None
        if not write.keep:
            log.synced = write.offset + len(write.data)
        self.buffered -= len(write.data)
        return True

    def not_written(self, write: LogWrite) -> None:
        """It failed: these bytes are written with the next plan."""
        log = self._logs.get(write.log_id)
        if log is None:
            return
        piece, log.writing = log.writing, None
        assert piece is not None
        self.writable += len(piece.data)
        piece.data += log.tail.data
        log.tail = piece
        self._ready[write.log_id] = log
        if log.open:
            self._recent[write.log_id] = log
        else:
            self._recent.pop(write.log_id, None)

    def gave_way(self, log_id: int) -> None:
        """The descriptor of a log that was not written is synced, and can be closed."""
        log = self._logs.get(log_id)
        if log is not None and log.writing is None:
            log.open, log.synced = False, log.tail.begin

    def did_not_give_way(self, log_id: int) -> None:
        """It failed before that: the descriptor stays."""
        log = self._logs.get(log_id)
        if log is not None:
            self._recent[log_id] = log
            self._recent.move_to_end(log_id, last=False)

    def ended_writing(self) -> None:
        """The plan is carried out, or has failed."""
        self.writing = False

    # -- checkpoints --------------------------------------------------------------------------------------

    def must_sync(self, ends: Mapping[int, int]) -> list[int]:
        """The logs that must be synced so that everything below these offsets of them is.

        Raises:
            InvariantError: not all of that is written.
        """
        wanted: list[int] = []
        for log_id, end in ends.items():
            if (log := self._logs.get(log_id)) is None:
                continue
            check(log.written >= end, "K13", f"log {log_id} is written up to {log.written}, to be covered up to {end}")
            if log.synced < end:
                check(log.open, "K5", f"log {log_id} has unsynced bytes, and its descriptor is closed")
                wanted.append(log_id)
        return wanted

    def was_synced(self, log_id: int, end: int) -> None:
        """A checkpoint has synced everything below ``end``."""
        log = self._logs.get(log_id)
        if log is not None and log.synced < end:
            log.synced = end

    def finished(self, log_ids: Iterable[int]) -> list[int]:
        """Logs have their map and footer: nothing of them is in memory, and they are files like any other. Returns
        those of them that were here."""
        here = [log_id for log_id in log_ids if log_id in self._logs]
        for log_id in here:
            log = self._logs[log_id]
            check(log.ended and log.written == log.end, "K34", f"log {log_id} is finished, with bytes in memory")
            self._forget(log)
        return here

    def removed(self, log_id: int) -> None:
        """The ledger of a log is deleted, and a checkpoint has left the log out."""
        if (log := self._logs.get(log_id)) is not None:
            check(log.ended and log.writing is None, "K34", f"log {log_id} is removed while it is written")
            self._forget(log)

    def _forget(self, log: LedgerLog) -> None:
        self.buffered -= log.end - log.written
        if self._ready.pop(log.log_id, None) is not None:
            self.writable -= log.journalled - log.tail.begin
        self._recent.pop(log.log_id, None)
        del self._logs[log.log_id]

    # -- what must hold -----------------------------------------------------------------------------------

    def _all(self) -> Iterator[LedgerLog]:
        yield from self._logs.values()

    def validate_state(self) -> None:
        """Derive again what must hold between two calls.

        Raises:
            InvariantError: it does not.
        """
        buffered = writable = 0
        for log in self._all():
            where = f"log {log.log_id}"
            check(BLOCK <= log.written <= log.journalled <= log.end, "K33", f"{where}: {log.written}, {log.journalled}")
            check(log.synced <= log.written, "K34", f"{where} is synced up to {log.synced}, written to {log.written}")
            if log.writing is not None:
                check(self.writing, "K34", f"{where} is being written, and nobody writes")
                check(log.writing.end == log.tail.begin, "K34", f"{where}: a gap at {log.writing.end}")
                check(log.writing.end <= log.journalled, "K33", f"{where}: what is written is not durable")
            elif log.synced < log.written:
                check(log.open or log.log_id in self._recent, "K5", f"{where} is unsynced and closed")
            may = log.journalled - log.tail.begin
            check((log.log_id in self._ready) == (may > 0), "K34", f"{where}: {may} bytes may be written")
            check((self._taking.get(log.owner) is log) == (not log.ended), "K34", f"{where}: whether it has ended")
            buffered += log.end - log.written
            writable += may
        check(self.buffered == buffered, "P12", f"{self.buffered} bytes are counted in memory, {buffered} are there")
        check(self.writable == writable, "P12", f"{self.writable} bytes are counted as writable, {writable} are")
        for owner, log in self._taking.items():
            check(log.owner == owner and self._logs.get(log.log_id) is log, "K34", f"the log of ledger {owner}")
        check(len(self._recent) <= self._open_max or self.writing, "K28", f"{len(self._recent)} logs are open")
