from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.entries.columns import RecordColumns
from segments.entries.compression import Compression
from segments.entries.entry import encode_entry, encode_payload, encode_pieces, fits_one_entry
from segments.entries.layout import BODY_MAX, ENTRY_MAX, EntryKind
from segments.entries.sections import EntryBatch
from segments.entries.stored_entry import decode_entry
from segments.errors import RecordTooLargeError
from segments.record import ProducerRef, Record
from tests.segments.entries.records import RECORDS, contents


@given(st.lists(RECORDS, max_size=20), st.sampled_from(Compression))
def test_records_of_all_kinds_survive_an_entry(records: list[Record], compression: Compression) -> None:
    """SEG-06 entry of mixed records round-trips with consecutive slots"""
    columns = RecordColumns.of_records(records)
    data = encode_entry(columns, first_seq_no=7, append_ms=9, snapshot_entry=3, compression=compression)
    entry = decode_entry(data, segment=1, entry=5)
    assert contents(entry.records()) == records
    assert entry.columns() == columns
    assert [record.position for record in entry.records()] == [(1, 5, slot) for slot in range(len(records))]
    assert [record.seq_no for record in entry.records()] == list(range(7, 7 + len(records)))
    assert (entry.count, entry.append_ms, entry.snapshot_entry, entry.size) == (len(records), 9, 3, len(data))


@given(st.lists(RECORDS, min_size=1, max_size=12), st.data())
def test_any_part_of_an_entry_can_be_taken(records: list[Record], data: st.DataObject) -> None:
    entry = decode_entry(encode_entry(RecordColumns.of_records(records), first_seq_no=0, append_ms=0))
    a = data.draw(st.integers(0, len(records)))
    b = data.draw(st.none() | st.integers(a, len(records) + 2))
    assert entry.records(a, b) == entry.records()[a:b]
    assert entry.values(a, b) == entry.values()[a:b] and entry.keys(a, b) == entry.keys()[a:b]
    assert entry.txids(a, b) == entry.txids()[a:b] and entry.headers(a, b) == entry.headers()[a:b]
    assert entry.event_times_ms(a, b) == entry.event_times_ms()[a:b]
    assert entry.producers(a, b) == entry.producers()[a:b]


def test_an_entry_without_records_has_none() -> None:
    """SEG-04 empty entry decodes to no record"""
    entry = decode_entry(encode_entry(RecordColumns.of_values([]), first_seq_no=4, append_ms=0))
    assert entry.records() == [] and entry.count == 0 and entry.first_seq_no == 4 and entry.last_txid is None


def test_a_value_may_be_empty() -> None:
    """SEG-15 zero-length payloads are legal and delivered"""
    entry = decode_entry(encode_entry(RecordColumns.of_values([b"", b"x", b""]), first_seq_no=0, append_ms=0))
    assert entry.values() == [b"", b"x", b""]


def test_each_record_of_a_batch_has_a_slot_and_a_sequence_number() -> None:
    """SEG-07 record set takes n slots and n positions; later records shift accordingly"""
    batches = [EntryBatch(2, "p", 4, 10), EntryBatch(1), EntryBatch(2, "q", 0, 0)]
    columns = RecordColumns.of_values([b"%d" % i for i in range(5)])
    entry = decode_entry(encode_entry(columns, first_seq_no=0, append_ms=0, batches=batches), 2, 3)
    assert entry.batches == tuple(batches) and entry.batch_count == 3
    assert entry.producers() == [
        ProducerRef("p", 4, 10),
        ProducerRef("p", 4, 11),
        None,
        ProducerRef("q", 0, 0),
        ProducerRef("q", 0, 1),
    ]
    assert [record.producer for record in entry.records(1, 4)] == entry.producers()[1:4]
    assert entry.records()[3].position == (2, 3, 3) and entry.position(3) == (2, 3, 3)
    assert batches[0].last_sequence == 11


