from __future__ import annotations

import random

import pytest

from segments.entries.columns import RecordColumns
from segments.entries.compression import Compression
from segments.entries.entry import encode_entry, encode_payload, encode_pieces
from segments.entries.layout import CRC, CRC_AT, HEADER_SIZE, PIECE, Columns, EntryKind
from segments.entries.sections import EntryBatch
from segments.entries.stored_entry import RUN, decode_entry
from segments.errors import EntryCorruptError, StreamError, UnsupportedStreamFormatError
from segments.position import Position
from segments.record import NO_HEADERS, ProducerRef, Record, StoredRecord

RECORDS = [Record(b"value", 3, b"key", {"h": b"x"}), Record(b"two")]


def entry_bytes() -> bytes:
    batches = [EntryBatch(2, "p", 1, 0)]
    return encode_entry(RecordColumns.of_records(RECORDS), first_seq_no=0, append_ms=0, batches=batches)


def forged(data: bytes, at: int, byte: int) -> bytes:
    """The same entry with one byte changed, and a checksum that fits."""
    from bookkeeper.codec import crc32c

    changed = bytearray(data)
    changed[at] = byte
    changed[CRC_AT : CRC_AT + 4] = CRC.pack(crc32c(bytes(changed[HEADER_SIZE:]), crc32c(bytes(changed[:CRC_AT]))))
    return bytes(changed)


@pytest.mark.parametrize("at", range(len(entry_bytes())))
def test_a_changed_byte_is_noticed_wherever_it_is(at: int) -> None:
    data = bytearray(entry_bytes())
    data[at] ^= 0x40
    with pytest.raises((EntryCorruptError, UnsupportedStreamFormatError)):
        decode_entry(data, 1, 2)


@pytest.mark.parametrize("size", [0, 1, HEADER_SIZE - 1, HEADER_SIZE, -1])
def test_an_entry_that_is_cut_short_is_noticed(size: int) -> None:
    with pytest.raises(EntryCorruptError) as caught:
        decode_entry(entry_bytes()[:size], 1, 2)
    assert caught.value.position == (1, 2, 0)


def test_a_foreign_entry_is_refused() -> None:
    with pytest.raises(EntryCorruptError, match="no entry of a stream"):
        decode_entry(b"something else that is long enough for a header, and is none of ours")


@pytest.mark.parametrize(("at", "what"), [(3, "format"), (4, "kind"), (7, "columns")])
def test_an_entry_of_a_newer_program_is_refused(at: int, what: str) -> None:
    with pytest.raises(UnsupportedStreamFormatError, match=what):
        decode_entry(forged(entry_bytes(), at, 99))


def test_an_unknown_codec_is_refused() -> None:
    """SEG-08 unknown codec refused"""
    with pytest.raises(UnsupportedStreamFormatError, match="codec 9"):
        decode_entry(forged(entry_bytes(), 5, 9)).values()


def test_no_bytes_with_a_right_checksum_make_it_fail_otherwise() -> None:
    """What a program wrote wrongly is an error of this package, whatever it is."""
    dice, data = random.Random(5), entry_bytes()
    for _ in range(3_000):
        entry_data = forged(data, dice.randrange(6, len(data)), dice.randrange(256))
        try:
            entry = decode_entry(entry_data)
            if entry.count < 100:
                entry.records()
        except StreamError:
            continue


def test_pieces_that_do_not_belong_together_are_refused() -> None:
    parts = encode_pieces(RecordColumns.of_values([bytes(3_000_000)]), first_seq_no=0, append_ms=0)
    entries = [decode_entry(each, 1, at) for at, each in enumerate(parts)]
    for wrong in (entries[1:], [entries[0], *entries[2:], entries[1]], [entries[0], entries[0], entries[2]]):
        with pytest.raises(EntryCorruptError, match="belong together"):
            entries[-1].assembled(wrong)


@pytest.mark.rule("X40")
def test_a_piece_is_not_believed_how_many_pieces_there_are() -> None:
    """For each that it announced something was made, and all entries before it were read."""
    payload = PIECE.pack((1 << 32) - 2, (1 << 32) - 1, 1 << 60) + b"p"
    entry = decode_entry(encode_payload(EntryKind.PIECE, payload, next_seq_no=0, append_ms=0), 1, 5)
    assert entry.piece is not None and entry.piece.is_last
    with pytest.raises(EntryCorruptError, match="belong together"):
        entry.assembled([entry])
    none = encode_payload(EntryKind.PIECE, PIECE.pack(3, 3, 1) + b"p", next_seq_no=0, append_ms=0)
    with pytest.raises(EntryCorruptError, match="piece 3 of 3"):
        _ = decode_entry(none, 1, 5).piece


def test_a_view_of_a_larger_buffer_is_not_copied_and_is_read() -> None:
    data = entry_bytes()
    view = memoryview(b"before" + data + b"after")[6:-5]
    entry = decode_entry(view)
    assert entry.stored.obj is view.obj and entry.records() == decode_entry(data).records()
    assert all(type(value) is bytes for value in entry.values())


@pytest.mark.parametrize("compression", list(Compression))
@pytest.mark.parametrize("value", [b"", b"v", bytes(8), b"x" * 1001])
@pytest.mark.parametrize("producer", [None, "p"])
def test_an_entry_of_one_record_is_read_alike_in_every_way(
    compression: Compression, value: bytes, producer: str | None
) -> None:
    batches = [EntryBatch(1, producer, 4, 9)] if producer else ()
    data = encode_entry(
        RecordColumns.of_values([value]), first_seq_no=7, append_ms=5, batches=batches, compression=compression
    )
    entry, ref = decode_entry(data, 1, 2), ProducerRef("p", 4, 9) if producer else None
    expected = StoredRecord(Position(1, 2, 0), 7, value, None, None, NO_HEADERS, None, 5, ref)
    assert entry.records() == [expected] == [entry.record(0)] and entry.values() == [value]
    assert type(entry.record(0)) is StoredRecord and type(entry.record(0).position) is Position
    assert entry.records(0, 0) == entry.records(1) == []
    assert entry.values(0, 0) == entry.values(1) == []


def test_records_that_are_taken_one_at_a_time_are_those_of_the_entry() -> None:
    count = 2 * RUN + 3
    entry = decode_entry(
        encode_entry(RecordColumns.of_values([b"%d" % n for n in range(count)]), first_seq_no=3, append_ms=0), 1, 2
    )
    expected = entry.records()
    assert [entry.record(slot) for slot in range(count)] == expected
    assert [entry.record(slot) for slot in (count - 1, 0, RUN, RUN - 1)] == [
        expected[slot] for slot in (count - 1, 0, RUN, RUN - 1)
    ]


def test_the_header_says_which_columns_there_are() -> None:
    used = Columns.TXIDS | Columns.TXID_NULLS | Columns.KEYS | Columns.KEY_NULLS | Columns.HEADERS
    assert decode_entry(entry_bytes()).flags == used
    assert decode_entry(entry_bytes()).last_txid == 3


def test_an_entry_is_encoded_as_it_was() -> None:
    raw = entry_bytes()
    assert decode_entry(raw, 1, 2).encoded() == raw


def test_what_parts_of_an_entry_count_adds_up_to_the_whole() -> None:
    entry = decode_entry(encode_entry(RecordColumns.of_values([b"value"] * 7), first_seq_no=0, append_ms=0), 1, 2)
    assert entry.share(0, 7) == entry.size == entry.share(0, 3) + entry.share(3, 4) + entry.share(4, 7)
