"""The live picture: what the stream does, what is done to it, and who is up.

On a terminal a table that is drawn again four times a second; elsewhere (a log, a pipe) one line for
everything that is done to the job, and one every few batches.
"""

from __future__ import annotations

import time
from collections import deque
from dataclasses import dataclass, field
from statistics import median
from types import TracebackType
from typing import Any, Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_RECENT: Final = 20
"""Batches over which times are summed up."""

_PLAIN_EVERY: Final = 25
"""Without a terminal: a line every so many batches."""


@dataclass(slots=True)
class Picture:
    """All that is shown. Whoever learns something writes it here; the view only reads."""

    total_rows: int
    began: float = field(default_factory=time.monotonic)
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
    happened: list[tuple[float, str]] = field(default_factory=list)
    waits_for: str = ""
    waits_since: float = 0.0

    def on_progress(self, line: dict[str, Any]) -> None:
        """A batch is committed: Spark's own figures, as the job printed them."""
        self.batches = line["batch"] + 1
        self.waits_for = ""
        self.rows += line["rows"]
        self.rows_per_s = line["rows_per_s"] or 0.0
        self.wal_ms.append(line["ms"].get("walCommit", 0))
        self.commit_ms.append(line["ms"].get("commitOffsets", 0))
        self.state_ms.append(line["state_commit_ms"])

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


def _median(values: deque[int]) -> str:
    return f"{median(values):.0f} ms" if values else "-"


class View:
    """Shows a :class:`Picture` until it is left."""

    def __init__(self, picture: Picture, console: Console | None = None) -> None:
        self._picture = picture
        self._console = console or Console()
        self._live = (
            Live(get_renderable=self._draw, console=self._console, refresh_per_second=4, transient=True)
            if self._console.is_terminal
            else None
        )
        self._told = 0

    def happened(self, text: str) -> None:
        """Something was done to the job, or became known about it."""
        at = self._picture.seconds
        self._picture.waits_for = ""
        self._picture.happened.append((at, text))
        if self._live is None:
            self._console.print(f"{at:6.1f} s  {text}", highlight=False, soft_wrap=True)

    def waits(self, text: str) -> None:
        """Nothing will be seen for a while, and this is why; until something happens."""
        self._picture.waits_for, self._picture.waits_since = text, self._picture.seconds
        if self._live is None:
            self._console.print(f"{self._picture.seconds:6.1f} s  waiting: {text} ...", highlight=False, soft_wrap=True)

    def on_progress(self, line: dict[str, Any]) -> None:
        self._picture.on_progress(line)
        if self._live is None and self._picture.batches >= self._told + _PLAIN_EVERY:
            self._told = self._picture.batches
            self._console.print(f"{self._picture.seconds:6.1f} s  {self._summary()}", highlight=False, soft_wrap=True)

    def _summary(self) -> str:
        p = self._picture
        up = sum(state == "up" for state in p.bookies.values())
        return (
            f"batch {p.batches}, {p.rows:,} rows, {p.rows_per_s:,.0f} rows/s; walCommit {_median(p.wal_ms)}, "
            f"state commit {_median(p.state_ms)}, commitOffsets {_median(p.commit_ms)}; "
            f"{up} of {len(p.bookies)} bookies up, {p.ledgers} ledgers, {p.bytes_stored / 1e6:.1f} MB stored"
        )

    def _draw(self) -> Group:
        p = self._picture
        table = Table.grid(padding=(0, 3))
        table.add_row("batches", f"{p.batches}", "walCommit", _median(p.wal_ms))
        table.add_row("rows", f"{p.rows:,} of {p.total_rows:,}", "state commit", _median(p.state_ms))
        table.add_row("rows/s", f"{p.rows_per_s:,.0f}", "commitOffsets", _median(p.commit_ms))
        table.add_row("ledgers", f"{p.ledgers}", "stored", f"{p.bytes_stored / 1e6:.1f} MB")
        table.add_row("driver", p.driver, "gateway", p.gateway)
        bookies = Text("bookies  ")
        for name, state in p.bookies.items():
            bookies.append(f" {name} {state} ", style="black on green" if state == "up" else "white on red")
            bookies.append(" ")
        story = Text("\n".join(f"{at:6.1f} s  {text}" for at, text in p.happened[-12:]))
        if p.waits_for:
            story.append(f"\n          waiting for {p.seconds - p.waits_since:.0f} s: {p.waits_for} ...", style="dim")
        return Group(Panel(Group(table, bookies), title=f"flights, {p.seconds:.0f} s"), story)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            for at, text in self._picture.happened:
                self._console.print(f"{at:6.1f} s  {text}", highlight=False, soft_wrap=True)
        self._console.print(f"{self._picture.seconds:6.1f} s  {self._summary()}", highlight=False, soft_wrap=True)
