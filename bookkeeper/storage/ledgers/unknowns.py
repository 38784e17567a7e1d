"""What this disk cannot answer for: where "no such entry" might be wrong, the answer is "unknown" (B5).

Five things make an answer unknown:

    limbo          acknowledged data may be missing since a start found a loss (B9): of all ledgers, or of a few
    index damage   a page of the index is not what was written; the next start rebuilds the index (K19)
    doubt          the disk was set up after the bookie id was first used: what was on the disk before is not known
    suspicion      damage may have taken entries of a ledger, until its copy is whole again (K30). What the index knows
                   of fails by itself when it is read, and what it does not know was never here; unless the index
                   lacks records, or was made from logs that are damaged
    quarantine     damaged places, named for the operator until limbo ends or a start finds nothing wrong; a read of
                   such a place fails by itself
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Final

from bookkeeper.errors import CorruptionError
from bookkeeper.ids import LedgerId

PLACES_MAX: Final = 100
"""Damaged places that are remembered: the newest."""


def newest_places(places: Iterable[str]) -> list[str]:
    """Each place once, at most ``PLACES_MAX``."""
    return list(dict.fromkeys(places))[-PLACES_MAX:]


class Unknowns:
    """Owned by the loop's thread."""

    def __init__(self, limbo: str | None, quarantined: Iterable[str]) -> None:
        self.limbo = limbo
        """Why acknowledged data may be missing; None: none are. Changed here alone."""
        self._quarantined = list(quarantined)
        self._index_damaged = False
        self._complete: set[int] = set()
        self._limbo_ledgers: frozenset[int] | None = None
        """The ledgers that limbo may concern; None: any."""
        self._doubted: Container[int] = ()
        self._suspects: dict[int, int] = {}
        """Ledgers of which damage may have taken entries -> the suspicion's number."""
        self._unindexed: set[int] = set()
        """Those of which the index may lack entries."""
        self._suspicions = 0

    # -- what is asked ------------------------------------------------------------------------------------

    def has(self, ledger_id: int) -> bool:
        """A missing entry of this ledger is answered "unknown" (B5)."""
        return (
            self._index_damaged
            or self.in_limbo(ledger_id)
            or ledger_id in self._doubted
            or ledger_id in self._unindexed
        )

    def may_lack(self, ledger_id: int) -> bool:
        """Which entries of this ledger can be read here is not known."""
        return ledger_id in self._suspects or self.has(ledger_id)

    def in_limbo(self, ledger_id: int) -> bool:
        """Acknowledged records of this ledger may be gone, a fence among them (B3)."""
        if self.limbo is None or ledger_id in self._complete:
            return False
        return self._limbo_ledgers is None or ledger_id in self._limbo_ledgers

    @property
    def concern_new_ledgers(self) -> bool:
        """A ledger that is created now would be in limbo."""
        return self.limbo is not None and self._limbo_ledgers is None

    @property
    def index_damaged(self) -> bool:
        """Damage of the index was met since this start."""
        return self._index_damaged

    @property
    def suspects(self) -> frozenset[int]:
        """The suspect ledgers: damage may have taken entries of them."""
        return frozenset(self._suspects)

    @property
    def unindexed(self) -> frozenset[int]:
        """Those of them of which the index may lack entries."""
        return frozenset(self._unindexed)

    @property
    def quarantined(self) -> list[str]:
        """The damaged places that are known; a copy."""
        return list(self._quarantined)

    # -- what is found out --------------------------------------------------------------------------------

    def narrow(self, ledgers: Iterable[LedgerId]) -> None:
        """See :meth:`Engine.narrow_limbo`."""
        self._limbo_ledgers = frozenset(ledgers)

    def end_limbo(self, ledger_id: LedgerId | None) -> None:
        """See :meth:`Engine.end_limbo`."""
        if ledger_id is None:  # everything that is to be here was read
            self.limbo = None
            self._complete.clear()
            self._quarantined.clear()
        else:
            self._complete.add(ledger_id)

    def doubt(self, ledgers: Container[int]) -> None:
        """See :meth:`Engine.doubt`."""
        self._doubted = ledgers

    def suspect(self, ledgers: Iterable[int], *, unindexed: bool = False) -> bool:
        """Entries of these ledgers may be lost by damage. Their fences are not: those are in the index. Returns whether
        something of it is new.

        Args:
            unindexed: the index may lack entries of them, so that a missing entry is answered "unknown".
        """
        before = len(self._suspects) + len(self._unindexed)
        self._suspicions += 1
        chosen = dict.fromkeys(ledgers, self._suspicions)
        self._suspects.update(chosen)
        if unindexed:
            self._unindexed.update(chosen)
        return len(self._suspects) + len(self._unindexed) > before

    def suspicion(self, ledger_id: int) -> int:
        """The number of the newest suspicion of a ledger; 0: there is none."""
        return self._suspects.get(ledger_id, 0)

    def settle(self, ledger_id: int, suspicion: int) -> bool:
        """The ledger's copy is whole, or the ledger is deleted, as far as that suspicion goes. Returns whether that is
        all: a newer one stays."""
        if self.suspicion(ledger_id) > suspicion:
            return False
        self._suspects.pop(ledger_id, None)
        self._unindexed.discard(ledger_id)
        return True

    def found_index_damage(self, error: CorruptionError) -> None:
        """An index page is not what was written: every negative is unknown until the next start has rebuilt the index
        (K19)."""
        self._index_damaged = True
        self.quarantine([str(error)])  # it is met again with every read

    def quarantine(self, places: Iterable[str]) -> None:
        """Damaged places; each is kept once, and at most ``PLACES_MAX`` of them."""
        self._quarantined = newest_places([*self._quarantined, *places])
