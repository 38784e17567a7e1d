"""The second phase of a recovery, reading: from the last add confirmed on, until an entry is provably absent.

:class:`ReadPhase` reads a window of entries ahead. ``take`` returns what it found in id order, and
:mod:`bookkeeper.ledger.recovery.writing` writes it back.

Rules
    R3   Every recovery read fences, too.
    R4   Reading starts at max(last add confirmed heard, first id of the last fragment - 1) + 1.
    R5   Reads go to the ensemble that the ledger had when recovery began.
    R6   One good copy is enough to keep an entry. To leave it out takes Qw - Qa + 1 explicit negatives (Q4). Otherwise
         the recovery is inconclusive, and does not close the ledger.
    R12  The ledger's length is in its last entry: in a copy of that entry, never in an empty reply or a later entry.
    R14  Everything after the first provably missing id is left out, even if copies exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from bookkeeper.errors import BookKeeperError, RecoveryInconclusiveError, check
from bookkeeper.ids import NO_ENTRY, BookieId, EntryId
from bookkeeper.ledger.answer import Answer
from bookkeeper.ledger.config import RecoveryConfig
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.recovery.effects import Effect, RecoveryRead
from bookkeeper.ledger.recovery.parts import EntryRead, reasons

_WINDOW_FIRST: Final = 4
"""How many entries are read ahead at first. It is small: most ledgers end right after their last add confirmed."""


class ReadPhase:
    """Reads the entries above ``lac``, the last add confirmed that the first phase heard."""

    def __init__(self, metadata: LedgerMetadata, lac: EntryId, config: RecoveryConfig) -> None:
        self.metadata = metadata
        """The metadata with which the recovery began (R5)."""
        self.lac = lac
        self.end: int | None = None
        """The first id that is provably absent, once it is known (R14)."""
        self.lac_length: int | None = 0 if lac == NO_ENTRY else None
        """The ledger's length at the last add confirmed, once it is known (R12)."""
        self.no_length: BookKeeperError | None = None
        """Why that length cannot be read."""
        self.failure: BookKeeperError | None = None
        """Why the phase gave up."""
        self.spec = metadata.spec
        self._config = config
        self._readings: dict[int, EntryRead] = {}
        self._found: dict[int, int] = {}
        """Entry id -> length of the entries that were read and not taken yet."""
        self._next_read = self._next_take = lac + 1
        self._window = min(_WINDOW_FIRST, config.window_entries)

    def begin(self, now: float) -> list[Effect]:
        """Ask for the ledger's length at the last add confirmed; it is the final one if nothing lies above (R12)."""
        effects: list[Effect] = []
        if self.lac_length is None:
            fence = self.lac >= self.metadata.last_fragment.first_entry
            self._read(EntryRead(self.lac, self.metadata.write_set(self.lac), fence), now, effects)
        return effects

    def read_ahead(self, written: int, now: float) -> list[Effect]:
        """Ask for the entries that the window allows. Everything up to ``written`` is written back already."""
        effects: list[Effect] = []
        while self.end is None and self._next_read <= written + self._window:
            self._read(EntryRead(self._next_read, self.metadata.write_set(self._next_read), True), now, effects)
            self._next_read += 1
        return effects

    def take(self) -> Iterator[tuple[int, int]]:
        """The next entries that were found without a gap, each once: (id, length)."""
        while self._next_take in self._found:
            entry_id, length = self._next_take, self._found.pop(self._next_take)
            self._next_take += 1
            yield entry_id, length

    def _read(self, reading: EntryRead, now: float, effects: list[Effect]) -> None:
        """Ask the first bookie of the write set. The others follow if it has no entry or takes too long."""
        self._readings[reading.entry_id] = reading
        self._send_reads(reading, reading.write_set[:1], effects)
        reading.due = now + self._config.hedge_ms / 1000

    def _send_reads(self, reading: EntryRead, bookies: Iterable[BookieId], effects: list[Effect]) -> None:
        for bookie in bookies:
            reading.asked.add(bookie)
            effects.append(RecoveryRead(bookie, EntryId(reading.entry_id), reading.fence))

    def on_answer(
        self,
        bookie: BookieId,
        entry_id: int,
        answer: Answer,
        now: float,
        length: int | None,
        error: BookKeeperError | None,
    ) -> list[Effect] | None:
        """Take a bookie's answer. None: the entry is decided already, or the bookie was not asked."""
        reading = self._readings.get(entry_id)
        if reading is None or bookie not in reading.asked:
            return None
        reading.asked.discard(bookie)
        effects: list[Effect] = []
        if answer is Answer.POSITIVE:
            assert length is not None
            self._on_found(reading, length)
        elif answer is Answer.NEGATIVE:
            reading.negative.add(bookie)
            self._on_not_found(reading, now, effects)
        else:
            reading.unknown[bookie] = error
            self._on_not_found(reading, now, effects)
        return effects

    def _on_found(self, reading: EntryRead, length: int) -> None:
        del self._readings[reading.entry_id]
        if reading.entry_id <= self.lac:
            self.lac_length = length
            return
        self._found[reading.entry_id] = length
        self._window = min(self._window * 2, self._config.window_entries)

    def _on_not_found(self, reading: EntryRead, now: float, effects: list[Effect]) -> None:
        if reading.entry_id > self.lac and self.spec.proves_absence(len(reading.negative)):
            self.end = reading.entry_id
            self._readings = {e: r for e, r in self._readings.items() if e < self.end}
            self._found = {e: length for e, length in self._found.items() if e < self.end}
            return
        if unasked := reading.unasked():
            self._send_reads(reading, unasked, effects)
        elif not reading.asked:
            reading.due = now + self._config.retry_ms / 1000

    def dues(self) -> Iterator[float | None]:
        """When ``on_tick`` has something to do."""
        return (reading.due for reading in self._readings.values())

    def on_tick(self, now: float) -> list[Effect]:
        """Time has passed: ask the others, ask again, or give up."""
        effects: list[Effect] = []
        for reading in [r for r in self._readings.values() if r.due is not None and now >= r.due]:
            self._on_due(reading, effects)
            if self.failure is not None:
                break
        return effects

    def _on_due(self, reading: EntryRead, effects: list[Effect]) -> None:
        reading.due = None
        if unasked := reading.unasked():
            self._send_reads(reading, unasked, effects)
        elif not reading.asked and reading.rounds < self._config.rounds_max:
            reading.rounds += 1
            again = [b for b in reading.write_set if b in reading.unknown or reading.entry_id <= self.lac]
            reading.unknown.clear()
            reading.negative -= set(again)
            self._send_reads(reading, again, effects)
        elif not reading.asked:
            self._give_up(reading)

    def _give_up(self, reading: EntryRead) -> None:
        """Stop, because the entry is neither present nor provably absent (R6). The ledger is not closed."""
        del self._readings[reading.entry_id]
        no = f"entry {reading.entry_id} can neither be read nor proved absent"
        said = reasons([*reading.unknown.values(), *[None for _ in reading.negative]])
        if reading.entry_id > self.lac:
            self.failure = RecoveryInconclusiveError(f"{no} ({said})")
        else:  # only its length is needed, and only if nothing is written back
            self.no_length = RecoveryInconclusiveError(f"{no}, but the ledger's length is in it ({said})")

    def validate_state(self) -> None:
        """Derive again what must hold between the entries that are read. For tests.

        Raises: InvariantError.
        """
        for entry_id, reading in self._readings.items():
            write_set = self.metadata.write_set(entry_id)
            check(reading.entry_id == entry_id and reading.write_set == write_set, "R5", reading)
            groups = (reading.asked, reading.negative, set(reading.unknown))
            together = set[BookieId]().union(*groups)
            check(sum(map(len, groups)) == len(together) <= len(write_set), "R6", reading)
            check(together <= set(write_set), "R5", reading)
            absent = self.spec.proves_absence(len(reading.negative)) and entry_id > self.lac
            check(not absent, "R6", reading)
            check(bool(reading.asked) or reading.due is not None, "V2", reading)
        ids = [*self._readings, *self._found]
        above = [entry_id for entry_id in ids if entry_id > self.lac]
        check(len(ids) == len(set(ids)), "R6", (self._found, self._readings))
        limit = self._next_read if self.end is None else self.end
        rising = self._next_take <= min(above, default=limit) and max(above, default=self.lac) < limit
        check(rising, "R14", (sorted(above), self._next_take, limit - 1))
        check(self._window <= self._config.window_entries, "R4", self._window)
