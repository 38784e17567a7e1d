"""Slow clients on real sockets: each loses its connection in time, and nobody else does."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bookkeeper.ids import Address
from bookkeeper.real import SystemClock, SystemRng
from bookkeeper.testing.certificates import Authority
from spark_wal.webhdfs.access import Access, AccessConfig
from spark_wal.webhdfs.connection_limits import ConnectionLimits
from spark_wal.webhdfs.http import HttpServer
from spark_wal.webhdfs.http_connection import HttpConnection
from spark_wal.webhdfs.tls import TlsFiles
from spark_wal.webhdfs.tokens import new_token, token_line
from tests.spark_wal.webhdfs.wire import Place, Wire, connected

QUICK = ConnectionLimits(slow_s=0.2, upload_idle_s=0.2)
PATIENT_UPLOADS = ConnectionLimits(slow_s=0.2)
CREATE = "/webhdfs/v1/f?op=CREATE&namenoderpcaddress=x"
SECRET = "do-not-log-this-token"


@asynccontextmanager
async def limited(
    limits: ConnectionLimits, place: Place | None = None, access: Access | None = None
) -> AsyncIterator[HttpServer]:
    gateway = (place or Place.empty()).gateway()
    await gateway.start()
    server = HttpServer(gateway, SystemClock(), limits=limits, access=access)
    await server.start(Address("127.0.0.1", 0))
    try:
        yield server
    finally:
        gateway.events.close()
        await server.close()
        await gateway.close()


async def raw(server: HttpServer, data: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    assert server.address is not None
    reader, writer = await asyncio.open_connection(server.address.host, server.address.port)
    writer.write(data)
    return reader, writer


async def hung_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Whether the connection is ended by the other side, without an answer."""
    try:
        async with asyncio.timeout(20):
            answer = await reader.read()
    except ConnectionError:
        answer = b""
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return answer == b""


async def dribble(writer: asyncio.StreamWriter, piece: bytes) -> None:
    """Send the same few bytes again and again, until it does not work any more."""
    with contextlib.suppress(OSError):
        while not writer.is_closing():
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0.02)


