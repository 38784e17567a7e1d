"""Lone entries are counted, and their records made, by both codecs alike; whatever is unusual ends a run."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.codec import crc32c
from segments.codec import pure
from segments.entries.columns import RecordColumns
from segments.entries.compression import Compression
from segments.entries.entry import encode_entry, encode_payload
from segments.entries.layout import EntryKind
from segments.entries.sections import EntryBatch
from segments.entries.stored_entry import decode_entry
from segments.position import Position
from segments.record import NO_HEADERS, Record, StoredRecord
from tests.segments.codec import CODECS, native, needs_native


def lone(seq_no: int, value: bytes = b"value", append_ms: int = 5) -> bytes:
    return encode_entry(RecordColumns.of_values([value]), first_seq_no=seq_no, append_ms=append_ms)


def sealed(entry: bytes, at: int, put: bytes) -> bytes:
    """The entry with other bytes, and the checksum that they have."""
    other = entry[:at] + put + entry[at + len(put) :]
    return other[:52] + struct.pack("<I", crc32c(other[56:], crc32c(other[:52]))) + other[56:]


@pytest.mark.parametrize("codec", CODECS)
def test_a_run_is_counted_up_to_what_does_not_follow(codec: Any) -> None:
    payloads = [lone(7), lone(8, b""), lone(9, bytes(3000)), lone(11)]
    assert codec.count_lone(payloads, 0, 7) == (3, 7)
    assert codec.count_lone(payloads, 0, -1) == (3, 7)
    assert codec.count_lone(payloads, 1, 8) == (2, 8)
    assert codec.count_lone(payloads, 3, -1) == (1, 11)
    assert codec.count_lone(payloads, 0, 6)[0] == 0
    assert codec.count_lone(payloads, 4, -1)[0] == codec.count_lone(payloads, -1, -1)[0] == 0


UNUSUAL: dict[str, bytes] = {
    "two records": encode_entry(RecordColumns.of_values([b"a", b"b"]), first_seq_no=1, append_ms=5),
    "a key": encode_entry(RecordColumns.of_records([Record(b"a", key=b"k")]), first_seq_no=1, append_ms=5),
    "a transaction id": encode_entry(RecordColumns.of_records([Record(b"a", txid=3)]), first_seq_no=1, append_ms=5),
    "a producer": encode_entry(
        RecordColumns.of_values([b"a"]), first_seq_no=1, append_ms=5, batches=[EntryBatch(1, "p", 1, 1)]
    ),
    "a nameless producer": sealed(lone(1), 62, b"\1\0"),
    "compressed": encode_entry(
        RecordColumns.of_values([bytes(999)]), first_seq_no=1, append_ms=5, compression=Compression.ZSTD
    ),
    "no records": encode_payload(EntryKind.CONTROL, b"", next_seq_no=1, append_ms=5),
    "a newer format": sealed(lone(1), 3, b"\2"),
    "another beginning": sealed(lone(1), 0, b"X"),
    "an unknown kind": sealed(lone(1), 4, b"\x09"),
    "an unknown compression": sealed(lone(1), 5, b"\x09"),
    "unknown columns": sealed(lone(1), 7, b"\1"),
    "no batch": sealed(lone(1), 12, bytes(4)),
    "2**31 records": sealed(lone(1), 8, b"\0\0\0\x80"),
    "2**31 records in its batch": sealed(lone(1), 56, b"\0\0\0\x80"),
    "another size unpacked": sealed(lone(1), 40, b"\xff\xff\xff\xff"),
    "another size stored": sealed(sealed(lone(1), 44, b"\xff\xff\xff\xff"), 40, b"\xff\xff\xff\xff"),
    "a value of 2**31 bytes": sealed(lone(1), 84, b"\0\0\0\x80"),
    "a value beyond the end": sealed(lone(1), 84, b"\x09\0\0\0"),
    "a value that begins later": sealed(lone(1), 80, b"\1\0\0\0"),
    "a negative number": sealed(lone(1), 16, b"\xff" * 8),
    "a byte too many": lone(1) + b"\0",
    "cut short": lone(1)[:-1],
    "the header alone": lone(1)[:88],
    "nothing": b"",
    "a wrong checksum": lone(1)[:-9] + b"?" + lone(1)[-8:],
}


@pytest.mark.parametrize("codec", CODECS)
def test_whatever_is_unusual_or_damaged_ends_a_run(codec: Any) -> None:
    for what, entry in UNUSUAL.items():
        assert codec.count_lone([lone(0), entry], 0, 0) == (1, 0), what
        assert codec.count_lone([entry], 0, -1)[0] == 0, what
    assert codec.count_lone([bytearray(lone(0))], 0, 0)[0] == 0


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_those_of_the_entries(codec: Any) -> None:
    payloads = [lone(7 + n, b"%d" % n * n, 1000 * n - 3) for n in range(5)]
    expected = [record for n, each in enumerate(payloads) for record in decode_entry(each, 3, 40 + n, 100).records()]
    found = codec.lone_records(payloads, 0, 5, (3, 40, 107), StoredRecord, Position, NO_HEADERS)
    assert found == expected
    assert {type(each) for each in found} == {StoredRecord} and type(found[0].position) is Position
    assert codec.lone_records(payloads, 2, 4, (3, 40, 107), StoredRecord, Position, NO_HEADERS) == expected[2:4]
    assert codec.lone_values(payloads, 1, 5) == [each.value for each in expected[1:]]
    offsets, data, times = codec.lone_columns(payloads, 1, 4)
    assert struct.unpack("=4i", offsets) == (0, 1, 3, 6) and data == b"122333"
    assert struct.unpack("=3q", times) == (997, 1997, 2997)
    assert codec.lone_columns(payloads, 3, 3) == (bytes(4), b"", b"")


def calls(codec: Any) -> list[Callable[[list[Any], int, int], Any]]:
    return [
        codec.lone_values,
        codec.lone_columns,
        lambda payloads, a, b: codec.lone_records(payloads, a, b, (1, 2, 3), StoredRecord, Position, NO_HEADERS),
    ]


@pytest.mark.parametrize("codec", CODECS)
def test_what_nobody_has_counted_is_refused(codec: Any) -> None:
    for call in calls(codec):
        for a, b in ((0, 2), (-1, 1), (1, 0), (0, 2**40)):
            with pytest.raises(ValueError, match="of 1"):
                call([lone(0)], a, b)
        for what in ("2**31 bytes", "cut short", "nothing", "header alone"):
            (entry,) = (each for name, each in UNUSUAL.items() if name.endswith(what))
            if what == "cut short":
                entry = lone(0)[:90]
            with pytest.raises(ValueError, match="no lone entry"):
                call([entry], 0, 1)
        with pytest.raises(ValueError, match="no lone entry"):
            call([bytearray(lone(0))], 0, 1)


spoiled = st.builds(
    lambda entry, at, put, seals: (
        sealed(entry, at, put) if seals and at > 55 else entry[:at] + put + entry[at + len(put) :]
    ),
    st.builds(lone, st.integers(0, 2), st.binary(max_size=20), st.integers(-(2**40), 2**40)),
    st.integers(0, 110),
    st.binary(max_size=4),
    st.booleans(),
)
lists = st.lists(spoiled | st.builds(lone, st.integers(0, 3)) | st.sampled_from(list(UNUSUAL.values())), max_size=5)


@needs_native
@given(lists, st.integers(-1, 3), st.integers(-1, 3), st.integers(-1, 5), st.integers(-1, 5))
def test_both_codecs_do_the_same(payloads: list[bytes], at: int, seq_no: int, a: int, b: int) -> None:
    assert native is not None
    assert native.count_lone(payloads, at, seq_no) == pure.count_lone(payloads, at, seq_no)
    for ours, theirs in zip(calls(native), calls(pure), strict=True):
        assert told(ours, payloads, a, b) == told(theirs, payloads, a, b)


def told(call: Callable[[list[Any], int, int], Any], payloads: list[bytes], a: int, b: int) -> Any:
    try:
        return call(payloads, a, b)
    except ValueError as error:
        return str(error)


@given(lists)
def test_what_is_counted_is_what_decoding_finds(payloads: list[bytes]) -> None:
    """A run never has an entry that reading it by itself would refuse."""
    count, first = pure.count_lone(payloads, 0, -1)
    for n, payload in enumerate(payloads[:count]):
        entry = decode_entry(payload)
        assert (entry.first_seq_no, entry.count, entry.flags, entry.codec) == (first + n, 1, 0, 0)
        assert [batch.producer for batch in entry.batches] == [None] and len(entry.records()) == 1


@pytest.mark.parametrize("codec", CODECS)
def test_numbers_become_columns(codec: Any) -> None:
    assert struct.unpack("=3q", codec.rising(-1, 3)) == (-1, 0, 1)
    assert struct.unpack("=2q", codec.repeated(-5, 2)) == (-5, -5)
    for column in (codec.rising, codec.repeated):
        assert column(7, 0) == column(7, -1) == b""
    assert struct.unpack("=2q", codec.rising(2**63 - 2, 2)) == (2**63 - 2, 2**63 - 1)
    for first, n in ((2**63 - 1, 2), (2**63, 1), (-(2**63) - 1, 1)):
        with pytest.raises(OverflowError):
            codec.rising(first, n)
    with pytest.raises(OverflowError):
        codec.repeated(2**63, 1)
