"""A segment's bytes: whole, torn at every byte, damaged at any bit."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager import JournalCorruptionError, TxId
from journal_manager.backends import file_format as form
from journal_manager.errors import JournalError, UnsupportedLayoutError
from tests.contracts.journal_backend import batch

HEADER = form.SegmentHeader(layout_version=7, epoch=3, first=TxId(1))
BATCHES = (batch(1, 2), batch(3), batch(4, 3))
RECORDS = b"".join(form.encode_record(each) for each in BATCHES)
ENDS = tuple(len(b"".join(form.encode_record(each) for each in BATCHES[: n + 1])) for n in range(3))


def test_names() -> None:
    assert form.in_progress_name(TxId(7)) == "edits_inprogress_0000000000000000007"
    assert form.final_name(TxId(7), TxId(8)) == "edits_0000000000000000007-0000000000000000008"
    assert form.parse_name(form.in_progress_name(TxId(2**62))) == (2**62, None)
    assert form.parse_name(form.final_name(TxId(1), TxId(2**62))) == (1, 2**62)
    for name in (
        "edits_1-2",
        "journal.json",
        form.final_name(TxId(1), TxId(2)) + ".tmp",
        "snapshot_0000000000000000007",
    ):
        assert form.parse_name(name) is None


def test_layouts_may_be_negative_as_hdfss_are() -> None:
    header = form.SegmentHeader(layout_version=-67, epoch=3, first=TxId(1))
    assert form.decode_header(form.encode_header(header), "f") == header
    assert form.encode_header(HEADER)[8:12] == b"\0\0\0\7"


def test_a_header_is_there_or_the_file_was_never_used() -> None:
    data = form.encode_header(HEADER)
    assert len(data) == form.HEADER_BYTES and form.decode_header(data + b"more", "f") == HEADER
    for size in range(form.HEADER_BYTES):
        assert form.decode_header(data[:size], "f") is None
    assert form.decode_header(bytes(form.HEADER_BYTES), "f") is None
    with pytest.raises(JournalCorruptionError, match="f is damaged"):
        form.decode_header(bytes(form.HEADER_BYTES) + b"x", "f")


def test_a_newer_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(form, "FORMAT", 2)
    data = form.encode_header(HEADER)
    monkeypatch.undo()
    with pytest.raises(UnsupportedLayoutError, match="format 2"):
        form.decode_header(data, "f")


def test_a_file_cut_anywhere_holds_its_whole_records() -> None:
    for size in range(len(RECORDS) + 1):
        found = form.scan(RECORDS[:size])
        whole = sum(end <= size for end in ENDS)
        assert (found.batches, found.ends) == (BATCHES[:whole], ENDS[:whole])
        assert form.record_after(RECORDS[:size], found.used) is None, "torn, not rotten"
    assert form.scan(b"front" + RECORDS, 5).used == 5 + len(RECORDS)


@given(st.integers(0, 8 * ENDS[1] - 1))
def test_damage_before_a_whole_record_is_seen_as_rot(bit: int) -> None:
    data = bytearray(RECORDS)
    data[bit // 8] ^= 1 << bit % 8
    found = form.scan(bytes(data))
    assert found.batches == BATCHES[: len(found.batches)] and found.used <= bit // 8
    later = form.record_after(bytes(data), found.used)
    assert later is not None and later in BATCHES


@given(st.binary(max_size=300), st.integers(0, 20))
def test_any_bytes_are_records_or_nothing(data: bytes, start: int) -> None:
    try:
        form.decode_header(data, "f")
    except JournalError:
        pass
    form.scan(data, start)
    form.record_after(data, start)
    assert form.record_size(data, start) >= form.RECORD_OVERHEAD


def test_a_record_says_how_long_it_is() -> None:
    assert form.record_size(RECORDS, 0) == ENDS[0]
    assert form.record_size(RECORDS[:5], 0) == form.RECORD_OVERHEAD
    assert form.record_size(b"JR\0\0" + b"\xff" * 8, 0) == form.RECORD_OVERHEAD
