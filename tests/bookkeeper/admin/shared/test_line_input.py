"""Lines from pipes, files and memory: each when it is complete."""

from __future__ import annotations

import io
import os
from pathlib import Path

from bookkeeper.admin.shared.line_input import LineInput


async def every(lines: LineInput) -> list[bytes]:
    return [line async for run in lines.runs() for line in run]


async def test_a_line_comes_when_it_is_complete_and_not_when_a_block_is_full() -> None:
    """Iterating over a file waits for a full buffer: a slow producer's lines came together, at its end."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source:
        lines = LineInput(source, line_max=1000)
        runs = lines.runs()
        os.write(writing, b"one\ntw")
        assert await anext(runs) == [b"one"]
        os.write(writing, b"o\nthree\nfo")
        assert await anext(runs) == [b"two", b"three"]
        os.close(writing)
        assert [run async for run in runs] == [[b"fo"]]
        lines.close()


async def test_stopping_ends_it_with_what_was_complete_and_tells_what_was_not() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as source:
        lines = LineInput(source, line_max=1000)
        runs = lines.runs()
        os.write(writing, b"one\nrest")
        assert await anext(runs) == [b"one"]
        lines.stop()
        assert [run async for run in runs] == []
        assert lines.left == 4
        lines.close()
        lines.close()
    os.close(writing)


async def test_files_and_memory_are_read_to_their_ends(tmp_path: Path) -> None:
    every_line = [b"%d" % number * (number % 7) for number in range(30_000)]
    for ending in (b"", b"\n"):
        data = b"\n".join(every_line) + ending
        (tmp_path / "lines").write_bytes(data)
        with (tmp_path / "lines").open("rb") as source:
            lines = LineInput(source, line_max=1000)
            assert await every(lines) == every_line
            lines.close()
        assert await every(LineInput(io.BytesIO(data), line_max=1000)) == every_line
    with os.fdopen(os.open(os.devnull, os.O_RDONLY), "rb") as source:
        assert await every(LineInput(source, line_max=1000)) == []


async def test_the_beginning_of_a_line_without_end_is_a_line() -> None:
    lines = LineInput(io.BytesIO(b"a\n" + bytes(300_000) + b"\nb"), line_max=100_000)
    found = await every(lines)
    assert found[0] == b"a" and found[-1] == b"b"
    assert len(found[1]) <= 100_000 + 64 * 1024, "memory is bounded"
    assert sum(map(len, found)) == 300_002
