"""The live picture: what the stream does, what is done to it, and who is up."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from bookkeeper.amounts import counted
from examples.demo_kit.view import DemoPicture, DemoView
from examples.flights.data import ROWS

_RECENT: Final = 20
"""Batches over which times are summed up."""


@dataclass(slots=True)
class FlightPicture(DemoPicture):
    """All that is shown of the stream."""

    batches: int = 0
    rows: int = 0
    rows_per_s: float = 0.0
    driver: str = "starting"
    gateway: str = "starting"
    bookies: dict[str, str] = field(default_factory=dict)
    ledgers: int = 0
    bytes_stored: int = 0
    wal_ms: deque[int] = field(default_factory=lambda: deque(maxlen=_RECENT))
    state_ms: deque[int] = field(default_factory=lambda: deque(maxlen=_RECENT))
    commit_ms: deque[int] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def on_progress(self, line: Mapping[str, Any]) -> None:
        """A batch is committed: Spark's own figures, as the job printed them."""
        self.batches = line["batch"] + 1
        self.waits_for = ""
        self.rows += line["rows"]
        self.rows_per_s = line["rows_per_s"] or 0.0
        self.wal_ms.append(line["ms"].get("walCommit", 0))
        self.commit_ms.append(line["ms"].get("commitOffsets", 0))
        self.state_ms.append(line["state_commit_ms"])


def _median(values: deque[int]) -> str:
    return f"{median(values):.0f} ms" if values else "-"


class FlightView(DemoView[FlightPicture]):
    """Shows a :class:`FlightPicture` until it is left."""

    title = "flights"
    shown = 12

    def on_progress(self, line: Mapping[str, Any]) -> None:
        """A batch is committed."""
        self.picture.on_progress(line)
        self.looked()

    def summary(self) -> str:
        """The picture in one line."""
        p = self.picture
        up = sum(state == "up" for state in p.bookies.values())
        return (
            f"batch {p.batches}, {counted(p.rows, 'row')}, {p.rows_per_s:,.0f} a second; "
            f"walCommit {_median(p.wal_ms)}, state commit {_median(p.state_ms)}, commitOffsets {_median(p.commit_ms)}; "
            f"{up} of {counted(len(p.bookies), 'bookie')} up, {counted(p.ledgers, 'ledger')}, "
            f"{p.bytes_stored / 1e6:.1f} MB stored"
        )

    def rows(self) -> list[RenderableType]:
        p = self.picture
        table = Table.grid(padding=(0, 3))
        table.add_row("batches", f"{p.batches}", "walCommit", _median(p.wal_ms))
        table.add_row("rows", f"{p.rows:,} of {ROWS:,}", "state commit", _median(p.state_ms))
        table.add_row("rows/s", f"{p.rows_per_s:,.0f}", "commitOffsets", _median(p.commit_ms))
        table.add_row("ledgers", f"{p.ledgers}", "stored", f"{p.bytes_stored / 1e6:.1f} MB")
        table.add_row("driver", p.driver, "gateway", p.gateway)
        bookies = Text("bookies  ")
        for name, state in p.bookies.items():
            bookies.append(f" {name} {state} ", style="black on green" if state == "up" else "white on red")
            bookies.append(" ")
        return [table, bookies]
