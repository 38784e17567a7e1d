from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_wal.webhdfs.files.inodes import BlobRef, FileNode
from spark_wal.webhdfs.files.namespace import Namespace
from spark_wal.webhdfs.files.numbered import NumberLimit
from spark_wal.webhdfs.files.records import (
    AppendToFile,
    DeletePath,
    MakeDirectories,
    MoveToBlob,
    NewFile,
    PutFile,
    Record,
    RecordFormatError,
    RemoveNumbered,
    Rename,
    RenameMode,
    SetAttributes,
    SetNamesQuota,
    SetQuota,
    decode_record,
    encode_record,
)

PLAN = "/c/.0.0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f.tmp"

numbers = st.integers(0, 2**40)
paths = st.text(max_size=20).map(lambda text: "/" + text)
pieces = st.lists(st.binary(max_size=20) | st.builds(BlobRef, st.text(max_size=8), numbers, numbers), max_size=4).map(
    tuple
)
files = st.builds(NewFile, pieces, numbers, st.text(max_size=8), numbers, numbers, numbers)
maybe = st.none() | numbers
records: st.SearchStrategy[Record] = st.one_of(
    st.builds(MakeDirectories, paths, numbers, st.text(max_size=8), numbers),
    st.builds(PutFile, paths, files, st.booleans(), st.booleans(), st.none() | st.text(max_size=5), maybe),
    st.builds(AppendToFile, paths, pieces, numbers),
    st.builds(Rename, paths, paths, st.sampled_from(RenameMode), numbers, st.none() | files),
    st.builds(DeletePath, paths, st.booleans(), numbers),
    st.builds(
        SetAttributes, paths, maybe, st.none() | st.text(max_size=5), st.none() | st.text(max_size=5), maybe, maybe
    ),
    st.builds(SetQuota, paths, maybe, numbers),
    st.builds(SetNamesQuota, paths, maybe, numbers),
    st.builds(RemoveNumbered, paths, st.lists(st.builds(NumberLimit, paths, numbers), max_size=3).map(tuple), numbers),
    st.builds(MoveToBlob, paths, numbers, st.builds(BlobRef, st.text(max_size=8), numbers, numbers)),
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
    opcode, body = encode_record(DeletePath("/a", True, 1))
    with pytest.raises(RecordFormatError):
        decode_record(99, body)
    with pytest.raises(RecordFormatError):
        decode_record(opcode, body + b"x")
    with pytest.raises(RecordFormatError, match="unknown fields"):
        decode_record(*encode_with_extra())


def encode_with_extra() -> tuple[int, bytes]:
    from spark_wal.webhdfs.files.records import pack_json

    return 5, pack_json({"p": "/a", "r": True, "at": 1, "later": 2}, ())


EARLIER = (
    (1, b'\x00\x00\x00${"p":"/c","mode":493,"o":"a","at":1}'),
    (2, b'\x00\x00\x00L{"p":"/c/1.sst","f":[[["17",0,9]],420,"a",1,1048576,2],"ow":false,"cp":true}'),
    (3, b'\x00\x00\x00\x1f{"p":"/c/1.sst","c":[4],"at":3}more'),
    (
        4,
        b'\x00\x00\x00q{"s":"/c/.0.0a1b2c3d-0a1b-2c3d-4e5f-0a1b2c3d4e5f.tmp","t":"/c/0","m":"none","at":8,'
        b'"f":[[4],420,"a",1,1048576,7]}plan',
    ),
    (4, b'\x00\x00\x001{"s":"/c/1.sst","t":"/c/2.sst","m":"bare","at":9}'),
    (6, b'\x00\x00\x00\x1d{"p":"/c/0","permission":384}'),
    (7, b'\x00\x00\x00\x1a{"p":"/c","q":100,"at":10}'),
)
"""A journal as versions wrote it that kept temporary files in memory: never edited."""


@pytest.mark.rule("S9")
def test_s9_a_journal_of_an_earlier_version_gives_its_tree() -> None:
    tree = Namespace()
    for number, (opcode, body) in enumerate(EARLIER, 1):
        assert tree.apply(decode_record(opcode, body), number).changed
    plan, large = tree.find("/c/0").node, tree.find("/c/2.sst").node
    assert isinstance(plan, FileNode)
    assert isinstance(large, FileNode)
    assert (plan.pieces, plan.permission, plan.renamed_from) == ((b"plan",), 0o600, PLAN)
    assert large.pieces == (BlobRef("17", 0, 9), b"more")
    assert (tree.temporary_files, tree.root.bytes_below) == (0, 17)
    again = tree.apply(Rename(PLAN, "/c/0", RenameMode.NONE, 11), 9)
    assert (again.value, again.changed) == (True, False), "asked for again at a newer gateway"


def test_what_is_written_now_has_the_form_that_earlier_versions_read() -> None:
    for opcode, body in EARLIER:
        assert encode_record(decode_record(opcode, body)) == (opcode, body)


@pytest.mark.rule("S9")
def test_a_file_with_a_group_of_its_own_is_a_record_that_earlier_versions_refuse() -> None:
    file = NewFile((b"x",), 0o644, "a", 1, 2, 3)
    body = b'\x00\x00\x00\x53{"p":"/a","f":[[1],420,"a",1,2,3],"ow":true,"cp":true,"group":"us","accessed_ms":9}x'
    record = PutFile("/a", file, overwrite=True, group="us", accessed_ms=9)
    assert encode_record(record) == (9, body)
    assert decode_record(9, body) == record
    assert encode_record(PutFile("/a", file, overwrite=True))[0] == 2, "all versions read this one"
    with pytest.raises(RecordFormatError, match="unknown fields: accessed_ms, group"):
        decode_record(2, body)


@given(st.integers(0, 10), st.binary(max_size=64))
def test_hostile_bytes_are_refused_or_decoded(opcode: int, body: bytes) -> None:
    try:
        decode_record(opcode, body)
    except RecordFormatError:
        pass


@pytest.mark.rule("S9")
def test_a_move_to_a_blob_names_one() -> None:
    opcode, body = encode_record(MoveToBlob("/a", 0, BlobRef("7", 0, 3)))
    with pytest.raises(RecordFormatError):
        decode_record(opcode, body.replace(b'["7",0,3]', b"3        ") + b"123")
