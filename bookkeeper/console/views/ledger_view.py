"""One ledger: its metadata, the drawing of its fragments and copies, and what failures would lose. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from bookkeeper.amounts import counted, state_in_words
from bookkeeper.console.blocks import PageAddress, ShownBlock, paging, show_blocks, show_table
from bookkeeper.console.cells import PageLink
from bookkeeper.console.drawing import FRAGMENTS, drawing_of
from bookkeeper.console.panels import (
    ByteCount,
    Cell,
    Moment,
    PanelBlock,
    PanelFacts,
    PanelNote,
    PanelTable,
    StateWord,
    Tone,
)
from bookkeeper.console.views.ledgers_view import NAV
from bookkeeper.console.views.view import PageView, ShownAction, ViewRequest
from bookkeeper.ids import NO_ENTRY, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.replication.inspection.explain import CopyState, ExplainedRange, Loss
from bookkeeper.replication.inspection.explain_ledger import ExplainedLedger

CUSTOM_SHOWN = 200
"""Characters of a value of custom metadata that are shown."""
COPY_TONES = {
    CopyState.SEEN: Tone.GOOD,
    CopyState.LACKING: Tone.BAD,
    CopyState.BELIEVED: Tone.WARN,
    CopyState.GONE: Tone.BAD,
}


def ledger_page(
    ledger_id: LedgerId, metadata: LedgerMetadata, explained: ExplainedLedger | None, why: str, asked: ViewRequest
) -> PageView:
    """The page of a ledger.

    Args:
        explained: what its bookies say; None: they could not be asked.
        why: the reason for that.
    """
    title = f"Ledger {ledger_id}"
    facts = _facts(metadata)
    repair = ShownAction(
        "repair",
        "Repair it",
        str(ledger_id),
        "Missing copies are made again on other bookies, every copy is checked, and the ledger's mark is removed. An "
        "open ledger whose bookie is gone is left to its writer for half a minute, and recovered then, which ends its "
        "writer.",
    )
    actions = (repair,) if asked.offers("repair") else ()
    if explained is None:
        blocks: list[PanelBlock] = [PanelNote(f"Its bookies could not be asked: {why}", Tone.WARN), facts]
        shown = (*show_blocks(blocks, asked.address, asked.now_ms), *_custom(metadata, asked))
        return PageView(title, NAV, shown, state_in_words(metadata.state.name), actions=actions)
    ranges = explained.ranges
    at = asked.address.number("fragments")
    turned = paging(asked.address, "fragments", at, len(ranges), FRAGMENTS)
    some = ranges[max(0, turned.first - 1) : turned.last]
    rows = [_range_row(each, explained) for each in some]
    columns = ("entries", "bookie", "rack", "copy", "lacks", "one more failure loses", "two more lose", "remarks")
    table = show_table("Copies", columns, [row for group in rows for row in group], "No entries", turned, asked.now_ms)
    summary, tone = _summary(explained)
    notes = show_blocks([*_notes(explained), facts, _losses(explained)], asked.address, asked.now_ms)
    return PageView(
        title,
        NAV,
        (*notes, table, *_custom(metadata, asked)),
        summary,
        tone,
        age="its bookies were asked now",
        drawing=drawing_of(some, explained.places) if some else None,
        actions=actions,
    )


def _summary(found: ExplainedLedger) -> tuple[str, Tone]:
    state = state_in_words(found.metadata.state.name)
    if found.lost:
        return (
            f"{state}: {counted(found.lost, 'entry')} lost for now, of which no bookie that is up has a copy",
            Tone.BAD,
        )
    if found.unseen:
        return f"{state}: of {counted(found.unseen, 'entry')} no copy was seen, for bookies did not answer", Tone.WARN
    if not found.is_whole:
        return f"{state}: every entry is there, and some lack copies", Tone.WARN
    return f"{state}: every copy was seen", Tone.GOOD


def _notes(found: ExplainedLedger) -> list[PanelBlock]:
    if found.lost:
        gone = sorted({copy.bookie for each in found.ranges for copy in each.copies if copy.state is CopyState.GONE})
        return [PanelNote(f"Start the bookies that are gone: {', '.join(gone)}", Tone.BAD)] if gone else []
    if not found.is_whole and found.metadata.is_closed:
        return [PanelNote(f"`bk ledger repair {found.ledger_id}` makes the missing copies again")]
    return []


def _facts(metadata: LedgerMetadata) -> PanelFacts:
    spec, closed = metadata.spec, metadata.is_closed
    facts: dict[str, Cell] = {
        "state": state_in_words(metadata.state.name),
        "E/Qw/Qa": f"{spec.ensemble_size}/{spec.write_quorum}/{spec.ack_quorum}",
        "last entry": None if not closed or metadata.last_entry == NO_ENTRY else int(metadata.last_entry),
        "payload": ByteCount(metadata.length) if closed else None,
        "fragments": len(metadata.fragments),
        "created": None if metadata.ctime_ms is None else Moment(metadata.ctime_ms),
        "digest": None if metadata.digest_type is None else metadata.digest_type.name,
    }
    return PanelFacts(facts)


def _losses(found: ExplainedLedger) -> PanelTable:
    rows: list[tuple[Cell, ...]] = [
        ("one more bookie", *_loss(found.after(1))),
        ("two more bookies", *_loss(found.after(2))),
    ]
    racks = found.after_losing_each_place()
    if len(racks) > 1:
        rows += [(f"all in {rack}", *_loss(loss)) for rack, loss in racks.items()]
    return PanelTable(("if this failed", "entries lost at most", "with"), tuple(rows), "What failures would lose")


def _loss(loss: Loss) -> tuple[Cell, Cell]:
    lost = StateWord(f"{loss.entries}", Tone.WARN) if loss.entries else StateWord("none", Tone.GOOD)
    return lost, ", ".join(loss.bookies) if loss.entries else None


def _range_row(each: ExplainedRange, found: ExplainedLedger) -> list[Sequence[Cell | PageLink]]:
    rows: list[Sequence[Cell | PageLink]] = []
    for number, copy in enumerate(each.copies):
        first = number == 0
        rows.append(
            (
                _span(each) if first else "",
                PageLink(copy.bookie, PageAddress("/bookies").with_param("of", copy.bookie)),
                found.places[copy.bookie],
                StateWord(copy.state.value, COPY_TONES[copy.state]),
                copy.missing or None,
                _in_words(each, each.one_more) if first else "",
                _in_words(each, each.two_more) if first else "",
                copy.reason,
            )
        )
    return rows


def _span(each: ExplainedRange) -> str:
    return each.span.removeprefix("entries ") + ("" if each.is_decided else " (open)")


def _in_words(each: ExplainedRange, loss: Loss) -> str:
    if each.end is None:
        return "not known"
    if not loss.entries:
        return "nothing"
    every = each.end - each.first_entry + 1
    how_many = "everything" if loss.entries == every else counted(loss.entries, "entry")
    return f"{how_many} ({', '.join(loss.bookies)})" if loss.bookies else f"no more than now: {how_many}"


def _custom(metadata: LedgerMetadata, asked: ViewRequest) -> list[ShownBlock]:
    if not metadata.custom:
        return []
    rows = tuple((key, _text(value)) for key, value in sorted(metadata.custom.items()))
    return show_blocks([PanelTable(("key", "value"), rows, "Custom metadata")], asked.address, asked.now_ms)


def _text(value: bytes) -> str:
    """A value as text, with its end if it is long; bytes that are no text as their number."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return counted(len(value), "byte") + " that are no text"
    return text if len(text) <= CUSTOM_SHOWN else f"{text[:CUSTOM_SHOWN]}… ({len(text)} characters)"
