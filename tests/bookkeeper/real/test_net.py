"""TCP, on the loop of ``real.run``."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bookkeeper import real
from bookkeeper.ids import Address


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
