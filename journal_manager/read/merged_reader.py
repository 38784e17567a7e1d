"""Reads one log from several journals that hold copies of it: each edit from a journal that has it, undamaged."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from journal_manager.edits.ops import Op
from journal_manager.edits.segment import SegmentInfo
from journal_manager.edits.selection import MissingEdits, Piece, best_piece
from journal_manager.errors import JournalError, check
from journal_manager.journals.backend import JournalReader
from journal_manager.read.edit_reader import read_segments
from journal_manager.txid import TxId, is_txid


async def read_ops_over(
    readers: Sequence[JournalReader], start: TxId, end: TxId | None = None, *, in_progress: bool = True
) -> AsyncGenerator[Op, None]:
    """Read the edits from ``start`` up to ``end`` (None: all that are durable in any of the journals), in order and
    each once. Of equals, the journal that is listed first is read. They must be copies: each journal has epochs of its
    own, so edits that were discarded in one and not in another cannot be told apart here. A journal set can, and reads
    only members that its leading one vouches for.

    A journal that cannot be listed, and a segment that is damaged, gone or too short, is passed over as long as another
    journal has the edit. So single damaged records in different journals do no harm.

    Raises (while iterating):
        JournalGapError: no journal has an edit that must be there. JournalCorruptionError: it is damaged wherever it
        is. JournalUnavailableError: no journal can be listed. What was wrong with each journal is in the notes.
    """
    if not is_txid(start):
        raise ValueError(f"{start} is no transaction id: ids begin at 1")
    wanted = start
    tried: set[Piece] = set()
    troubles: list[JournalError] = []
    confirmed: object = None
    while end is None or wanted <= end:
        listings = await _listings(readers)
        piece = best_piece(listings, wanted, in_progress=in_progress, without=tried)
        if not isinstance(piece, Piece):
            if troubles:
                raise _first_of(troubles)
            if piece is None and end is None:
                return
            if confirmed != (listings, wanted):  # a listing may miss a segment that is just being finalized
                confirmed = (listings, wanted)
                continue
            raise (piece or MissingEdits(wanted, None)).error()
        began = wanted
        failure: JournalError | None = None
        try:
            async with aclosing(read_segments(readers[piece.journal], [piece.segment], wanted)) as runs:
                async for run in runs:
                    check(run[0].txid == wanted, "C4", (run[0].txid, wanted))
                    for op in run:
                        if end is not None and op.txid > end:
                            return
                        wanted = TxId(op.txid + 1)
                        yield op
        except JournalError as error:
            failure = error
        if wanted > began:
            tried, troubles = set(), []
        tried.add(piece)
        if failure is not None:
            troubles.append(failure)


async def _listings(readers: Sequence[JournalReader]) -> tuple[tuple[SegmentInfo, ...], ...]:
    """The segments of each journal; none of one that cannot be listed.

    Raises:
        JournalError: none can.
    """
    found = await asyncio.gather(*(reader.segments() for reader in readers), return_exceptions=True)
    troubles: list[JournalError] = []
    for each in found:
        if isinstance(each, JournalError):
            troubles.append(each)
        elif isinstance(each, BaseException):
            raise each
    if len(troubles) == len(found) and troubles:
        raise _first_of(troubles)
    return tuple(() if isinstance(each, BaseException) else each for each in found)


def _first_of(troubles: Sequence[JournalError]) -> JournalError:
    first, *others = troubles
    for other in others:
        first.add_note(f"another copy: {other}")
    return first
