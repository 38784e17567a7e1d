"""An edits file: read in pieces of any size; ends, padding and damage are told apart."""

from __future__ import annotations

import random
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journal_manager import JournalError, Op, TxId, UnsupportedLayoutError
from journal_manager.edits.ops import encode_op
from journal_manager.errors import OpChecksumError, OpFormatError
from journal_manager.hdfs import EditsReader, encode_edits_header
from journal_manager.hdfs.edits_file import HEADER_BYTES
from tests.journal_manager.hdfs import vector

HEADER = encode_edits_header(-67)
OPS = [(3, b"/a"), (0, bytes(9)), (24, b""), (2, b"/some/longer/body")]
FRAMES = [encode_op(opcode, TxId(5 + i), body) for i, (opcode, body) in enumerate(OPS)]
FILE = HEADER + b"".join(FRAMES)


def read(data: bytes, sizes: list[int] | None = None, **options: object) -> tuple[list[Op], EditsReader]:
    reader = EditsReader(**options)  # type: ignore[arg-type]
    found: list[Op] = []
    for size in sizes or []:
        found += reader.feed(data[:size])
        data = data[size:]
    found += reader.feed(data)
    found += reader.finish()
    return found, reader


def bodies(ops: list[Op]) -> list[tuple[int, bytes]]:
    return [(op.opcode, op.body) for op in ops]


@given(st.lists(st.integers(1, 30), max_size=10), st.integers(0, 40))
def test_pieces_of_any_size_give_the_same_edits(sizes: list[int], padding: int) -> None:
    ops, reader = read(FILE + b"\xff" * padding, sizes)
    assert bodies(ops) == OPS
    assert [op.txid for op in ops] == [5, 6, 7, 8]
    assert reader.layout_version == -67


def test_a_reader_holds_no_more_than_it_must() -> None:
    reader = EditsReader()
    assert len(list(reader.feed(FILE[:-1]))) == 3
    assert len(list(reader.feed(FILE[-1:]))) == 1
    assert list(reader.finish()) == []


def test_an_end_at_an_edit_is_an_end_and_an_end_inside_one_is_not() -> None:
    ends = {HEADER_BYTES + sum(map(len, FRAMES[:n])): n for n in range(5)}
    for length in range(len(FILE)):
        if length in ends:
            assert bodies(read(FILE[:length])[0]) == OPS[: ends[length]]
        else:
            with pytest.raises(OpFormatError, match=r"inside an edit|begins with 8 bytes"):
                read(FILE[:length])


@pytest.mark.parametrize("padding", [b"\xff", b"\xff" * 70, b"\xff\x00\xff\x00"])
def test_padding_ends_the_edits(padding: bytes) -> None:
    assert bodies(read(FILE + padding, [len(FILE) + 1] * (len(padding) > 1))[0]) == OPS


def test_edits_behind_a_stray_terminator_are_not_hidden() -> None:
    with pytest.raises(OpFormatError, match=f"byte {len(FILE) + 1} is neither"):
        read(FILE + b"\xff" + FRAMES[0])
    with pytest.raises(OpFormatError, match="neither"):
        read(FILE + b"\xff" * 9 + b"\x01", [len(FILE) + 4])


@given(st.data())
def test_a_flipped_bit_is_never_read_as_another_edit(data: st.DataObject) -> None:
    bit = data.draw(st.integers(8 * HEADER_BYTES, 8 * len(FILE) - 1))
    damaged = bytearray(FILE)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises(OpFormatError):
        read(bytes(damaged))


def test_a_wrong_checksum_says_where_and_which_edit() -> None:
    damaged = FILE[:-1] + bytes([FILE[-1] ^ 1])
    where = len(FILE) - len(FRAMES[-1])
    with pytest.raises(OpChecksumError, match=f"byte {where} does not match; it may be edit 8"):
        read(damaged)