@pytest.mark.rule("X34")
@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        (b"", b""),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n", b"X-A: b\r\n"),
        (b"PUT %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" % CREATE.encode(), b"x"),
        (b"PUT %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\nx" % CREATE.encode(), b"x"),
    ],
    ids=["silence", "head", "body", "chunk"],
)
async def test_who_dribbles_is_hung_up_on_and_others_are_served(
    begin: bytes, piece: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    place = Place.empty()
    async with limited(PATIENT_UPLOADS, place) as server, connected(server.address) as other:
        await other.request("GET", "/health")
        reader, writer = await raw(server, begin)
        dribbling = asyncio.ensure_future(dribble(writer, piece) if piece else asyncio.sleep(0))
        assert await hung_up(reader, writer)
        await dribbling
        assert (await other.request("GET", "/health")).status == 200
        metrics = (await other.request("GET", "/metrics")).body.decode()
        assert "gateway_slow_clients_total 1\n" in metrics
        listing = await other.request("GET", "/webhdfs/v1/?op=LISTSTATUS")
        assert listing.json()["FileStatuses"]["FileStatus"] == [], "S2"
    assert "is closed:" in caplog.text


@pytest.mark.rule("X34")
async def test_a_second_head_that_does_not_end_is_slow_too() -> None:
    async with limited(PATIENT_UPLOADS) as server:
        reader, writer = await raw(server, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"}")
        writer.write(b"GET /health HT")
        assert await hung_up(reader, writer)


@pytest.mark.rule("X34")
async def test_an_upload_may_pause_between_chunks_but_not_for_ever() -> None:
    """Spark's state stores keep an upload open for a task, and send when they have something."""
    async with limited(PATIENT_UPLOADS) as server, connected(server.address) as wire:
        wire.send_head("PUT", CREATE, (), None, chunked=True)
        for _ in range(3):
            await asyncio.sleep(0.5)
            wire.send_chunk(b"some state")
        wire.send_chunk(b"")
        assert (await wire.answer()).status == 201
    async with limited(QUICK) as server:
        head = f"PUT {CREATE} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
        assert await hung_up(*await raw(server, head.encode()))


@pytest.mark.rule("X34")
async def test_idle_connections_are_not_slow() -> None:
    async with limited(QUICK) as server, connected(server.address) as wire:
        for _ in range(2):
            assert (await wire.request("GET", "/health")).status == 200
            await asyncio.sleep(0.7)


@pytest.mark.rule("X34")
async def test_who_does_not_take_replies_is_hung_up_on() -> None:
    place = Place.empty()
    async with limited(PATIENT_UPLOADS, place) as server, connected(server.address) as other:
        await other.request("PUT", CREATE, body=bytes(20_000_000))
        assert server.address is not None
        lazy = socket.create_connection((server.address.host, server.address.port))
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.sendall(b"GET /webhdfs/v1/f?op=OPEN&namenoderpcaddress=x HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(20):
            while b"gateway_slow_clients_total 1\n" not in (await other.request("GET", "/metrics")).body:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        lazy.close()
        opened = await other.request("GET", "/webhdfs/v1/f?op=OPEN&namenoderpcaddress=x")
        assert len(opened.body) == 20_000_000


@pytest.mark.rule("X34")
async def test_with_tls_slow_clients_are_found_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    shown = authority.server()
    config = AccessConfig(tls=TlsFiles(certificate=shown.cert, key=shown.key))
    access = Access(config, SystemClock(), SystemRng())
    trust = ssl.create_default_context(cafile=authority.ca)
    async with limited(PATIENT_UPLOADS, access=access) as server:
        assert server.address is not None
        assert server._connections is not None
        address = (server.address.host, server.address.port)

        async def begin(text: str, body: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
            reader, writer = await asyncio.open_connection(*address, ssl=trust, server_hostname="localhost", limit=1024)
            writer.write(text.encode() + body)
            return reader, writer

        made = await begin(f"PUT {CREATE} HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n", bytes(20_000_000))
        assert b" 201 " in await made[0].readline()
        target = "/webhdfs/v1/f?op=OPEN&namenoderpcaddress=x"
        lazy = await begin(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n")
        dribbling = await begin("GET /health HTTP/1.1\r\n")
        async with asyncio.timeout(20):
            while server._connections.slow < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        for _, writer in (made, lazy, dribbling):
            writer.transport.abort()


@pytest.mark.rule("X34")
async def test_a_connection_that_was_closed_is_let_go_of_by_force(caplog: pytest.LogCaptureFixture) -> None:
    """What is left to send keeps a closed connection, for ever if the other side does not read."""
    async with limited(PATIENT_UPLOADS) as server, connected(server.address) as other:
        await other.request("PUT", CREATE, body=bytes(60_000))
        assert server.address is not None
        assert server._connections is not None
        lazy = socket.socket()
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.connect((server.address.host, server.address.port))
        mine: list[HttpConnection] = []
        async with asyncio.timeout(20):
            while not mine:
                await asyncio.sleep(0.01)
                mine = [found for found in server._connections.all() if name_of(found) == lazy.getsockname()]
        assert mine[0].wire is not None
        mine[0].wire.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        target = "/webhdfs/v1/f?op=OPEN&namenoderpcaddress=x"
        lazy.sendall(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        async with asyncio.timeout(20):
            while mine[0] in server._connections.all():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        lazy.close()
    assert "it does not let go" in caplog.text


def name_of(connection: HttpConnection) -> object:
    return None if connection.wire is None else connection.wire.get_extra_info("peername")


@pytest.mark.rule("X30")
async def test_a_head_has_a_limit_in_bytes() -> None:
    async with limited(ConnectionLimits()) as server:
        reader, writer = await raw(server, b"GET /health HTTP/1.1\r\nHost: x\r\n")
        for number in range(100):
            writer.write(b"X-%d: %s\r\n" % (number, b"y" * 15_000))
        assert await hung_up(reader, writer), "1.5 MB and not at its end"


@pytest.mark.rule("X58")
@pytest.mark.parametrize(
    "request_text",
    [
        f"GET /webhdfs/v1/x?delegation={SECRET}\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
        f"GET /webhdfs/v1/x?op=OPEN HTTP/1.1\r\nHost: x\r\nAuthorization : Bearer {SECRET}\r\n\r\n",
        f"GET /webhdfs/v1/x?op=OPEN HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRET}\x00\r\n\r\n",
        f"GET /webhdfs/v1/x?delegation={SECRET} HTTP/9.9.9\r\nHost: x\r\n\r\n",
        f"GET /webhdfs/v1/x?delegation={SECRET}{'x' * 70_000} HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_a_request_that_is_none_is_neither_logged_nor_sent_back(
    request_text: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    async with limited(ConnectionLimits()) as server:
        reader, writer = await raw(server, request_text.encode("latin-1"))
        answer = await reader.read()
        writer.close()
    assert answer.startswith(b"HTTP/1.0 400 "), answer
    assert SECRET.encode() not in answer
    assert SECRET not in caplog.text
    assert "Traceback" not in caplog.text


@pytest.mark.rule("X38")
async def test_nonsense_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    async with limited(ConnectionLimits()) as server:
        for _ in range(20):
            reader, writer = await raw(server, b"\x16\x03\x01 nonsense\r\n\r\n")
            await reader.read()
            writer.close()
    assert 1 <= len(caplog.records) <= 3


@pytest.mark.rule("X10", "X34")
async def test_a_form_for_an_access_token_has_its_time(tmp_path: Path) -> None:
    """Nobody has been asked who they are by then."""
    tokens = tmp_path / "tokens"
    tokens.touch(0o600)
    tokens.write_text(token_line("alice", new_token()))
    access = Access(AccessConfig(token_file=str(tokens)), SystemClock(), SystemRng())
    async with limited(ConnectionLimits(slow_s=0.2), access=access) as server:
        head = b"POST /oauth2/token HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\ng\r\n"
        reader, writer = await raw(server, head)
        async with asyncio.timeout(8):
            assert b" 408 " in await reader.readline()
        writer.close()


async def test_a_wire_is_counted_until_it_is_gone() -> None:
    async with limited(ConnectionLimits()) as server:
        wire = await Wire.connect(server.address)
        assert b"gateway_connections 1\n" in (await wire.request("GET", "/metrics")).body
        await wire.close()
        async with connected(server.address) as other, asyncio.timeout(20):
            while b"gateway_connections 1\n" not in (await other.request("GET", "/metrics")).body:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
