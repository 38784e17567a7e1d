"""TCP, on the loop of ``real.run``."""

from __future__ import annotations

import asyncio

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