def test_a_length_is_checked_before_anything_is_allocated() -> None:
    with pytest.raises(OpFormatError, match="says that it has 16 bytes"):
        read(HEADER + b"\x03\x00\x00\x00\x0b" + bytes(12))
    with pytest.raises(OpFormatError, match="4294967300 bytes"):
        read(HEADER + b"\x03\xff\xff\xff\xff" + bytes(12))
    with pytest.raises(OpFormatError, match="34 bytes; an edit has 17 to 33"):
        read(FILE, max_op_bytes=33)
    assert bodies(read(FILE, max_op_bytes=34)[0]) == OPS


def test_ids_rise_by_one() -> None:
    with pytest.raises(OpFormatError, match="edit 7 at byte 27 follows edit 5") as raised:
        read(HEADER + FRAMES[0] + FRAMES[2])
    assert raised.value.first_missing == 6
    head = FRAMES[0][:5] + bytes(8) + b"/a"
    with pytest.raises(OpFormatError, match="id 0, which is impossible"):
        read(HEADER + head + zlib.crc32(head).to_bytes(4, "big"))


def test_nothing_behind_the_last_edit_asked_for_is_looked_at() -> None:
    """A writer may still be changing what follows."""
    upto = HEADER_BYTES + len(FRAMES[0]) + len(FRAMES[1])
    ops, _ = read(FILE[:upto] + b"garbage", [upto - 3], last=6)
    assert bodies(ops) == OPS[:2]


def test_recovery_steps_byte_by_byte_to_the_next_whole_edit() -> None:
    damaged = bytearray(FILE)
    begin = HEADER_BYTES + len(FRAMES[0])
    damaged[begin + 14] ^= 1
    ops, reader = read(bytes(damaged) + b"\xff" * 5, recover=True)
    assert bodies(ops) == [OPS[0], *OPS[2:]]
    assert reader.skipped == [(begin, len(FRAMES[1]))]


@pytest.mark.parametrize("sizes", [[], [len(HEADER) + 1], [len(HEADER) + 3, 4]])
@pytest.mark.parametrize("stray", [b"\xff", b"\xff\xff\xff\x00\xff", b"\xff" * 100])
def test_recovery_finds_edits_behind_a_stray_terminator(stray: bytes, sizes: list[int]) -> None:
    frame = encode_op(0, TxId(1), b"an edit whose bytes begin with 0x00")
    ops, reader = read(HEADER + stray + frame + stray, sizes, recover=True)
    assert bodies(ops) == [(0, b"an edit whose bytes begin with 0x00")]
    assert reader.skipped[0] == (HEADER_BYTES, len(stray))


def test_frames_of_a_newer_layout_are_read_and_of_an_old_one_refused() -> None:
    ops, reader = read(encode_edits_header(-99) + b"".join(FRAMES))
    assert (bodies(ops), reader.layout_version) == (OPS, -99)
    with pytest.raises(UnsupportedLayoutError, match="-55"):
        read(encode_edits_header(-55) + b"".join(FRAMES))
    with pytest.raises(UnsupportedLayoutError, match="1 flags"):
        read(HEADER[:7] + b"\x01")


def test_garbage_is_an_error_of_ours_and_nothing_else() -> None:
    rng = random.Random(7)
    for _ in range(5000):
        garbage = HEADER + rng.randbytes(rng.randrange(512))
        for recover in (False, True):
            try:
                read(garbage, [rng.randrange(1, 300)], recover=recover)
            except JournalError:
                assert not recover


def test_recovery_reads_hadoops_file_with_a_byte_damaged_anywhere() -> None:
    rng = random.Random(3)
    data = vector("edits_1-534.bin")
    for _ in range(20):
        damaged = bytearray(data)
        damaged[rng.randrange(HEADER_BYTES, len(data))] ^= rng.randrange(1, 256)
        ops, reader = read(bytes(damaged), [10_000] * 4, recover=True)
        assert len(ops) == 533
        assert len(reader.skipped) == 1
