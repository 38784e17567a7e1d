"""A scan of entries says what a writer would have written into the stream's node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from segments.chain import SegmentContents
from segments.checks.scan import SegmentScanner
from segments.entries.columns import RecordColumns
from segments.entries.entry import encode_entry, encode_payload, encode_pieces
from segments.entries.layout import EntryKind
from segments.record import Record

T0 = datetime(2026, 1, 1, tzinfo=UTC)
T0_MS = int(T0.timestamp() * 1000)


def entry(first: int, count: int, *, append_ms: int = 0, txid: int | None = None) -> bytes:
    records = [
        Record(b"%d" % n, None if txid is None else txid + n, event_time=T0 + timedelta(seconds=10 * first - n))
        for n in range(count)
    ]
    return encode_entry(RecordColumns.of_records(records), first_seq_no=first, append_ms=append_ms)


def scanned(*entries: bytes) -> SegmentScanner:
    scanner = SegmentScanner(3)
    for entry_id, data in enumerate(entries):
        scanner.add(entry_id, data)
    return scanner


def test_numbers_ends_and_times() -> None:
    snapshot = encode_payload(EntryKind.SNAPSHOT, b"", next_seq_no=40, append_ms=1)
    footer = encode_payload(EntryKind.FOOTER, b"", next_seq_no=45, append_ms=9)
    entries = [snapshot, entry(40, 2, append_ms=5, txid=7), entry(42, 3, append_ms=6), footer]
    found = scanned(*entries).result()
    assert found.is_whole and found.start_seq_no == 40
    assert found.contents == SegmentContents(
        records=5,
        bytes=sum(map(len, entries)),
        last_entry=3,
        last=(2, 2),
        first_txid=7,
        last_txid=8,
        first_append_ms=5,
        last_append_ms=6,
        min_event_ms=T0_MS + 399_000,
        max_event_ms=T0_MS + 420_000,
        footer_entry=3,
    )


def test_nothing() -> None:
    assert scanned().result().contents == SegmentContents()
    assert scanned().result().start_seq_no is None


def test_a_footer_is_the_last_entry_or_none() -> None:
    footer = encode_payload(EntryKind.FOOTER, b"", next_seq_no=2, append_ms=9)
    assert scanned(entry(0, 2), footer, entry(2, 1)).result().contents.footer_entry is None


def test_pieces_count_once_all_are_there() -> None:
    large = RecordColumns.of_values([b"x" * 2_500_000])
    pieces = encode_pieces(large, first_seq_no=1, append_ms=4)
    assert len(pieces) == 3
    found = scanned(entry(0, 1), *pieces, entry(2, 1)).result()
    assert found.is_whole and found.contents.records == 3 and found.contents.last == (4, 0)
    cut = scanned(entry(0, 1), *pieces[:2]).result()
    assert cut.is_whole and cut.contents.records == 1 and cut.contents.last == (0, 0)


def test_what_cannot_be_read_is_named_and_the_scan_goes_on() -> None:
    broken = bytearray(entry(2, 2))
    broken[-1] ^= 1
    found = scanned(entry(0, 2), bytes(broken), entry(4, 1)).result()
    assert not found.is_whole and found.damaged == ("entry 1 is damaged: its checksum does not match",)
    assert found.contents.records == 3 and found.contents.last == (2, 0)


def test_missing_entries_and_jumps_of_the_sequence_are_named() -> None:
    scanner = scanned(entry(0, 2))
    scanner.add(3, entry(5, 1))
    scanner.add(4, entry(9, 1))
    assert scanner.result().damaged == (
        "entries 1 to 2 are missing",
        "entry 4 begins at record 9, and record 6 comes next",
    )
    scanner.missing(5, 5)
    assert scanner.result().damaged[-1] == "entry 5 is missing" and scanner.result().contents.last_entry == 5
