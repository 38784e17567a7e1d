"""Reads edits from segments: in order, each once, or with an error that says what is missing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from journal_manager.edits.discarded_edits import UNKNOWN_EPOCH
from journal_manager.edits.ops import EditRun, Op
from journal_manager.edits.segment import SegmentInfo
from journal_manager.edits.selection import MissingEdits, select
from journal_manager.errors import EditsDiscardedError, JournalCorruptionError, SegmentNotFoundError, check
from journal_manager.journals.backend import JournalReader
from journal_manager.txid import TxId, is_txid


async def read_ops(
    reader: JournalReader,
    start: TxId,
    end: TxId | None = None,
    *,
    in_progress: bool = True,
    epoch: int | None = None,
) -> AsyncGenerator[Op, None]:
    """Read the edits from ``start`` up to and including ``end`` (None: all that are durable now).

    Segments may be finalized, or purged behind the reader, while it runs. ``epoch`` is that of the edit before
    ``start`` if the caller goes on from there; None if it begins here.

    Raises (while iterating):
        EditsDiscardedError: the edit before ``start``, or one that was read since, was discarded, or is another one
        than that of this epoch.
        JournalGapError: an edit up to ``end``, or before later edits, is missing; or ``start`` is beyond the id after
        the journal's last edit (while a segment is in progress nobody but its writer knows that id).
        JournalCorruptionError: it is there and damaged.
    """
    async with aclosing(read_runs(reader, start, end, in_progress=in_progress, epoch=epoch)) as runs:
        async for run in runs:
            for op in run:
                yield op


async def read_runs(
    reader: JournalReader,
    start: TxId,
    end: TxId | None = None,
    *,
    in_progress: bool = True,
    epoch: int | None = None,
) -> AsyncGenerator[EditRun, None]:
    """Read as :func:`read_ops` does, in runs: lists of edits that follow each other, none of them empty."""
    if not is_txid(start):
        raise ValueError(f"{start} is no transaction id: ids begin at 1")
    wanted, seen, confirmed = start, None, None
    while end is None or wanted <= end:
        segments = await reader.segments()
        if epoch is not None:
            await _ensure_still_there(reader, segments, TxId(wanted - 1), epoch)
        selection = select(segments, wanted, end, in_progress=in_progress)
        try:
            async with aclosing(read_segments(reader, selection.segments, wanted)) as runs:
                async for run in runs:
                    check(run[0].txid == wanted, "C4", (run[0].txid, wanted))
                    last = run[-1].txid
                    if end is not None and last > end:
                        if wanted <= end:
                            yield EditRun(run[: end - wanted + 1], run.epoch)
                        return
                    wanted, epoch = TxId(last + 1), run.epoch
                    yield run
        except SegmentNotFoundError:
            if seen == (segments, wanted):
                raise
            seen = (segments, wanted)
            continue
        if selection.gap is not None:
            if confirmed != (segments, wanted):  # a listing may miss a segment that is just being finalized
                confirmed = (segments, wanted)
                continue
            raise selection.gap.error()
        if end is not None and wanted <= end:
            raise MissingEdits(wanted, None).error()
        return


async def _ensure_still_there(reader: JournalReader, segments: Sequence[SegmentInfo], txid: TxId, epoch: int) -> None:
    if (await reader.discarded()).covers(txid, epoch):
        raise EditsDiscardedError(
            f"of the edits up to {txid} (epoch {epoch}) some were discarded, and other edits may have got their "
            "ids: begin anew, with the newest snapshot",
            txid=txid,
            epoch=epoch,
        )
    begun_since = (each.epoch for each in segments if each.first <= txid and (each.last is None or txid <= each.last))
    if epoch > UNKNOWN_EPOCH and any(each > epoch for each in begun_since):
        raise EditsDiscardedError(
            f"edit {txid} of epoch {epoch} is not in the journal any more, and another one has got its id without a "
            "note that edits were discarded: the journal was put back to an older state",
            txid=txid,
            epoch=epoch,
        )


async def read_segments(
    reader: JournalReader, segments: Sequence[SegmentInfo], start: TxId
) -> AsyncGenerator[EditRun, None]:
    """Read the edits from ``start`` on of segments that follow each other, in runs.

    Raises (while iterating):
        JournalCorruptionError: a final segment ends too early. And what ``JournalReader.read`` raises.
    """
    wanted = start
    for segment in segments:
        async with aclosing(reader.read(segment, wanted)) as batches:
            async for batch in batches:
                run = batch.ops()
                if run[0].txid < start:
                    run = run[start - run[0].txid :]
                if run:
                    wanted = TxId(run[-1].txid + 1)
                    yield EditRun(run, segment.epoch)
        if segment.last is not None and wanted <= segment.last:
            raise JournalCorruptionError(
                f"segment {segment} ({segment.location}) ends before edit {wanted}, which must be in it",
                first_missing=wanted,
                location=segment.location,
            )
