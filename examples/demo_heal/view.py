"""The live picture: what is done to the cluster, how it goes, and how every bookie is.

On a terminal a table that is drawn again four times a second; elsewhere (a log, a pipe) one line for everything that
happens, and one every few seconds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_PLAIN_EVERY_S: Final = 10.0
_STYLES: Final = {"writable": "black on green", "read-only": "black on yellow"}
_SHOWN: Final = 14
"""Things that happened which the table shows."""


@dataclass(slots=True)
class HealPicture:
    """All that is shown. Whoever learns something writes it here; the view only reads."""

    began: float = field(default_factory=time.monotonic)
    bookies: dict[str, str] = field(default_factory=dict)
    """The state of each bookie, in a word or two."""
    stored: dict[str, int] = field(default_factory=dict)
    """Bytes on each bookie's disk."""
    ledgers: int = 0
    acknowledged: int = 0
    under_replicated: int = 0
    stuck: dict[int, str] = field(default_factory=dict)
    repaired: int = 0
    copied_bytes: int = 0
    copied_entries: int = 0
    auditing: str = "not running"
    working: tuple[str, ...] = ()
    happened: list[tuple[float, str]] = field(default_factory=list)
    waits_for: str = ""

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def stored_bytes(self) -> int:
        return sum(self.stored.values())


class HealView:
    """Shows a :class:`HealPicture` until it is left."""

    def __init__(self, picture: HealPicture, console: Console) -> None:
        self._picture = picture
        self._console = console
        self._live = (
            Live(get_renderable=self.draw, console=console, refresh_per_second=4, transient=True)
            if console.is_terminal
            else None
        )
        self._told_at = 0.0

    def happened(self, text: str) -> None:
        """Something was done to the cluster, or became known about it."""
        at = self._picture.seconds
        self._picture.waits_for = ""
        self._picture.happened.append((at, text))
        if self._live is None:
            self._print(at, text)

    def waits(self, text: str) -> None:
        """What is waited for, until something happens."""
        self._picture.waits_for = text
        if self._live is None:
            self._print(self._picture.seconds, f"waiting: {text} ...")

    def looked(self) -> None:
        """The picture was brought up to date."""
        at = self._picture.seconds
        if self._live is None and at >= self._told_at + _PLAIN_EVERY_S:
            self._told_at = at
            self._print(at, f"  {self.summary()}")

    def summary(self) -> str:
        """The picture in one line."""
        p = self._picture
        bookies = ", ".join(f"{name} {state}" for name, state in sorted(p.bookies.items()))
        return (
            f"{p.ledgers} ledgers, {p.acknowledged} entries acknowledged, {p.under_replicated} under-replicated, "
            f"{p.copied_bytes / 1e6:.1f} MB copied, {p.stored_bytes / 1e6:.0f} MB on disks; {bookies}"
        )

    def _print(self, at: float, text: str) -> None:
        self._console.print(f"{at:6.1f} s  {text}", highlight=False, soft_wrap=True, markup=False)

    def draw(self) -> Group:
        """The picture as a table."""
        p = self._picture
        table = Table.grid(padding=(0, 3))
        table.add_row("ledgers", f"{p.ledgers}", "entries acknowledged", f"{p.acknowledged:,}")
        table.add_row("under-replicated", f"{p.under_replicated}", "stuck", f"{len(p.stuck)}")
        table.add_row(
            "repaired", f"{p.repaired}", "copied", f"{p.copied_entries:,} entries, {p.copied_bytes / 1e6:.1f} MB"
        )
        disks = Table.grid(padding=(0, 3))
        for name, state in sorted(p.bookies.items()):
            disks.add_row(
                name,
                Text(f" {state} ", style=_STYLES.get(state, "white on red")),
                f"{p.stored.get(name, 0) / 1e6:.1f} MB",
            )
        doing = Text("\n".join([f"auditor: {p.auditing}", *(f"repairs {line}" for line in p.working)]), style="dim")
        story = Text("\n".join(f"{at:6.1f} s  {text}" for at, text in p.happened[-_SHOWN:]))
        if p.waits_for:
            story.append(f"\n          waiting: {p.waits_for} ...", style="dim")
        return Group(Panel(Group(table, disks, doing), title=f"healing, {p.seconds:.0f} s"), story)

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
                self._print(at, text)
        self._print(self._picture.seconds, self.summary())
