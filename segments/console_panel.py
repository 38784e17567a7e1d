"""The console's pages of streams: a list of them, and of each its segments, cursors, holds and producers. They only
read: no stream is taken over, no ledger is fenced, and no node is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bookkeeper.amounts import counted
from bookkeeper.console.panels import (
    ByteCount,
    Cell,
    DetailLink,
    LedgerLink,
    Moment,
    PanelBlock,
    PanelContext,
    PanelFacts,
    PanelNote,
    PanelPage,
    PanelTable,
    StateWord,
    Tone,
)
from bookkeeper.errors import BookKeeperError, in_words
from segments.chain import RecentHead, StreamChain, StreamSegment
from segments.cursors.cursor_state import CursorState
from segments.directory.directory import StreamInfo, info_of
from segments.error_translation import worded
from segments.errors import (
    StreamCorruptError,
    StreamError,
    StreamNameError,
    StreamNotFoundError,
    UnsupportedStreamFormatError,
)
from segments.namespace import StreamNamespace
from segments.position import LATEST
from segments.producers import ProducerTable
from segments.retention.hold_node import HoldNode
from segments.retention.holds import Hold
from segments.retention.retention import CursorPosition, RetentionReport, decide_retention
from segments.stream import Stream
from segments.stream_settings import find_stream
from segments.write.take_over import read_end

if TYPE_CHECKING:
    from bookkeeper import BookKeeper

STREAMS_MAX: Final = 2_000
"""Streams that the list has; they are read anew with every snapshot."""
AT_ONCE: Final = 32
"""Streams that are read at a time."""
EXPLAINED_MAX: Final = 10_000
"""Segments of a stream of which each is shown with the reasons why it stays. Of a longer one the newest are."""
CURSORS_MAX: Final = 1_000
PRODUCERS_MAX: Final = 1_000
END_S: Final = 3.0
"""Seconds for what bookies are asked: where an open segment ends, and who wrote it."""


class StreamsPanel:
    """Streams in the console."""

    name = "streams"
    title = "Streams"

    async def snapshot(self, context: PanelContext) -> PanelPage:
        """The streams, by name. Raises BookKeeperError."""
        async with _as_panel_errors():
            names = [name async for name in StreamNamespace(context.client).list()]
            rows: list[_StreamRow] = []
            for at in range(0, min(len(names), STREAMS_MAX), AT_ONCE):
                part = names[at : min(at + AT_ONCE, STREAMS_MAX)]
                rows += [row for row in await asyncio.gather(*(_row(context.client, each) for each in part)) if row]
        return _list_page(rows, len(names))

    async def detail(self, context: PanelContext, key: str) -> PanelPage | None:
        """One stream; ``key`` is its name. Raises BookKeeperError."""
        async with _as_panel_errors():
            try:
                stream = await StreamNamespace(context.client).open(key)
                return await _stream_page(stream, context.clock.wall_ms())
            except (StreamNotFoundError, StreamNameError):
                return None


PANEL: Final = StreamsPanel()


@asynccontextmanager
async def _as_panel_errors() -> AsyncIterator[None]:
    """Errors of streams as the console takes them."""
    try:
        yield
    except StreamError as error:
        raise BookKeeperError(str(error)) from error


# -- the list ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _StreamRow:
    name: str
    info: StreamInfo | None
    why: str = ""
    """Why nothing is known of it."""


async def _row(client: BookKeeper, name: str) -> _StreamRow | None:
    """None: it was deleted meanwhile."""
    try:
        stream_id = await find_stream(client.metadata_store, name)
        with worded(f"reading stream {name}", name):
            chain, _ = await RecentHead(client.metadata_store, stream_id, name).read()
    except StreamNotFoundError:
        return None
    except (StreamCorruptError, UnsupportedStreamFormatError) as error:
        return _StreamRow(name, None, str(error))
    return _StreamRow(name, info_of(name, chain))


def _list_page(rows: Sequence[_StreamRow], count: int) -> PanelPage:
    damaged = [row for row in rows if row.info is None]
    known = [row.info for row in rows if row.info is not None]
    blocks: list[PanelBlock] = [
        PanelTable(
            ("stream", "state", "writer", "segments", "records", "truncated", "size", "begins at"),
            tuple(_list_row(row) for row in rows),
            empty="There are no streams",
            total=max(count, len(rows)) if count > STREAMS_MAX else None,
        )
    ]
    if rows:
        blocks.append(
            PanelNote("Records and sizes are those of completed segments: what an open one holds its page shows")
        )
    blocks += [PanelNote(f"{row.name}: {row.why}", Tone.BAD) for row in damaged[:20]]
    writers = sum(bool(info.owner) and not info.sealed for info in known)
    summary = f"{count} stream{'' if count == 1 else 's'}, {writers} with a writer"
    if damaged:
        summary += f", {len(damaged)} that cannot be read"
    return PanelPage(tuple(blocks), summary, Tone.BAD if damaged else Tone.PLAIN)


def _list_row(row: _StreamRow) -> tuple[Cell, ...]:
    link, info = DetailLink(row.name, row.name), row.info
    if info is None:
        return (link, StateWord("damaged", Tone.BAD), None, None, None, None, None, None)
    begins = str(info.start)
    return (
        link,
        _state(info),
        info.owner or None,
        info.segments,
        info.records,
        info.truncated,
        ByteCount(info.bytes),
        begins,
    )


def _state(info: StreamInfo) -> StateWord:
    if info.sealed:
        return StateWord("sealed", Tone.PLAIN)
    return StateWord("written", Tone.GOOD) if info.owner else StateWord("nobody writes", Tone.PLAIN)


# -- one stream ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _End:
    """Where the stream ends, as far as that is known."""

    seq_no: int
    """The number that the next record gets."""
    is_certain: bool
    producers: ProducerTable | None = None
    why: str = ""
    """What is not known, and why."""


async def _stream_page(stream: Stream, now_ms: int) -> PanelPage:
    chain, is_whole = await _chain(stream)
    info = info_of(stream.name, chain)
    holds = tuple(await HoldNode(stream.client.metadata_store, stream.node).stored())
    end = await _end(stream, chain)
    cursors: dict[str, CursorState] = {}
    report, problems = None, [end.why] if end.why else []
    try:
        cursors = await stream.cursors()
    except (StreamCorruptError, UnsupportedStreamFormatError) as error:
        problems.append(f"Nobody knows what the cursors need, so nothing is removed: {error}")
    else:
        if is_whole:
            report = decide_retention(stream.config.retention, chain, holds, _positions(cursors), now_ms)
    if report is not None and report.expired_cursors:
        problems.append(f"Cursors that still need records that go, or are gone: {', '.join(report.expired_cursors)}")
    blocks: list[PanelBlock] = [PanelFacts(_facts(info, chain, end)), *(PanelNote(w, Tone.WARN) for w in problems)]
    blocks += [_cursor_table(cursors, end), _hold_table(holds, now_ms), _producer_table(end), *_segments(chain, report)]
    lags = [_lag(each, end) for each in cursors.values()]
    summary = f"{_state(info).text}, {'' if end.is_certain else 'at least '}{counted(end.seq_no, 'record')} ever"
    if lags:
        summary += f"; the slowest of {counted(len(lags), 'cursor')} lags by {max(lags)}"
    return PanelPage(tuple(blocks), summary, Tone.WARN if problems else Tone.PLAIN)


def _positions(cursors: Mapping[str, CursorState]) -> list[CursorPosition]:
    return [CursorPosition(name, each.mark.position, each.mark.seq_no) for name, each in cursors.items()]


async def _chain(stream: Stream) -> tuple[StreamChain, bool]:
    """The stream's node, with all its pages unless there are too many segments."""
    with worded(f"reading the node of stream {stream.name}", stream.name):
        chain, _ = await stream.node.recent.read()
        if not chain.pages or chain.count > EXPLAINED_MAX:
            return chain, not chain.pages
        return (await stream.node.read())[0], True


