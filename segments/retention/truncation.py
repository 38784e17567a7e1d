"""Truncates a stream to an exact record: readers begin there from now on. Removing ledgers comes later.

The new beginning is one compare-and-set of the stream's node, together with the holds as they were: a hold that is
put at the same time is either seen, or finds the records gone and is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bookkeeper.errors import CorruptionError, DataMissingError, NoSuchLedgerError
from bookkeeper.meta.store import Check
from segments.chain import StreamChain, StreamHead, StreamSegment
from segments.entries.stored_entry import decode_entry
from segments.error_translation import worded
from segments.errors import EntryCorruptError, PositionFormatError, StreamHeldError
from segments.position import Position
from segments.retention.agreed_time import AgreedTime
from segments.retention.chain_steps import change_chain_if
from segments.retention.hold_node import HoldNode
from segments.retention.holds import Hold, first_held

if TYPE_CHECKING:
    from bookkeeper import BookKeeper


@dataclass(frozen=True, slots=True)
class TruncateResult:
    """What a truncation did, or would do."""

    was: Position
    """The first position that readers saw before."""
    start: Position
    """The first position that they see now; never before ``was``."""
    held_by: Hold | None
    """The hold that kept the rest of what was asked for."""
    removable: tuple[StreamSegment, ...]
    """Segments that are wholly truncated now; a pass of retention removes those that nothing else keeps."""

    @property
    def is_change(self) -> bool:
        return self.start != self.was


async def truncate(
    client: BookKeeper, node: StreamHead, before: Position, *, up_to_holds: bool = False, dry_run: bool = False
) -> TruncateResult:
    """Let readers begin at ``before``: everything ahead of it is hidden at once. An earlier position is no change.

    LATEST stands for the end as it is now. With ``up_to_holds`` a hold limits the truncation; otherwise it refuses it.

    Raises:
        PositionFormatError: there is no such position yet: it is behind the end, or no slot. Nothing was changed.
        StreamHeldError: an active hold covers records before it; names the hold. Nothing was changed.
        StreamNotFoundError, StreamMetadataError, StreamUnavailableError.
    """
    holds, time = HoldNode(client.metadata_store, node), AgreedTime(client, node)
    outcome: TruncateResult | None = None
    wanted = before

    async def decide(chain: StreamChain) -> tuple[StreamChain, list[Check]]:
        nonlocal outcome, wanted
        found, unchanged = await holds.read()
        wanted = await resolve_position(client, chain, wanted, node.name)  # no later end than before
        start, hold = wanted, None
        if wanted > chain.first_position:
            now_ms = time.here_ms()
            if len(found.active(now_ms)) < len(found):  # before a hold counts as ended other clocks are asked, too
                now_ms = await time.now_ms()
            hold = first_held(found, now_ms, chain.first_position, wanted)
            if hold is not None and not up_to_holds:
                raise StreamHeldError(
                    f"{hold.says()} covers records of stream {node.name} from {hold.start} on: release it, or "
                    "truncate only up to it",
                    stream=node.name,
                    position=max(hold.start, chain.first_position),
                )
            start = wanted if hold is None else max(hold.start, chain.first_position)
        seq_no = await sequence_at(client, chain, start)
        after = chain.truncate(await behind_last(client, chain, start, seq_no), seq_no)
        outcome = TruncateResult(chain.first_position, after.first_position, hold, after.removable())
        return (chain if dry_run else after), [unchanged]

    with worded(f"truncating stream {node.name}", node.name):
        await change_chain_if(node, decide)
    assert outcome is not None
    return outcome


async def resolve_position(client: BookKeeper, chain: StreamChain, wanted: Position, stream: str) -> Position:
    """``wanted``, if it is in the stream or its end; LATEST becomes the end.

    Raises:
        PositionFormatError: it is behind the end, or no record stands there. BookKeeperError.
    """
    end = await end_of_stream(client, chain)
    if wanted == Position.LATEST:
        return end
    if wanted > end or (wanted.slot < 0 and wanted > Position.EARLIEST):
        raise PositionFormatError(
            f"{wanted} is no position in stream {stream}, which ends at {end}", stream=stream, position=end
        )
    return wanted


async def end_of_stream(client: BookKeeper, chain: StreamChain) -> Position:
    """The position behind everything that is confirmed now. Raises BookKeeperError."""
    opened = chain.open_segment
    if opened is None:
        return Position(chain.next_number, 0, 0)
    try:
        async with await client.open_ledger(opened.ledger_id, None, recovery=False) as ledger:
            return Position(opened.number, ledger.last_add_confirmed + 1, 0)
    except NoSuchLedgerError:
        return opened.first


async def behind_last(client: BookKeeper, chain: StreamChain, position: Position, seq_no: int | None) -> Position:
    """Where the stream is to begin so that readers see nothing before ``position``, of which ``seq_no`` is the number:
    where no record of its segment is behind it, directly behind the last one that goes. So a reader that stands there
    has missed nothing, also when the segment is gone.

    Raises BookKeeperError.
    """
    segment = chain.find(position.segment)
    if segment is None or not segment.is_open or position <= segment.first:
        return chain.behind_last(position)
    try:
        async with await client.open_ledger(segment.ledger_id, None, recovery=False) as ledger:
            for entry_id in range(min(position.entry, ledger.last_add_confirmed), -1, -1):
                entry = decode_entry(await ledger.read_entry(entry_id), segment.number, entry_id, segment.base)
                if entry.first_seq_no + entry.count != seq_no:
                    return position  # records stand behind it
                if entry.count:
                    return min(position, entry.position(entry.count))
    except (NoSuchLedgerError, CorruptionError, DataMissingError, EntryCorruptError):
        return position
    return chain.behind_last(segment.first)


async def sequence_at(client: BookKeeper, chain: StreamChain, position: Position) -> int | None:
    """The sequence number of the first record at or behind ``position``; None if its entry cannot be read.

    Raises BookKeeperError.
    """
    segment = chain.find(position.segment)
    if segment is None:
        later = chain.after(position.segment)
        return chain.records if later is None else later.start_seq_no
    if position <= segment.first:
        return segment.start_seq_no
    if not segment.is_open and (segment.last is None or position > segment.last):
        return segment.end_seq_no
    try:
        async with await client.open_ledger(segment.ledger_id, None, recovery=False) as ledger:
            at = min(position.entry, ledger.last_add_confirmed)
            if at < 0:
                return segment.start_seq_no
            entry = decode_entry(await ledger.read_entry(at), segment.number, at, segment.base)
    except (NoSuchLedgerError, CorruptionError, DataMissingError, EntryCorruptError):
        return None
    taken = entry.count if at < position.entry else min(position.slot, entry.count)
    return entry.first_seq_no + taken
