"""Bugs of placement by racks; a part of :data:`tests.simulation.bugs.bugs.BUGS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from bookkeeper.ledger.placement.spread_choice import SpreadChoice
from bookkeeper.testing.patches import Patch
from tests.simulation.bugs.bug import Bug, Plant, bug_into
from tests.simulation.plan import FIRST_WITH_RACKS

RACK_BUGS: Final[dict[str, Bug]] = {}
"""By name, in the order of this file."""


def _bug(name: str, within: int) -> Callable[[Plant], Plant]:
    return bug_into(RACK_BUGS, name, "Q6", within, FIRST_WITH_RACKS)


@_bug("stand-ins-from-any-rack", 60)
def _stand_ins_from_any_rack(patch: Patch) -> None:
    """A bookie that failed, or is lost, is replaced by the first one that is left, wherever it stands."""

    def first_left(self: SpreadChoice, spec: Any, ensemble: Any, failed: Any, candidates: Any, **_: Any) -> Any:
        spares = [each for each in candidates if each not in {*ensemble, *failed}]
        return dict(zip([each for each in ensemble if each in failed], spares, strict=False))

    patch(SpreadChoice, "replace", first_left)


@_bug("a-rack-too-few-is-taken", 60)
def _a_rack_too_few_is_taken(patch: Patch) -> None:
    """Where racks are enforced, what has too few is taken all the same when there is nothing better."""
    patch(SpreadChoice, "_too_near", lambda self, spec, ensemble: False)
