"""The live picture: what is done to the name node, and how its replicas are.

On a terminal a table that is drawn again four times a second; elsewhere one line for everything that happens, and one
every few seconds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Self

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

_PLAIN_EVERY_S: Final = 10.0
_STYLES: Final = {"active": "black on green", "standby": "black on cyan", "becoming active": "black on yellow"}
_SHOWN: Final = 16


@dataclass(slots=True)
class NameNodePicture:
    """All that is shown. Whoever learns something writes it here; the view only reads."""

    began: float = field(default_factory=time.monotonic)
    replicas: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Name -> what the replica says of itself; ``role`` alone if it says nothing."""
    clients: int = 0
    acknowledged: int = 0
    repeated: int = 0
    audited: int = 0
    """The last edit that the auditor has read."""
    checkpoints: tuple[int, ...] = ()
    segments: int = 0
    happened: list[tuple[float, str]] = field(default_factory=list)
    waits_for: str = ""

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


class NameNodeView:
    """Shows a :class:`NameNodePicture` until it is left."""

    def __init__(self, picture: NameNodePicture, console: Console) -> None:
        self._picture = picture
        self._console = console
        self._live = (
            Live(get_renderable=self.draw, console=console, refresh_per_second=4, transient=True)
            if console.is_terminal
            else None
        )
        self._told_at = 0.0

    def happened(self, text: str) -> None:
        """Something was done, or became known."""
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
        replicas = ", ".join(
            f"{name} {said['role']}" + (f" at edit {said['txid']}" if "txid" in said else "")
            for name, said in sorted(p.replicas.items())
        )
        return (
            f"{p.acknowledged} requests acknowledged, {p.repeated} asked again, {p.audited} edits audited, "
            f"{len(p.checkpoints)} checkpoints, {p.segments} segments; {replicas}"
        )

    def _print(self, at: float, text: str) -> None:
        self._console.print(f"{at:6.1f} s  {text}", highlight=False, soft_wrap=True, markup=False)

    def draw(self) -> Group:
        """The picture as a table."""
        p = self._picture
        table = Table.grid(padding=(0, 3))
        table.add_row("clients", f"{p.clients}", "acknowledged", f"{p.acknowledged:,}", "asked again", f"{p.repeated}")
        kept = ", ".join(f"{at}" for at in p.checkpoints) or "none"
        table.add_row("edits audited", f"{p.audited:,}", "segments", f"{p.segments}", "checkpoints", kept)
        replicas = Table.grid(padding=(0, 3))
        for name, said in sorted(p.replicas.items()):
            role = Text(f" {said['role']} ", style=_STYLES.get(said["role"], "white on red"))
            facts = (
                f"edit {said['txid']:,}, {said['answered']:,} answered, {said['repeated']} known already, "
                f"{said['offered']} checkpoints offered, {said['adopted']} adopted, fenced {said['fenced']} times"
                if "txid" in said
                else ""
            )
            replicas.add_row(name, role, facts)
        story = Text("\n".join(f"{at:6.1f} s  {text}" for at, text in p.happened[-_SHOWN:]))
        if p.waits_for:
            story.append(f"\n          waiting: {p.waits_for} ...", style="dim")
        return Group(Panel(Group(table, replicas), title=f"name node, {p.seconds:.0f} s"), story)

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
