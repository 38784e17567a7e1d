"""Which bookies a ledger gets: the interface, and what to do when there are too few.

Candidates come in already shuffled, best first where someone knows better: chance is an argument. *Avoided* bookies
(quarantined) come last: a preference, never a reason for "not enough bookies" (W13).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Protocol

from bookkeeper.ids import BookieId
from bookkeeper.ledger.quorum import QuorumSpec


class WhenShort(Enum):
    """What a new ledger does that cannot have its full ensemble."""

    FAIL = "fail"
    """An error that names the bookies there are."""
    NAME_ABSENT = "name_absent"
    """Known but absent bookies take the places that are left, as long as every write set keeps an ack quorum, and at
    least two bookies, that are up. No quorum is lowered; repair refills the absent copies later."""


class PlacementPolicy(Protocol):
    """Chooses bookies."""

    def new_ensemble(
        self,
        spec: QuorumSpec,
        candidates: Sequence[BookieId],
        *,
        excluded: Collection[BookieId] = (),
        avoided: Collection[BookieId] = (),
        known_absent: Sequence[BookieId] = (),
        when_short: WhenShort = WhenShort.FAIL,
    ) -> tuple[BookieId, ...]:
        """E distinct bookies for a new ledger; those named though absent are the ones not in ``candidates``.

        ``known_absent`` comes shuffled too.

        Raises:
            NotEnoughBookiesError: names what there is and what is needed.
        """

    def replace(
        self,
        spec: QuorumSpec,
        ensemble: Sequence[BookieId],
        failed: Collection[BookieId],
        candidates: Sequence[BookieId],
        *,
        avoided: Collection[BookieId] = (),
    ) -> Mapping[BookieId, BookieId]:
        """Stand-ins for the failed members of ``ensemble``: none of them a member or failed, each used once. Fewer
        than ``failed`` if there are too few; empty if there is none."""
