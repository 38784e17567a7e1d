"""Blocks of a page, ready for a template: facts, tables with their paging, notes. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from bookkeeper.console.cells import SIGNS, PageLink, ShownCell, shown
from bookkeeper.console.panels import Cell, PanelBlock, PanelFacts, PanelNote, PanelTable, Tone

ROWS: Final = 100
"""Rows of a table that one page shows."""


@dataclass(frozen=True, slots=True)
class Paging:
    """Which rows are shown, and how to get to others."""

    first: int
    """The number of the first row that is shown, from 1 on; 0: there is none."""
    last: int
    total: int
    links: tuple[PageLink, ...] = ()

    @property
    def text(self) -> str:
        """``101–200 of 100 000``."""
        if not self.total:
            return ""
        return f"{_grouped(self.first)}–{_grouped(self.last)} of {_grouped(self.total)}"


@dataclass(frozen=True, slots=True)
class ShownFacts:
    """Names and values."""

    title: str
    rows: tuple[tuple[str, ShownCell], ...]
    kind: str = "facts"


@dataclass(frozen=True, slots=True)
class ShownTable:
    """Rows of one page."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[ShownCell, ...], ...]
    empty: str
    paging: Paging
    kind: str = "table"

    @property
    def kinds(self) -> list[str]:
        """Of each column the kind of its first value."""
        return [next((row[at].kind for row in self.rows if row[at].kind != "none"), "none") for at in self._places]

    @property
    def _places(self) -> range:
        return range(len(self.columns))


@dataclass(frozen=True, slots=True)
class ShownNote:
    """A sentence."""

    text: str
    tone: Tone = Tone.PLAIN
    title: str = ""
    kind: str = "note"

    @property
    def sign(self) -> str:
        """The sign of its tone."""
        return SIGNS[self.tone]

    @property
    def parts(self) -> list[str]:
        """The text, cut at the marks of what is typed: each second part is a command."""
        return self.text.split("`")


ShownBlock = ShownFacts | ShownTable | ShownNote


@dataclass(frozen=True, slots=True)
class PageAddress:
    """Where a page is, for its links: its path and the parameters that it was asked with."""

    path: str
    params: Mapping[str, str] = field(default_factory=dict)

    def with_param(self, name: str, value: str) -> str:
        """The address of the same page with one parameter changed; empty takes it out."""
        params = {key: word for key, word in {**self.params, name: value}.items() if word}
        return f"{self.path}?{urlencode(params)}" if params else self.path

    def number(self, name: str) -> int:
        """A parameter that is a page's number, from 0 on; what is none is 0."""
        text = self.params.get(name, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def paging(address: PageAddress, name: str, at: int, total: int, size: int = ROWS) -> Paging:
    """The paging of ``total`` rows of which page ``at`` (from 0 on) is shown; ``name``: its parameter."""
    pages = max(1, -(-total // size))
    at = min(at, pages - 1)
    wanted = [("first", 0), ("previous", at - 1), ("next", at + 1), ("last", pages - 1)]
    links = tuple(
        PageLink(word, address.with_param(name, str(to) if to else ""))
        for word, to in wanted
        if 0 <= to < pages and to != at
    )
    return Paging(at * size + 1 if total else 0, min(total, (at + 1) * size), total, links)


def show_blocks(blocks: Sequence[PanelBlock], address: PageAddress, now_ms: int, panel: str = "") -> list[ShownBlock]:
    """Blocks for a template. Long tables are cut into pages, each by a parameter ``rowsN`` of its own."""
    found: list[ShownBlock] = []
    for number, block in enumerate(blocks):
        match block:
            case PanelFacts(facts, title):
                rows = tuple((name, shown(cell, now_ms, panel)) for name, cell in facts.items())
                found.append(ShownFacts(title, rows))
            case PanelNote(text, tone):
                found.append(ShownNote(text, tone))
            case PanelTable():
                found.extend(_table(block, address, f"rows{number}", now_ms, panel))
    return found


def _table(block: PanelTable, address: PageAddress, name: str, now_ms: int, panel: str) -> list[ShownBlock]:
    turned = paging(address, name, address.number(name), len(block.rows))
    some = block.rows[max(0, turned.first - 1) : turned.last]
    found: list[ShownBlock] = [show_table(block.title, block.columns, some, block.empty, turned, now_ms, panel)]
    if block.total is not None and block.total > len(block.rows):
        left = block.total - len(block.rows)
        found.append(ShownNote(f"{_grouped(left)} more are not shown: there are {_grouped(block.total)}", Tone.WARN))
    return found


def show_table(
    title: str,
    columns: tuple[str, ...],
    rows: Sequence[Sequence[Cell | PageLink]],
    empty: str,
    turned: Paging,
    now_ms: int,
    panel: str = "",
) -> ShownTable:
    """A table whose rows are those of one page."""
    return ShownTable(
        title, columns, tuple(tuple(shown(cell, now_ms, panel) for cell in row) for row in rows), empty, turned
    )


def _grouped(number: int) -> str:
    return f"{number:,}".replace(",", " ")
