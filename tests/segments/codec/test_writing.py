"""Entries of values, and the results of their appends, are made by both codecs alike."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.codec import pure
from segments.entries.columns import RecordColumns
from segments.entries.entry import encode_entry
from segments.entries.stored_entry import decode_entry
from segments.position import Position
from segments.record import AppendResult
from tests.segments.codec import CODECS, native, needs_native

HEADER = bytes(range(56))
BATCH = bytes(range(24))


@given(st.lists(st.binary(max_size=40), min_size=2, max_size=12), st.integers(0, 2**62), st.integers(0, 2**40))
def test_a_gathered_entry_has_the_bytes_of_one_whose_values_were_joined(
    values: list[bytes], seq_no: int, append_ms: int
) -> None:
    joined = encode_entry(RecordColumns.of_values(values), first_seq_no=seq_no, append_ms=append_ms, snapshot_entry=3)
    gathered = RecordColumns.of_gathered(values)
    assert encode_entry(gathered, first_seq_no=seq_no, append_ms=append_ms, snapshot_entry=3) == joined
    assert [each.value for each in decode_entry(joined, 1, 2, 3).records()] == values
    assert gathered.size == RecordColumns.of_values(values).size


@needs_native
@given(st.lists(st.binary(max_size=300), max_size=9))
def test_both_codecs_make_the_same_entries(values: list[bytes]) -> None:
    assert native is not None
    assert native.entry_of_values(HEADER, BATCH, values) == pure.entry_of_values(HEADER, BATCH, values)


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_no_entry_of_values_is_refused(codec: Any) -> None:
    for header, batch in ((HEADER[:-1], BATCH), (HEADER + b"\0", BATCH), (HEADER, BATCH[:-1]), (b"", b"")):
        with pytest.raises(ValueError, match=f"a header of {len(header)} bytes and a batch of {len(batch)}"):
            codec.entry_of_values(header, batch, [b"a"])
    for other in ("a", 5, None, bytearray(b"a")):
        with pytest.raises(TypeError, match="bytes"):
            codec.entry_of_values(HEADER, BATCH, [b"a", other])


@pytest.mark.parametrize("codec", CODECS)
def test_results_say_where_each_record_stands(codec: Any) -> None:
    found = codec.append_results(2, 3, 2**40, 2**62, None, Position, AppendResult)
    where = [Position(3, 2**40, 0), Position(3, 2**40, 1)]
    assert found == [AppendResult(where[0], where[0], 2**62, None), AppendResult(where[1], where[1], 2**62 + 1, None)]
    assert {type(each) for each in found} == {AppendResult} and type(found[1].last) is Position
    assert [each.txid for each in codec.append_results(3, 1, 2, 0, [7, None, 2**60], Position, AppendResult)] == [
        7,
        None,
        2**60,
    ]
    assert codec.append_results(0, 1, 2, 0, None, Position, AppendResult) == []
    for txids in ([], [1], [1, 2, 3]):
        with pytest.raises(ValueError, match=f"{len(txids)} transaction ids for 2 records"):
            codec.append_results(2, 1, 2, 0, txids, Position, AppendResult)
    with pytest.raises(TypeError):
        codec.append_results(1, 1, 2, 0, None, list, AppendResult)
