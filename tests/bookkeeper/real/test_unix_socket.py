"""Lines over a Unix socket that only its owner may open."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.real.unix_socket import LINE_MAX, SendLine, listen_unix, request_unix


async def echo(request: bytes, send: SendLine) -> None:
    for word in request.split():
        await send(word)


async def answer_of(path: str, request: bytes) -> list[bytes]:
    return [line async for line in request_unix(path, request)]


async def test_a_request_is_answered_by_lines(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    listener = await listen_unix(path, echo)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    one, other = await asyncio.gather(answer_of(path, b"a b c"), answer_of(path, b"d"))
    assert (one, other) == ([b"a", b"b", b"c"], [b"d"])
    listener.close()
    listener.close()
    assert not await asyncio.to_thread(lambda: list(tmp_path.iterdir()))
    with pytest.raises(OSError, match="No such file"):
        await answer_of(path, b"x")


async def test_what_a_killed_process_has_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("left")
    listener = await listen_unix(str(path), echo)
    assert await answer_of(str(path), b"x") == [b"x"]
    listener.close()


async def test_whoever_sends_no_line_gets_no_answer_and_disturbs_nobody(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    listener = await listen_unix(path, echo)
    for data in (b"", b"x" * (2 * LINE_MAX)):
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(data)
        if not data:
            writer.write_eof()
        assert await reader.read() == b""
        writer.close()
    assert await answer_of(path, b"x") == [b"x"]
    listener.close()


async def test_a_path_that_is_too_long_is_said_to_be(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="too long for a socket"):
        await listen_unix(str(tmp_path / ("x" * 120)), echo)


@pytest.mark.rule("X34")
async def test_who_sends_nothing_loses_the_connection_and_there_are_not_too_many(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    listener = await listen_unix(path, echo, connections_max=1)
    reader, writer = await asyncio.open_unix_connection(path)
    other, others = await asyncio.open_unix_connection(path)
    assert await other.read() == b""
    writer.write(b"x\n")
    assert await reader.read() == b"x\n"
    for each in (writer, others):
        each.close()
    assert await answer_of(path, b"y") == [b"y"]
    listener.close()
    listener = await listen_unix(path, echo, patience_s=0.0)
    reader, writer = await asyncio.open_unix_connection(path)
    assert await reader.read() == b"", "it is told nothing, and its connection ends"
    writer.close()
    listener.close()
