"""Notes that say whether they are damaged."""

from __future__ import annotations

import pytest

from bookkeeper.bookie.identity.checked_note import decode, encode


@pytest.mark.parametrize("text", ["7", "4711 5f3a-77", "copy-1 86400"])
def test_a_note_comes_back_and_no_flipped_bit_of_it_does(text: str) -> None:
    data = encode(text)
    assert decode(data) == text
    for bit in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError):
            decode(bytes(damaged))


@pytest.mark.parametrize("text", ["7", "4711 5f3a-77"])
def test_a_note_that_was_cut_short_is_whole_or_damaged(text: str) -> None:
    data = encode(text)
    for size in range(len(data)):
        if data[:size] == text.encode() + b"\n":  # as earlier versions wrote it
            assert decode(data[:size]) == text
            continue
        with pytest.raises(ValueError):
            decode(data[:size])


@pytest.mark.parametrize(("data", "text"), [(b"4711\n", "4711"), (b"4711 5f3a\n", "4711 5f3a")])
def test_notes_of_earlier_versions_are_read(data: bytes, text: str) -> None:
    assert decode(data) == text


@pytest.mark.parametrize("data", [b"", b"\n", b"47", b"1 2 3\n", b"\x0047\n", b"1\n2\n", b"\xff"])
def test_what_is_no_note_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError):
        decode(data)
