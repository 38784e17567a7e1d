"""The descriptors in memory: those of the ledgers that were asked for last. Pure: no I/O, no clock.

There are two generations. Who asks for a ledger of the older one moves it to the recent one. When there are too many,
ledgers of the older generation leave, in the order in which they came into it; when none is left, the recent ones are
the older ones from then on. So asking for a recent ledger costs one look and no book-keeping, and a ledger leaves only
after about as many others were asked for as may stay.

Always true:

    - what a checkpoint still has to write stays, however many that are
    - there is one descriptor of a ledger: one that has left while somebody holds it, as a read does that waits for the
      disk, is found again by whoever asks, and learns from checkpoints what the others learn
"""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Final
from weakref import WeakValueDictionary

from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor

AT_ONCE: Final = 4
"""Ledgers that are looked at for each that comes, while there are too many."""


class ResidentLedgers:
    """Owned by one thread. Until :meth:`bound` is called every ledger stays."""

    def __init__(self) -> None:
        self.recent: dict[int, LedgerDescriptor] = {}
        """Those that were asked for lately; changed here alone, and always the same dictionary."""
        self._older: dict[int, LedgerDescriptor] = {}
        self._leaving: list[int] = []
        """The older generation as it was, the last one first."""
        self._lent: WeakValueDictionary[int, LedgerDescriptor] = WeakValueDictionary()
        """Those that have left, as long as somebody holds them."""
        self._limit = sys.maxsize
        self._must_stay: Callable[[int], bool] = frozenset[int]().__contains__

    def bound(self, limit: int, must_stay: Callable[[int], bool]) -> None:
        """From now on at most ``limit`` ledgers stay, besides those of which ``must_stay`` says so."""
        self._limit, self._must_stay = limit, must_stay

    # -- what is asked ------------------------------------------------------------------------------------

    @property
    def all(self) -> Mapping[int, LedgerDescriptor]:
        """Every ledger in memory by its id, as long as nothing changes here."""
        return ChainMap(self.recent, self._older)

    def __len__(self) -> int:
        return len(self.recent) + len(self._older)

    def __contains__(self, ledger_id: object) -> bool:
        return ledger_id in self.recent or ledger_id in self._older

    def peek(self, ledger_id: int) -> LedgerDescriptor | None:
        """A ledger, for a caller that does not need it to stay; None: it is not in memory."""
        found = self.recent.get(ledger_id)
        if found is None:
            found = self._older.get(ledger_id)
        return found if found is not None else self._lent.get(ledger_id)

    def held(self, ledger_ids: Collection[int]) -> Iterator[LedgerDescriptor]:
        """Those of these ledgers that are in memory, or that somebody holds."""
        wanted = set(ledger_ids)
        for some in (self.recent, self._older, self._lent):
            for ledger_id in wanted.intersection(some.keys()):
                if (found := some.get(ledger_id)) is not None:
                    yield found

    # -- what changes -------------------------------------------------------------------------------------

    def recall(self, ledger_id: int) -> LedgerDescriptor | None:
        """A ledger that is not among the recent ones, and is from now on; None: nobody has it."""
        found = self._older.pop(ledger_id, None)
        if found is None:
            found = self._lent.pop(ledger_id, None)
        if found is not None:
            self.keep(found)
        return found

    def keep(self, ledger: LedgerDescriptor) -> None:
        """A ledger that nobody has is among the recent ones from now on."""
        self.make_room(AT_ONCE)
        self.recent[ledger.ledger_id] = ledger

    def drop(self, first: int, last: int) -> None:
        """The ledgers from ``first`` to ``last`` are deleted; they need not be here."""
        for some in (self.recent, self._older, self._lent):
            for ledger_id in [first] if first == last else [key for key in some.keys() if first <= key <= last]:  # noqa: SIM118
                some.pop(ledger_id, None)

    def make_room(self, most: int) -> None:
        """Have older ledgers leave until there is room for another one; looks at ``most`` of them at most."""
        for _ in range(most):
            if len(self) < self._limit:
                return
            if not self._leaving:
                self._older, self._leaving = self.recent.copy(), list(reversed(self.recent))
                self.recent.clear()
            ledger_id = self._leaving.pop()
            if (ledger := self._older.pop(ledger_id, None)) is None:
                continue  # it was asked for, or deleted
            if self._must_stay(ledger_id):
                self.recent[ledger_id] = ledger
            else:
                self._lent[ledger_id] = ledger
