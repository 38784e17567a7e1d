"""The rows, the goals, and the table of a run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from benchmarks.report import Aim, number

BEGIN: Final = "<!-- bench-streams: written by `make bench-streams`, down to the end marker -->"
END: Final = "<!-- bench-streams: end -->"

OURS: Final = "ours"
OURS_ALONE: Final = ("end_to_end_inside",)
"""What only our load generator understands."""

GOALS_SYNC_US: Final = 95.0
"""The goals are for a disk whose synced write takes so long."""

Seen = Mapping[str, Mapping[str, Sequence[float]]]
"""System -> row -> its figure in each round."""


@dataclass(frozen=True, slots=True)
class RivalRow:
    """One figure: what a load generator is told, and which field of its answer counts."""

    key: str
    says: str
    field: str
    unit: str
    aim: Aim
    op: str
    arguments: Mapping[str, Any]


def _row(key: str, says: str, field: str, unit: str, goal: float, op: str, **arguments: Any) -> RivalRow:
    lower = unit in ("ms", "s")
    return RivalRow(key, says, field, unit, Aim(goal, goal, lower), op, arguments)


ROWS: Final = (
    _row("one", "1 KB, one at a time, p50", "p50_ms", "ms", 0.5, "append", window=1, size=1024),
    _row("100", "1 KB, 100 in flight", "per_s", "/s", 75_000, "append", window=100, size=1024),
    _row("1000", "1 KB, 1,000 in flight", "per_s", "/s", 150_000, "append", window=1000, size=1024),
    _row("batched", "100 B, batched", "per_s", "/s", 600_000, "append", window=10_000, size=100, batch=1000),
    _row("catch-up", "1 KB, catch-up read", "per_s", "/s", 700_000, "catch_up", window=1000, records=200_000),
    _row("p50", "end to end at 1,000/s, p50", "p50_ms", "ms", 0.7, "end_to_end", window=100, rate=1000),
    _row("p99", "… p99", "p99_ms", "ms", 2.0, "end_to_end", window=100, rate=1000),
    _row(
        "inside-p50", "… by a reader of the writer's client, p50", "p50_ms", "ms", 0.7, "end_to_end_inside", rate=1000
    ),
    _row("inside-p99", "… p99", "p99_ms", "ms", 2.0, "end_to_end_inside", rate=1000),
    _row("failover", "kill -9 of the owner to the next acknowledgement", "seconds", "s", 2.0, "failover"),
)


def ratio(row: RivalRow, ours: float, theirs: float) -> float:
    """How many times better ours is; below 1: worse."""
    return theirs / ours if row.aim.lower else ours / theirs


def table(seen: Seen) -> str:
    """Markdown: ours, each rival with the ratio in brackets, the goal, and whether ours reaches it."""
    rivals = [name for name in seen if name != OURS]
    lines = [
        f"| | ours | {''.join(f'{name} | ' for name in rivals)}goal | |",
        f"|---|---|{'---|' * len(rivals)}---|---|",
    ]
    for row in ROWS:
        ours = seen.get(OURS, {}).get(row.key)
        cells = [row.says, _cell(row, ours)]
        for name in rivals:
            theirs = seen[name].get(row.key)
            beside = f", **{number(ratio(row, median(ours), median(theirs)))}×**" if ours and theirs else ""
            cells.append(_cell(row, theirs) + beside)
        verdict = "" if not ours else "reached" if row.aim.verdict(median(ours)) == "goal" else "*missed*"
        cells += [f"{number(row.aim.goal)} {row.unit}", verdict]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def section(seen: Seen, missing: Mapping[str, str], syncs_us: Sequence[float]) -> str:
    """The part of docs/benchmarks.md that a run writes."""
    rounds = max((len(figures) for rows in seen.values() for figures in rows.values()), default=0)
    text = [
        f"Medians of {rounds} rounds (lowest–highest); × says how many times better ours is.",
        f"A synced write of 4 KiB took {min(syncs_us):.0f}–{max(syncs_us):.0f} µs, "
        f"{median(syncs_us) / GOALS_SYNC_US:.1f} times the {GOALS_SYNC_US:.0f} µs for which the goals were set.",
    ]
    text += [f"{name} is left out: {why}." for name, why in missing.items()]
    return "\n".join([*text, "", table(seen)])


def placed(page: str, text: str) -> str:
    """The page with the section between its markers; at its end, if it has none."""
    body = f"{BEGIN}\n\n{text}\n\n{END}"
    if BEGIN not in page:
        return f"{page.rstrip()}\n\n{body}\n"
    before, _, rest = page.partition(BEGIN)
    return f"{before}{body}{rest.partition(END)[2]}"


def _cell(row: RivalRow, figures: Sequence[float] | None) -> str:
    if not figures:
        return "–"
    spread = f" ({number(min(figures))}–{number(max(figures))})" if len(figures) > 1 else ""
    return f"{number(median(figures))}{'' if row.unit == '/s' else f' {row.unit}'}{spread}"
