"""Every ledger with anything on this disk, the deleted ledgers, and what of both no checkpoint has written yet."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from bookkeeper.ids import LedgerId
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.ledgers.known_ledgers import KnownLedgers

LEAVING_MAX: Final = 10_000
"""Ledgers that leave memory behind one checkpoint at most: that takes the loop some ten milliseconds."""


@dataclass(slots=True)
class LedgerChanges:
    """What has changed since the last checkpoint."""

    ledgers: dict[int, LedgerDescriptor] = field(default_factory=dict)
    dropped: list[tuple[int, int]] = field(default_factory=list)
    """First and last of each run of ids."""
    unseen: list[tuple[int, int]] = field(default_factory=list)
    """Those among them of which the journal has no record."""


class LedgerTable:
    """Owned by the loop's thread. Descriptors are changed by the engine, which says so with :meth:`changed`."""

    def __init__(self, ledgers: KnownLedgers, resident_max: int) -> None:
        """
        Args:
            ledgers: all that a start has found; the segments say everything of them.
            resident_max: so many ledgers stay in memory, besides those of which a checkpoint has to write something.
        """
        self.ledgers = ledgers
        """By id; changed here and by checkpoints alone."""
        self.dropped = ledgers.dropped
        """Ledgers that were deleted here, and ids that are not given out again; changed here alone."""
        self._changes = LedgerChanges()
        self._taken = LedgerChanges()
        """What the checkpoint under way writes."""
        ledgers.bound(resident_max, self._has_changes)

    def _has_changes(self, ledger_id: int) -> bool:
        return ledger_id in self._changes.ledgers or ledger_id in self._taken.ledgers

    def add(self, ledger: LedgerDescriptor) -> None:
        """A ledger that is met for the first time."""
        self.ledgers.add(ledger)
        self._changes.ledgers[ledger.ledger_id] = ledger

    def changed(self, ledger: LedgerDescriptor) -> None:
        """Something about the ledger is new: the next checkpoint writes it."""
        self._changes.ledgers[ledger.ledger_id] = ledger

    def drop(self, ledger_id: LedgerId) -> None:
        """A ledger is deleted: it is forgotten, and remembered as dropped."""
        self.ledgers.drop(ledger_id)
        self._changes.ledgers.pop(ledger_id, None)
        self._changes.dropped.append((ledger_id, ledger_id))

    def drop_unseen(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Of these ids (first and last of each run) those that are not here count as dropped, too."""
        unseen = [run for run in self._not_here(ranges) if not self.dropped.covers(*run)]
        for first, last in unseen:
            self.dropped.add(first, last)
            self._changes.dropped.append((first, last))
            self._changes.unseen.append((first, last))

    def is_drop_pending(self, ledger_id: int) -> bool:
        """Whether a ledger counts as dropped, and only the checkpoint under way, or the next one, makes that durable.
        The journal has a record of each other one."""
        runs = (*self._changes.unseen, *self._taken.unseen)
        return any(first <= ledger_id <= last for first, last in runs)

    def _not_here(self, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        """The parts of these ranges in which there is nothing of any ledger."""
        here = list(self.ledgers)
        for first, last in ranges:
            for ledger_id in here[bisect_left(here, first) : bisect_right(here, last)]:
                if first < ledger_id:
                    yield first, ledger_id - 1
                first = ledger_id + 1
            if first <= last:
                yield first, last

    # -- for checkpoints ----------------------------------------------------------------------------------

    def take_changes(self) -> LedgerChanges:
        """What the next checkpoint writes. Changes from now on are for the one after it."""
        self._taken, self._changes = self._changes, LedgerChanges()
        return self._taken

    def covered(self) -> None:
        """The checkpoint that took the last changes has written them, and has told the ledgers."""
        self._taken = LedgerChanges()
        self.ledgers.make_room(LEAVING_MAX)

    def give_back(self, taken: LedgerChanges) -> None:
        """The checkpoint that took these changes has failed: the next one writes them. Tails that were frozen for it
        are thawed."""
        self._taken = LedgerChanges()
        self._changes.dropped[:0] = taken.dropped
        self._changes.unseen[:0] = taken.unseen
        resident = self.ledgers.resident
        for ledger_id, ledger in taken.ledgers.items():
            if resident.get(ledger_id) is ledger:
                ledger.index.thaw()
                self._changes.ledgers.setdefault(ledger_id, ledger)
