"""Machine: which process runs which tests. A plan is for one process; it is handed over as a file."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from tests.suite.costs import CORE, CORE_OUTSIDE, DRAWN, DRAWN_OUTSIDE, HEAVY, Costs
from tests.suite.selection import EXAMPLES, Selection, module_of

_ROOM_PARTS: Final = 3
"""Of a path name a room: ``tests/bookkeeper/storage``."""
NEW_S: Final = 1.0
"""What a module is taken to cost that was not measured yet."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What one process runs."""

    name: str
    files: tuple[str, ...]
    """Modules, from the root of the tree."""
    outside: bool
    """Tests with processes of their own, or those without."""
    core: bool = False
    """The tests of these modules that belong to the core."""
    heavy: bool = True
    """Of the core also what takes long."""
    units: tuple[str, ...] = ()
    """Units of the draw whose tests are run."""
    examples: bool = False
    """Only tests whose examples hypothesis makes, with as many as the draw has."""
    every: bool = False
    """All tests of the modules."""
    skip: tuple[str, ...] = ()
    """Ids of tests that were run already."""

    def takes(
        self, selection: Selection, known: Collection[str], test: str, *, outside: bool, property_test: bool
    ) -> bool:
        """Whether this process runs this test.

        Args:
            known: units whose costs were recorded. A test of any other is run with the core, since nobody draws it.
        """
        if outside != self.outside or test in self.skip:
            return False
        if self.examples:
            return property_test
        if self.every:
            return True
        if selection.is_core(test, outside=outside):
            return self.core and (self.heavy or not selection.is_heavy(test))
        unit = selection.unit(test)
        return unit in self.units or (self.core and unit not in known)

    def without(self, done: Iterable[str]) -> Plan:
        """The rest of it."""
        return replace(self, skip=tuple(sorted({*self.skip, *done})))

    @property
    def many_examples(self) -> bool:
        """Whether hypothesis makes as many examples as the draw has, and not as many as the core."""
        return self.examples or self.every

    def written(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def read(cls, text: str) -> Plan:
        fields: dict[str, Any] = json.loads(text)
        fields |= {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a run takes."""

    core: bool = True
    outside: bool = True
    """Also tests with processes of their own."""
    heavy: bool = True
    """Of the core also what takes long."""
    units: tuple[str, ...] = ()
    below: Collection[str] | None = None
    """Only these modules; None: all there are."""


def plans(
    wanted: Wanted, modules: Collection[str], costs: Costs, selection: Selection, processes: int
) -> tuple[Plan, ...]:
    """The work of a run, for so many processes within Python and one for tests that start others.

    Args:
        modules: all modules of tests that there are.
    """
    taken = frozenset(modules if wanted.below is None else wanted.below)
    usual = [unit for unit in wanted.units if not unit.startswith(EXAMPLES)]
    inner = {unit for unit in usual if unit in costs.of[DRAWN]}
    outer = {unit for unit in usual if unit in costs.of[DRAWN_OUTSIDE]}
    weights = _inner_weights(costs, taken, inner, wanted)
    result = []
    if wanted.outside:
        files = set(selection.core_modules(modules)) if wanted.core else set()
        files |= {module_of(unit) for unit in outer} | (_unmeasured(costs, taken) if wanted.core else set())
        result.append(Plan("outside", tuple(sorted(files & taken)), True, wanted.core, units=tuple(sorted(outer))))
    for number, share in enumerate(_shares(weights, processes), 1):
        units = tuple(sorted(unit for unit in inner if module_of(unit) in share))
        result.append(Plan(f"inside {number}", tuple(share), False, wanted.core, wanted.heavy, units))
    many = sorted(module_of(unit) for unit in wanted.units if unit.startswith(EXAMPLES))
    if many:
        result.append(Plan("more examples", tuple(file for file in many if file in taken), False, examples=True))
    return tuple(plan for plan in result if plan.files)


def everything(modules: Collection[str], costs: Costs, processes: int) -> tuple[Plan, ...]:
    """The whole suite."""
    weights = {
        file: sum(
            cost.seconds for kind in (CORE, HEAVY, DRAWN) for unit, cost in costs.of[kind].items() if _of(unit, file)
        )
        or NEW_S
        for file in modules
    }
    outer = {module_of(key) for kind in (CORE_OUTSIDE, DRAWN_OUTSIDE) for key in costs.of[kind]}
    outer |= _unmeasured(costs, frozenset(modules))
    inner = [
        Plan(f"inside {number}", tuple(share), False, every=True)
        for number, share in enumerate(_shares(weights, processes), 1)
    ]
    return (Plan("outside", tuple(sorted(outer & set(modules))), True, every=True), *inner)


def _of(unit: str, file: str) -> bool:
    return not unit.startswith(EXAMPLES) and module_of(unit) == file


def _inner_weights(costs: Costs, taken: Collection[str], units: Collection[str], wanted: Wanted) -> dict[str, float]:
    """Module -> seconds, of those that have tests within the process."""
    weights: dict[str, float] = {}
    if wanted.core:
        weights = dict.fromkeys(_without_core(costs, taken), 0.0)
        weights |= dict.fromkeys(_unmeasured(costs, taken), NEW_S)
        for kind in (CORE, HEAVY) if wanted.heavy else (CORE,):
            for file, cost in costs.of[kind].items():
                if file in taken:
                    weights[file] = weights.get(file, 0.0) + cost.seconds
    for unit in units:
        if (file := module_of(unit)) in taken:
            weights[file] = weights.get(file, 0.0) + costs.of[DRAWN][unit].seconds
    return weights


def _without_core(costs: Costs, modules: Collection[str]) -> set[str]:
    """Of these modules those that had no test of the core within Python when they were measured: they may have got some
    since then, which nobody would run."""
    return {module for module in modules if module not in costs.of[CORE] and module not in costs.of[HEAVY]}


def _unmeasured(costs: Costs, modules: Collection[str]) -> set[str]:
    known = {module_of(key) for some in costs.of.values() for key in some}
    return {module for module in modules if module not in known}


def _shares(weights: Mapping[str, float], count: int) -> Sequence[Sequence[str]]:
    """Divided so that each share weighs about the same; the same weights, the same shares. The modules of a room stay
    together unless it is large: they import, parse and start the same."""
    most = sum(weights.values()) / count / 2
    rooms: dict[str, list[str]] = {}
    for file in weights:
        rooms.setdefault("/".join(file.split("/")[:-1][:_ROOM_PARTS]), []).append(file)
    pieces: list[tuple[float, list[str]]] = []
    for files in rooms.values():
        whole = sum(weights[file] for file in files)
        pieces += [(whole, files)] if whole <= most else [(weights[file], [file]) for file in files]
    shares: list[list[str]] = [[] for _ in range(count)]
    sums = [0.0] * count
    for weight, files in sorted(pieces, key=lambda piece: (-piece[0], piece[1])):
        least = sums.index(min(sums))
        shares[least] += files
        sums[least] += weight
    return [sorted(share) for share in shares if share]
