"""Bodies read whole are what reading field after field reads, and nothing else, in both codecs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager.codec import MAX_FIELDS, Field, Shape
from journal_manager.errors import OpFormatError
from journal_manager.hdfs import NEWEST_LAYOUT, OLDEST_LAYOUT, decode_hdfs_op, encode_hdfs_op
from journal_manager.hdfs.attribute_kinds import ACL, XATTRS
from journal_manager.hdfs.field_kinds import BOOL, CLIENT_ID, I8, I16, I32, I64, STRING, FieldKind
from journal_manager.hdfs.hdfs_ops import AddOp
from journal_manager.hdfs.inode_kinds import BLOCKS, COMPACT_BLOCKS, PERMISSIONS
from journal_manager.hdfs.op_codec import _BY_CODE, FAILURES, _decode_by_fields
from journal_manager.hdfs.op_values import Block, HdfsAclEntry, Permissions, XAttr
from tests.journal_manager.codec import CODECS
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


def fields_of(opcode: int, layout: int) -> list[Field]:
    return [_field(field.kind) if layout <= field.since else Field(Shape.ABSENT) for field in _BY_CODE[opcode].fields]


def _field(kind: FieldKind) -> Field:
    return Field(kind.shape, kind.read, kind.inside)


def kind_of(opcode: int) -> type:
    return _BY_CODE[opcode].kind


def _types(value: Any) -> Any:
    return [type(value), *map(_types, value)] if isinstance(value, tuple) else type(value)


def outcome(read: Callable[..., Any], *arguments: Any) -> Any:
    """The value with the types of all that is in it; None: refused."""
    try:
        value = read(*arguments)
    except FAILURES:
        return None
    return value, _types(value)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("layout", range(NEWEST_LAYOUT, OLDEST_LAYOUT + 1))
def test_every_op_reads_the_same_both_ways(codec: Any, layout: int) -> None:
    for _, op in [*decoded(vector("every_op.bin")), (0, BUSY)]:
        opcode, body = encode_hdfs_op(op, layout)
        decode = codec.body_decoder(kind_of(opcode), fields_of(opcode, layout))
        for _ in range(2):  # the second time its permissions are known
            assert outcome(decode, body) == outcome(_decode_by_fields, opcode, body, layout)
            assert type(decode(body)) is type(op)
    assert decode_hdfs_op(*encode_hdfs_op(BUSY)) == BUSY


@pytest.mark.parametrize("codec", CODECS)
def test_damage_is_refused_where_reading_field_after_field_refuses_it(codec: Any) -> None:
    for _, op in [*decoded(vector("every_op.bin")), (0, BUSY)]:
        opcode, body = encode_hdfs_op(op)
        decode = codec.body_decoder(kind_of(opcode), fields_of(opcode, NEWEST_LAYOUT))
        damaged = [body[:cut] for cut in range(len(body))] + [body + b"\0"]
        damaged += [
            body[:at] + bytes([body[at] ^ bit]) + body[at + 1 :] for at in range(len(body)) for bit in (1, 0x80)
        ]
        damaged += [body[:at] + b"\x80\0\0\0" + body[at + 4 :] for at in range(len(body) - 3)]
        for each in damaged:
            assert outcome(decode, each) == outcome(_decode_by_fields, opcode, each, NEWEST_LAYOUT)


def test_damage_is_told_with_a_sentence() -> None:
    opcode, body = encode_hdfs_op(BUSY)
    for each in [body[:cut] for cut in range(len(body))] + [body + b"\0"]:
        with pytest.raises(OpFormatError, match=r"the body of this ADD (is damaged: .+|has 1 bytes too many)"):
            decode_hdfs_op(opcode, each)


numbers = {I8: 8, I16: 16, I32: 32, I64: 64}
texts = st.text(max_size=5) | st.text("ab/", max_size=5)
blocks = st.lists(
    st.builds(Block, st.integers(-(2**63), 2**63 - 1), st.integers(-(2**40), 2**63 - 1), st.integers(0, 2**50)),
    max_size=3,
).map(tuple)
small_blocks = st.lists(st.builds(Block, st.integers(0, 9), st.integers(0, 300), st.integers(0, 300)), max_size=70).map(
    tuple
)
fields = st.one_of(
    *(st.tuples(st.just(kind), st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)) for kind, bits in numbers.items()),
    st.tuples(st.just(BOOL), st.booleans()),
    st.tuples(st.just(STRING), texts),
    st.tuples(st.just(CLIENT_ID), st.sampled_from([b"", bytes(range(16))])),
    st.tuples(st.just(PERMISSIONS), st.builds(Permissions, texts, texts, st.integers(0, 0o1777))),
    st.tuples(st.just(BLOCKS), small_blocks),
    st.tuples(st.just(COMPACT_BLOCKS), blocks | small_blocks),
    st.tuples(st.just(ACL), st.sampled_from([(), BUSY.acl])),
    st.tuples(st.just(XATTRS), st.sampled_from([(), BUSY.xattrs])),
)


@pytest.mark.parametrize("codec", CODECS)
@given(row=st.lists(fields, max_size=6), spoiled=st.none() | st.tuples(st.integers(0, 60), st.binary(max_size=4)))
def test_any_body_reads_as_its_fields_one_by_one(
    codec: Any, row: list[tuple[FieldKind, Any]], spoiled: tuple[int, bytes] | None
) -> None:
    try:
        body = b"".join(kind.write(value) for kind, value in row)
    except ValueError:  # a difference of blocks that has no bytes
        return
    if spoiled is not None:
        at, put = spoiled
        body = body[:at] + put + body[at + 2 :]

    def one_by_one() -> Any:
        values, at = [], 0
        for kind, _ in row:
            value, at = kind.read(body, at)
            values.append(value)
        if at != len(body):
            raise ValueError
        return tuple(values)

    decode = codec.body_decoder(tuple, [_field(kind) for kind, _ in row])
    assert outcome(decode, body) == outcome(one_by_one)


@pytest.mark.parametrize("codec", CODECS)
def test_a_field_that_a_layout_lacks_is_0(codec: Any) -> None:
    decode = codec.body_decoder(tuple, [_field(I16), Field(Shape.ABSENT), _field(I64)])
    assert decode(b"\0\1" + bytes(7) + b"\2") == (1, 0, 2)


@pytest.mark.parametrize("codec", CODECS)
def test_a_body_has_a_bounded_number_of_fields(codec: Any) -> None:
    assert codec.body_decoder(tuple, [_field(I8)] * MAX_FIELDS)(bytes(MAX_FIELDS)) == (0,) * MAX_FIELDS
    with pytest.raises(ValueError, match="at most 64 fields, not 65"):
        codec.body_decoder(tuple, [_field(I8)] * (MAX_FIELDS + 1))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (BOOL, b"\2"),
        (BOOL, b""),
        (STRING, b"\0\3ab"),
        (STRING, b"\xff\xffab"),
        (CLIENT_ID, b"\0\3abc"),
        (CLIENT_ID, b"\0\x10abc"),
        (BLOCKS, b"\xff\xff\xff\xff"),
        (BLOCKS, b"\x80\0\0\0" + bytes(24)),
        (BLOCKS, b"\0\0\0\2" + bytes(24)),
        (COMPACT_BLOCKS, b"\x8c\x7f\xff\xff\xff"),
        (COMPACT_BLOCKS, b"\xff"),
        (COMPACT_BLOCKS, b"\2" + bytes(10)),
        (PERMISSIONS, b"\1u"),
        (PERMISSIONS, b"\x7fu"),
        (I16, b"\0\1\0"),
    ],
)
def test_a_body_that_is_not_whole_and_exact_is_refused(codec: Any, kind: FieldKind, body: bytes) -> None:
    with pytest.raises(FAILURES):
        codec.body_decoder(tuple, [_field(kind)])(body)
