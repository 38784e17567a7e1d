"""The interface of policies that choose bookies, and what to do when there are too few.

The caller shuffles the candidates, or puts the best first, so that a policy needs no chance. *Avoided* bookies, which
are in quarantine, come last. That is a preference, never a reason for "not enough bookies" (W13).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Protocol

from bookkeeper.ids import BookieId
from bookkeeper.ledger.quorum import QuorumSpec


class WhenShort(Enum):
    """What happens if a new ledger cannot have its full ensemble."""

    FAIL = "fail"
    """The creation fails with an error that names the bookies that are there."""
    NAME_ABSENT = "name_absent"
    """Known but absent bookies take the places that are left, as long as an ack quorum of every write set, and at least
    two bookies, are up. No quorum is lowered; repair makes the absent copies later."""


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
        """E distinct bookies for a new ledger. Those that are not in ``candidates`` are absent ones.

        The caller shuffles ``known_absent``, too.

        Raises:
            NotEnoughBookiesError: says which bookies there are, and how many are needed.
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
        """Stand-ins for the failed members of ``ensemble``. No stand-in is a member or failed, and each is used once.
        There are fewer stand-ins than failed members if there are too few bookies."""

    def shortfall(self, spec: QuorumSpec, ensemble: Sequence[BookieId]) -> str | None:
        """What an ensemble lacks of what the policy wants, in words; None if nothing."""

    def move(
        self,
        spec: QuorumSpec,
        ensemble: Sequence[BookieId],
        candidates: Sequence[BookieId],
        *,
        avoided: Collection[BookieId] = (),
    ) -> tuple[BookieId, BookieId] | None:
        """A member, and a candidate that should take its place because the ensemble then lacks less. None: nothing
        lacks, or no single exchange helps."""
