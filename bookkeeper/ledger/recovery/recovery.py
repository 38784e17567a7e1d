"""Finds the end of a ledger whose writer is gone: fence, read forward, write back, close -- and never truncate.

    beginning  -- on_begun(IN_RECOVERY) -->  fencing  -- covered (Q3) -->  reading and writing back
               -- end found, all written back, length known -->  closing  -- on_closed -->  done
    any        -- someone else closed it -->  done (R15)
    any        -- inconclusive, too often -->  failed: the ledger stays IN_RECOVERY, nothing is lost (R6)

This machine hands over from one phase to the next. Each phase decides what to ask which bookie:

    FencePhase   fence every write set of the last fragment (:mod:`bookkeeper.ledger.recovery.fencing`)
    ReadPhase    read forward until an entry is provably absent (:mod:`bookkeeper.ledger.recovery.reading`)
    WritePhase   write back what was read, and say where to close (:mod:`bookkeeper.ledger.recovery.writing`)

Rules that are easy to lose
    R2   No recovery read before every write set of the last fragment is covered by fenced bookies.
    R3   Every recovery read fences, too.
    R4   Reading starts at max(last add confirmed heard, first id of the last fragment - 1) + 1.
    R5   Reads go to the ensemble that the ledger had when recovery began.
    R6   One good copy is enough to keep an entry. To leave it out takes Qw - Qa + 1 explicit negatives (Q4). Otherwise
         the recovery is inconclusive, and does not close the ledger.
    R7   Entries are written back in id order, and an entry is written back once Qa bookies have it.
    R8   What is written back carries the last add confirmed of the end of phase 1, not this recovery's own progress.
    R9   Ensemble changes stay private until the closing compare-and-set.
    R10  That is conditional on the metadata with which this recovery began. If it loses, the recovery adopts the stored
         end, or starts again.
    R12  The ledger's length is in its last entry: in a copy of that entry, never in an empty reply or a later entry.
    R14  Everything after the first provably missing id is left out, even if copies exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from bookkeeper.errors import BookKeeperError, RecoveryInconclusiveError, check
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.config import RecoveryConfig
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.metadata import LedgerMetadata, LedgerState
from bookkeeper.ledger.recovery.effects import (
    BeginRecovery,
    Effect,
    RecoveryDone,
    RecoveryFailed,
)
from bookkeeper.ledger.recovery.fencing import FencePhase
from bookkeeper.ledger.recovery.reading import ReadPhase
from bookkeeper.ledger.recovery.writing import WritePhase


class RecoveryState(Enum):
    """The state of a recovery; see the drawing above."""

    BEGINNING = "beginning"
    FENCING = "fencing"
    READING = "reading"
    CLOSING = "closing"
    DONE = "done"
    FAILED = "failed"


class LedgerRecovery:
    """Recovers one ledger, once. Start with :meth:`start`, end with ``RecoveryDone`` or ``RecoveryFailed``."""

    def __init__(self, config: RecoveryConfig | None = None) -> None:
        self.config = config or RecoveryConfig()
        self.state = RecoveryState.BEGINNING
        self.metadata: LedgerMetadata | None = None
        """The metadata with which this recovery began, or began again."""
        self._fencing: FencePhase | None = None
        self._reading: ReadPhase | None = None
        self._writing: WritePhase | None = None
        self._store_rounds = 0
        self._store_due: float | None = None
        self._wake_at: float | None = None
        self._restarts = 0

    @property
    def lac(self) -> EntryId:
        """The highest last add confirmed heard in phase 1. It does not change after that phase (R8)."""
        return NO_ENTRY if self._fencing is None else self._fencing.lac

    def __repr__(self) -> str:
        if self._reading is None or self._writing is None:
            return f"<{self.state.value}, lac={self.lac}>"
        end = "?" if self._reading.end is None else self._reading.end
        return f"<{self.state.value}, lac={self.lac}, written back {self._writing.written}, end {end}>"

    # -- phase 0: metadata (R1) -------------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        """Begin."""
        return [BeginRecovery()]

    def on_begun(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """Take the stored metadata: IN_RECOVERY, set by this recovery or joined (R1), or CLOSED, which is adopted."""
        if self.state is not RecoveryState.BEGINNING:
            return []
        self.metadata = metadata
        if metadata.is_closed:
            return self._done(metadata)
        check(metadata.state is LedgerState.IN_RECOVERY, "R1", f"recovery of a ledger that is {metadata.state.name}")
        self._fencing = FencePhase(metadata, self.config)
        self._reading = self._writing = None
        self._store_rounds = 0
        self._store_due = None
        self.state = RecoveryState.FENCING
        return self._fencing.begin()

    def _done(self, metadata: LedgerMetadata) -> list[Effect]:
        self.state = RecoveryState.DONE
        return [RecoveryDone(metadata)]

    def _fail(self, error: BookKeeperError) -> list[Effect]:
        self.state = RecoveryState.FAILED
        return [RecoveryFailed(error)]

    # -- phase 1: fence (R2, R3, Q3) --------------------------------------------------------------------

    def on_fence_answer(
        self, bookie: BookieId, answer: Answer, lac: EntryId | None, now: float, error: BookKeeperError | None = None
    ) -> list[Effect]:
        """Take the answer to a fencing read.

        POSITIVE: the bookie is fenced and sent a good last entry. NEGATIVE: it is fenced and has no entry. Anything
        else is UNKNOWN. ``lac`` is the highest last add confirmed that the answer carried, with its digest checked, or
        None.
        """
        fencing = self._fencing
        if self.state is not RecoveryState.FENCING or fencing is None:
            return []
        fencing.on_answer(bookie, answer, lac, now, error)
        if fencing.failure is not None:
            return self._fail(fencing.failure)
        return self._begin_reading(now) if fencing.is_covered else self._wake([])

    # -- phase 2: read forward and write back (R4 - R9) -------------------------------------------------

    def _begin_reading(self, now: float) -> list[Effect]:
        assert self.metadata is not None
        self.state = RecoveryState.READING
        self._reading = ReadPhase(self.metadata, self.lac, self.config)
        self._writing = WritePhase(self.metadata, self.lac, self.config)
        return self._go_on(now, self._reading.begin(now))

    def on_read_answer(
        self,
        bookie: BookieId,
        entry_id: int,
        answer: Answer,
        now: float,
        length: int | None = None,
        error: BookKeeperError | None = None,
    ) -> list[Effect]:
        """Take the answer to a recovery read. POSITIVE: digest and ids are checked, ``length`` is from the entry's
        header, and the shell keeps the payload."""
        if self.state is not RecoveryState.READING or self._reading is None:
            return []
        effects = self._reading.on_answer(bookie, entry_id, answer, now, length, error)
        return [] if effects is None else self._go_on(now, effects)

    def on_written(self, bookie: BookieId, entry_id: int, now: float) -> list[Effect]:
        """``bookie`` stored an entry that was written back."""
        if self.state is not RecoveryState.READING or self._writing is None:
            return []
        return self._go_on(now, []) if self._writing.on_written(bookie, entry_id, now) else []

    def on_write_failed(self, bookie: BookieId, entry_id: int, error: BookKeeperError, now: float) -> list[Effect]:
        """``bookie`` did not store an entry. A stand-in replaces it, privately, if there is one."""
        if self.state is not RecoveryState.READING or self._writing is None:
            return []
        effects = self._writing.on_write_failed(bookie, entry_id, error, now)
        if self._writing.failure is not None:
            return effects + self._fail(self._writing.failure)
        return self._wake(effects)

    def on_stand_ins(self, stand_ins: Mapping[BookieId, BookieId], now: float) -> list[Effect]:
        """Use the stand-ins from the first entry on that is not on an ack quorum yet."""
        if self.state is not RecoveryState.READING or self._writing is None:
            return []
        return self._go_on(now, self._writing.on_stand_ins(stand_ins))

    def _go_on(self, now: float, effects: list[Effect]) -> list[Effect]:
        """Write back what was found, read ahead, and close the ledger once its end is reached."""
        reading, writing = self._reading, self._writing
        assert reading is not None and writing is not None
        if (failure := reading.failure or writing.failure) is not None:
            return effects + self._fail(failure)
        for entry_id, length in reading.take():
            effects += writing.write(entry_id, length)
        effects += writing.advance()
        effects += reading.read_ahead(writing.written, now)
        if reading.end == writing.written + 1:
            self._close(reading, writing, effects)
        return self._wake(effects)

    # -- phase 3: close (R10, R12) ----------------------------------------------------------------------

    def _close(self, reading: ReadPhase, writing: WritePhase, effects: list[Effect]) -> None:
        length = writing.length(reading.lac_length)
        if length is not None:
            self.state = RecoveryState.CLOSING
            effects.append(writing.close(length))
        elif reading.no_length is not None:
            effects += self._fail(reading.no_length)

    def on_closed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """The closing compare-and-set was made; ``metadata`` is what it wrote."""
        return self._done(metadata) if self.state is RecoveryState.CLOSING else []

    def on_close_lost(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """The compare-and-set lost. Adopt the end in the stored ``metadata``, or start again from them (R10)."""
        if self.state is not RecoveryState.CLOSING:
            return []
        if metadata.is_closed:
            return self._done(metadata)
        self._restarts += 1
        if self._restarts > self.config.rounds_max:
            return self._fail(
                RecoveryInconclusiveError("the ledger's metadata changed during every attempt to close it")
            )
        self.state = RecoveryState.BEGINNING
        return self.on_begun(metadata, now)

    def on_store_failed(self, error: BookKeeperError, now: float) -> list[Effect]:
        """The store cannot be reached, or the ledger was deleted."""
        if self.state not in (RecoveryState.BEGINNING, RecoveryState.CLOSING):
            return []
        self._store_rounds += 1
        if not error.retryable or self._store_rounds >= self.config.rounds_max:
            return self._fail(error)
        self._store_due = now + self.config.retry_ms / 1000
        return self._wake([])

    def _retry_store(self) -> list[Effect]:
        if self.state is RecoveryState.BEGINNING:
            return [BeginRecovery()]
        assert self._reading is not None and self._writing is not None
        length = self._writing.length(self._reading.lac_length)
        assert length is not None
        return [self._writing.close(length)]

    # -- time -------------------------------------------------------------------------------------------

    def _dues(self) -> list[float]:
        dues = [self._store_due]
        if self.state is RecoveryState.FENCING and self._fencing is not None:
            dues.append(self._fencing.due)
        if self.state is RecoveryState.READING and self._reading is not None and self._writing is not None:
            dues += [*self._reading.dues(), *self._writing.dues()]
        return [due for due in dues if due is not None]

    def _wake(self, effects: list[Effect]) -> list[Effect]:
        if dues := self._dues():
            first = min(dues)
            if self._wake_at is None or first < self._wake_at:
                self._wake_at = first
                effects.append(WakeAt(first))
        return effects

    def on_tick(self, now: float) -> list[Effect]:
        """Time has passed: ask others, ask again, or give up."""
        self._wake_at = None
        if self._store_due is not None and now >= self._store_due:
            self._store_due = None
            return self._retry_store()
        if self.state is RecoveryState.FENCING and self._fencing is not None:
            return self._wake(self._fencing.on_tick(now))
        if self.state is RecoveryState.READING and self._reading is not None and self._writing is not None:
            effects = self._reading.on_tick(now)
            if self._reading.failure is None:
                effects += self._writing.on_tick(now)
            return self._go_on(now, effects)
        return self._wake([])

    # -- for tests --------------------------------------------------------------------------------------

    def validate_state(self) -> None:
        """Derive again what must hold between the phases. For tests.

        Raises: InvariantError.
        """
        if self.state in (RecoveryState.DONE, RecoveryState.FAILED):
            return
        fenced = self._fencing is not None and self._fencing.is_covered
        read = self._reading is not None and self._writing is not None
        check(read == (self.state in (RecoveryState.READING, RecoveryState.CLOSING)), "R2", self)
        check(fenced or not read, "R2", self)
        for phase in (self._fencing, self._reading, self._writing):
            if phase is not None:
                phase.validate_state()
                check(phase.lac == self.lac, "R8", self)
        if self._reading is not None and self._writing is not None:
            end = self._reading.end
            check(end is None or self._writing.written < end, "R14", (end, self))
            check(self.state is not RecoveryState.CLOSING or self._writing.written + 1 == end, "R6", self)
        if dues := self._dues():
            check(self._wake_at is not None and self._wake_at <= min(dues), "V2", (min(dues), self))
