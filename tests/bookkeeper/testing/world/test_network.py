"""Streams keep their bytes and their order, and nothing else is promised."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.ids import Address
from bookkeeper.seams import Seams
from bookkeeper.testing import World
from tests.bookkeeper.net.test_in_process import Sipping
from tests.bookkeeper.testing.world.test_world import Caller, call, serve


def test_bytes_keep_their_order_whatever_the_chunks() -> None:
    with World(3) as world:
        world.network.weather.split_share = 0.9
        world.node("server").start(serve)
        client = world.node("client")

        async def program(seams: Seams) -> bytes:
            caller = await call(seams)
            for i in range(100):
                caller.transport.write(i.to_bytes(2, "big") * 50)
            await asyncio.sleep(5)
            return bytes(caller.got)

        async def main() -> bytes:
            await asyncio.sleep(1)
            return await client.start(program)

        assert world.run(main()) == b"".join(i.to_bytes(2, "big") * 50 for i in range(100))


def test_nobody_there_is_refused_and_a_cut_link_is_silent() -> None:
    with World(4) as world:
        server, client = world.node("server"), world.node("client")
        server.start(serve)

        async def main() -> None:
            await asyncio.sleep(0.1)
            with pytest.raises(ConnectionRefusedError):
                await client.run(client.seams.net.connect(Address("server", 8), Caller, timeout_s=5))
            world.network.cut("server", "client", both=False)
            begun = world.loop.time()
            with pytest.raises(TimeoutError):
                await client.run(call(client.seams))
            assert world.loop.time() - begun >= 5
            world.network.mend()
            caller = await client.run(call(client.seams))
            world.network.cut("server", "client", both=False)
            caller.transport.write(b"hello")
            await asyncio.sleep(60)
            assert not caller.got
            world.network.weather.mend_reset_share = 0.0
            world.network.mend()
            await asyncio.sleep(1)
            assert caller.got == b"hello"

        world.run(main())


def test_a_reset_loses_what_was_on_its_way_and_both_ends_hear_of_it() -> None:
    with World(9) as world:
        server, client = world.node("server"), world.node("client")
        server.start(serve)

        async def main() -> None:
            await asyncio.sleep(0.1)
            caller = await client.run(call(client.seams))
            world.network.weather.reset_share = 1.0
            caller.transport.write(b"hello")
            assert isinstance(await caller.lost, ConnectionResetError)
            await asyncio.sleep(1)
            assert world.network.transports == {}

        world.run(main())


def test_who_stops_reading_in_the_middle_of_one_write_gets_the_rest_when_it_reads_again() -> None:
    """The network looked whether its peer reads before each delivery, not before each piece of it: a connection that
    had enough went on being filled until its buffer could not grow any more, which no socket does."""
    with World(5) as world:
        sipping: list[Sipping] = []

        def accept() -> Sipping:
            sipping.append(Sipping())
            return sipping[-1]

        async def sip(seams: Seams) -> None:
            await seams.net.listen(Address("127.0.0.1", 7), accept)
            await asyncio.Event().wait()

        world.node("server").start(sip)
        client = world.node("client")

        async def main() -> None:
            await asyncio.sleep(0.1)
            caller = await client.run(call(client.seams))
            caller.transport.write(b"0123456789abcdef")
            caller.transport.close()
            await asyncio.sleep(1)
            assert (bytes(sipping[0].got), sipping[0].ended) == (b"01234567", False)
            sipping[0].transport.resume_reading()
            await asyncio.sleep(1)
            assert (bytes(sipping[0].got), sipping[0].ended) == (b"0123456789abcdef", True)

        world.run(main())
