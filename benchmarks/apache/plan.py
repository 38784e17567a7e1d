"""The order of all runs, and what they will take. Decides, performs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.apache.rows import OURS, SHIPPED, TUNED, Row

WARM_UP: Final = 0
"""The round that is not kept."""

_APART: Final = ("memory", "start", "replay")
"""Kinds that come last: they weigh, or end, bookies that have worked."""
_OVERHEAD_S: Final = {"add": 1.0, "read": 0.8, "tail": 1.5, "create": 0.8, "recover": 2.0, "memory": 0.1}
_WHOLE_S: Final = {"start": {OURS: 3.0, SHIPPED: 6.0, TUNED: 6.0}, "replay": {OURS: 16.0, SHIPPED: 30.0}}


@dataclass(frozen=True, slots=True)
class Step:
    """One run."""

    surroundings: str
    row: Row
    side: str
    round: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.surroundings, self.row.key, self.side, self.round

    @property
    def estimate_s(self) -> float:
        kind = self.row.kind
        if kind in _WHOLE_S:
            return _WHOLE_S[kind][self.side]
        return _OVERHEAD_S[kind] + (self.row.seconds if kind not in ("recover", "memory") else 0.0)


def parts(rows: Sequence[Row]) -> list[list[Row]]:
    """What is measured on the same clusters: adds over v2 get fresh ones, because all of it would fill a small disk."""
    second = [row for row in rows if row.kind == "add" and row.protocol == "v2"]
    first = [row for row in rows if row not in second]
    return [part for part in (first, second) if part]


def steps(surroundings: str, rows: Sequence[Row], *, rounds_max: int = 9) -> list[Step]:
    """All runs in one kind of surroundings: Java is warmed up, then round by round; sides take turns in a row."""
    plan = [*_warm_up(surroundings, rows)]
    taking_turns = [row for row in rows if row.kind not in _APART]
    for number in range(1, 1 + min(rounds_max, max((row.rounds for row in taking_turns), default=0))):
        plan += [
            Step(surroundings, row, side, number)
            for row in taking_turns
            if number <= row.rounds
            for side in _turned(row.sides, number)
        ]
    for row in rows:
        if row.kind in _APART:
            plan += [
                Step(surroundings, row, side, number)
                for number in range(1, 1 + min(rounds_max, row.rounds))
                for side in _turned(row.sides, number)
            ]
    return plan


def _turned(sides: Sequence[str], number: int) -> list[str]:
    """Another one begins each round: what follows on what is not always the same."""
    by = (number - 1) % len(sides)
    return [*sides[by:], *sides[:by]]


def _warm_up(surroundings: str, rows: Sequence[Row]) -> list[Step]:
    """Everything once before it counts, the heaviest adds of each protocol for longer: until compilers have settled."""
    plan = []
    heaviest: dict[str, Row] = {}
    for row in rows:
        if row.kind == "add" and row.arguments["window"] > _window(heaviest.get(row.protocol)):
            heaviest[row.protocol] = row
    for row in rows:
        first = row.kind == "add" and row is heaviest[row.protocol]
        if row.kind in _APART or (row.kind == "add" and not first):
            continue
        longer = replace(row, seconds=15.0 if first else 1.5, arguments=_unlimited(row))
        plan += [Step(surroundings, longer, side, WARM_UP) for side in row.sides if side in (SHIPPED, TUNED)]
        if first:
            brief = replace(longer, seconds=1.0)
            plan += [Step(surroundings, brief, side, WARM_UP) for side in row.sides if side not in (SHIPPED, TUNED)]
    return plan


def _window(row: Row | None) -> int:
    """Of adds; 0 of none."""
    return row.arguments["window"] if row is not None else 0


def _unlimited(row: Row) -> dict[str, object]:
    return {**row.arguments, "count": 600_000} if row.kind == "add" else dict(row.arguments)
