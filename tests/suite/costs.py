"""Codec: what each part of the tests costs, in seconds of the reference machine's processor (``costs.tsv``).

A row has a kind, a key, a number of tests and seconds. The kinds: ``core``, the tests of one module that belong to the
core and run within pytest's process; ``heavy``, those among them that ``make unit`` leaves out, counted here alone;
``outside``, one that belongs to the core and has processes of its own;
``drawn``, a unit of the draw, ``drawn outside``, one with processes of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.suite.selection import EXAMPLES, Selection

CORE_EXAMPLES: Final = 0.2
"""Of the draw's examples the core has this share."""
FILE: Final = Path(__file__).with_name("costs.tsv")
CORE, HEAVY, CORE_OUTSIDE, DRAWN, DRAWN_OUTSIDE = KINDS = ("core", "heavy", "outside", "drawn", "drawn outside")


@dataclass(slots=True)
class Cost:
    """Of a module or a unit."""

    tests: int = 0
    seconds: float = 0.0
    """Of processor time, children's too, on the reference machine."""

    def add(self, seconds: float) -> None:
        """One test more."""
        self.tests += 1
        self.seconds += seconds


@dataclass(slots=True)
class Costs:
    """What was recorded: kind -> module or unit -> its cost."""

    of: dict[str, dict[str, Cost]] = field(default_factory=lambda: {kind: {} for kind in KINDS})

    def add(
        self, selection: Selection, test: str, seconds: float, *, outside: bool, property_test: bool, examples: bool
    ) -> None:
        """Count one test that was run.

        Args:
            property_test: whether hypothesis makes its examples.
            examples: whether it was run with as many examples as the draw has; then it counts there, and with a share
                of it among the others.
        """
        if examples and property_test:
            self._at(DRAWN, EXAMPLES + test.partition("::")[0]).add(seconds)
            seconds *= CORE_EXAMPLES
        core = selection.is_core(test, outside=outside)
        inner = HEAVY if selection.is_heavy(test) else CORE
        kind = (CORE_OUTSIDE if outside else inner) if core else (DRAWN_OUTSIDE if outside else DRAWN)
        self._at(kind, test.partition("::")[0] if core else selection.unit(test)).add(seconds)

    def _at(self, kind: str, key: str) -> Cost:
        return self.of[kind].setdefault(key, Cost())

    @property
    def drawn_units(self) -> frozenset[str]:
        """The units of the draw."""
        return frozenset(self.of[DRAWN]) | frozenset(self.of[DRAWN_OUTSIDE])

    def seconds(self, *kinds: str) -> float:
        """The sum of some kinds."""
        return sum(cost.seconds for kind in kinds for cost in self.of[kind].values())


def written(costs: Costs) -> str:
    """The table as text, in an order that a diff can show."""
    rows = [
        f"{kind}\t{key}\t{cost.tests}\t{cost.seconds:.2f}"
        for kind, some in costs.of.items()
        for key, cost in sorted(some.items())
    ]
    return "\n".join(["kind\tkey\ttests\tseconds", *rows, ""])


def read(text: str) -> Costs:
    """The table from its text.

    Raises:
        ValueError: a row is not one.
    """
    costs = Costs()
    for number, row in enumerate(text.splitlines()[1:], 2):
        try:
            kind, key, tests, seconds = row.split("\t")
            costs.of[kind][key] = Cost(int(tests), float(seconds))
        except (ValueError, KeyError):
            raise ValueError(f"{FILE.name}, line {number}: not a row of costs: {row!r}") from None
    return costs


def table() -> Costs:
    """What was recorded."""
    return read(FILE.read_text())


def merged(earlier: Costs, later: Costs, gone: Iterable[str] = ()) -> Costs:
    """What was measured later replaces what was; ``gone`` are modules that are no more."""
    dropped = frozenset(gone)
    result = Costs()
    for kind, some in result.of.items():
        both: Mapping[str, Cost] = earlier.of[kind] | later.of[kind]
        some.update({key: cost for key, cost in both.items() if _module(key) not in dropped})
    return result


def _module(key: str) -> str:
    return key.removeprefix(EXAMPLES).partition("::")[0]
