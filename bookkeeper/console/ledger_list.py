"""All ledgers of a cluster in memory, with what a list shows of each: found by state, health and bookie. Pure.

It is made once for each reading of the metadata. A page of it costs as much with ten ledgers as with a hundred
thousand, unless two conditions are given at once: then the shorter of their lists is gone through.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, NamedTuple

from bookkeeper.amounts import state_in_words
from bookkeeper.autorecovery.cluster_status import LedgerHealth, LedgersStatus
from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import NO_ENTRY, BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata, QuorumSpec

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

    def __init__(self, up: AbstractSet[BookieId]) -> None:
        """``up``: the bookies that are registered, by which ledgers are judged."""
        self._up = up
        self.status = LedgersStatus()
        """The counts."""
        self._rows: list[LedgerRow] = []
        self._sets: dict[frozenset[BookieId], frozenset[BookieId]] = {}
        """Each set of bookies once."""
        self._states: dict[str, list[int]] = {}
        self._healths: dict[str, list[int]] = {}
        self._bookies: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, ledger_id: LedgerId, found: LedgerMetadata | BookKeeperError) -> None:
        """One more ledger."""
        health = self.status.add(ledger_id, found, self._up)
        if isinstance(found, BookKeeperError):
            problem = self.status.unreadable[ledger_id]
            row = LedgerRow(ledger_id, UNREADABLE, UNREADABLE, None, None, None, 0, None, frozenset(), problem)
        else:
            bookies = self._sets.setdefault(found.bookies, found.bookies)
            entries = int(found.last_entry) - int(NO_ENTRY) if found.is_closed else None
            row = LedgerRow(
                ledger_id,
                state_in_words(found.state.name),
                (health or LedgerHealth.WELL).value,
                found.length if found.is_closed else None,
                entries,
                found.spec,
                len(found.fragments),
                found.ctime_ms,
                bookies,
            )
        at = len(self._rows)
        self._rows.append(row)
        self._states.setdefault(row.state, []).append(at)
        self._healths.setdefault(row.health, []).append(at)
        for bookie in row.bookies:
            self._bookies.setdefault(bookie, []).append(at)

    def seal(self, marked: Collection[LedgerId]) -> LedgerList:
        """End it: these ledgers are marked. Returns itself."""
        if marked:
            wanted = frozenset(marked)
            self._healths[MARKED] = [at for at, row in enumerate(self._rows) if row.ledger_id in wanted]
        self._sets.clear()
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