@pytest.mark.parametrize("compression", [Compression.LZ4, Compression.ZSTD])
def test_compression_changes_nothing_but_the_size(compression: Compression) -> None:
    """SEG-08 record set with and without compression decodes equally"""
    columns = RecordColumns.of_values([b"the same again"] * 100)
    plain = encode_entry(columns, first_seq_no=0, append_ms=0)
    packed = encode_entry(columns, first_seq_no=0, append_ms=0, compression=compression)
    assert len(packed) < len(plain) / 3
    assert decode_entry(packed).columns() == decode_entry(plain).columns() and decode_entry(packed).codec == compression


def test_what_compression_would_make_larger_is_stored_as_it_is() -> None:
    columns = RecordColumns.of_values([Random(5).randbytes(3_000)])
    data = encode_entry(columns, first_seq_no=0, append_ms=0, compression=Compression.ZSTD)
    assert decode_entry(data).codec == Compression.NONE


def test_the_largest_entry_is_taken_and_one_byte_more_is_not() -> None:
    """SEG-14 maximum entry size accepted, one byte more triggers a separate entry"""
    overhead = len(encode_entry(RecordColumns.of_values([b""]), first_seq_no=0, append_ms=0))
    fits = RecordColumns.of_values([bytes(ENTRY_MAX - overhead)])
    more = RecordColumns.of_values([bytes(ENTRY_MAX - overhead + 8)])
    assert len(encode_entry(fits, first_seq_no=0, append_ms=0)) == ENTRY_MAX and fits_one_entry(fits)
    assert not fits_one_entry(more)
    with pytest.raises(RecordTooLargeError):
        encode_entry(more, first_seq_no=0, append_ms=0)


@pytest.mark.parametrize("compression", Compression)
@pytest.mark.parametrize("size", [1, BODY_MAX, 3 * BODY_MAX + 5])
def test_records_that_do_not_fit_are_stored_in_pieces(size: int, compression: Compression) -> None:
    """SEG-05 a record larger than an entry is in numbered pieces, and stands at the last"""
    columns = RecordColumns.of_records([Record(bytes(size), 5, b"k"), Record(b"beside")])
    batches = [EntryBatch(2, "p", 1, 1)]
    pieces = encode_pieces(columns, first_seq_no=2, append_ms=1, batches=batches, compression=compression)
    entries = [decode_entry(each, 1, 10 + at) for at, each in enumerate(pieces)]
    assert max(map(len, pieces)) <= ENTRY_MAX and {entry.kind for entry in entries} == {EntryKind.PIECE}
    assert [entry.count for entry in entries] == [0] * (len(pieces) - 1) + [2]
    whole = entries[-1].assembled(entries)
    assert whole.columns() == columns and whole.batches == tuple(batches)
    assert whole.records()[0].position == (1, 10 + len(pieces) - 1, 0) and whole.records()[0].seq_no == 2


def test_an_entry_may_have_no_records_but_bytes_of_the_stream() -> None:
    """SEG-44 control records never change last txid or counts"""
    data = encode_payload(EntryKind.SNAPSHOT, b"producers", next_seq_no=8, append_ms=1, snapshot_entry=2)
    entry = decode_entry(data)
    assert (entry.kind, entry.payload, entry.count, entry.records()) == (EntryKind.SNAPSHOT, b"producers", 0, [])
    assert (entry.first_seq_no, entry.snapshot_entry, entry.batches) == (8, 2, ())
    with pytest.raises(RecordTooLargeError):
        encode_payload(EntryKind.FOOTER, bytes(BODY_MAX + 1), next_seq_no=0, append_ms=0)


@given(
    st.binary(max_size=40) | st.just(bytes(70_000)),
    st.integers(0, 2**63 - 1),
    st.integers(-9, 2**40),
    st.integers(-1, 9),
)
def test_a_lone_entry_has_the_bytes_of_any_other_way(value: bytes, seq_no: int, append_ms: int, snapshot: int) -> None:
    columns = RecordColumns.of_values([value])
    alone = encode_entry(columns, first_seq_no=seq_no, append_ms=append_ms, snapshot_entry=snapshot)
    assert alone == encode_entry(
        columns, first_seq_no=seq_no, append_ms=append_ms, snapshot_entry=snapshot, batches=[EntryBatch(1)]
    )
    assert decode_entry(alone).values() == [value]
