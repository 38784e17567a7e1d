"""The table: what was seen, what is hoped for, what must be."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Aim:
    """A figure's goal and must. ``lower``: the smaller the better."""

    goal: float
    must: float
    lower: bool = False

    def verdict(self, seen: float) -> str:
        def reached(bar: float) -> bool:
            return seen <= bar if self.lower else seen >= bar

        return "goal" if reached(self.goal) else "must" if reached(self.must) else "MISSED"


@dataclass(frozen=True, slots=True)
class Figure:
    """One row."""

    what: str
    seen: float
    unit: str
    aim: Aim | None = None
    note: str = ""


class Report:
    """Collects figures, prints them as they come, and the whole at the end."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self._console = Console(width=160)

    def add(self, figure: Figure) -> None:
        self.figures.append(figure)
        verdict = f" [{figure.aim.verdict(figure.seen)}]" if figure.aim else ""
        self._console.print(
            f"  {figure.what}: {number(figure.seen)} {figure.unit}{verdict}  {figure.note}",
            highlight=False,
            markup=False,
        )

    def heading(self, text: str) -> None:
        self._console.print(text, style="bold", highlight=False)

    def table(self) -> None:
        table = Table(title="figures", title_justify="left")
        for column in ("figure", "seen", "unit", "goal", "must", "", "note"):
            table.add_column(column, overflow="fold")
        for figure in self.figures:
            aim = figure.aim
            table.add_row(
                figure.what,
                number(figure.seen),
                figure.unit,
                number(aim.goal) if aim else "",
                number(aim.must) if aim else "",
                aim.verdict(figure.seen) if aim else "",
                figure.note,
            )
        self._console.print(table)

    def json(self) -> str:
        rows: list[dict[str, Any]] = [
            {"what": figure.what, "seen": figure.seen, "unit": figure.unit, "note": figure.note}
            for figure in self.figures
        ]
        return json.dumps(rows)


def number(value: float) -> str:
    """Readable: 125,000 and 0.31 and 7.5."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"
