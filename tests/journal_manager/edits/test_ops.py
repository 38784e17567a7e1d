"""Edits as bytes: the published vectors, and damage of every kind."""

from __future__ import annotations

import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager import JournalError, Op, OpTooLargeError, TxId
from journal_manager.edits import MAX_OP_BYTES, OVERHEAD, Batch, RequestId, encode_batch
from journal_manager.edits.ops import decode_ops, encode_op, join
from journal_manager.errors import OpChecksumError, OpFormatError

VECTORS = [
    (24, 1, b"", "18 0000000c 0000000000000001 7043f0b7"),
    (23, 2, b"", "17 0000000c 0000000000000002 ce3a7438"),
    (24, 101, b"", "18 0000000c 0000000000000065 3a9c55f6"),
    (3, 7, b"/a", "03 0000000e 0000000000000007 2f61 b93e3dbe"),
    (0, 2**40 + 5, bytes(3), "00 0000000f 0000010000000005 000000 be8a3055"),
]

BODIES = st.lists(st.tuples(st.integers(0, 127), st.binary(max_size=50)), min_size=1, max_size=5)


@pytest.mark.parametrize(("opcode", "txid", "body", "frame"), VECTORS)
def test_the_published_vectors(opcode: int, txid: int, body: bytes, frame: str) -> None:
    assert encode_op(opcode, TxId(txid), body) == bytes.fromhex(frame)
    assert decode_ops(bytes.fromhex(frame)) == [Op(opcode, TxId(txid), body)]


@given(st.integers(1, 2**62), BODIES)
def test_a_batch_is_read_back(first: int, ops: list[tuple[int, bytes]]) -> None:
    batch = encode_batch(TxId(first), ops)
    assert Batch.of(batch.frames) == batch
    assert batch.ops() == [Op(opcode, TxId(first + i), body) for i, (opcode, body) in enumerate(ops)]
    assert batch.last == first + len(ops) - 1
    assert len(batch.frames) == sum(OVERHEAD + len(body) for _, body in ops)


@given(BODIES, st.data())
def test_a_flipped_bit_is_never_read_as_an_edit(ops: list[tuple[int, bytes]], data: st.DataObject) -> None:
    frames = bytearray(encode_batch(TxId(1), ops).frames)
    bit = data.draw(st.integers(0, 8 * len(frames) - 1))
    frames[bit // 8] ^= 1 << bit % 8
    with pytest.raises(OpFormatError):
        decode_ops(bytes(frames))


@given(BODIES, st.data())
def test_a_batch_cut_short_is_refused_or_ends_at_an_edit(ops: list[tuple[int, bytes]], data: st.DataObject) -> None:
    batch = encode_batch(TxId(1), ops)
    cut = batch.frames[: data.draw(st.integers(0, len(batch.frames) - 1))]
    try:
        found = decode_ops(cut)
    except OpFormatError:
        return
    assert found == batch.ops()[: len(found)]


@given(st.binary(max_size=512))
def test_any_bytes_are_edits_or_an_error_of_ours(data: bytes) -> None:
    for read in (decode_ops, Batch.of):
        try:
            read(data)
        except JournalError:
            pass


def test_lengths_are_refused_before_anything_is_made_of_them() -> None:
    for length in (0, 11, MAX_OP_BYTES - 4, 2**32 - 1):
        frame = bytes([1]) + length.to_bytes(4, "big") + bytes(40)
        with pytest.raises(OpFormatError, match="says that it has"):
            decode_ops(frame)
    with pytest.raises(OpTooLargeError):
        encode_op(1, TxId(1), bytes(MAX_OP_BYTES))
    with pytest.raises(ValueError, match="got opcode 128"):
        encode_op(128, TxId(1), b"")
    with pytest.raises(ValueError, match="at least 1; got opcode 1, txid 0"):
        encode_op(1, TxId(0), b"")


@given(BODIES, st.binary(min_size=1, max_size=255), st.integers(0, 2**64 - 1))
def test_the_last_edit_of_a_batch_carries_the_request(ops: list[tuple[int, bytes]], client: bytes, call: int) -> None:
    request = RequestId(client, call)
    found = encode_batch(TxId(1), ops, request).ops()
    assert [(op.opcode, op.body) for op in found] == ops
    assert [op.request for op in found] == [None] * (len(ops) - 1) + [request]


def test_an_edit_that_should_carry_a_request_and_does_not_is_no_edit() -> None:
    frame = bytearray(encode_op(1, TxId(9), b"\x05abc"))
    frame[0] |= 128
    frame[-4:] = zlib.crc32(frame[:-4]).to_bytes(4, "big")
    with pytest.raises(OpFormatError, match="edit 9 says that it carries a request id"):
        decode_ops(bytes(frame))


def test_what_is_wrong_is_told() -> None:
    frame = bytearray(encode_op(1, TxId(9), b"body"))
    frame[-1] ^= 1
    with pytest.raises(OpChecksumError, match="it may be edit 9"):
        decode_ops(bytes(frame))
    with pytest.raises(OpFormatError, match="edit 5 follows edit 3") as caught:
        decode_ops(encode_op(1, TxId(3), b"") + encode_op(1, TxId(5), b""))
    assert caught.value.first_missing == 4
    with pytest.raises(OpFormatError, match="at least one edit"):
        Batch.of(b"")


@given(BODIES, st.data())
def test_a_batch_can_begin_at_each_of_its_edits(ops: list[tuple[int, bytes]], data: st.DataObject) -> None:
    batch = encode_batch(TxId(7), ops, RequestId(b"c", 1))
    first = data.draw(st.integers(7, batch.last))
    rest = batch.beginning_at(first)
    assert rest.ops() == batch.ops()[first - 7 :] and rest == Batch.of(rest.frames)
    assert (rest is batch) == (first == 7)


def test_batches_that_follow_each_other_are_joined() -> None:
    one, two = encode_batch(TxId(1), [(1, b"a")]), encode_batch(TxId(2), [(1, b"b"), (1, b"c")])
    assert join([one, two]) == Batch.of(one.frames + two.frames)
    assert join([two]) is two


@given(BODIES, st.integers(0, 400))
def test_a_batch_is_divided_into_the_longest_parts_that_may_be(ops: list[tuple[int, bytes]], most: int) -> None:
    batch = encode_batch(TxId(7), ops, RequestId(b"client", 1))
    if any(len(encode_op(op.opcode, op.txid, op.body, op.request)) > most for op in batch.ops()):
        with pytest.raises(OpTooLargeError, match=f"at most {most}"):
            batch.parts(most)
        return
    parts = batch.parts(most)
    assert [op for part in parts for op in part.ops()] == batch.ops()
    assert join(parts) == batch and all(part.count and len(part.frames) <= most for part in parts)
    for part, following in pairwise(parts):
        first = following.ops()[0]
        assert len(part.frames) + len(encode_op(first.opcode, first.txid, first.body, first.request)) > most
