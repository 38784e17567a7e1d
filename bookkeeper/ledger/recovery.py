"""Finding the end of a ledger whose writer is gone: fence, read forward, write back, close -- and never truncate.

    beginning  -- on_begun(IN_RECOVERY) -->  fencing  -- covered (Q3) -->  reading and writing back
               -- end found, all written back, length known -->  closing  -- on_closed -->  done
    any        -- someone else closed it -->  done (R15)
    any        -- inconclusive, too often -->  failed: the ledger stays IN_RECOVERY, nothing is lost (R6)

Rules that are easy to lose
    R2   No recovery read before every write set of the last fragment is covered by fenced bookies.
    R3   Every recovery read fences, too.
    R4   Reading starts at max(last add confirmed heard, first id of the last fragment - 1) + 1.
    R5   Reads go to the ensemble that the ledger had when recovery began.
    R6   One good copy is enough to keep an entry; to leave it out takes Qw - Qa + 1 explicit negatives (Q4). Else the
         recovery is inconclusive, and never closes.
    R7   Writing back is sent in id order and done at Qa.
    R8   What is written back carries the last add confirmed of the end of phase 1, not this recovery's own progress.
    R9   Ensemble changes stay private until the closing compare-and-set.
    R10  That is conditional on the metadata this recovery began with; losing it means adopting or starting again.
    R12  The length is the last entry's own: from its copy, never from an empty reply or from a later entry.
    R14  What lies behind the first provably missing id is left out, though copies exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from bookkeeper.errors import BookKeeperError, RecoveryInconclusiveError, UnauthorizedError, check
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.metadata import LedgerMetadata, LedgerState, with_ensemble
from bookkeeper.ledger.recovery_effects import (
    BeginRecovery,
    CloseRecovered,
    Effect,
    FenceRead,
    FindStandIns,
    ForgetPayloads,
    Recovered,
    RecoveryConfig,
    RecoveryFailed,
    RecoveryRead,
    WriteBack,
)
from bookkeeper.ledger.recovery_parts import EntryRead, EntryWriteBack, reasons

__all__ = [
    "BeginRecovery",
    "CloseRecovered",
    "Effect",
    "FenceRead",
    "FindStandIns",
    "ForgetPayloads",
    "LedgerRecovery",
    "Recovered",
    "RecoveryConfig",
    "RecoveryFailed",
    "RecoveryRead",
    "RecoveryState",
    "WakeAt",
    "WriteBack",
]

_WINDOW_FIRST: Final = 4
"""How far ahead is read at first: most ledgers end right behind their last add confirmed."""


class RecoveryState(Enum):
    """Where a recovery stands; see the drawing."""

    BEGINNING = "beginning"
    FENCING = "fencing"
    READING = "reading"
    CLOSING = "closing"
    DONE = "done"
    FAILED = "failed"


class LedgerRecovery:
    """Recovers one ledger, once. Start with :meth:`start`, end with ``Recovered`` or ``RecoveryFailed``."""

    def __init__(self, config: RecoveryConfig | None = None) -> None:
        self.config = config or RecoveryConfig()
        self.state = RecoveryState.BEGINNING
        self.metadata: LedgerMetadata | None = None
        """As it was when this recovery (last) began."""
        self.lac: EntryId = NO_ENTRY
        """Highest last add confirmed heard in phase 1; frozen after it (R8)."""
        self._store_rounds = 0
        self._store_due: float | None = None
        self._wake_at: float | None = None
        self._restarts = 0

    def __repr__(self) -> str:
        if self.metadata is None or self.state in (RecoveryState.BEGINNING, RecoveryState.FENCING):
            return f"<{self.state.value}, lac={self.lac}>"
        end = "?" if self._end is None else self._end
        return f"<{self.state.value}, lac={self.lac}, written back {self._written}, end {end}>"

    # -- phase 0: metadata (R1) -------------------------------------------------------------------------

    def start(self, now: float) -> list[Effect]:
        """Begin."""
        return [BeginRecovery()]

    def on_begun(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """What is stored: IN_RECOVERY (set or joined, R1), or CLOSED (adopted)."""
        if self.state is not RecoveryState.BEGINNING:
            return []
        self.metadata = metadata
        if metadata.is_closed:
            return self._done(metadata)
        check(metadata.state is LedgerState.IN_RECOVERY, "R1", f"recovery of a ledger that is {metadata.state.name}")
        self.spec = metadata.spec
        self._ensemble = metadata.last_fragment.ensemble
        self.lac = EntryId(metadata.last_fragment.first_entry - 1)
        self._fenced: set[BookieId] = set()
        self._unfenced: dict[BookieId, BookKeeperError | None] = {}
        self._fence_rounds = 1
        self._fence_due: float | None = None
        self._store_rounds = 0
        self._store_due = None
        self.state = RecoveryState.FENCING
        return [FenceRead(bookie) for bookie in self._ensemble]

    def _done(self, metadata: LedgerMetadata) -> list[Effect]:
        self.state = RecoveryState.DONE
        return [Recovered(metadata)]

    def _fail(self, error: BookKeeperError) -> list[Effect]:
        self.state = RecoveryState.FAILED
        return [RecoveryFailed(error)]

    # -- phase 1: fence (R2, R3, Q3) --------------------------------------------------------------------

    def on_fence_answer(
        self, bookie: BookieId, answer: Answer, lac: EntryId | None, now: float, error: BookKeeperError | None = None
    ) -> list[Effect]:
        """POSITIVE: fenced, and the last entry's digest is right; NEGATIVE: fenced, has no entry; else UNKNOWN.

        ``lac``: the highest last add confirmed that the answer carried (entry or explicit, digest checked), or None.
        """
        if self.state is not RecoveryState.FENCING or bookie not in self._ensemble:
            return []
        if isinstance(error, UnauthorizedError):
            return self._fail(error)
        if answer is Answer.UNKNOWN:
            if bookie in self._fenced:
                return []
            self._unfenced[bookie] = error
        else:
            self._unfenced.pop(bookie, None)
            self._fenced.add(bookie)
            if lac is not None and lac > self.lac:
                self.lac = lac
        if self.spec.covers_ensemble(self._fenced, self._ensemble):
            return self._begin_reading(now)
        if len(self._fenced) + len(self._unfenced) < len(self._ensemble) or self._fence_due is not None:
            return []
        if self._fence_rounds >= self.config.rounds_max:
            return self._inconclusive("too few bookies could be fenced", list(self._unfenced.values()))
        self._fence_due = now + self.config.retry_ms / 1000
        return self._wake([])

    def _fence_again(self) -> list[Effect]:
        self._fence_rounds += 1
        self._fence_due = None
        again = [b for b in self._ensemble if b in self._unfenced]
        self._unfenced.clear()
        return [FenceRead(bookie) for bookie in again]

    def _inconclusive(self, what: str, errors: list[BookKeeperError | None]) -> list[Effect]:
        return self._fail(RecoveryInconclusiveError(f"{what} ({reasons(errors)})"))

    # -- phase 2: read forward (R4, R5, R6) -------------------------------------------------------------

    def _begin_reading(self, now: float) -> list[Effect]:
        assert self.metadata is not None
        self.state = RecoveryState.READING
        self._readings: dict[int, EntryRead] = {}
        self._found: dict[int, int] = {}  # entry id -> length, read and not yet sent back
        self._writings: dict[int, EntryWriteBack] = {}  # in id order
        self._next_read = self._next_write = self.lac + 1
        self._written = int(self.lac)
        """Highest entry that it and all before are known to be on an ack quorum."""
        self._end: int | None = None
        """The first id that is provably absent, once it is known (R14)."""
        self._window = min(_WINDOW_FIRST, self.config.window_entries)
        self._length: int | None = 0 if self.lac == NO_ENTRY else None
        self._no_length: BookKeeperError | None = None
        self._fragments = self.metadata.fragments
        """With the private ensemble changes (R9)."""
        self._failed: set[BookieId] = set()
        """Who failed a write and waits for a stand-in."""
        self._left: set[BookieId] = set()
        """Who was replaced: no stand-in for others."""
        self._searching = False
        effects: list[Effect] = []
        if self._length is None:
            fence = self.lac >= self.metadata.last_fragment.first_entry
            self._read(EntryRead(self.lac, self.metadata.write_set(self.lac), fence), now, effects)
        return self._go_on(now, effects)

    def _read(self, reading: EntryRead, now: float, effects: list[Effect]) -> None:
        """Ask the first of the write set; the others when that is no answer, or takes too long."""
        self._readings[reading.entry_id] = reading
        self._ask(reading, reading.write_set[:1], effects)
        reading.due = now + self.config.hedge_ms / 1000

    def _ask(self, reading: EntryRead, bookies: tuple[BookieId, ...] | list[BookieId], effects: list[Effect]) -> None:
        for bookie in bookies:
            reading.asked.add(bookie)
            effects.append(RecoveryRead(bookie, EntryId(reading.entry_id), reading.fence))

    def on_read_answer(
        self,
        bookie: BookieId,
        entry_id: int,
        answer: Answer,
        now: float,
        length: int | None = None,
        error: BookKeeperError | None = None,
    ) -> list[Effect]:
        """POSITIVE (digest and ids checked, ``length`` from its header): the shell keeps the payload."""
        if self.state is not RecoveryState.READING:
            return []
        reading = self._readings.get(entry_id)
        if reading is None or bookie not in reading.asked:
            return []  # decided already, or never asked
        reading.asked.discard(bookie)
        effects: list[Effect] = []
        if answer is Answer.POSITIVE:
            assert length is not None
            self._on_found(reading, length)
        else:
            if answer is Answer.NEGATIVE:
                reading.negative.add(bookie)
            else:
                reading.unknown[bookie] = error
            self._on_not_found(reading, now, effects)
        return self._go_on(now, effects)

    def _on_found(self, reading: EntryRead, length: int) -> None:
        del self._readings[reading.entry_id]
        if reading.entry_id <= self.lac:
            if self._written == self.lac:  # else a later entry's is known already
                self._length = length
            return
        self._found[reading.entry_id] = length
        self._window = min(self._window * 2, self.config.window_entries)

    def _on_not_found(self, reading: EntryRead, now: float, effects: list[Effect]) -> None:
        if reading.entry_id > self.lac and self.spec.proves_absence(len(reading.negative)):
            self._end = reading.entry_id
            self._readings = {e: r for e, r in self._readings.items() if e < self._end}
            self._found = {e: length for e, length in self._found.items() if e < self._end}
            return
        if unasked := reading.unasked():
            self._ask(reading, unasked, effects)
        elif not reading.asked:
            reading.due = now + self.config.retry_ms / 1000

    def _on_reading_due(self, reading: EntryRead, now: float, effects: list[Effect]) -> None:
        reading.due = None
        if unasked := reading.unasked():
            self._ask(reading, unasked, effects)
        elif not reading.asked and reading.rounds < self.config.rounds_max:
            reading.rounds += 1
            again = [b for b in reading.write_set if b in reading.unknown or reading.entry_id <= self.lac]
            reading.unknown.clear()
            reading.negative -= set(again)
            self._ask(reading, again, effects)
        elif not reading.asked:
            self._give_up(reading, effects)

    def _give_up(self, reading: EntryRead, effects: list[Effect]) -> None:
        """Neither present nor provably absent (R6): stop, and never close on it."""
        del self._readings[reading.entry_id]
        no = f"entry {reading.entry_id} can neither be read nor proved absent"
        said = [*reading.unknown.values(), *[None for _ in reading.negative]]
        if reading.entry_id > self.lac:
            effects += self._inconclusive(no, said)
        else:  # only its length is wanted, and only if nothing is written back
            self._no_length = RecoveryInconclusiveError(f"{no}; its length is needed ({reasons(said)})")

    # -- phase 2: write back (R7, R8, R9) ---------------------------------------------------------------

    def _go_on(self, now: float, effects: list[Effect]) -> list[Effect]:
        """Do what can be done: read ahead, write back what was found, close at the end."""
        if self.state is not RecoveryState.READING:
            return effects
        while self._next_write in self._found:
            self._write(self._next_write, self._found.pop(self._next_write), effects)
            self._next_write += 1
        self._advance(effects)
        while self._end is None and self._next_read <= self._written + self._window:
            assert self.metadata is not None
            self._read(EntryRead(self._next_read, self.metadata.write_set(self._next_read), True), now, effects)
            self._next_read += 1
        if self._end is not None and self._written + 1 == self._end:
            self._close(effects)
        return self._wake(effects)

    def _write_set(self, entry_id: int) -> tuple[BookieId, ...]:
        """Where an entry is written back to: the private ensemble (R9)."""
        return self.spec.write_set(entry_id, self._fragments[-1].ensemble)

    def _write(self, entry_id: int, length: int, effects: list[Effect]) -> None:
        writing = self._writings[entry_id] = EntryWriteBack(entry_id, length)
        self._send(writing, self._write_set(entry_id), effects)

    def _send(self, writing: EntryWriteBack, bookies: tuple[BookieId, ...], effects: list[Effect]) -> None:
        writing.due = None
        for bookie in bookies:
            writing.sent.add(bookie)
            writing.failed.pop(bookie, None)
            effects.append(WriteBack(bookie, EntryId(writing.entry_id), self.lac, writing.length))

    def on_written(self, bookie: BookieId, entry_id: int, now: float) -> list[Effect]:
        """``bookie`` stored an entry that was written back."""
        if self.state is not RecoveryState.READING:
            return []
        writing = self._writings.get(entry_id)
        if writing is None or bookie not in writing.sent:
            return []  # enough have it already, or the bookie was replaced
        writing.sent.discard(bookie)
        writing.acked.add(bookie)
        self._retry_when_all_answered(writing, now)
        return self._go_on(now, [])

    def _retry_when_all_answered(self, writing: EntryWriteBack, now: float) -> None:
        if not writing.sent and writing.failed:
            writing.due = now + self.config.retry_ms / 1000

    def _advance(self, effects: list[Effect]) -> None:
        before = self._written
        while (writing := self._writings.get(self._written + 1)) and self.spec.is_acknowledged(len(writing.acked)):
            self._written += 1
            self._length = writing.length
            del self._writings[self._written]
        if self._written > before:
            effects.append(ForgetPayloads(EntryId(self._written)))

    def on_write_failed(self, bookie: BookieId, entry_id: int, error: BookKeeperError, now: float) -> list[Effect]:
        """``bookie`` did not store an entry: it is replaced, privately, if a stand-in is found."""
        if self.state is not RecoveryState.READING:
            return []
        if isinstance(error, UnauthorizedError):
            return self._fail(error)
        effects: list[Effect] = []
        writing = self._writings.get(entry_id)
        if writing is not None and bookie in writing.sent:
            writing.sent.discard(bookie)
            writing.failed[bookie] = error
            self._retry_when_all_answered(writing, now)
        if bookie in self._fragments[-1].ensemble:
            self._failed.add(bookie)
            self._find_stand_ins(effects)
        return self._wake(effects)

    def _find_stand_ins(self, effects: list[Effect]) -> None:
        if not self._searching and self._writings and self._failed:
            self._searching = True
            ensemble = self._fragments[-1].ensemble
            failed = tuple(b for b in ensemble if b in self._failed)
            effects.append(FindStandIns((*failed, *sorted(self._left)), ensemble))

    def on_stand_ins(self, stand_ins: Mapping[BookieId, BookieId], now: float) -> list[Effect]:
        """Stand-ins take their places from the first entry on that is not on an ack quorum yet."""
        if self.state is not RecoveryState.READING:
            return []
        self._searching = False
        effects: list[Effect] = []
        old = self._fragments[-1].ensemble
        new = tuple(stand_ins.get(b, b) for b in old)
        if new != old:
            self._left |= set(old) - set(new)
            self._fragments = with_ensemble(self._fragments, self._written + 1, new)
            for writing in self._writings.values():
                self._reseat(writing, old, new, effects)
        self._failed.clear()  # whoever is left and fails again is asked about again
        return self._go_on(now, effects)

    def _reseat(
        self, writing: EntryWriteBack, old: tuple[BookieId, ...], new: tuple[BookieId, ...], effects: list[Effect]
    ) -> None:
        """Count an entry without those who left; send it to those who came."""
        gone, came = set(old) - set(new), set(new) - set(old)
        writing.sent -= gone
        writing.acked -= gone
        for bookie in gone:
            writing.failed.pop(bookie, None)
        write_set = self._write_set(writing.entry_id)
        if newcomers := tuple(b for b in write_set if b in came):
            self._send(writing, newcomers, effects)

    def _on_writing_due(self, writing: EntryWriteBack, effects: list[Effect]) -> None:
        writing.due = None
        if writing.rounds >= self.config.rounds_max:
            no = f"entry {writing.entry_id} found no ack quorum to be written back to"
            effects += self._inconclusive(no, list(writing.failed.values()))
            return
        writing.rounds += 1
        self._send(writing, tuple(b for b in self._write_set(writing.entry_id) if b in writing.failed), effects)

    # -- phase 3: close (R10, R12) ----------------------------------------------------------------------

    def _close(self, effects: list[Effect]) -> None:
        if self._length is not None:
            self.state = RecoveryState.CLOSING
            effects.append(CloseRecovered(EntryId(self._written), self._length, self._fragments))
        elif self._no_length is not None:
            effects += self._fail(self._no_length)

    def on_closed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """Written as asked."""
        return self._done(metadata) if self.state is RecoveryState.CLOSING else []

    def on_close_lost(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """The compare-and-set lost; ``metadata`` is what is stored: adopt its end, or start again from it (R10)."""
        if self.state is not RecoveryState.CLOSING:
            return []
        if metadata.is_closed:
            return self._done(metadata)
        self._restarts += 1
        if self._restarts > self.config.rounds_max:
            return self._fail(RecoveryInconclusiveError("the metadata changed under every attempt to close"))
        self.state = RecoveryState.BEGINNING
        return self.on_begun(metadata, now)

    def on_store_failed(self, error: BookKeeperError, now: float) -> list[Effect]:
        """The store cannot be reached, or the ledger is deleted."""
        if self.state not in (RecoveryState.BEGINNING, RecoveryState.CLOSING):
            return []
        self._store_rounds += 1
        if not error.retryable or self._store_rounds >= self.config.rounds_max:
            return self._fail(error)
        self._store_due = now + self.config.retry_ms / 1000
        return self._wake([])

    # -- time -------------------------------------------------------------------------------------------

    def _dues(self) -> list[float]:
        dues = [self._store_due]
        if self.state is RecoveryState.FENCING:
            dues.append(self._fence_due)
        if self.state is RecoveryState.READING:
            dues += [r.due for r in self._readings.values()]
            dues += [w.due for w in self._writings.values()]
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
        effects: list[Effect] = []
        if self._store_due is not None and now >= self._store_due:
            self._store_due = None
            return [self._store_wish()]
        if self.state is RecoveryState.FENCING and self._fence_due is not None and now >= self._fence_due:
            return self._fence_again()
        if self.state is RecoveryState.READING:
            for reading in [r for r in self._readings.values() if r.due is not None and now >= r.due]:
                if self.state is RecoveryState.READING:
                    self._on_reading_due(reading, now, effects)
            for writing in [w for w in self._writings.values() if w.due is not None and now >= w.due]:
                if self.state is RecoveryState.READING:
                    self._on_writing_due(writing, effects)
            return self._go_on(now, effects)
        return self._wake(effects)

    def _store_wish(self) -> Effect:
        if self.state is RecoveryState.BEGINNING:
            return BeginRecovery()
        assert self._length is not None
        return CloseRecovered(EntryId(self._written), self._length, self._fragments)
