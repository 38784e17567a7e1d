"""An exported file proves itself: every damage, cut and change of order is noticed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segments.errors import StreamCorruptError, UnsupportedStreamFormatError
from segments.transfer.bundle import END, ENTRY, HEADER, SEGMENT, BundleWriter, Frame, Totals, read_bundle


def written() -> list[bytes]:
    writer = BundleWriter()
    parts = [
        writer.header({"stream": "orders"}),
        writer.segment({"number": 1}),
        writer.entry(0, b"zero"),
        writer.entry(1, memoryview(b"")),
        writer.segment({"number": 4}),
        writer.entry(0, b"x" * 100),
    ]
    assert writer.totals == Totals(2, 3, 104)
    return [*parts, writer.end()]


async def chunks(data: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


def read(data: bytes, size: int = 7) -> list[Frame]:
    async def work() -> list[Frame]:
        return [frame async for frame in read_bundle(chunks(data, size))]

    return asyncio.run(work())


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_what_is_written_is_read_whatever_the_chunks(size: int) -> None:
    frames = read(b"".join(written()), size)
    assert [frame.kind for frame in frames] == [HEADER, SEGMENT, ENTRY, ENTRY, SEGMENT, ENTRY, END]
    assert [(frame.entry_id, frame.content) for frame in frames if frame.kind == ENTRY] == [
        (0, b"zero"),
        (1, b""),
        (0, b"x" * 100),
    ]
    assert [frame.about.get("number") for frame in frames if frame.kind == SEGMENT] == [1, 4]
    assert (frames[-1].about["segments"], frames[-1].about["entries"], frames[-1].about["bytes"]) == (2, 3, 104)


@given(st.data())
def test_every_changed_byte_is_noticed(data: st.DataObject) -> None:
    whole = bytearray(b"".join(written()))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(StreamCorruptError):
        read(bytes(whole))


def test_every_cut_is_noticed() -> None:
    whole = b"".join(written())
    for length in range(len(whole)):
        with pytest.raises(StreamCorruptError):
            read(whole[:length])


def test_frames_that_miss_come_twice_or_come_after_the_end_are_noticed() -> None:
    parts = written()
    for at in range(len(parts)):
        with pytest.raises(StreamCorruptError):
            read(b"".join(parts[:at] + parts[at + 1 :]))
        with pytest.raises(StreamCorruptError):
            read(b"".join([*parts[: at + 1], *parts[at:]]))
    with pytest.raises(StreamCorruptError, match="end does not fit"):
        read(b"".join(parts) + b"more")


def test_a_newer_format_and_another_file_are_told_apart() -> None:
    header, rest = written()[0], b"".join(written()[1:])
    writer = BundleWriter()
    newer = writer.header({"format": 99})
    assert json.loads(newer[13:-4])["format"] == 99 and header != newer
    with pytest.raises(UnsupportedStreamFormatError, match="format 99"):
        read(newer + rest)
    with pytest.raises(StreamCorruptError, match="no exported stream"):
        read(b"PK\x03\x04 something else")
