"""Values of panels and pages as a page shows them: text, sign, link. Pure.

Nothing here is HTML: templates escape all of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote, urlencode

from bookkeeper.amounts import size_in_words, time_in_words
from bookkeeper.console.panels import (
    ByteCount,
    Cell,
    DetailLink,
    Duration,
    LedgerLink,
    Moment,
    Proportion,
    StateWord,
    Tone,
)

SIGNS: Final = {Tone.PLAIN: "", Tone.GOOD: "✓", Tone.WARN: "!", Tone.BAD: "✗"}
"""A sign for each tone, for those who see no colours."""


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link to a page of the console itself."""

    text: str
    path: str
    """With its query."""


@dataclass(frozen=True, slots=True)
class ShownCell:
    """One value, ready for a template."""

    text: str
    kind: str = "text"
    """``text``, ``number``, ``time``, ``state``, ``bar`` or ``none``."""
    href: str = ""
    tone: Tone = Tone.PLAIN
    title: str = ""
    """What is shown when a pointer rests on it."""
    percent: int = 0
    """Of a bar."""

    @property
    def sign(self) -> str:
        """The sign of its tone."""
        return SIGNS[self.tone]


def shown(cell: Cell | PageLink, now_ms: int, panel: str = "") -> ShownCell:
    """A value for a template. ``panel``: whose it is, for links without one."""
    match cell:
        case None:
            return ShownCell("–", "none")
        case bool():
            return ShownCell("yes" if cell else "no")
        case int():
            return ShownCell(f"{cell:,}".replace(",", " "), "number")
        case float():
            return ShownCell(f"{cell:.3g}", "number")
        case str():
            return ShownCell(cell)
        case StateWord(text, tone):
            return ShownCell(text, "state", tone=tone)
        case ByteCount(count):
            return ShownCell(size_in_words(count), "number", title=f"{count} bytes")
        case Duration(seconds):
            return ShownCell(span(seconds), "number")
        case Moment(wall_ms):
            return ShownCell(f"{time_in_words(max(0.0, (now_ms - wall_ms) / 1000))} ago", "time", title=utc(wall_ms))
        case Proportion(part, whole, tone):
            percent = round(100 * min(1.0, max(0.0, part / whole))) if whole > 0 else 0
            return ShownCell(f"{percent} %", "bar", tone=tone, percent=percent)
        case LedgerLink(ledger_id):
            return ShownCell(str(ledger_id), "number", href=f"/ledgers/{ledger_id}")
        case DetailLink(text, key, other):
            return ShownCell(text, href=detail_path(other or panel, key))
        case PageLink(text, path):
            return ShownCell(text, href=path)


def detail_path(panel: str, key: str) -> str:
    """Where the page of one thing of a panel is. The key stands in the query: in a path a browser would take ``..`` for
    a step up."""
    return f"/panels/{quote(panel, safe='')}?{urlencode({'of': key})}"


def utc(wall_ms: int) -> str:
    """A time on the wall clock. What no calendar has is a number."""
    try:
        return datetime.fromtimestamp(wall_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{wall_ms} ms since 1970"


def span(seconds: float) -> str:
    """``740 µs``, ``12 ms``, ``1.4 s``, ``3 min 20 s``."""
    if seconds < 0.001:
        return f"{seconds * 1_000_000:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else time_in_words(seconds)
