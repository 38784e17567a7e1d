from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_wal.webhdfs.inodes import BlobRef
from spark_wal.webhdfs.records import (
    AppendToFile,
    Delete,
    MakeDirectories,
    NewFile,
    PutFile,
    Record,
    RecordFormatError,
    Rename,
    RenameMode,
    SetAttributes,
    SetQuota,
    decode_record,
    encode_record,
)

numbers = st.integers(0, 2**40)
paths = st.text(max_size=20).map(lambda text: "/" + text)
pieces = st.lists(st.binary(max_size=20) | st.builds(BlobRef, st.text(max_size=8), numbers, numbers), max_size=4).map(
    tuple
)
files = st.builds(NewFile, pieces, numbers, st.text(max_size=8), numbers, numbers, numbers)
maybe = st.none() | numbers
records: st.SearchStrategy[Record] = st.one_of(
    st.builds(MakeDirectories, paths, numbers, st.text(max_size=8), numbers),
    st.builds(PutFile, paths, files, st.booleans(), st.booleans()),
    st.builds(AppendToFile, paths, pieces, numbers),
    st.builds(Rename, paths, paths, st.sampled_from(RenameMode), numbers, st.none() | files),
    st.builds(Delete, paths, st.booleans(), numbers),
    st.builds(
        SetAttributes, paths, maybe, st.none() | st.text(max_size=5), st.none() | st.text(max_size=5), maybe, maybe
    ),
    st.builds(SetQuota, paths, maybe, numbers),
)


@given(records)
def test_a_record_survives_its_bytes(record: Record) -> None:
    assert decode_record(*encode_record(record)) == record


@pytest.mark.rule("S9")
@given(records, st.data())
def test_a_record_cut_short_is_an_error(record: Record, data: st.DataObject) -> None:
    opcode, body = encode_record(record)
    with pytest.raises(RecordFormatError):
        decode_record(opcode, body[: data.draw(st.integers(0, len(body) - 1))])


@pytest.mark.rule("S9")
def test_what_is_not_known_is_never_skipped() -> None:
    opcode, body = encode_record(Delete("/a", True, 1))
    with pytest.raises(RecordFormatError):
        decode_record(99, body)
    with pytest.raises(RecordFormatError):
        decode_record(opcode, body + b"x")
    with pytest.raises(RecordFormatError, match="unknown fields"):
        decode_record(*encode_with_extra())


def encode_with_extra() -> tuple[int, bytes]:
    from spark_wal.webhdfs.records import pack_json

    return 5, pack_json({"p": "/a", "r": True, "at": 1, "later": 2}, ())


@given(st.integers(0, 10), st.binary(max_size=64))
def test_hostile_bytes_are_refused_or_decoded(opcode: int, body: bytes) -> None:
    try:
        decode_record(opcode, body)
    except RecordFormatError:
        pass
