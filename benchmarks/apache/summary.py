"""From runs to medians, ratios and verdicts; and the table on the screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.apache.rows import (
    CROSS,
    JAVA_ON_OURS,
    MAIN,
    OURS,
    OURS_ON_SHIPPED,
    OURS_ON_TUNED,
    SHIPPED,
    SIDES,
    TUNED,
    Measure,
    Row,
    elsewhere,
)
from benchmarks.report import number

Record = dict[str, Any]
SURROUNDINGS: Final = ("plain", "slow-sync", "far", "tls")
LATENCIES: Final = ("p50_us", "p99_us")
_JAVA_CLIENT: Final = Measure("rate", "/s", aim=(1.8, 1.2))
_OUR_CLIENT: Final = Measure("rate", "/s")


@dataclass(frozen=True, slots=True)
class RoundsFigure:
    """One figure of one side: over the rounds."""

    middle: float
    low: float
    high: float
    rounds: int

    @classmethod
    def of(cls, values: Sequence[float]) -> RoundsFigure:
        return cls(median(values), min(values), max(values), len(values))

    def text(self, scale: float = 1.0) -> str:
        if self.rounds == 1:
            return number(self.middle * scale)
        return f"{number(self.middle * scale)} ({number(self.low * scale)}–{number(self.high * scale)})"


@dataclass(frozen=True, slots=True)
class Line:
    """One figure, side by side."""

    surroundings: str
    row: Row
    title: str
    measure: Measure
    seen: dict[str, RoundsFigure]
    """By column, which says whose bookies: ``ours``, ``shipped``, ``tuned``."""

    @property
    def best(self) -> float | None:
        """The better of Apache's two."""
        values = [self.seen[side].middle for side in (SHIPPED, TUNED) if side in self.seen]
        if not values:
            return None
        return min(values) if self.measure.lower else max(values)

    @property
    def ratio(self) -> float | None:
        """Ours over the better of Apache's two."""
        best = self.best
        if OURS not in self.seen or not best:
            return None
        return self.seen[OURS].middle / best

    @property
    def verdict(self) -> str:
        """goal, must or MISSED; empty where nothing is aimed at."""
        return self.measure.verdict(self.ratio) if self.ratio is not None else ""

    @property
    def won(self) -> bool | None:
        """Ours is the better one."""
        if self.ratio is None:
            return None
        return self.ratio <= 1 if self.measure.lower else self.ratio >= 1


@dataclass(slots=True)
class Found:
    """What all runs say."""

    lines: list[Line] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    """Cores that other processes used, per run."""
    others_by_row: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    """The same, by surroundings and row."""
    machine: list[str] = field(default_factory=list)

    def aimed(self) -> list[Line]:
        """Those with a goal."""
        return [line for line in self.lines if line.measure.aim]

    def one(self, surroundings: str, row: str, measure: str) -> Line | None:
        """A certain one, if it was measured."""
        for line in self.lines:
            if (line.surroundings, line.row.key, line.measure.key) == (surroundings, row, measure):
                return line
        return None


def summarize(records: Iterable[Record]) -> Found:
    """Medians and ratios of all runs that are recorded; the last record of a step counts."""
    found = Found()
    latest: dict[tuple[str, str, str, int], Record] = {}
    for record in records:
        if "row" in record:
            latest[record["surroundings"], record["row"], record["side"], record["round"]] = record
        elif "machine" in record:
            found.machine.append(record["machine"])
    runs: dict[tuple[str, str, str], list[Record]] = {}
    for (where, key, side, round_), record in latest.items():
        found.failed += [f"{where}, {key}, {side}, round {round_}: {failure}" for failure in record.get("failures", ())]
        if "error" in record:
            continue
        runs.setdefault((where, key, side), []).append(record)
        if "others_cores" in record:
            found.others.append(record["others_cores"])
            found.others_by_row.setdefault((where, key), []).append(record["others_cores"])
    for surroundings in SURROUNDINGS:
        for row in MAIN if surroundings == "plain" else elsewhere(surroundings):
            found.lines += _cross(row, runs) if row.sides == CROSS else _lines(surroundings, row, runs)
    return found


def _lines(surroundings: str, row: Row, runs: dict[tuple[str, str, str], list[Record]]) -> Iterator[Line]:
    for measure in row.measures:
        seen = {SIDES[side][1]: _seen(runs.get((surroundings, row.key, side)), measure.key) for side in row.sides}
        there = {side: figure for side, figure in seen.items() if figure is not None}
        if there:
            yield Line(surroundings, row, row.title, measure, there)


def _cross(row: Row, runs: dict[tuple[str, str, str], list[Record]]) -> Iterator[Line]:
    """Each client on the other's bookies, beside Java on Java."""
    base = f"add-1024-1000-{row.protocol}"

    def rate(key: str, side: str) -> RoundsFigure | None:
        return _seen(runs.get(("plain", key, side)), "rate")

    java = {side: found for side in (SHIPPED, TUNED) if (found := rate(base, side))}
    if mixed := rate(row.key, JAVA_ON_OURS):
        title = f"Java's client on our bookies (as ours) beside Java's on Java's, 1 KB, window 1000, {row.protocol}"
        yield Line("plain", row, title, _JAVA_CLIENT, {OURS: mixed, **java})
    for side, column in ((OURS_ON_SHIPPED, SHIPPED), (OURS_ON_TUNED, TUNED)):
        if (mixed := rate(row.key, side)) and column in java:
            title = (
                f"our client on Java's bookies ({column}) beside Java's client there, 1 KB, window 1000, {row.protocol}"
            )
            yield Line("plain", row, title, _OUR_CLIENT, {OURS: mixed, column: java[column]})


def _seen(records: list[Record] | None, key: str) -> RoundsFigure | None:
    values = [record[key] for record in records or [] if key in record]
    return RoundsFigure.of(values) if values else None


def shown(line: Line) -> list[str]:
    """A line's cells: figure, ours, shipped, tuned, ratio, goal, must, verdict."""
    unit, scale = ("ms", 1e-3) if line.measure.key in LATENCIES else (line.measure.unit, 1.0)
    cells = [line.seen[side].text(scale) if side in line.seen else "–" for side in (OURS, SHIPPED, TUNED)]
    ratio = "" if line.ratio is None else f"{line.ratio:.2f}"
    goal, must = (f"{part:g}" for part in line.measure.aim) if line.measure.aim else ("", "")
    name = {"p50_us": "p50", "p99_us": "p99", "cpu_us": "CPU an entry"}.get(line.measure.key, "")
    return [f"{line.title}{f': {name}' if name else ''}, {unit}", *cells, ratio, goal, must, line.verdict]


def print_table(found: Found, console: Console) -> None:
    """Everything, on the screen."""
    for title, lines in (("what was aimed at", found.aimed()), ("everything", found.lines)):
        table = Table(title=title, title_justify="left")
        for column in ("figure", "ours", "shipped", "tuned", "ours / Apache", "goal", "must", ""):
            table.add_column(column, overflow="fold")
        for line in lines:
            figure, *cells = shown(line)
            where = "" if line.surroundings == "plain" else f"{line.surroundings}: "
            table.add_row(f"{where}{figure}", *cells)
        console.print(table)
    for failure in found.failed:
        console.print(f"failed: {failure}")
    if found.others:
        console.print(
            f"other processes meanwhile: {median(found.others):.2f} cores in the middle, "
            f"{max(found.others):.2f} at most"
        )
