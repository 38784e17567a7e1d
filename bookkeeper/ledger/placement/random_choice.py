"""Any bookie is as good as any other: the first of the shuffled candidates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice

from bookkeeper.errors import NotEnoughBookiesError
from bookkeeper.ids import BookieId
from bookkeeper.ledger.placement.policy import WhenShort
from bookkeeper.ledger.quorum import QuorumSpec

_UP_MIN = 2
"""With fewer bookies up a ledger that names absent ones would have its only copy on one disk."""


class RandomChoice:
    """The policy without a topology. Stateless."""

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
        """See :class:`bookkeeper.ledger.placement.policy.PlacementPolicy`."""
        left_out = {*excluded, *avoided}
        first = list(islice((each for each in candidates if each not in left_out), spec.ensemble_size))
        if len(set(first)) == spec.ensemble_size:
            return tuple(first)
        usable = by_preference(candidates, set(excluded), avoided)
        chosen = usable[: spec.ensemble_size]
        if len(chosen) == spec.ensemble_size:
            return tuple(chosen)
        if when_short is WhenShort.NAME_ABSENT:
            absent = by_preference(known_absent, {*excluded, *usable}, ())
            ensemble = _spread(chosen, absent[: spec.ensemble_size - len(chosen)])
            full = len(ensemble) == spec.ensemble_size
            if full and len(chosen) >= _UP_MIN and spec.can_acknowledge(frozenset(chosen), ensemble):
                return ensemble
        raise NotEnoughBookiesError(
            f"a ledger with {spec} needs {spec.ensemble_size} bookie{'s' if spec.ensemble_size > 1 else ''}, "
            + (f"but {len(usable)} can be used: {', '.join(usable)}" if usable else "but none can be used")
            + (f"; excluded are {', '.join(sorted(excluded))}" if excluded else "")
        )

    def replace(
        self,
        spec: QuorumSpec,
        ensemble: Sequence[BookieId],
        failed: Collection[BookieId],
        candidates: Sequence[BookieId],
        *,
        avoided: Collection[BookieId] = (),
    ) -> Mapping[BookieId, BookieId]:
        """See :class:`bookkeeper.ledger.placement.policy.PlacementPolicy`."""
        assert len(ensemble) == spec.ensemble_size
        spares = by_preference(candidates, {*ensemble, *failed}, avoided)
        return dict(zip((b for b in ensemble if b in failed), spares, strict=False))

    def shortfall(self, spec: QuorumSpec, ensemble: Sequence[BookieId]) -> str | None:
        """Nothing is wanted of an ensemble."""
        return None

    def move(
        self,
        spec: QuorumSpec,
        ensemble: Sequence[BookieId],
        candidates: Sequence[BookieId],
        *,
        avoided: Collection[BookieId] = (),
    ) -> tuple[BookieId, BookieId] | None:
        """Nothing is to be moved."""
        return None


def by_preference(
    candidates: Sequence[BookieId], excluded: Collection[BookieId], avoided: Collection[BookieId]
) -> list[BookieId]:
    """Distinct candidates that are not excluded, the avoided ones last, else in their order."""
    usable = [b for b in dict.fromkeys(candidates) if b not in excluded]
    return sorted(usable, key=lambda b: b in avoided)


def _spread(up: Sequence[BookieId], absent: Sequence[BookieId]) -> tuple[BookieId, ...]:
    """All of them. The absent ones are as far apart as possible, so that no write set has more of them than it must."""
    total = len(up) + len(absent)
    here, away = iter(up), iter(absent)
    return tuple(
        next(away) if (i + 1) * len(absent) // total > i * len(absent) // total else next(here) for i in range(total)
    )
