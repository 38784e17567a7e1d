"""Which members of a journal set hold the leading member's edits, and how one gets what it lacks.

A member has ids and epochs of its own, so neither says whether its edits are those of the leading one: there some may
have been discarded, and others have got their ids. Therefore a member remembers the leading journal and an epoch of it
in which every edit of the member was there (``CopySource``). What was discarded since is not read from it, and it is
not written before that is gone. A member that remembers nothing is as old as can be.

A leading member of an earlier version may have discarded edits without a note. So the last edits are compared as well.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final

from journal_manager.edits import NOTHING, UNKNOWN_EPOCH, DiscardedEdits, SegmentInfo, TxId
from journal_manager.errors import JournalCorruptionError, JournalError, JournalGapError
from journal_manager.journals.backend import JournalReader, JournalWriter
from journal_manager.journals.capabilities import CopySource, CopyTracking, DescribableReader
from journal_manager.read import read_ops

COMPARED: Final = 1000
"""So many of a member's last edits are compared before it joins, and before it is read."""


async def bring_up(leading: JournalWriter, member: JournalWriter, uri: str, inner: JournalWriter) -> None:
    """Copy the edits that a member lacks from the leading one, segment by segment. ``inner`` is the member as it was
    opened, without what may be around it.

    Raises:
        JournalCorruptionError: the member has edits that the leading one does not have, or not any more.
        JournalGapError: the leading one does not have what the member lacks any more.
    """
    has, end = member.durable_txid, leading.durable_txid
    if has > end:
        raise JournalCorruptionError(
            f"{uri} has edits up to {has}, and the leading member only up to {end}: it is no copy; format it, or "
            "take it out of the set"
        )
    segments = [segment for segment in await leading.segments() if segment.last is not None and segment.last > has]
    if segments and has != NOTHING and segments[0].first > has + 1:
        raise JournalGapError(
            f"{uri} has edits up to {has}, and the leading member's begin at {segments[0].first}: format {uri}, so "
            "that it begins there as well",
            wanted=has + 1,
            next_available=segments[0].first,
        )
    discarded = await leading.discarded()
    limit = await still_there_below(discarded, inner)
    if limit is not None and has >= limit:
        raise JournalCorruptionError(
            f"{uri} has edits up to {has}, and those from {limit} on were discarded from the leading member: "
            "discard them there, too (bk journal discard), format it, or take it out of the set",
            first_missing=limit,
        )
    await _ensure_copy(leading, member, uri)
    if discarded and isinstance(inner, CopyTracking):
        await inner.note_copy(
            CopySource(discarded.journal, discarded.epoch + 1)
        )  # before it gets what has those ids now
    for segment in segments:
        await _copy(leading, member, segment, max(segment.first, has + 1))


async def holds(copy: JournalReader, leading: JournalReader, segment: SegmentInfo) -> bool:
    """Whether what a member has of a final segment of the leading one are the leading one's edits.

    Raises:
        JournalError: one of the two cannot tell.
    """
    assert segment.last is not None
    limit = await still_there_below(await leading.discarded(), copy)
    if limit is not None and segment.last >= limit:
        return False
    has = max((each.last for each in await copy.segments() if each.last is not None), default=NOTHING)
    return not await _differs(leading, copy, has if limit is None else min(has, TxId(limit - 1)))


async def still_there_below(discarded: DiscardedEdits, member: JournalReader) -> TxId | None:
    """The edits of a member below this id were not discarded from the leading journal; None: none was."""
    known = (await member.describe()).copy_of if isinstance(member, DescribableReader) else None
    of_this = known is not None and known.journal == discarded.journal
    return discarded.first_after(known.epoch if known is not None and of_this else UNKNOWN_EPOCH)


async def _ensure_copy(leading: JournalWriter, member: JournalWriter, uri: str) -> None:
    """Compare the last edits of a member with the leading one's."""
    ours, theirs = await leading.segments(), await member.segments()
    has = member.durable_txid
    first = max(has - COMPARED + 1, *(segments[0].first for segments in (ours, theirs) if segments), 1)
    if not ours or not theirs or first > has:
        return
    if (other := await _first_difference(leading, member, first, has)) is not None:
        raise JournalCorruptionError(
            f"edit {other} in {uri} is another than in the leading member: it is no copy; format it, or take it out of "
            "the set",
            first_missing=other,
        )


async def _differs(leading: JournalReader, copy: JournalReader, has: TxId) -> bool:
    """Whether one of a copy's last edits up to ``has`` is another than the leading member's. What one of them cannot
    read is passed over."""
    for segment in await leading.segments():
        first = max(segment.first, has - COMPARED + 1)
        last = has if segment.last is None else min(segment.last, has)
        try:
            if first <= last and await _first_difference(leading, copy, first, last) is not None:
                return True
        except JournalError:
            continue
    return False


async def _first_difference(one: JournalReader, two: JournalReader, first: TxId, last: TxId) -> TxId | None:
    async with aclosing(read_ops(one, first, last)) as wanted, aclosing(read_ops(two, first, last)) as found:
        async for op in wanted:
            if await anext(found) != op:
                return op.txid
    return None


async def _copy(leading: JournalWriter, member: JournalWriter, segment: SegmentInfo, first: TxId) -> None:
    assert segment.last is not None
    part = await member.start_segment(first, segment.layout_version)
    async with aclosing(leading.read(segment, first)) as batches:
        async for batch in batches:
            for piece in batch.beginning_at(max(batch.first, first)).parts(member.max_batch_bytes):
                await part.append(piece)
    await part.close()
    await member.finalize_segment(first, segment.last)
