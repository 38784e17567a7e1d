"""A stream cut anywhere gives the same frames; impossible lengths are refused at once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.errors import MalformedFrameError
from bookkeeper.wire import FRAME_MAX, Framer, frame


@given(st.lists(st.binary(min_size=1, max_size=30), max_size=8), st.data())
def test_frames_cut_anywhere_come_out_the_same(bodies: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(map(frame, bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    framer, out = Framer(), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        out += framer.feed(stream[begin:end])
    assert out == bodies and framer.pending == 0


@pytest.mark.parametrize("length", [0, FRAME_MAX - 3, 2**31, 2**32 - 1])
def test_an_impossible_length_is_refused_before_its_body_is_awaited(length: int) -> None:
    framer = Framer()
    assert framer.feed(frame(b"good") + length.to_bytes(4, "big")) == [b"good"]
    for _ in range(2):
        with pytest.raises(MalformedFrameError):
            framer.feed(b"")
    assert framer.pending == 0


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_any_bytes_are_frames_or_refused(chunks: list[bytes]) -> None:
    framer, fed, out = Framer(frame_max=64), 0, 0
    try:
        for chunk in chunks:
            fed += len(chunk)
            out += sum(4 + len(body) for body in framer.feed(chunk))
            assert framer.pending < 64 + 4
    except MalformedFrameError:
        return
    assert out + framer.pending <= fed