async def _end(stream: Stream, chain: StreamChain) -> _End:
    """Ask bookies for the end of the open segment, for a bounded time. The ledger is opened without recovery."""
    segment = chain.open_segment or next((each for each in reversed(chain.recent) if not each.is_published), None)
    seq_no, is_certain = chain.records, chain.open_segment is None
    if segment is None:
        return _End(seq_no, is_certain)
    try:
        async with asyncio.timeout(END_S):
            if not is_certain:
                seq_no, is_certain = (await stream.reading.locator.end(chain)).seq_no, True
            producers = await _producers(stream, segment)
    except TimeoutError:
        why = f"bookies did not say within {END_S:g} s where the newest segment ends, and who has written it"
        return _End(seq_no, is_certain, why=why)
    except (BookKeeperError, StreamError) as error:
        said = in_words(error) if isinstance(error, BookKeeperError) else str(error)
        return _End(seq_no, is_certain, why=f"the end of the newest segment is not known: {said}")
    return _End(seq_no, is_certain, producers)


async def _producers(stream: Stream, segment: StreamSegment) -> ProducerTable | None:
    async with await stream.client.open_ledger(segment.ledger_id, None, recovery=False) as ledger:
        return (await read_end(ledger, segment.number, stream.config.producers)).producers


def _facts(info: StreamInfo, chain: StreamChain, end: _End) -> dict[str, Cell]:
    facts: dict[str, Cell] = {
        "state": _state(info),
        "writer": info.owner or None,
        "reached at": chain.location or None,
        "epoch": info.epoch,
        "records ever": _ever(end),
        "size": ByteCount(info.bytes),
        "begins at": str(info.start),
        "segments": info.segments,
        "id": info.stream_id,
    }
    if chain.next_ledger is not None:
        facts["made for the next segment"] = LedgerLink(chain.next_ledger)
    if chain.removing:
        facts["ledgers to be deleted"] = len(chain.removing)
    return facts


