"""Which ledgers are provably deleted (G1). Pure: lists in, ids out.

A ledger is dropped only if a full listing lacks it, a point read after a sync does not find it either, and both hold
on two passes at least a grace period apart. A deleted ledger that can still be brought back (G8) is not absent. A pass
counts only if the listing did not shrink suspiciously and the store shows no older state than before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from bookkeeper.errors import MetadataError
from bookkeeper.ids import LedgerId


class ListingShrankError(MetadataError):
    """The listing of ledgers lost more ledgers since the last pass than is plausible. The pass drops nothing."""


class GarbageProof:
    """Remembers what earlier passes have found."""

    def __init__(self, grace_s: float, shrink_max: float) -> None:
        self._grace_s = grace_s
        self._shrink_max = shrink_max
        self._last_size: int | None = None
        self._absent_since: dict[LedgerId, float] = {}

    def candidates(self, local: Iterable[LedgerId], listed: Collection[LedgerId]) -> list[LedgerId]:
        """The local ledgers that the listing lacks. The caller reads the metadata of each again, after a sync.

        ``local`` was taken *before* the listing, so a ledger created in between is in the listing.

        Raises:
            ListingShrankError: the listing is not plausible. What earlier passes found is forgotten; the next listing
                is compared with this one.
        """
        before, self._last_size = self._last_size, len(listed)
        if before is not None and len(listed) < before * (1 - self._shrink_max):
            self._absent_since.clear()
            raise ListingShrankError(
                f"the listing of ledgers shrank from {before} to {len(listed)} since the last pass: this pass drops "
                "nothing; the next one drops ledgers again if the listing stays as it is"
            )
        return sorted(ledger for ledger in local if ledger not in listed)

    def confirmed(self, absent: Iterable[LedgerId], now: float) -> set[LedgerId]:
        """The ledgers that may be dropped. ``absent``: the candidates that a point read did not find either."""
        since = {ledger: self._absent_since.get(ledger, now) for ledger in absent}
        self._absent_since = since  # who was found again starts anew
        return {ledger for ledger, first in since.items() if now > first and now - first >= self._grace_s}

    def waiting(self, now: float) -> tuple[int, float]:
        """How many ledgers were absent on the last pass and could not be dropped yet, and in how many seconds a pass
        drops the first of them."""
        left = [first + self._grace_s - now for first in self._absent_since.values()]
        left = [each for each in left if each > 0 or not self._grace_s]
        return len(left), max(min(left, default=0.0), 0.0)
