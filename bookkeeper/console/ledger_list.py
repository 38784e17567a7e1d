"""All ledgers of a cluster in memory, with what a list shows of each: found by state, health and bookie. Pure.

It is made anew when a reading of the metadata finds something else than the one before; rows of ledgers that are as
they were are used again. A page of it costs as much with ten ledgers as with a hundred thousand, unless two conditions
are given at once: then the shorter of their lists is gone through.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple

from bookkeeper.amounts import state_in_words
from bookkeeper.autorecovery.cluster_status import LedgerHealth, LedgersStatus, judge
from bookkeeper.errors import BookKeeperError, in_words
from bookkeeper.ids import NO_ENTRY, BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata, LedgerState, QuorumSpec

UNREADABLE: Final = "unreadable"
MARKED: Final = "marked"
"""Among the healths of a list: the ledgers that are marked as under-replicated."""
HEALTHS: Final = (*(each.value for each in LedgerHealth), UNREADABLE, MARKED)


class LedgerRow(NamedTuple):
    """What is kept of a ledger."""

    ledger_id: LedgerId
    state: str
    """``open``, ``in recovery``, ``closed``; ``unreadable``: its metadata cannot be read."""
    health: str
    """A word of :class:`LedgerHealth`, or ``unreadable``."""
    size: int | None
    """Payload bytes; None: it is not closed."""
    entries: int | None
    spec: QuorumSpec | None
    fragments: int
    created_ms: int | None
    bookies: frozenset[BookieId]
    problem: str = ""


_STATES: Final = {state_in_words(state.name): state for state in LedgerState}

BookieSets = dict[frozenset[BookieId], frozenset[BookieId]]
"""Each set of bookies once: thousands of ledgers name the same."""


def ledger_row(
    ledger_id: LedgerId, found: LedgerMetadata | BookKeeperError, up: AbstractSet[BookieId], sets: BookieSets
) -> LedgerRow:
    """What is kept of a ledger, judged by the bookies that are registered. Its set of bookies comes from ``sets``."""
    if isinstance(found, BookKeeperError):
        problem = in_words(found)
        return LedgerRow(ledger_id, UNREADABLE, UNREADABLE, None, None, None, 0, None, frozenset(), problem)
    return LedgerRow(
        ledger_id,
        state_in_words(found.state.name),
        judge(found, up).value,
        found.length if found.is_closed else None,
        int(found.last_entry) - int(NO_ENTRY) if found.is_closed else None,
        found.spec,
        len(found.fragments),
        found.ctime_ms,
        sets.setdefault(found.bookies, found.bookies),
    )


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """Which ledgers are wanted. Empty: all."""

    state: str = ""
    health: str = ""
    bookie: str = ""


@dataclass(frozen=True, slots=True)
class LedgerSelection:
    """One page of those that were found."""

    rows: Sequence[LedgerRow]
    total: int


class LedgerList:
    """Filled by :meth:`add` in ascending order, ended by :meth:`seal`, and read from then on."""

    def __init__(self) -> None:
        self.status = LedgersStatus()
        """The counts."""
        self._rows: list[LedgerRow] = []
        self._states: dict[str, list[int]] = {}
        self._healths: dict[str, list[int]] = {}
        self._bookies: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, row: LedgerRow) -> None:
        """One more ledger."""
        at = len(self._rows)
        self._rows.append(row)
        self._count(row)
        self._states.setdefault(row.state, []).append(at)
        self._healths.setdefault(row.health, []).append(at)
        for bookie in row.bookies:
            self._bookies.setdefault(bookie, []).append(at)

    def _count(self, row: LedgerRow) -> None:
        status = self.status
        status.count += 1
        if row.state == UNREADABLE:
            status.unreadable[row.ledger_id] = row.problem
            return
        state = _STATES[row.state]
        status.by_state[state] = status.by_state.get(state, 0) + 1
        status.size += row.size or 0
        if row.health == LedgerHealth.SHORT:
            status.short.add(row.ledger_id)
        elif row.health == LedgerHealth.LOST:
            status.lost.add(row.ledger_id)

    def seal(self, marked: Collection[LedgerId]) -> LedgerList:
        """End it: these ledgers are marked. Returns itself."""
        if marked:
            wanted = frozenset(marked)
            self._healths[MARKED] = [at for at, row in enumerate(self._rows) if row.ledger_id in wanted]
        return self

    @property
    def states(self) -> Mapping[str, int]:
        """How many there are in each state."""
        return {state: len(found) for state, found in self._states.items()}

    @property
    def healths(self) -> Mapping[str, int]:
        """How many there are of each health."""
        return {health: len(found) for health, found in self._healths.items()}

    def on_bookie(self, bookie: str) -> int:
        """How many ledgers name a bookie."""
        return len(self._bookies.get(bookie, ()))

    def select(self, wanted: LedgerFilter, at: int, size: int, *, newest_first: bool = True) -> LedgerSelection:
        """Page ``at`` (from 0 on; beyond the end the last one) of those that are wanted, by id."""
        found = self._found(wanted)
        total = len(found)
        first = min(at, max(0, total - 1) // size) * size
        places = range(first, min(first + size, total))
        rows = [self._rows[found[total - 1 - place if newest_first else place]] for place in places]
        return LedgerSelection(rows, total)

    def _found(self, wanted: LedgerFilter) -> Sequence[int]:
        indexes = (self._states, wanted.state), (self._healths, wanted.health), (self._bookies, wanted.bookie)
        lists = sorted((index.get(word, []) for index, word in indexes if word), key=len)
        if not lists:
            return range(len(self._rows))
        first, *others = lists
        if not others:
            return first
        kept = [at for at in first if self._is_wanted(self._rows[at], wanted)]
        if wanted.health == MARKED:
            marked = frozenset(self._healths.get(MARKED, ()))
            kept = [at for at in kept if at in marked]
        return kept

    @staticmethod
    def _is_wanted(row: LedgerRow, wanted: LedgerFilter) -> bool:
        return (
            wanted.state in ("", row.state)
            and wanted.health in ("", MARKED, row.health)
            and (not wanted.bookie or BookieId(wanted.bookie) in row.bookies)
        )
