"""Records that were read as messages, still in their entries, and back. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from segments.entries.columns import RecordColumns
from segments.entries.entry import encode_entry, encode_pieces, fits_one_entry
from segments.entries.sections import EntryBatch
from segments.entries.stored_entry import StoredEntry, decode_entry
from segments.errors import EntryCorruptError
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import get_stored
from segments.read import RecordBatch
from segments.read.batches.record_batch import EntrySlice
from segments.record import ProducerRef, Record, StoredRecord

_NOTHING = Record(b"")


def put_entries(batch: RecordBatch) -> pb.EntryBatch:
    """The message of records in their entries. An entry of several slices is sent once."""
    found: list[pb.EntrySlice] = []
    last: StoredEntry | None = None
    for entry, a, b in batch.slices:
        stored = b"" if entry is last else entry.encoded()
        found.append(pb.EntrySlice(segment=entry.segment, entry=entry.entry, first=a, end=b, stored=stored))
        last = entry
    return pb.EntryBatch(slices=found)


def get_entries(message: pb.EntryBatch) -> list[EntrySlice]:
    """The records in a message, in their entries.

    Raises:
        EntryCorruptError: it is not what was stored, or has other records. UnsupportedStreamFormatError.
    """
    found: list[EntrySlice] = []
    entry: StoredEntry | None = None
    for each in message.slices:
        if each.stored:
            entry = decode_entry(each.stored, each.segment, each.entry)
        if entry is None or (entry.segment, entry.entry) != (each.segment, each.entry):
            raise EntryCorruptError("the gateway sent a part of an entry without the entry")
        if not 0 <= each.first < each.end <= entry.count:
            raise EntryCorruptError(f"entry {each.entry} of segment {each.segment} has other records than announced")
        found.append(EntrySlice(entry, each.first, each.end))
    return found


def get_records(message: pb.RecordBatch) -> list[EntrySlice]:
    """The records in a message of a gateway that knows no entries, put into entries again. What stands before them in
    their entry is empty there, and not in the slices."""
    return [_sliced(run) for run in _runs(list(map(get_stored, message.records)))]


def _runs(records: Sequence[StoredRecord]) -> Iterator[list[StoredRecord]]:
    """Records that follow each other in one entry."""
    run: list[StoredRecord] = []
    for record in records:
        if run and record.position != run[-1].position.next:
            yield run
            run = []
        run.append(record)
    if run:
        yield run


def _sliced(run: Sequence[StoredRecord]) -> EntrySlice:
    first = run[0]
    segment, number, before = first.position
    columns = RecordColumns.of_records([*([_NOTHING] * before), *(record.as_record() for record in run)])
    batches = [*([EntryBatch(before)] if before else []), *_batches(run)]
    first_seq_no, append_ms = first.seq_no - before, first.append_ms
    if fits_one_entry(columns, batches):
        raw = encode_entry(columns, first_seq_no=first_seq_no, append_ms=append_ms, batches=batches)
        return EntrySlice(decode_entry(raw, segment, number), before, columns.count)
    pieces = encode_pieces(columns, first_seq_no=first_seq_no, append_ms=append_ms, batches=batches)
    begin = number - len(pieces) + 1
    entries = [decode_entry(raw, segment, begin + at) for at, raw in enumerate(pieces)]
    return EntrySlice(entries[-1].assembled(entries), before, columns.count)


def _batches(run: Sequence[StoredRecord]) -> Iterator[EntryBatch]:
    """Which of them are those of one producer, one after the other."""

    def of(numbered: tuple[int, StoredRecord]) -> ProducerRef | None:
        at, ref = numbered[0], numbered[1].producer
        return None if ref is None else ProducerRef(ref.name, ref.epoch, ref.sequence - at)

    for _, some in groupby(enumerate(run), of):
        records = [record for _, record in some]
        ref = records[0].producer
        yield EntryBatch(len(records)) if ref is None else EntryBatch(len(records), *ref)
