from __future__ import annotations

import pytest

from segments.entries.footer import (
    INDEX_EVERY_BYTES,
    FooterBuilder,
    IndexRow,
    ProducerRange,
    SegmentFooter,
    _bits,
    bloom,
)
from segments.entries.layout import BODY_MAX
from segments.errors import EntryCorruptError, UnsupportedStreamFormatError


def may_have(footer: SegmentFooter, key: bytes) -> bool:
    """What a reader of the filter tells of a key, as docs/stream-formats.md has it. False is certain."""
    if footer.filter is None:
        return True
    size = len(footer.filter) * 8
    return bool(size) and all(footer.filter[bit >> 3] >> (bit & 7) & 1 for bit in _bits(key, size))


def built(entries: int = 10, keys: int = 5) -> SegmentFooter:
    """Entries 1, 2, … of ten records each, every one large enough for a row of the index."""
    builder = FooterBuilder()
    for n in range(entries):
        builder.add_entry(
            n + 1, INDEX_EVERY_BYTES, 10 * n, 1_000 + n, last_txid=100 * (n + 1), max_event_ms=50 * (n + 1)
        )
    builder.add_producer("p", 1, 0, 5)
    builder.add_producer("p", 2, 5, 2)
    builder.add_producer("q", 1, 3, 1)
    builder.add_keys([b"key%d" % n for n in range(keys)] + [None])
    return builder.build()


def test_a_footer_survives_its_bytes() -> None:
    footer = built()
    assert SegmentFooter.decode(footer.encode()) == footer
    assert footer.producers == (ProducerRange("p", 2, 0, 6, 7), ProducerRange("q", 1, 3, 3, 1))
    assert footer.all_producers and footer.keyed == 5
    assert footer.index[0] == IndexRow(1, 0, 1_000, None, None) and footer.index[2] == IndexRow(3, 20, 1_002, 200, 100)


@pytest.mark.parametrize(("seq_no", "entry"), [(0, 1), (9, 1), (10, 2), (55, 6), (1_000, 10)])
def test_the_index_finds_a_sequence_number(seq_no: int, entry: int) -> None:
    assert built().entry_for_seq_no(seq_no) == entry


@pytest.mark.parametrize(("txid", "entry"), [(0, 1), (100, 1), (101, 2), (200, 2), (201, 3), (9_999, 10)])
def test_the_index_never_goes_past_the_first_record_with_a_transaction_id(txid: int, entry: int) -> None:
    """SEG-68 the entry is at or before the first record that is not lower, also at borders"""
    assert built().entry_for_txid(txid) == entry


@pytest.mark.parametrize(("ms", "entry"), [(0, 1), (1_000, 1), (1_001, 1), (1_002, 2), (5_000, 10)])
def test_the_index_never_goes_past_the_first_record_of_a_time(ms: int, entry: int) -> None:
    assert built().entry_for_append_time(ms) == entry


def test_the_index_knows_event_times_in_any_order() -> None:
    assert [built().entry_for_event_time(ms) for ms in (0, 50, 51, 10_000)] == [1, 1, 2, 10]


def test_a_footer_of_nothing_finds_nothing() -> None:
    footer = FooterBuilder().build()
    assert SegmentFooter.decode(footer.encode()) == footer
    assert (footer.entry_for_seq_no(0), footer.entry_for_txid(0), footer.entry_for_append_time(0)) == (None,) * 3
    assert not may_have(footer, b"k")


def test_small_entries_share_a_row() -> None:
    builder = FooterBuilder()
    for n in range(100):
        builder.add_entry(n, INDEX_EVERY_BYTES // 8, n, n)
    assert [row.entry for row in builder.build().index] == list(range(0, 100, 8))


def test_a_key_that_is_there_is_never_denied() -> None:
    keys = [b"key%d" % n for n in range(2_000)]
    footer = built(keys=2_000)
    assert all(may_have(footer, key) for key in keys)
    assert sum(may_have(footer, b"other%d" % n) for n in range(2_000)) < 80


def test_too_many_keys_are_all_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segments.entries.footer.KEYS_MAX", 3)
    footer = built()
    assert footer.filter is None and may_have(footer, b"whatever")
    assert SegmentFooter.decode(footer.encode()) == footer
    assert bloom([]) == b""


def test_too_many_producers_are_said_to_be_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("segments.entries.footer.PRODUCERS_MAX", 1)
    assert not built().all_producers and len(built().producers) == 1


def test_a_footer_fits_into_an_entry() -> None:
    builder = FooterBuilder()
    for n in range(30_000):
        builder.add_entry(n, INDEX_EVERY_BYTES, n, n)
    footer = builder.build()
    assert len(footer.encode()) <= BODY_MAX and footer.index[0].entry == 0
    assert footer.entry_for_seq_no(29_999) is not None


@pytest.mark.parametrize("size", [0, 10, 30, 100, -1])
def test_a_damaged_footer_is_noticed(size: int) -> None:
    with pytest.raises(EntryCorruptError):
        SegmentFooter.decode(built().encode()[:size])


def test_a_footer_of_a_newer_program_is_refused() -> None:
    with pytest.raises(UnsupportedStreamFormatError, match="format 9"):
        SegmentFooter.decode(b"\x09" + built().encode()[1:])