def _ever(end: _End) -> Cell:
    return end.seq_no if end.is_certain else f"at least {end.seq_no}"


def _lag(cursor: CursorState, end: _End) -> int:
    """How many records the cursor has not done."""
    return max(0, end.seq_no - cursor.mark.seq_no - cursor.ranges.records)


def _cursor_table(cursors: Mapping[str, CursorState], end: _End) -> PanelTable:
    rows = []
    for name, each in list(cursors.items())[:CURSORS_MAX]:
        lag = _lag(each, end)
        state = StateWord("free", Tone.PLAIN) if each.is_free else StateWord("held", Tone.GOOD)
        owner = None if each.is_free else each.owner
        apart = len(each.ranges) or None
        moved = Moment(each.version.changed_ms)
        rows.append((name, state, owner, str(each.mark.position), lag, apart, moved))
    columns = ("cursor", "state", "owner", "stands at", "lag in records", "ranges done beyond", "moved")
    total = len(cursors) if len(cursors) > CURSORS_MAX else None
    return PanelTable(columns, tuple(rows), "Cursors", "The stream has no cursors", total)


def _hold_table(holds: Sequence[Hold], now_ms: int) -> PanelTable:
    rows = []
    for hold in holds:
        state = StateWord("active", Tone.GOOD) if hold.is_active(now_ms) else StateWord("ended", Tone.PLAIN)
        until = None if hold.until_ms is None else Moment(hold.until_ms)
        stop = "latest" if hold.stop == LATEST else str(hold.stop)
        rows.append((hold.name, state, hold.by or None, str(hold.start), stop, until, hold.note or None))
    columns = ("hold", "state", "by", "from", "to", "until", "note")
    return PanelTable(columns, tuple(rows), "Holds", "Nothing holds records of the stream")


def _producer_table(end: _End) -> PanelTable:
    table = end.producers
    newest_first = [] if table is None else list(table.states)[::-1]
    rows = tuple(
        (each.name, each.epoch, each.last_sequence if each.last_sequence >= 0 else None, Moment(each.last_ms))
        for each in newest_first[:PRODUCERS_MAX]
    )
    total = len(newest_first) if len(newest_first) > PRODUCERS_MAX else None
    empty = "Nobody knows the producers now" if table is None else "No producer with numbers of its own has written"
    return PanelTable(("producer", "epoch", "last number", "last record"), rows, "Producers", empty, total)


def _segments(chain: StreamChain, report: RetentionReport | None) -> list[PanelBlock]:
    """The segments, the newest first."""
    if report is not None:
        rows = [(*_segment(each.segment), _fate(each.goes), each.text) for each in reversed(report.segments)]
        columns: tuple[str, ...] = (*_SEGMENT, "retention", "why")
        return [PanelTable(columns, tuple(rows), "Segments", "The stream has no segments")]
    rows_alone = tuple(_segment(each) for each in reversed(chain.recent))
    table = PanelTable(
        _SEGMENT, rows_alone, "Segments", "The stream has no segments", max(chain.count, len(rows_alone))
    )
    why = "Why each segment stays is not shown here: bk stream explain says it"
    return [table, PanelNote(why)]


_SEGMENT: Final = ("segment", "ledger", "state", "first number", "records", "size", "started", "completed")


def _segment(segment: StreamSegment) -> tuple[Cell, ...]:
    is_open = segment.is_open
    return (
        segment.number,
        LedgerLink(segment.ledger_id),
        StateWord("open", Tone.GOOD) if is_open else StateWord("completed", Tone.PLAIN),
        segment.start_seq_no,
        None if is_open else segment.records,
        None if is_open else ByteCount(segment.bytes),
        Moment(segment.created_ms),
        None if segment.completed_ms is None else Moment(segment.completed_ms),
    )


def _fate(goes: bool) -> StateWord:
    return StateWord("may go", Tone.WARN) if goes else StateWord("stays", Tone.PLAIN)
