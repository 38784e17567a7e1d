"""What a recovery writes: it writes back what was found, while more is read, and says where the ledger is closed.

:class:`WritePhase` stores every entry that :mod:`bookkeeper.ledger.recovery.reading` found on an ack quorum. Stand-ins
replace bookies that do not store an entry, privately: the metadata change only with the closing compare-and-set.

Rules
    R7   Entries are written back in id order, and an entry is written back once Qa bookies have it.
    R8   What is written back carries the last add confirmed of the end of phase 1, not this recovery's own progress.
    R9   Ensemble changes stay private until the closing compare-and-set.
    R12  The ledger's length is in its last entry.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bookkeeper.errors import BookKeeperError, RecoveryInconclusiveError, check
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.config import RecoveryConfig
from bookkeeper.ledger.metadata import LedgerMetadata, with_ensemble
from bookkeeper.ledger.recovery.effects import CloseRecovered, Effect, FindStandIns, ForgetPayloads, WriteBack
from bookkeeper.ledger.recovery.parts import EntryWriteBack, reasons


class WritePhase:
    """Writes back the entries above ``lac``, the last add confirmed that the first phase heard."""

    def __init__(self, metadata: LedgerMetadata, lac: EntryId, config: RecoveryConfig) -> None:
        self.lac = lac
        self.written = int(lac)
        """This entry and all before it are known to be on an ack quorum."""
        self.fragments = metadata.fragments
        """The fragments, with this recovery's private ensemble changes (R9)."""
        self.failure: BookKeeperError | None = None
        """Why the phase gave up."""
        self.spec = metadata.spec
        self._config = config
        self._length: int | None = None
        """The ledger's length at ``written``, if anything was written back (R12)."""
        self._writings: dict[int, EntryWriteBack] = {}
        """The entries that are being written back, in id order."""
        self._failed: set[BookieId] = set()
        """The bookies that failed a write and need a stand-in."""
        self._left: set[BookieId] = set()
        """The bookies that were replaced; they may not stand in for others."""
        self._searching = False

    # -- write back (R7, R8) ----------------------------------------------------------------------------

    def write(self, entry_id: int, length: int) -> list[Effect]:
        """Send the next entry that was found to its write set."""
        effects: list[Effect] = []
        writing = self._writings[entry_id] = EntryWriteBack(entry_id, length)
        self._send(writing, self._write_set(entry_id), effects)
        return effects

    def _write_set(self, entry_id: int) -> tuple[BookieId, ...]:
        """The bookies to which an entry is written back, by the private ensemble (R9)."""
        return self.spec.write_set(entry_id, self.fragments[-1].ensemble)

    def _send(self, writing: EntryWriteBack, bookies: tuple[BookieId, ...], effects: list[Effect]) -> None:
        writing.due = None
        for bookie in bookies:
            writing.sent.add(bookie)
            writing.failed.pop(bookie, None)
            effects.append(WriteBack(bookie, EntryId(writing.entry_id), self.lac, writing.length))

    def on_written(self, bookie: BookieId, entry_id: int, now: float) -> bool:
        """``bookie`` stored an entry. False: it does not count, as enough bookies have it or this one was replaced."""
        writing = self._writings.get(entry_id)
        if writing is None or bookie not in writing.sent:
            return False
        writing.sent.discard(bookie)
        writing.acked.add(bookie)
        self._retry_when_all_answered(writing, now)
        return True

    def _retry_when_all_answered(self, writing: EntryWriteBack, now: float) -> None:
        if not writing.sent and writing.failed:
            writing.due = now + self._config.retry_ms / 1000

    def advance(self) -> list[Effect]:
        """Count the entries that are on an ack quorum now, in id order."""
        before = self.written
        while (writing := self._writings.get(self.written + 1)) and self.spec.is_acknowledged(len(writing.acked)):
            self.written += 1
            self._length = writing.length
            del self._writings[self.written]
        return [ForgetPayloads(EntryId(self.written))] if self.written > before else []

    # -- bookies that fail (R9) -------------------------------------------------------------------------

    def on_write_failed(self, bookie: BookieId, entry_id: int, error: BookKeeperError, now: float) -> list[Effect]:
        """``bookie`` did not store an entry. A stand-in replaces it, privately, if there is one."""
        effects: list[Effect] = []
        writing = self._writings.get(entry_id)
        if writing is not None and bookie in writing.sent:
            writing.sent.discard(bookie)
            writing.failed[bookie] = error
            self._retry_when_all_answered(writing, now)
        if bookie in self.fragments[-1].ensemble:
            self._failed.add(bookie)
            self._find_stand_ins(effects)
        return effects

    def _find_stand_ins(self, effects: list[Effect]) -> None:
        if not self._searching and self._writings and self._failed:
            self._searching = True
            ensemble = self.fragments[-1].ensemble
            failed = tuple(bookie for bookie in ensemble if bookie in self._failed)
            effects.append(FindStandIns((*failed, *sorted(self._left)), ensemble))

    def on_stand_ins(self, stand_ins: Mapping[BookieId, BookieId]) -> list[Effect]:
        """Use the stand-ins from the first entry on that is not on an ack quorum yet."""
        self._searching = False
        effects: list[Effect] = []
        old = self.fragments[-1].ensemble
        new = tuple(stand_ins.get(bookie, bookie) for bookie in old)
        if new != old:
            self._left |= set(old) - set(new)
            self.fragments = with_ensemble(self.fragments, self.written + 1, new)
            for writing in self._writings.values():
                self._move(writing, old, new, effects)
        self._failed.clear()  # a bookie that stays and fails again needs another search
        return effects

    def _move(
        self, writing: EntryWriteBack, old: tuple[BookieId, ...], new: tuple[BookieId, ...], effects: list[Effect]
    ) -> None:
        """Count an entry without the bookies that left, and send it to the stand-ins."""
        gone, came = set(old) - set(new), set(new) - set(old)
        writing.sent -= gone
        writing.acked -= gone
        for bookie in gone:
            writing.failed.pop(bookie, None)
        if stand_ins := tuple(bookie for bookie in self._write_set(writing.entry_id) if bookie in came):
            self._send(writing, stand_ins, effects)

    # -- close (R9, R12) --------------------------------------------------------------------------------

    def length(self, lac_length: int | None) -> int | None:
        """The ledger's length: that in the last entry written back, or else ``lac_length``. None: it is not known."""
        return lac_length if self._length is None else self._length

    def close(self, length: int) -> CloseRecovered:
        """The effect that closes the ledger at the last entry written back, with the bookies that stored it."""
        return CloseRecovered(EntryId(self.written), length, self.fragments)

    # -- time -------------------------------------------------------------------------------------------

    def dues(self) -> Iterator[float | None]:
        """When ``on_tick`` has something to do."""
        return (writing.due for writing in self._writings.values())

    def on_tick(self, now: float) -> list[Effect]:
        """Time has passed: send again to the bookies that failed, or give up."""
        effects: list[Effect] = []
        for writing in [w for w in self._writings.values() if w.due is not None and now >= w.due]:
            self._on_due(writing, effects)
            if self.failure is not None:
                break
        return effects

    def _on_due(self, writing: EntryWriteBack, effects: list[Effect]) -> None:
        writing.due = None
        if writing.rounds >= self._config.rounds_max:
            said = reasons(list(writing.failed.values()))
            text = f"entry {writing.entry_id} could not be written back to an ack quorum ({said})"
            self.failure = RecoveryInconclusiveError(text)
            return
        writing.rounds += 1
        again = tuple(bookie for bookie in self._write_set(writing.entry_id) if bookie in writing.failed)
        self._send(writing, again, effects)

    def validate_state(self) -> None:
        """Derive again what must hold between the entries that are written back. For tests.

        Raises: InvariantError.
        """
        ids = list(self._writings)
        check(ids == list(range(self.written + 1, self.written + 1 + len(ids))), "R7", (self.written, ids))
        check((self._length is None) == (self.written == self.lac), "R12", (self._length, self.written))
        for writing in self._writings.values():
            write_set = self._write_set(writing.entry_id)
            groups = (writing.sent, writing.acked, set(writing.failed))
            together = set[BookieId]().union(*groups)
            check(sum(map(len, groups)) == len(together), "R7", writing)
            check(together <= set(write_set), "R9", (writing, write_set))
            done = self.spec.is_acknowledged(len(writing.acked))
            check(
                not done or writing.entry_id > self.written + 1, "R7", f"on an ack quorum, and not counted: {writing}"
            )
            check(done or bool(writing.sent) or writing.due is not None, "V2", writing)
        check(not self._left & set(self.fragments[-1].ensemble), "R9", self._left)
