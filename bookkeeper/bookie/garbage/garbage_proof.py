"""Which ledgers are provably gone (G1). Pure: lists in, ids out.

A ledger is dropped only if it was absent from a full listing, and a point read after a sync said so too, and both held
on two passes at least a grace period apart, and the listing did not shrink suspiciously, and the store does not
look rolled back. The last two make a whole pass worthless.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from bookkeeper.errors import MetadataError
from bookkeeper.ids import LedgerId


class ListingShrankError(MetadataError):
    """A listing lost more ledgers since the last pass than is believable: this pass proves nothing."""


class GarbageProof:
    """What earlier passes have found."""

    def __init__(self, grace_s: float, shrink_max: float) -> None:
        self._grace_s = grace_s
        self._shrink_max = shrink_max
        self._last_size: int | None = None
        self._absent_since: dict[LedgerId, float] = {}

    def candidates(self, local: Iterable[LedgerId], listed: Collection[LedgerId]) -> list[LedgerId]:
        """Local ledgers that are in no listing; the caller asks for each of them again, after a sync.

        ``local`` was taken *before* the listing: a ledger created in between is in the listing.

        Raises:
            ListingShrankError: the listing is not believed. Everything found before is forgotten; the next listing is
                compared with this one.
        """
        before, self._last_size = self._last_size, len(listed)
        if before is not None and len(listed) < before * (1 - self._shrink_max):
            self._absent_since.clear()
            raise ListingShrankError(f"the listing of ledgers shrank from {before} to {len(listed)}")
        return sorted(ledger for ledger in local if ledger not in listed)

    def confirmed(self, absent: Iterable[LedgerId], now: float) -> set[LedgerId]:
        """``absent``: the candidates of this pass that a point read did not find either. Those that may be dropped."""
        since = {ledger: self._absent_since.get(ledger, now) for ledger in absent}
        self._absent_since = since  # who was found again starts anew
        return {ledger for ledger, first in since.items() if now > first and now - first >= self._grace_s}
