"""Frames of edits are cut as long as they are as they must be; both codecs stop at the same byte."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager.codec import pure
from journal_manager.edits import MAX_OP_BYTES, Op, RequestId, TxId
from journal_manager.edits.ops import decode_ops, encode_op
from journal_manager.errors import JournalError
from journal_manager.txid import MAX_TXID
from tests.journal_manager.codec import CODECS, native, needs_native

MOST = MAX_OP_BYTES - 5


def frames(first: int = 1, bodies: tuple[bytes, ...] = (b"a", b"", b"c" * 300)) -> bytes:
    return b"".join(encode_op(n % 100, TxId(first + n), body) for n, body in enumerate(bodies))


@pytest.mark.parametrize("codec", CODECS)
def test_whole_frames_are_cut(codec: Any) -> None:
    data = b"__" + frames(7) + frames(10) + b"rest"
    ops, ends = codec.read_frames(Op, data, 2, len(data), 7, MOST, 99)
    assert ops == [
        Op(0, 7, b"a"),
        Op(1, 8, b""),
        Op(2, 9, b"c" * 300),
        Op(0, 10, b"a"),
        Op(1, 11, b""),
        Op(2, 12, b"c" * 300),
    ]
    assert ops == decode_ops(data[2:-4])
    assert ends[-1] == len(data) - 4
    assert {type(op) for op in ops} == {Op}
    few, ends = codec.read_frames(Op, data, 2, len(data), 7, MOST, 2)
    assert few == ops[:2] and ends == [2 + 17 + 1, 2 + 17 + 1 + 17]
    assert codec.read_frames(Op, data, 2, len(data), 7, MOST, 0) == ([], [])


@pytest.mark.parametrize("codec", CODECS)
def test_a_run_ends_before_what_is_not_as_it_must_be(codec: Any) -> None:
    good, other = frames(1, (b"a",)), encode_op(5, TxId(2), b"bc")
    assert len(codec.read_frames(Op, good + other, 0, len(good + other), 1, MOST, 9)[0]) == 2
    spoiled = {
        "a checksum": other[:-1] + bytes([other[-1] ^ 1]),
        "an id that does not follow": encode_op(5, TxId(3), b"bc"),
        "cut short": other[:-1],
        "a length of 0": other[:1] + bytes(4) + other[5:],
        "a length of 2**31": other[:1] + b"\x80\0\0\0" + other[5:],
        "the greatest length": other[:1] + b"\xff\xff\xff\xff" + other[5:],
        "a length of one too many": other[:1] + (15).to_bytes(4, "big") + other[5:],
        "the beginning of a head": other[:16],
        "a request id": encode_op(5, TxId(2), b"bc", RequestId(b"c" * 16, 3)),
    }
    for what, bad in spoiled.items():
        ops, ends = codec.read_frames(Op, good + bad, 0, len(good + bad), 1, MOST, 9)
        assert (len(ops), ends) == (1, [len(good)]), what
    assert codec.read_frames(Op, good + other, 0, len(good + other), 1, 13, 9)[1] == [len(good)]
    assert codec.read_frames(Op, good + other, 0, len(good + other) - 1, 1, MOST, 9)[1] == [len(good)]
    assert codec.read_frames(Op, good, 0, len(good) + 100, 1, MOST, 9)[1] == [len(good)]
    assert codec.read_frames(Op, good, -5, len(good), 1, MOST, 9) == ([], [])


@pytest.mark.parametrize("codec", CODECS)
def test_the_last_id_of_all_ends_a_run(codec: Any) -> None:
    data = encode_op(1, MAX_TXID, b"") * 2
    assert codec.read_frames(Op, data, 0, len(data), MAX_TXID, MOST, 9)[1] == [17]
    zero = b"\1" + (12).to_bytes(4, "big") + bytes(12)
    assert codec.read_frames(Op, zero, 0, len(zero), 0, MOST, 9) == ([], [])


pieces = st.lists(
    st.one_of(
        st.builds(lambda first: frames(first), st.integers(1, 4)),
        st.binary(max_size=30),
        st.builds(
            lambda at, byte: frames()[:at] + bytes([byte]) + frames()[at + 1 :], st.integers(0, 60), st.integers(0, 255)
        ),
    ),
    max_size=4,
)


@needs_native
@given(
    pieces,
    st.integers(-3, 40),
    st.integers(0, 400),
    st.integers(0, 4),
    st.sampled_from([12, 13, MOST]),
    st.integers(0, 5),
)
def test_both_codecs_read_the_same_frames(
    parts: list[bytes], at: int, end: int, txid: int, most: int, count: int
) -> None:
    assert native is not None
    data = b"".join(parts)
    arguments = (Op, data, at, end, txid, most, count)
    assert native.read_frames(*arguments) == pure.read_frames(*arguments)


@given(pieces)
def test_whatever_is_no_batch_is_refused_with_a_sentence(parts: list[bytes]) -> None:
    try:
        ops = decode_ops(b"".join(parts))
    except JournalError as error:
        assert len(str(error).split()) > 4
    else:
        assert b"".join(encode_op(op.opcode, op.txid, op.body) for op in ops) == b"".join(parts)
