"""Edits as bytes: Hadoop's own come out as they went in, older layouts lack what they lacked, damage is refused."""

from __future__ import annotations

import struct
import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager import JournalError, TxId, UnsupportedLayoutError
from journal_manager.edits.ops import encode_op
from journal_manager.errors import OpFormatError
from journal_manager.hdfs import (
    NEWEST_LAYOUT,
    OLDEST_LAYOUT,
    HdfsOp,
    decode_hdfs_op,
    encode_edits_header,
    encode_hdfs_op,
    name_of,
)
from journal_manager.hdfs.hdfs_ops import AddBlockOp, AddOp, CreateSnapshotOp, DeleteOp, MkdirOp, SetOwnerOp
from journal_manager.hdfs.op_codec import elements, op_name
from journal_manager.hdfs.op_values import Block, Permissions
from tests.journal_manager.hdfs import FILES, decoded, vector

ADD = AddOp(
    16386, "/a", 3, 1, 2, 128, (), Permissions("u", "g", 0o644), client_name="c", overwrite=True, client_id=bytes(16)
)


@pytest.mark.parametrize("name", FILES)
def test_hadoops_files_are_written_as_they_were_read(name: str) -> None:
    data = vector(f"{name}.bin")
    written = encode_edits_header(NEWEST_LAYOUT)
    for txid, op in decoded(data):
        opcode, body = encode_hdfs_op(op)
        written += encode_op(opcode, TxId(txid), body)
    assert written == data.rstrip(b"\xff")


def test_every_op_is_in_hadoops_files() -> None:
    seen = {type(op) for _, op in decoded(vector("every_op.bin"))}
    assert seen == set(typing.get_args(HdfsOp))


def test_the_op_codes_are_hdfss() -> None:
    codes = {op_name(op): encode_hdfs_op(op)[0] for _, op in decoded(vector("every_op.bin"))}
    assert all(name_of(code) == name for name, code in codes.items())
    chosen = {"ADD": 0, "RENAME_OLD": 1, "MKDIR": 3, "CLOSE": 9, "START_LOG_SEGMENT": 24, "APPEND": 47, "TRUNCATE": 46}
    assert codes.items() >= chosen.items()
    assert len(set(codes.values())) == len(codes) == 49
    assert not {5, 6} & set(codes.values()), "retired, and never to be used again"
    assert name_of(99) == "UNKNOWN(99)"


def test_a_field_that_came_later_is_not_in_an_older_layout() -> None:
    """The erasure coding policy came with -64, and the time of a snapshot with -66."""
    new, old = (encode_hdfs_op(ADD._replace(erasure_coding_policy=1), layout)[1] for layout in (-64, -63))
    rpc = 2 + 16 + 4
    assert new[-rpc - 1] == 1
    assert old == new[: -rpc - 1] + new[-rpc:]
    assert decode_hdfs_op(0, old, -63) == ADD
    snapshot = CreateSnapshotOp("/d", "s", 1795263562493)
    new, old = (encode_hdfs_op(snapshot, layout)[1] for layout in (-66, -65))
    assert struct.pack(">q", 1795263562493) in new
    assert old == new.replace(struct.pack(">q", 1795263562493), b"")
    assert decode_hdfs_op(26, old, -65) == snapshot._replace(mtime=0)


@pytest.mark.parametrize("layout", range(NEWEST_LAYOUT, OLDEST_LAYOUT + 1))
def test_every_op_is_read_back_in_every_layout(layout: int) -> None:
    for _, op in decoded(vector("every_op.bin")):
        opcode, body = encode_hdfs_op(op, layout)
        again = decode_hdfs_op(opcode, body, layout)
        assert encode_hdfs_op(again, layout) == (opcode, body)
        assert type(again) is type(op)


@pytest.mark.parametrize("layout", [-62, -68, 1])
def test_another_layout_is_refused_and_said(layout: int) -> None:
    with pytest.raises(UnsupportedLayoutError, match=f"layout {layout}"):
        decode_hdfs_op(24, b"", layout)
    with pytest.raises(UnsupportedLayoutError, match=f"layout {layout}"):
        encode_hdfs_op(DeleteOp("/a", 1), layout)


@pytest.mark.parametrize("opcode", [5, 6, 53, 127])
def test_an_unknown_op_code_is_refused(opcode: int) -> None:
    with pytest.raises(OpFormatError, match=f"op code {opcode}"):
        decode_hdfs_op(opcode, b"")


def test_a_body_is_read_exactly() -> None:
    """Cut anywhere, or one byte longer, no body of Hadoop's is an edit; except where a shorter one is one, too."""
    for _, op in decoded(vector("every_op.bin")):
        opcode, body = encode_hdfs_op(op)
        with pytest.raises(OpFormatError, match="too many"):
            decode_hdfs_op(opcode, body + b"\0")
        for length in range(len(body)):
            with pytest.raises(OpFormatError, match=op_name(op)):
                decode_hdfs_op(opcode, body[:length])


@given(st.integers(0, 60), st.binary(max_size=200))
def test_any_body_is_an_edit_or_an_error_of_ours(opcode: int, body: bytes) -> None:
    try:
        op = decode_hdfs_op(opcode, body)
    except JournalError:
        return
    elements(op)
    assert decode_hdfs_op(*encode_hdfs_op(op)) == op


@given(st.data())
def test_a_damaged_body_is_an_edit_or_an_error_of_ours(data: st.DataObject) -> None:
    """Behind a right checksum there may be anything: it is never a crash, and never much memory."""
    ops = decoded(vector("every_op.bin"))
    opcode, body = encode_hdfs_op(data.draw(st.sampled_from(ops))[1])
    damaged = bytearray(body or b"\0")
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        op = decode_hdfs_op(opcode, bytes(damaged))
    except JournalError:
        return
    elements(op)
    assert decode_hdfs_op(*encode_hdfs_op(op)) == op


def test_what_does_not_fit_is_not_written() -> None:
    with pytest.raises(ValueError, match="65536 bytes are too many"):
        encode_hdfs_op(DeleteOp("/" + "a" * 65535, 1))
    with pytest.raises(struct.error):
        encode_hdfs_op(DeleteOp("/a", 2**63))
    with pytest.raises(OpFormatError, match="16 bytes or none"):
        encode_hdfs_op(DeleteOp("/a", 1, b"short"))


def test_elements_are_in_the_order_of_hdfs() -> None:
    block = Block(5, 6, 7)
    shown = elements(AddBlockOp("/f", (block, block)))
    assert [tag for tag, _ in shown] == ["PATH", "BLOCK", "BLOCK", "RPC_CLIENTID", "RPC_CALLID"]
    assert elements(SetOwnerOp("/f", "", "g")) == [("SRC", "/f"), ("GROUPNAME", "g")]
    mkdir = MkdirOp(1, "/d", 2, 3, Permissions("u", "g", 0o755))
    assert [tag for tag, _ in elements(mkdir)] == ["LENGTH", "INODEID", "PATH", "TIMESTAMP", "PERMISSION_STATUS"]
