"""Joins many segments, of one journal or of several copies, to one run without gaps, or names the gap (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from journal_manager.edits.segment import SegmentInfo
from journal_manager.errors import JournalGapError
from journal_manager.txid import NOTHING, TxId


@dataclass(frozen=True, slots=True)
class MissingEdits:
    """``wanted`` is in no segment. The next edits begin at ``next_available`` (None: nothing follows)."""

    wanted: TxId
    next_available: TxId | None
    last: TxId | None = None
    """The last edit of the journal, if ``wanted`` is beyond the one after it."""

    def error(self) -> JournalGapError:
        rest = (
            "nothing follows" if self.next_available is None else f"the next edit that exists is {self.next_available}"
        )
        if self.last is not None:
            rest = f"it is beyond the end of the journal, which has no edit after {self.last}"
        return JournalGapError(
            f"edit {self.wanted} is missing; {rest}", wanted=self.wanted, next_available=self.next_available
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """The segments to read, in order; then ``gap``, if one comes before the wanted end."""

    segments: tuple[SegmentInfo, ...]
    gap: MissingEdits | None = None


def in_order(segments: Iterable[SegmentInfo]) -> tuple[SegmentInfo, ...]:
    """Sort by first id; of two segments with the same first id keep the final one."""
    best: dict[TxId, SegmentInfo] = {}
    for segment in segments:
        if segment.first not in best or best[segment.first].in_progress:
            best[segment.first] = segment
    return tuple(best[first] for first in sorted(best))


def select(
    segments: Iterable[SegmentInfo], start: TxId, end: TxId | None = None, *, in_progress: bool = True
) -> Selection:
    """Select the segments that together hold ``start`` up to ``end`` (None: as far as edits exist).

    If ``start`` is the id after the last edit and no ``end`` is given, there is nothing to read, and no gap. Beyond
    that id it is one: whoever asks has seen edits that this journal does not have. A segment in progress counts as
    holding all wanted edits; reading shows how many it really holds.
    """
    segments = in_order(segments)
    last = segments[-1].last if segments else NOTHING
    if last is not None and start > last + 1 and (end is None or start <= end):
        return Selection((), MissingEdits(start, None, last))
    chosen: list[SegmentInfo] = []
    wanted = start
    for segment in segments:
        if (segment.in_progress and not in_progress) or (segment.last is not None and segment.last < wanted):
            continue
        if end is not None and wanted > end:
            break
        if segment.first > wanted:
            return Selection(tuple(chosen), MissingEdits(wanted, segment.first))
        chosen.append(segment)
        if segment.last is None:
            return Selection(tuple(chosen))
        wanted = TxId(segment.last + 1)
    missing = end is not None and wanted <= end
    return Selection(tuple(chosen), MissingEdits(wanted, None) if missing else None)


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment of one of several journals."""

    journal: int
    """Which journal, by its place in the list."""
    segment: SegmentInfo


def best_piece(
    listings: Sequence[Iterable[SegmentInfo]],
    wanted: TxId,
    *,
    in_progress: bool = True,
    without: Collection[Piece] = (),
) -> Piece | MissingEdits | None:
    """Of several copies of one log, the segment to read ``wanted`` from; what follows it may come from another journal.

    A final segment goes before one in progress, and of the final ones the one that reaches furthest; among equals the
    journal that is listed first. ``without`` are pieces that were tried. If no segment has ``wanted``, the gap is
    returned; None if ``wanted`` is the id after the last edit, or may be.
    """
    pieces = [
        Piece(journal, segment)
        for journal, listing in enumerate(listings)
        for segment in in_order(listing)
        if in_progress or not segment.in_progress
    ]
    here = [
        piece
        for piece in pieces
        if piece not in without
        and piece.segment.first <= wanted
        and (piece.segment.last is None or piece.segment.last >= wanted)
    ]
    if here:
        return max(here, key=lambda piece: (piece.segment.last or NOTHING, -piece.journal))
    if later := [piece.segment.first for piece in pieces if piece.segment.first > wanted]:
        return MissingEdits(wanted, min(later))
    segments = [segment for listing in listings for segment in listing]
    last = max((segment.last or NOTHING for segment in segments), default=NOTHING)
    if wanted > last + 1 and not any(segment.in_progress for segment in segments):
        return MissingEdits(wanted, None, last)
    return None
