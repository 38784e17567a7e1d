"""Compiled functions read what reading field after field reads, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from journal_manager.errors import OpFormatError
from journal_manager.hdfs import NEWEST_LAYOUT, OLDEST_LAYOUT, decode_hdfs_op, encode_hdfs_op
from journal_manager.hdfs.body_decoders import FAILURES, body_decoder
from journal_manager.hdfs.field_kinds import BLOCKS, BOOL, CLIENT_ID, I16, I64, PERMISSIONS, STRING
from journal_manager.hdfs.hdfs_ops import AddOp, Block, HdfsAclEntry, Permissions, XAttr
from journal_manager.hdfs.op_codec import _decode_by_fields
from tests.journal_manager.hdfs import decoded, vector

BUSY = AddOp(
    16386,
    "/straße/\U0001f600",
    3,
    1,
    2,
    128,
    (Block(1, 2, 3), Block(4, 5, 6)),
    Permissions("u", "g", 0o644),
    acl=(HdfsAclEntry(0, 0, 7, "ü"), HdfsAclEntry(1, 3, 4)),
    xattrs=(XAttr(0, "n", b"v"),),
    client_name="c\0d",
    overwrite=True,
    client_id=bytes(range(16)),
    call_id=-7,
)
"""Every list of it has elements, and every string something that is not ASCII."""


def _outcome(read: Callable[[int, bytes, int], Any], opcode: int, body: bytes, layout: int) -> Any:
    try:
        return read(opcode, body, layout)
    except OpFormatError as error:
        return str(error)


@pytest.mark.parametrize("layout", range(NEWEST_LAYOUT, OLDEST_LAYOUT + 1))
def test_every_op_reads_the_same_both_ways(layout: int) -> None:
    for _, op in [*decoded(vector("every_op.bin")), (0, BUSY)]:
        opcode, body = encode_hdfs_op(op, layout)
        fast, slow = decode_hdfs_op(opcode, body, layout), _decode_by_fields(opcode, body, layout)
        assert (fast, type(fast), list(map(type, fast))) == (slow, type(slow), list(map(type, slow)))
    assert decode_hdfs_op(*encode_hdfs_op(BUSY)) == BUSY


def test_damage_is_told_as_reading_field_after_field_tells_it() -> None:
    for _, op in [*decoded(vector("every_op.bin")), (0, BUSY)]:
        opcode, body = encode_hdfs_op(op)
        damaged = [body[:cut] for cut in range(len(body))] + [body + b"\0"]
        damaged += [
            body[:at] + bytes([body[at] ^ bit]) + body[at + 1 :] for at in range(len(body)) for bit in (1, 0x80)
        ]
        for each in damaged:
            assert _outcome(decode_hdfs_op, opcode, each, NEWEST_LAYOUT) == _outcome(
                _decode_by_fields, opcode, each, NEWEST_LAYOUT
            )


def test_a_field_that_a_layout_lacks_is_0() -> None:
    decode = body_decoder(tuple, (I16, None, I64))
    assert decode(b"\0\1" + bytes(7) + b"\2") == (1, 0, 2)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (BOOL, b"\2"),
        (BOOL, b""),
        (STRING, b"\0\3ab"),
        (CLIENT_ID, b"\0\3abc"),
        (CLIENT_ID, b"\0\x10abc"),
        (BLOCKS, b"\xff\xff\xff\xff"),
        (PERMISSIONS, b"\1u"),
        (I16, b"\0\1\0"),
    ],
)
def test_a_body_that_is_not_whole_and_exact_is_refused(kind: Any, body: bytes) -> None:
    with pytest.raises(FAILURES):
        body_decoder(tuple, (kind,))(body)
