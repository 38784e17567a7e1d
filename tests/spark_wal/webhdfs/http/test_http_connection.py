"""Slow clients on real sockets: each loses its connection in time, and nobody else does."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import ssl
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiohttp import web

from bookkeeper.gateways.access_control import AccessConfig, AccessControl
from bookkeeper.gateways.config import ConnectionLimits
from bookkeeper.gateways.connection_limits import ExpectedInput
from bookkeeper.gateways.server_tls import ServerTlsFiles
from bookkeeper.gateways.tokens import new_token, token_line
from bookkeeper.ids import Address
from bookkeeper.real import SystemClock, SystemRng
from bookkeeper.testing import SimLoop
from examples.certificates import Authority
from spark_wal.webhdfs.http.http_connection import (
    FIELD_MAX,
    HEADERS_MAX,
    LINE_MAX,
    SWEEP_S,
    Handler,
    HttpConnection,
    HttpConnections,
    body,
)
from spark_wal.webhdfs.http.http_server import HttpServer
from tests.spark_wal.webhdfs.virtual import in_virtual_time, turns
from tests.spark_wal.webhdfs.wire import Place, Wire, connected

QUICK = ConnectionLimits(slow_s=0.2, upload_idle_s=0.2)
PATIENT_UPLOADS = ConnectionLimits(slow_s=0.2)
CREATE = "/webhdfs/v1/f?op=CREATE&namenoderpcaddress=x"
SECRET = "do-not-log-this-token"


@asynccontextmanager
async def limited(
    limits: ConnectionLimits, place: Place | None = None, access: AccessControl | None = None
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


async def until_answered(wire: Wire, target: str, part: bytes) -> None:
    """Ask until the answer has this in it."""
    async with asyncio.timeout(60):
        while True:
            if part in (await wire.request("GET", target)).body:
                return
            await asyncio.sleep(0.02)


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
        assert "gateway_slow_clients_total 1.0\n" in metrics
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


@pytest.mark.rule("S13", "X34")
async def test_an_upload_to_a_file_that_grows_may_pause_for_ever_and_when_it_is_cut_what_came_is_there() -> None:
    """The cause: an event log whose application was idle for an hour lost its upload, and all that it had logged."""
    path = "/webhdfs/v1/app.inprogress"
    begin = "HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n"
    async with limited(QUICK) as server, connected(server.address) as other:
        await other.request("GET", "/health")
        reader, writer = await raw(server, f"PUT {path}?op=CREATE&namenoderpcaddress=x {begin}".encode())
        for _ in range(2):  # two others, that began later, are hung up on meanwhile
            assert await hung_up(*await raw(server, f"PUT {CREATE} {begin}".encode()))
        writer.write(b"5\r\n more\r\n")
        await until_answered(other, f"{path}?op=GETFILESTATUS", b'"length":9')
        assert not reader.at_eof()
        writer.write(b"4\r\n end\r\n")
        await writer.drain()
        writer.close()
        await until_answered(other, f"{path}?op=OPEN&namenoderpcaddress=x", b"some more end")
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        assert b"pathSuffix" in (await other.request("GET", "/webhdfs/v1/?op=LISTSTATUS")).body
        assert (await other.request("GET", "/webhdfs/v1/f?op=GETFILESTATUS")).status == 404


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
            while b"gateway_slow_clients_total 1.0\n" not in (await other.request("GET", "/metrics")).body:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        lazy.close()
        opened = await other.request("GET", "/webhdfs/v1/f?op=OPEN&namenoderpcaddress=x")
        assert len(opened.body) == 20_000_000


@pytest.mark.rule("X34")
async def test_with_tls_slow_clients_are_found_too(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    shown = authority.server()
    config = AccessConfig(tls=ServerTlsFiles(certificate=shown.cert, key=shown.key))
    access = AccessControl(config, SystemClock(), SystemRng())
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
    assert "the client does not close its side" in caplog.text


def standing(server: HttpServer) -> list[HttpConnection]:
    assert server._connections is not None
    return server._connections.all()


def name_of(connection: HttpConnection) -> object:
    return None if connection.wire is None else connection.wire.get_extra_info("peername")


@pytest.mark.rule("X30")
@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * (HEADERS_MAX + 1),
        b"GET /health HTTP/1.1\r\nX: " + b"y" * (FIELD_MAX + 1),
        b"GET /" + b"y" * (LINE_MAX + 1),
    ],
    ids=["headers", "a header", "the line"],
)
async def test_a_head_has_a_limit_before_it_is_at_its_end(head: bytes) -> None:
    async with limited(ConnectionLimits()) as server:
        reader, writer = await raw(server, head + b"Z")
        async with asyncio.timeout(20):
            assert (await reader.read()).startswith(b"HTTP/1.0 400 ")
        writer.close()


# -- more comes before anybody has looked -------------------------------------------------------------------


class Line(asyncio.Transport):
    """What a protocol has written, and whether it was hung up on."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()
        self.is_over = False

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def is_closing(self) -> bool:
        return self.is_over

    def close(self) -> None:
        self.is_over = True

    def abort(self) -> None:
        self.is_over = True

    def write(self, data: Any) -> None:
        self.sent += data

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the gateway, the HTTP library or the loop printed one for. Other libraries of this process may at any time:
    py4j does, when it collects what was left of a Spark that has ended."""
    ours = ("spark_wal", "bookkeeper", "aiohttp", "asyncio")
    return [str(found.exc_info) for found in caplog.records if found.exc_info and found.name.split(".")[0] in ours]


def on_a_line(take: Handler) -> tuple[HttpConnection, Line]:
    """A connection that is there, whose requests ``take`` answers."""
    connections = HttpConnections(take, ConnectionLimits(), SystemClock(), lambda number: None, access_log=None)
    connection, line = connections.connection(1), Line()
    connection.connection_made(line)
    return connection, line


PIECE = bytes(64 * 1024)


@pytest.mark.parametrize("pieces", [1, 5, 64])
async def test_what_comes_of_a_body_before_its_request_is_taken_up_is_no_head(pieces: int) -> None:
    """Large uploads were reset at random.

    uvloop hands over all that a socket has at once, several pieces without a turn for anybody else. aiohttp's task was
    woken by the head and had not run, and by its private state it seemed to wait for a head still: a quarter of a
    megabyte of the body was counted as one, "too large". On a busy machine that was every third upload of 1 MB.
    """
    sizes: list[int] = []

    async def take(request: web.BaseRequest) -> web.StreamResponse:
        sizes.append(sum([len(data) async for data in body(request)]))
        return web.Response(status=201)

    connection, line = on_a_line(take)
    head = f"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: {pieces * len(PIECE)}\r\n\r\n".encode()
    for _ in range(2):  # kept alive
        connection.data_received(head)
        for _ in range(pieces):
            assert not line.is_over, "reset while its body comes"
            connection.data_received(PIECE)
        await turns()
        assert line.sent.startswith(b"HTTP/1.1 201 "), bytes(line.sent[:200])
        line.sent.clear()
        assert connection.observe().owes is ExpectedInput.NOTHING
    assert sizes == [pieces * len(PIECE)] * 2
    connection.connection_lost(None)
    await turns()


@pytest.mark.parametrize("gone_after", [0, 1, 2, 3])
async def test_a_client_that_goes_away_at_any_moment_leaves_no_traceback(
    gone_after: int, caplog: pytest.LogCaptureFixture
) -> None:
    """aiohttp's task, woken for a request whose connection is gone by then, failed over what it had been robbed of."""
    taken: list[object] = []

    async def take(request: web.BaseRequest) -> web.StreamResponse:
        taken.append(sum([len(data) async for data in body(request)]))
        return web.Response(status=201)

    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))
    connection, _ = on_a_line(take)
    await turns(gone_after and 5)
    connection.data_received(b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhalf")
    await turns(max(gone_after - 1, 0))
    connection.connection_lost(ConnectionResetError("reset by peer"))
    await turns()
    gc.collect()
    assert taken == [], "half a body is none"
    assert said == []
    assert tracebacks(caplog) == []
    assert [name for task in asyncio.all_tasks() if "RequestHandler" in (name := repr(task))] == [], "somebody waits"


@in_virtual_time
async def test_a_gateway_that_stood_still_hangs_up_on_nobody_when_it_wakes() -> None:
    """The bytes that it has not taken meanwhile lie in its sockets: it cannot say yet that they are late."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimLoop)

    async def never(request: web.BaseRequest) -> web.StreamResponse:
        raise AssertionError("there is no request")

    _, line = on_a_line(never)
    await asyncio.sleep(SWEEP_S)
    loop.advance(300)  # and nobody has run
    await asyncio.sleep(SWEEP_S)
    assert not line.is_over
    await asyncio.sleep(ConnectionLimits().slow_s)
    assert line.is_over, "it owes its first request still"


LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}

UPLOADER = """
import sys, requests
url, data = sys.argv[1], bytes(range(256)) * 4096
with requests.Session() as session:
    for number in range(8):
        created = session.put(f"{url}/webhdfs/v1/f{number}?op=CREATE&noredirect=true").json()["Location"]
        status = session.put(created, data=data).status_code
        print(status, session.get(f"{url}/webhdfs/v1/f{number}?op=OPEN").content == data)
"""
"""A process of its own: a thread beside the busy loop would compete with it for the interpreter, and might not get it
for minutes."""


@pytest.mark.parametrize("loop", LOOPS)
def test_large_uploads_by_requests_arrive_whole_while_the_loop_is_busy(
    loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Real sockets, and a gateway whose loop has something else to do for two milliseconds in every turn."""

    async def main() -> None:
        async def be_busy() -> None:
            while True:
                until = time.thread_time() + 0.002
                while time.thread_time() < until:
                    pass
                await asyncio.sleep(0)

        async with limited(ConnectionLimits()) as server:
            client = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                UPLOADER,
                f"http://{server.address}",
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            busy = asyncio.create_task(be_busy())
            answers, complaints = await client.communicate()
            busy.cancel()
            assert answers.decode().splitlines() == ["201 True"] * 8, complaints.decode()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(main())
    assert "is closed" not in caplog.text


async def a_chunk_was_taken(server: HttpServer) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """An upload that has begun."""
    head = f"PUT {CREATE} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"
    connection = await raw(server, head.encode())
    async with asyncio.timeout(20):
        while not any(found.watch.units for found in standing(server)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    return connection


@pytest.mark.rule("X34")
@pytest.mark.parametrize("begun", [b"fff", b"no length\r\n"], ids=["half a length", "nonsense"])
async def test_a_chunk_of_which_there_is_no_more_than_its_length_has_begun(
    begun: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """It was given the hour that there may be between two chunks: only the bytes of a file were seen."""
    async with limited(PATIENT_UPLOADS) as server:
        reader, writer = await a_chunk_was_taken(server)
        writer.write(begun)
        assert await hung_up(reader, writer)
        async with connected(server.address) as other:
            listing = await other.request("GET", "/webhdfs/v1/?op=LISTSTATUS")
        assert listing.json()["FileStatuses"]["FileStatus"] == [], "S2"
    assert tracebacks(caplog) == []


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
    assert tracebacks(caplog) == []


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
    access = AccessControl(AccessConfig(token_file=str(tokens)), SystemClock(), SystemRng())
    async with limited(ConnectionLimits(slow_s=0.2), access=access) as server:
        head = b"POST /oauth2/token HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\ng\r\n"
        reader, writer = await raw(server, head)
        async with asyncio.timeout(8):
            assert b" 408 " in await reader.readline()
        writer.close()


async def test_a_wire_is_counted_until_it_is_gone() -> None:
    async with limited(ConnectionLimits()) as server:
        wire = await Wire.connect(server.address)
        assert b"gateway_connections 1.0\n" in (await wire.request("GET", "/metrics")).body
        await wire.close()
        async with connected(server.address) as other, asyncio.timeout(20):
            while b"gateway_connections 1.0\n" not in (await other.request("GET", "/metrics")).body:  # noqa: ASYNC110
                await asyncio.sleep(0.01)


@pytest.mark.rule("X10")
async def test_all_lines_of_a_head_have_a_limit_together() -> None:
    """Cause: each line had a limit, and the number of headers; together 832 KiB of a client that nobody knows."""
    line = b"GET /webhdfs/v1/?op=GETFILESTATUS HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    field = b"x: " + b"y" * (15 * 1024) + b"\r\n"
    async with limited(PATIENT_UPLOADS) as server:
        for fields, refused in ((5, False), (7, True)):
            reader, writer = await raw(server, line + field * fields + b"Connection: close\r\n\r\n")
            async with asyncio.timeout(20):
                answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 431 ") == refused, answer[:100]
            writer.close()


@pytest.mark.rule("X10")
async def test_an_answer_that_comes_before_the_end_of_the_body_is_the_last_of_its_connection() -> None:
    """Cause: the end of such a body, the next head and the beginning of the next body came in one piece, and what
    followed was taken for a head that is too large: clients that send the body to the first step, too, were refused."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=307, headers={"Location": "/there"})

    connections = HttpConnections(handle, PATIENT_UPLOADS, SystemClock(), lambda number: None)
    loop = asyncio.get_running_loop()
    head, body = b"PUT /here HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", b"z" * 3_000_000
    async with await loop.create_server(lambda: connections.connection(1), "127.0.0.1", 0) as listening:
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(head % len(body) + body)
        async with asyncio.timeout(20):
            answer = await reader.read()
        assert answer.startswith(b"HTTP/1.1 307 ") and b"Connection: close" in answer
        writer.close()
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        for _ in range(2):
            writer.write(head % 0)
            assert b"Connection: close" not in await reader.readuntil(b"\r\n\r\n"), "no body: the connection stays"
        writer.close()
    await connections.shutdown(1)


@pytest.mark.rule("X10")
async def test_what_is_sent_ahead_of_an_answer_has_a_limit() -> None:
    """Cause: the HTTP library keeps all requests that come while one is handled, however many."""
    begun, until = asyncio.Event(), asyncio.Event()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        begun.set()
        await until.wait()
        return web.Response()

    ended: list[int] = []
    connections = HttpConnections(handle, PATIENT_UPLOADS, SystemClock(), ended.append)
    loop = asyncio.get_running_loop()
    async with await loop.create_server(lambda: connections.connection(1), "127.0.0.1", 0) as listening:
        address = listening.sockets[0].getsockname()
        reader, writer = await asyncio.open_connection(*address)
        head = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
        writer.write(head)
        await begun.wait()
        writer.write(head * 10_000)
        assert await hung_up(reader, writer)
        until.set()
    await connections.shutdown(1)
