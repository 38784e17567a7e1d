"""TCP, on the loop of ``real.run``."""

from __future__ import annotations

import asyncio
import ctypes
import os
import socket
import struct
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bookkeeper import real
from bookkeeper.ids import Address
from bookkeeper.real import net as real_net


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.got = asyncio.get_running_loop().create_future()

    def data_received(self, data: bytes) -> None:
        if not self.got.done():
            self.got.set_result(data)
        if data == b"ping":
            self.transport.write(b"pong")  # type: ignore[attr-defined]


def test_tcp_on_the_loop_of_run() -> None:
    async def main() -> None:
        net = real.system_seams().net
        listener = await net.listen(Address("127.0.0.1", 0), Echo)
        assert listener.address.port > 0
        caller = await net.connect(listener.address, Echo, timeout_s=5)
        caller.transport.write(b"ping")  # type: ignore[attr-defined]
        assert await caller.got == b"pong"
        caller.transport.close()
        listener.close()
        with pytest.raises(OSError):
            await net.connect(listener.address, Echo, timeout_s=5)

    real.run(main())


@pytest.mark.rule("X34")
@pytest.mark.parametrize("run", [real.run, asyncio.run], ids=["real.run", "asyncio"])
def test_both_sides_notice_within_two_minutes_that_the_other_is_gone(
    run: Callable[[Coroutine[Any, Any, None]], None],
) -> None:
    """A bookie never noticed it: keep-alive was on for connections that were made, and off for those that were
    accepted. One whose client's machine had died stayed for ever, and counted."""

    async def main() -> None:
        net = real.system_seams().net
        accepted: asyncio.Future[Echo] = asyncio.get_running_loop().create_future()

        def made() -> Echo:
            accepted.set_result(Echo())
            return accepted.result()

        listener = await net.listen(Address("127.0.0.1", 0), made)
        caller = await net.connect(listener.address, Echo, timeout_s=5)
        caller.transport.write(b"ping")  # type: ignore[attr-defined]
        await caller.got
        for end in (caller, await accepted):
            sock = end.transport.get_extra_info("socket")
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            idle, gap, count = (
                sock.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            )
            assert idle + gap * count == 120
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 120_000, "with bytes on their way"
        caller.transport.close()
        listener.close()

    run(main())


@pytest.mark.parametrize("run", [real.run, asyncio.run], ids=["real.run", "asyncio"])
def test_a_peer_whose_system_acknowledges_nothing_is_silent_and_one_that_does_not_read_is_not(
    run: Callable[[Coroutine[Any, Any, None]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(real_net, "AGAIN_MIN", 1)

    async def main() -> None:
        net = real.system_seams().net
        assert net.tells_silence
        accepted: list[Echo] = []

        def made() -> Echo:
            accepted.append(Echo())
            return accepted[-1]

        async def until(done: Callable[[], bool]) -> None:
            async with asyncio.timeout(60):
                while not done():  # noqa: ASYNC110 - only the system knows, and it tells nobody
                    await asyncio.sleep(0.01)

        def silence_s(end: Echo) -> float | None:
            return net.silence_s(end.transport)

        listener = await net.listen(Address("127.0.0.1", 0), made)
        caller = await net.connect(listener.address, Echo, timeout_s=5)
        slow = await net.connect(listener.address, Echo, timeout_s=5)
        await until(lambda: len(accepted) == 2)
        caller.transport.write(b"ping")  # type: ignore[attr-defined]
        assert await caller.got == b"pong"
        await until(lambda: silence_s(caller) is None)
        for end in accepted:
            end.transport.pause_reading()  # type: ignore[attr-defined]
            if end.transport.get_extra_info("peername") == caller.transport.get_extra_info("sockname"):
                _lose_what_comes(end.transport.get_extra_info("socket").fileno())
        caller.transport.write(b"ping")  # type: ignore[attr-defined]
        for _ in range(64):  # more than both systems take
            slow.transport.write(bytes(1 << 20))  # type: ignore[attr-defined]
        await until(lambda: (silence_s(caller) or 0) > 0.1)
        assert not silence_s(slow)
        await until(lambda: (silence_s(caller) or 0) > 1)
        assert not silence_s(slow), "its system still answers"
        for end in (caller, slow, *accepted):
            end.transport.abort()  # type: ignore[attr-defined]
        await asyncio.sleep(0.01)
        assert silence_s(caller) is None
        listener.close()

    run(main())


def _lose_what_comes(descriptor: int) -> None:
    """From now on the system drops every segment for this socket, as a firewall on the way would."""
    drop_all = ctypes.create_string_buffer(struct.pack("HBBI", 0x06, 0, 0, 0))  # BPF: return 0
    with socket.socket(fileno=os.dup(descriptor)) as copy:
        copy.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HL", 1, ctypes.addressof(drop_all)))  # SO_ATTACH_FILTER
