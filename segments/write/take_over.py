"""Makes this process the writer of a stream: claim, recover what the former writer left open, read only its end.

claim        epoch + 1 in the node: no former owner changes it any more
recover      the open segment's ledger is fenced and closed: no former owner appends to it any more
read         last entry -> the snapshot that it names -> the entries behind that
start        one step ends the old segment and begins the next one
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bookkeeper.errors import BookKeeperError, NoSuchLedgerError
from segments.chain import StreamSegment
from segments.config import ProducerPolicy
from segments.entries.layout import NO_SNAPSHOT, EntryKind
from segments.entries.sections import PieceInfo
from segments.entries.stored_entry import StoredEntry, decode_entry
from segments.error_translation import stream_error
from segments.errors import EntryCorruptError, StreamCorruptError
from segments.position import Position
from segments.producers import ProducerTable
from segments.write.segment.segment_change import EndedSegment
from segments.write.state.contents_tally import ContentsTally, announces
from segments.write.state.snapshot import decode_snapshot
from segments.write.state.stream_owner import StreamOwner
from segments.write.state.write_state import WriteState

if TYPE_CHECKING:
    from bookkeeper import BookKeeper, ReadHandle


@dataclass(slots=True)
class SegmentEnd:
    """What the end of a segment says."""

    contents: ContentsTally = field(default_factory=ContentsTally)
    producers: ProducerTable | None = None
    """None if the segment holds no entry, so that the one before it has to be asked."""


@dataclass(frozen=True, slots=True)
class WriterStart:
    """What a new owner has found."""

    state: WriteState
    recovered: EndedSegment | None
    """The segment that the former owner left open; the step that starts the next one ends it."""


async def find_end(client: BookKeeper, owner: StreamOwner, policy: ProducerPolicy) -> WriterStart:
    """Recover the open segment of the stream that ``owner`` has claimed, and read where the stream ends.

    Raises:
        StreamUnavailableError: too few bookies answer, or the metadata store does not; nothing is lost.
        StreamCorruptError: a ledger is gone, or its last entries are damaged. OwnershipLostError.
    """
    chain = owner.chain
    recovered: EndedSegment | None = None
    end = SegmentEnd()
    tail = chain.last_position
    if (opened := chain.open_segment) is not None:
        end = await _segment_end(client, owner, opened, policy)
        recovered = EndedSegment(opened.number, end.contents.contents(), end.contents.announces)
        if end.contents.last is not None:
            tail = Position(opened.number, *end.contents.last)
    producers = end.producers
    for segment in reversed([segment for segment in chain.recent if not segment.is_open]):
        if producers is not None:
            break
        if not segment.is_published:
            producers = (await _segment_end(client, owner, segment, policy)).producers
    if producers is None and chain.pages:
        producers = await _producers_in_pages(client, owner, policy)
    if producers is None:
        producers = ProducerTable(policy)
        if chain.records:  # their producers are not remembered
            producers.forget_unknown()
    producers.forget_before(chain.first_position)
    txids = [txid for txid in (chain.last_txid, end.contents.last_txid) if txid is not None]
    recovered_records = end.contents.records if recovered is not None else 0
    state = WriteState(chain.records + recovered_records, max(txids, default=None), tail, producers)
    return WriterStart(state, recovered)


async def _producers_in_pages(client: BookKeeper, owner: StreamOwner, policy: ProducerPolicy) -> ProducerTable | None:
    """The producers, where all segments of the node itself were published whole: an older one tells of them."""
    with owner.translate_errors("reading"):
        chain, _ = await owner.node.read()
    for page in reversed(chain.pages):
        for segment in reversed(list(page.segments())):
            if not segment.is_published:
                return (await _segment_end(client, owner, segment, policy)).producers
    return None


async def _segment_end(
    client: BookKeeper, owner: StreamOwner, segment: StreamSegment, policy: ProducerPolicy
) -> SegmentEnd:
    name = owner.node.name
    what = f"reading the end of segment {segment.number} (ledger {segment.ledger_id}) of stream {name}"
    try:
        async with await client.open_ledger(segment.ledger_id, None) as reader:
            return await read_end(reader, segment.number, policy)
    except NoSuchLedgerError as error:
        await owner.ensure_current()  # the one who overtook us may have dropped it, empty
        raise StreamCorruptError(f"{what}: the ledger does not exist any more", stream=name) from error
    except BookKeeperError as error:
        raise stream_error(error, what, name) from error


async def holds_producers(client: BookKeeper, segment: StreamSegment, policy: ProducerPolicy) -> bool:
    """Whether a new owner may learn of producers from a completed segment; also if it is damaged.

    Raises: BookKeeperError.
    """
    try:
        async with await client.open_ledger(segment.ledger_id, None, recovery=False) as reader:
            producers = (await read_end(reader, segment.number, policy)).producers
    except NoSuchLedgerError:
        return False
    except StreamCorruptError:
        return True
    return producers is not None and (len(producers) > 0 or producers.forgotten > 0)


async def read_end(reader: ReadHandle, number: int, policy: ProducerPolicy) -> SegmentEnd:
    """Read the end of a segment whose ledger is closed: as few entries as tell all of it.

    Raises:
        BookKeeperError: they cannot be read now. EntryCorruptError, UnsupportedStreamFormatError.
    """
    last = reader.last_add_confirmed
    if last < 0:
        return SegmentEnd()
    final = decode_entry(await reader.read_entry(last), number, last)
    at = last if final.kind is EntryKind.SNAPSHOT else final.snapshot_entry
    end = SegmentEnd(ContentsTally(), ProducerTable(policy))
    if at != NO_SNAPSHOT:
        stored = final if at == last else decode_entry(await reader.read_entry(at), number, at)
        if stored.kind is not EntryKind.SNAPSHOT:
            raise EntryCorruptError(
                f"entry {at} of segment {number} should be a snapshot of producers, and is not",
                position=Position(number, at, 0),
            )
        snapshot = decode_snapshot(stored.payload, policy)
        end = SegmentEnd(snapshot.contents, snapshot.producers)
        end.contents.announces = at > 0  # a later one may say what only this segment has
    pieces: list[StoredEntry] = []
    async for first, payloads in reader.read_batches(end.contents.last_entry + 1, last):
        for entry, payload in enumerate(payloads, first):
            pieces = await _apply(reader, end, decode_entry(payload, number, entry), pieces)
    return end


async def _apply(
    reader: ReadHandle, end: SegmentEnd, entry: StoredEntry, pieces: list[StoredEntry]
) -> list[StoredEntry]:
    """Count an entry. Returns the pieces of the records that are not complete yet."""
    end.contents.add_entry(entry.entry, entry.size)
    whole: StoredEntry | None = entry if entry.kind is EntryKind.DATA else None
    if (piece := entry.piece) is not None:
        pieces = [entry] if piece.number == 0 else [*pieces, entry]
        if piece.is_last:
            pieces = [*await _earlier_pieces(reader, entry, piece, piece.pieces - len(pieces)), *pieces]
            whole, pieces = entry.assembled(pieces), []
    if whole is not None:
        columns = whole.columns()
        end.contents.add_records(
            columns.count,
            whole.append_ms,
            (columns.first_txid, columns.last_txid),
            (columns.min_event_ms, columns.max_event_ms),
        )
        end.contents.announces |= announces(whole.batches)
        assert end.producers is not None
        end.producers.apply_entry(whole.batches, whole.segment, whole.entry, whole.append_ms)
    return pieces


async def _earlier_pieces(reader: ReadHandle, last: StoredEntry, info: PieceInfo, count: int) -> list[StoredEntry]:
    """The first pieces of the records that end with ``last``. How many there are is only what it says: the first that
    is none of them ends it, and so nothing that lies before the ledger is asked for."""
    found: list[StoredEntry] = []
    first = last.entry - info.number
    for number in range(count if first >= 0 else 0):
        payload = await reader.read_entry(first + number)
        found.append(decode_entry(payload, last.segment, first + number))
        if not found[-1].is_piece(number, info):
            break
    return found
