"""The drawing of a ledger: its fragments from left to right, its bookies from top to bottom, a box for each copy. Pure.

A fragment's width grows with its number of entries, and has a least one, so that small fragments can be seen. In the
box of a copy that lacks entries the places of what it lacks are marked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.ids import BookieId
from bookkeeper.replication.inspection.explain import CopyState, ExplainedCopy, ExplainedRange

FRAGMENTS: Final = 24
"""Fragments that one drawing has at most."""
GAPS: Final = 200
"""Marks of lacking entries that one box has at most."""

NAMES_WIDTH: Final = 230
"""For the names of bookies and their racks at most; less where they are short."""
LEAST_WIDTH: Final = 46
WIDTH: Final = 960
"""Of the whole drawing, if its fragments have room in it; it is scaled to the page."""
ROW: Final = 30
TOP: Final = 34
_GAP: Final = 4
_NAME: Final = 28
"""Letters of a bookie's name and rack that are shown."""
_LETTER: Final = 8

SIGNS: Final[Mapping[CopyState, str]] = {
    CopyState.SEEN: "✓",
    CopyState.LACKING: "−",
    CopyState.BELIEVED: "?",
    CopyState.GONE: "✗",
}
MEANINGS: Final[Mapping[CopyState, str]] = {
    CopyState.SEEN: "seen: its bookie says that it holds all of it",
    CopyState.LACKING: "lacking: its bookie says that it lacks some entries",
    CopyState.BELIEVED: "believed: its bookie is registered, and did not say what it holds",
    CopyState.GONE: "gone: its bookie is not registered",
}


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle with a text in it."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    """The word of a :class:`CopyState`, or ``gap``."""
    text: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class Label:
    """A text beside the boxes."""

    x: float
    y: float
    text: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Drawing:
    """What a template draws."""

    width: int
    height: int
    names: tuple[Label, ...]
    heads: tuple[Label, ...]
    boxes: tuple[Box, ...]
    gaps: tuple[Box, ...]
    text: str
    """The same in a sentence, for those who do not see it."""


def drawing_of(ranges: Sequence[ExplainedRange], places: Mapping[BookieId, str]) -> Drawing:
    """Draw these ranges, at most :data:`FRAGMENTS`. ``places``: in which rack each bookie stands."""
    bookies = sorted({copy.bookie for each in ranges for copy in each.copies}, key=lambda name: (places[name], name))
    rows = {bookie: TOP + number * ROW for number, bookie in enumerate(bookies)}
    names = tuple(
        Label(
            0, rows[bookie] + ROW / 2 + 4, _cut(f"{bookie}  {places[bookie]}", _NAME), f"{bookie} in {places[bookie]}"
        )
        for bookie in bookies
    )
    left = min(NAMES_WIDTH, 20 + _LETTER * max((len(label.text) for label in names), default=0))
    heads: list[Label] = []
    boxes: list[Box] = []
    gaps: list[Box] = []
    for each, (x, width) in zip(ranges, _columns(ranges, left), strict=True):
        heads.append(Label(x, TOP - 12, _cut(str(each.first_entry), max(4, int(width / 8))), each.span))
        for copy in each.copies:
            box = _box(each, copy, x, rows[copy.bookie], width)
            boxes.append(box)
            gaps += _gaps(each, copy, box)
    height = TOP + len(bookies) * ROW + 4
    width = max(WIDTH, left + len(ranges) * (LEAST_WIDTH + _GAP))
    return Drawing(width, height, names, tuple(heads), tuple(boxes), tuple(gaps), _in_words(ranges))


def _columns(ranges: Sequence[ExplainedRange], left: int) -> Iterator[tuple[float, float]]:
    """Where each range begins, right of the names, and how wide it is."""
    counts = [_entries(each) for each in ranges]
    room = WIDTH - left - len(ranges) * (LEAST_WIDTH + _GAP) + _GAP
    every = sum(counts) or 1
    x = float(left)
    for count in counts:
        width = round(LEAST_WIDTH + max(0, room) * count / every, 1)
        yield round(x, 1), width
        x += width + _GAP


def _entries(each: ExplainedRange) -> int:
    return 0 if each.end is None else each.end - each.first_entry + 1


def _box(each: ExplainedRange, copy: ExplainedCopy, x: float, top: float, width: float) -> Box:
    lacks = f", lacks {counted(copy.missing, 'entry')}" if copy.missing else ""
    reason = f": {copy.reason}" if copy.reason else ""
    sign = f"−{copy.missing}" if copy.state is CopyState.LACKING else SIGNS[copy.state]
    return Box(
        x,
        top + 2,
        width,
        ROW - 4,
        copy.state.value,
        _cut(sign, max(2, int(width / 9))),
        f"{copy.bookie}, {each.span}: {copy.state}{lacks}{reason}",
    )


def _gaps(each: ExplainedRange, copy: ExplainedCopy, box: Box) -> Iterator[Box]:
    """Where in the box of a copy entries lack; with very many they run together."""
    if each.end is None or not copy.lacks:
        return
    scale = box.width / _entries(each)
    step = -(-len(copy.lacks) // GAPS)
    for at in range(0, len(copy.lacks), step):
        some = copy.lacks[at : at + step]
        first, stop = max(some[0].start, each.first_entry), min(some[-1].stop, each.end + 1)
        if stop > first:
            x = box.x + (first - each.first_entry) * scale
            yield Box(round(x, 1), box.y, round(max(1.0, (stop - first) * scale), 1), box.height, "gap")


def _in_words(ranges: Sequence[ExplainedRange]) -> str:
    copies = [copy for each in ranges for copy in each.copies]
    counts = {state: sum(copy.state is state for copy in copies) for state in CopyState}
    said = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    return f"{counted(len(ranges), 'fragment')} with {counted(len(copies), 'copy')}: {said}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
