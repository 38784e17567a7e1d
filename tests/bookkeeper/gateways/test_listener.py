"""With real sockets, on both kinds of loops."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, cast

import pytest
import uvloop

from bookkeeper.gateways import listener
from bookkeeper.gateways.config import ConnectionLimits
from bookkeeper.gateways.listener import CountedListener, Factory
from bookkeeper.ids import Address
from bookkeeper.real import FileTls, SystemClock
from bookkeeper.seams import TlsFiles
from examples.certificates import Authority

LOOPS: Final = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
HOME: Final = Address("127.0.0.1", 0)
on_both_loops = pytest.mark.parametrize("loop", LOOPS)


def run(main: Callable[[], Awaitable[None]], loop: str) -> None:
    async def limited() -> None:
        async with asyncio.timeout(20):
            await main()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(limited())


class Echo(asyncio.Protocol):
    """Says what it hears."""

    def __init__(self, port: Port, number: int) -> None:
        self._port = port
        self._number = number

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._port.made.append(self)

    def data_received(self, data: bytes) -> None:
        self._transport.write(data)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._port.listening.ended(self._number)


class Port:
    def __init__(self, limits: ConnectionLimits, tls: Callable[[], ssl.SSLContext] | None = None) -> None:
        factory: Factory = lambda number: Echo(self, number)  # noqa: E731
        self.listening = CountedListener(factory, limits, SystemClock(), tls)
        self.address = HOME
        self.made: list[Echo] = []

    async def __aenter__(self) -> Port:
        self.address = await self.listening.start(HOME)
        return self

    async def __aexit__(self, *error: object) -> None:
        self.listening.close()

    async def come(self, **options: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(self.address.host, self.address.port, **options)

    async def is_served(self, **options: Any) -> bool:
        """Whether somebody new is."""
        try:
            reader, writer = await self.come(**options)
            writer.write(b"hello")
            answer = await reader.read(5)
        except OSError:
            return False
        await gone(writer)
        return answer == b"hello"


async def gone(*writers: asyncio.StreamWriter) -> None:
    for writer in writers:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110  nothing tells
        await asyncio.sleep(0.005)


def trust(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=authority.ca)


@on_both_loops
@pytest.mark.rule("X34")
def test_one_connection_too_many_is_closed_at_once_and_the_others_go_on(
    loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with Port(ConnectionLimits(connections_max=3, connections_per_host_max=3)) as port:
            inside = [await port.come() for _ in range(3)]
            await until(lambda: port.listening.connections == 3)
            for _ in range(5):
                assert not await port.is_served()
            for reader, writer in inside:
                writer.write(b"still")
                assert await reader.readexactly(5) == b"still"
            assert port.listening.refused == 5
            await gone(inside.pop()[1])
            await until(lambda: port.listening.connections == 2)
            assert await port.is_served()
            await gone(*(writer for _, writer in inside))
        assert caplog.text.count("is closed: 3 connections") == 1

    run(main, loop)


@on_both_loops
@pytest.mark.rule("X7")
def test_only_so_many_handshakes_at_a_time(loop: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    shown = authority.server()
    tls = FileTls(TlsFiles(server=True, cert=shown.cert, key=shown.key))

    async def main() -> None:
        async with Port(ConnectionLimits(handshakes_max=2), lambda: tls.context) as port:
            served = await port.come(ssl=trust(authority), server_hostname="localhost")
            silent = [await port.come() for _ in range(2)]
            await until(lambda: port.listening.handshakes == 2)
            reader, writer = await port.come()
            assert await reader.read() == b"", "hung up on at once"
            await gone(writer)
            assert port.listening.refused == 1
            served[1].write(b"still")
            assert await served[0].readexactly(5) == b"still"
            await gone(silent.pop()[1])
            await until(lambda: port.listening.handshakes == 1)
            assert await port.is_served(ssl=trust(authority), server_hostname="localhost")
            await gone(served[1], silent.pop()[1])

    run(main, loop)


@on_both_loops
@pytest.mark.rule("X7")
def test_one_address_that_holds_all_handshakes_keeps_no_other_out(loop: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    shown = authority.server()
    tls = FileTls(TlsFiles(server=True, cert=shown.cert, key=shown.key))

    async def main() -> None:
        async with Port(ConnectionLimits(handshakes_max=3), lambda: tls.context) as port:
            silent = [await port.come() for _ in range(3)]
            await until(lambda: port.listening.handshakes == 3)
            elsewhere = {"local_addr": ("127.0.0.2", 0), "ssl": trust(authority), "server_hostname": "localhost"}
            assert await port.is_served(**elsewhere)
            assert await silent[0][0].read() == b"", "the oldest gave way"
            assert port.listening.handshakes == 2
            await gone(*(writer for _, writer in silent))

    run(main, loop)


@on_both_loops
@pytest.mark.rule("X7")
def test_a_handshake_that_does_not_end_is_no_longer_counted(loop: str, tmp_path: Path) -> None:
    shown = Authority(tmp_path).server()
    tls = FileTls(TlsFiles(server=True, cert=shown.cert, key=shown.key))

    async def main() -> None:
        async with Port(ConnectionLimits(handshake_s=0.1), lambda: tls.context) as port:
            reader, writer = await port.come()
            assert await reader.read() == b""
            await until(lambda: port.listening.connections == 0)
            assert port.listening.handshakes == 0
            _, garbage = await port.come()
            garbage.write(b"GET / HTTP/1.1\r\n\r\n")
            await until(lambda: port.listening.connections == 0)
            await gone(writer, garbage)

    run(main, loop)


@on_both_loops
def test_closing_ends_handshakes(loop: str, tmp_path: Path) -> None:
    shown = Authority(tmp_path).server()
    tls = FileTls(TlsFiles(server=True, cert=shown.cert, key=shown.key))

    async def main() -> None:
        async with Port(ConnectionLimits(), lambda: tls.context) as port:
            reader, writer = await port.come()
            await until(lambda: port.listening.handshakes == 1)
            port.listening.close()
            assert await reader.read() == b""
            await gone(writer)
            with pytest.raises(ConnectionRefusedError):
                await port.come()

    run(main, loop)


@on_both_loops
def test_without_descriptors_it_waits_and_goes_on(loop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "PAUSE_S", 0.01)
    left = [OSError(errno.EMFILE, "Too many open files"), OSError(errno.ENETDOWN, "Network is down")]

    class Scarce(socket.socket):
        def accept(self) -> Any:
            if left:
                raise left.pop()
            return super().accept()

    bound = listener._bound
    monkeypatch.setattr(listener, "_bound", lambda *place: Scarce(fileno=bound(*place).detach()))

    async def main() -> None:
        async with Port(ConnectionLimits()) as port:
            assert await port.is_served()
            assert not left

    run(main, loop)


@pytest.mark.rule("X34")
@on_both_loops
@pytest.mark.parametrize("encrypted", [False, True], ids=["plain", "tls"])
def test_a_client_that_is_gone_without_a_word_is_noticed_within_two_minutes(
    loop: str, encrypted: bool, tmp_path: Path
) -> None:
    """An upload whose client's machine had died stayed for an hour, with its memory, and no rollback was possible below
    its directory."""

    authority = Authority(tmp_path)
    shown = authority.server()
    tls = FileTls(TlsFiles(server=True, cert=shown.cert, key=shown.key))

    async def main() -> None:
        made: list[Echo] = []
        async with Port(ConnectionLimits(), (lambda: tls.context) if encrypted else None) as port:
            port.made = made
            reader, writer = await port.come(
                **({"ssl": trust(authority), "server_hostname": "localhost"} if encrypted else {})
            )
            writer.write(b"x")
            assert await reader.readexactly(1) == b"x"
            sock = made[0]._transport.get_extra_info("socket")
            asks = sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
            idle, gap, count = (
                sock.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            )
            await gone(writer)
        assert asks == 1 and idle + gap * count == 120

    run(main, loop)


@on_both_loops
def test_a_name_may_stand_for_several_addresses(loop: str) -> None:
    async def main() -> None:
        port = Port(ConnectionLimits())
        found = await port.listening.start(Address("localhost", 0))
        port.address = found
        assert await port.is_served()
        with pytest.raises(OSError, match="cannot listen at"):
            await Port(ConnectionLimits()).listening.start(found)
        port.listening.close()

    run(main, loop)
