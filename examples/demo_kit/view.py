"""The live picture of a demo: what is done, what is waited for, and how things are.

On a terminal a table that is drawn again four times a second; elsewhere (a log, a pipe) one line for everything that
happens, and one every few seconds. A demo says with :meth:`DemoView.summary` and :meth:`DemoView.rows` what is shown.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Generic, Self, TypeVar

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

_PLAIN_EVERY_S: Final = 10.0


@dataclass(slots=True)
class DemoPicture:
    """All that is shown. Whoever learns something writes it here; the view only reads."""

    began: float = field(default_factory=time.monotonic)
    happened: list[tuple[float, str]] = field(default_factory=list)
    waits_for: str = ""
    waits_since: float = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


P = TypeVar("P", bound=DemoPicture)


class DemoView(ABC, Generic[P]):
    """Shows a picture until it is left."""

    title = "demo"
    shown = 14
    """Things that happened which the table shows."""

    def __init__(self, picture: P, console: Console) -> None:
        self.picture = picture
        self._console = console
        self._live = (
            Live(get_renderable=self.draw, console=console, refresh_per_second=4, transient=True)
            if console.is_terminal
            else None
        )
        self._told_at = 0.0

    @abstractmethod
    def summary(self) -> str:
        """The picture in one line."""

    @abstractmethod
    def rows(self) -> list[RenderableType]:
        """What stands above the story on a terminal."""

    def happened(self, text: str) -> None:
        """Something was done, or became known."""
        at = self.picture.seconds
        self.picture.waits_for = ""
        self.picture.happened.append((at, text))
        if self._live is None:
            self._print(at, text)

    def waits(self, text: str) -> None:
        """What is waited for, until something happens."""
        self.picture.waits_for, self.picture.waits_since = text, self.picture.seconds
        if self._live is None:
            self._print(self.picture.seconds, f"waiting: {text} ...")

    def looked(self) -> None:
        """The picture was brought up to date."""
        at = self.picture.seconds
        if self._live is None and at >= self._told_at + _PLAIN_EVERY_S:
            self._told_at = at
            self._print(at, f"  {self.summary()}")

    def draw(self) -> Group:
        """The picture as a table, and the story below it."""
        p = self.picture
        story = Text("\n".join(f"{at:6.1f} s  {text}" for at, text in p.happened[-self.shown :]))
        if p.waits_for:
            story.append(f"\n          waiting for {p.seconds - p.waits_since:.0f} s: {p.waits_for} ...", style="dim")
        return Group(Panel(Group(*self.rows()), title=f"{self.title}, {p.seconds:.0f} s"), story)

    def _print(self, at: float, text: str) -> None:
        self._console.print(f"{at:6.1f} s  {text}", highlight=False, soft_wrap=True, markup=False)

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()
            for at, text in self.picture.happened:
                self._print(at, text)
        self._print(self.picture.seconds, self.summary())
