"""Panels: pages of the console that other packages bring. Pure.

A package names its panels by entry points of the group :data:`PANEL_GROUP`, each an object that is a :class:`Panel`::

    [project.entry-points."bookkeeper.console_panels"]
    streams = "segments.console_panel:PANEL"

    class StreamsPanel:
        name = "streams"            # in the address of its pages: /panels/streams
        title = "Streams"           # in the navigation, and above its page

        async def snapshot(self, context: PanelContext) -> PanelPage: ...
        async def detail(self, context: PanelContext, key: str) -> PanelPage | None: ...

    PANEL = StreamsPanel()

``snapshot`` is what the panel's page shows. The console calls it in the background while somebody looks, one call at a
time, keeps the result and shows its age. ``detail`` is called for one page, ``/panels/streams?of=KEY``, when it is
asked for; a :class:`DetailLink` leads there. Both run on the console's loop, so they await what takes time, and only
read: the console has :data:`SNAPSHOT_S` and :data:`DETAIL_S` seconds of patience. An error that they raise is shown in
place of the page.

A page is data, never HTML: a list of blocks, each a :class:`PanelFacts` (names and values), a :class:`PanelTable` or a
:class:`PanelNote` (a sentence), whose cells are texts, numbers, or one of the kinds of :data:`Cell`. Every text may be
anything that a client of the cluster has chosen as a name: the console escapes all of it. It pages long tables; a panel
gives at most :data:`ROWS_MAX` rows, and says with ``total`` how many there are if there are more.

A whole page::

    PanelPage(
        summary="2 streams, 1 without an owner",
        tone=Tone.WARN,
        blocks=(
            PanelTable(
                columns=("stream", "owner", "size", "last append"),
                rows=(
                    (DetailLink("flights", key="flights"), "gateway-1", ByteCount(52_000_000), Moment(1700000000000)),
                    (DetailLink("trips", key="trips"), StateWord("none", Tone.WARN), ByteCount(0), None),
                ),
                empty="There are no streams",
            ),
            PanelNote("A stream without an owner takes no records", Tone.WARN),
        ),
    )
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from bookkeeper.amounts import counted

if TYPE_CHECKING:
    from bookkeeper.client.bookkeeper import BookKeeper
    from bookkeeper.seams import Clock

PANEL_GROUP: Final = "bookkeeper.console_panels"
"""The entry points of panels."""

SNAPSHOT_S: Final = 30.0
"""Seconds after which a snapshot is given up."""
DETAIL_S: Final = 10.0
"""Seconds after which a page of one thing is given up."""
ROWS_MAX: Final = 20_000
"""Rows that a table has at most."""


class Tone(StrEnum):
    """How a value or a sentence is meant. A page shows it by a colour and a sign, never by the colour alone."""

    PLAIN = "plain"
    """A fact."""
    GOOD = "good"
    """As it should be."""
    WARN = "warn"
    """Somebody should know: nothing is lost, and something is not as it should be."""
    BAD = "bad"
    """Somebody should act."""


@dataclass(frozen=True, slots=True)
class DetailLink:
    """A link to a page of one thing: ``detail`` is called with ``key``."""

    text: str
    key: str
    """Any text that is not empty; it becomes a part of the address."""
    panel: str | None = None
    """The panel's name; None: the one that gave the link."""


@dataclass(frozen=True, slots=True)
class LedgerLink:
    """A link to the console's page of a ledger, with its fragments and copies."""

    ledger_id: int


@dataclass(frozen=True, slots=True)
class StateWord:
    """A word or two with a tone: a state."""

    text: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class ByteCount:
    """A number of bytes, shown as ``1.2 GB``."""

    count: int


@dataclass(frozen=True, slots=True)
class Moment:
    """A time on the wall clock, shown in UTC and as how long ago it is."""

    wall_ms: int
    """Milliseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time, shown as ``3 min 20 s``."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Proportion:
    """A part of a whole, shown as a bar with the percentage."""

    part: float
    whole: float
    """Above 0; the part is from 0 up to the whole."""
    tone: Tone = Tone.PLAIN


Cell = str | int | float | DetailLink | LedgerLink | StateWord | ByteCount | Moment | Duration | Proportion | None
"""One value; None: there is none, or it is not known."""


@dataclass(frozen=True, slots=True)
class PanelFacts:
    """Names and values, one below the other."""

    facts: Mapping[str, Cell]
    title: str = ""


@dataclass(frozen=True, slots=True)
class PanelTable:
    """Rows, each with a cell for every column."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    empty: str = "none"
    """What is said if there are no rows: a sentence."""
    total: int | None = None
    """How many rows there are if not all of them are given; None: these are all."""


@dataclass(frozen=True, slots=True)
class PanelNote:
    """A sentence, or several."""

    text: str
    tone: Tone = Tone.PLAIN


PanelBlock = PanelFacts | PanelTable | PanelNote


@dataclass(frozen=True, slots=True)
class PanelPage:
    """What a panel shows."""

    blocks: tuple[PanelBlock, ...] = field(default=())
    summary: str = ""
    """One line, shown above the blocks, and on the console's first page beside the panel's title."""
    tone: Tone = Tone.PLAIN
    """Of the summary."""


@dataclass(frozen=True, slots=True)
class PanelContext:
    """What a panel reads from. It belongs to the console: a panel closes none of it, and changes nothing by it."""

    client: BookKeeper
    """The cluster: its ledgers, and with ``metadata_store`` all that is kept of it."""
    metadata_uri: str = field(repr=False)
    """The cluster's address, which may hold a password."""
    clock: Clock


@runtime_checkable
class Panel(Protocol):
    """What an entry point of :data:`PANEL_GROUP` is. One object serves for the whole life of a console."""

    @property
    def name(self) -> str:
        """The panel's part of addresses: small letters, digits and hyphens."""
        ...

    @property
    def title(self) -> str:
        """What the panel shows, in one or two words."""
        ...

    async def snapshot(self, context: PanelContext) -> PanelPage:
        """The panel's page as it is now.

        Raises:
            BookKeeperError, OSError: it cannot be made; the text is shown to whoever looks.
        """
        ...

    async def detail(self, context: PanelContext, key: str) -> PanelPage | None:
        """The page of one thing; None: there is no such thing, or there are no such pages. ``key`` is what stands in
        an address: anybody may have typed it.

        Raises:
            BookKeeperError, OSError: it cannot be made; the text is shown to whoever looks.
        """
        ...


def wrong_page(page: PanelPage) -> str | None:
    """What is wrong with a page: a sentence for whoever writes the panel; None: nothing."""
    for block in page.blocks:
        if not isinstance(block, PanelTable):
            continue
        named = f"the table {block.title!r}" if block.title else "a table without title"
        if len(block.rows) > ROWS_MAX:
            return (
                f"{named} has {counted(len(block.rows), 'row')}: give {ROWS_MAX} at most, and say "
                "with total how many there are"
            )
        for number, row in enumerate(block.rows):
            if len(row) != len(block.columns):
                return f"row {number} of {named} has {len(row)} cells for {len(block.columns)} columns"
        if block.total is not None and block.total < len(block.rows):
            return f"{named} has {counted(len(block.rows), 'row')}, and a total of {block.total}"
    return None
