"""What all pages have: title, blocks, age, actions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bookkeeper.amounts import time_in_words
from bookkeeper.console.blocks import PageAddress, ShownBlock
from bookkeeper.console.cells import SIGNS, PageLink, span
from bookkeeper.console.drawing import Drawing
from bookkeeper.console.panels import Tone
from bookkeeper.console.resident import CachedValue

SOON_S: Final = 1.0
"""Seconds after which a browser asks again for a page whose data are not there yet."""


@dataclass(frozen=True, slots=True)
class ShownAction:
    """A button that changes something, after a question."""

    action: str
    """The word that switches it on."""
    label: str
    target: str
    """What is changed: a ledger's or a bookie's id. It is typed again to confirm."""
    says: str
    """What will happen: sentences."""
    params: Mapping[str, str] = field(default_factory=dict)
    """More of what is sent."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several lists, of which one is shown."""

    text: str
    path: str
    count: int | None = None
    is_chosen: bool = False


@dataclass(frozen=True, slots=True)
class PageView:
    """A page, ready for the template."""

    title: str
    nav: str
    """The path of the page's entry in the navigation."""
    blocks: tuple[ShownBlock, ...] = ()
    summary: str = ""
    tone: Tone = Tone.PLAIN
    age: str = ""
    """How old what is shown is, and how long reading it took."""
    problem: str = ""
    """Why nothing newer is shown."""
    refresh_s: float | None = None
    """After how many seconds a browser asks again; None: never."""
    choices: tuple[tuple[str, tuple[Choice, ...]], ...] = ()
    """Groups of lists, by what they differ in."""
    drawing: Drawing | None = None
    actions: tuple[ShownAction, ...] = ()
    code: int = 200

    @property
    def sign(self) -> str:
        """The sign of the summary's tone."""
        return SIGNS[self.tone]


@dataclass(frozen=True, slots=True)
class ViewRequest:
    """What a page is asked for."""

    address: PageAddress
    now_ms: int
    refresh_s: float
    """After how many seconds there may be news."""
    offers: Callable[[str], bool] = lambda action: False
    """Whether an action is switched on."""


def age_of(kept: CachedValue[Any], now_ms: int) -> str:
    """How old a value is, for people."""
    return f"as of {time_in_words(max(0, now_ms - kept.at_ms) / 1000)} ago, read in {span(kept.took_s)}"


def problem_of(kept: CachedValue[Any]) -> str:
    """Why nothing newer is there, for people."""
    return f"Nothing newer can be shown: {kept.problem}" if kept.problem else ""


def waiting(title: str, nav: str, kept: CachedValue[Any], text: str) -> PageView:
    """A page whose data are not there yet."""
    return PageView(title, nav, summary=text, problem=problem_of(kept), refresh_s=SOON_S)


def not_found(title: str, nav: str, text: str) -> PageView:
    """That there is no such thing."""
    return PageView(title, nav, summary=text, tone=Tone.WARN, code=404)


def links(*pairs: tuple[str, str]) -> tuple[PageLink, ...]:
    """Links of these texts and paths."""
    return tuple(PageLink(text, path) for text, path in pairs)
