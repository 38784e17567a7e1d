"""The world is deterministic, and as unkind as it promises."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest

from bookkeeper.ids import Address
from bookkeeper.seams import Seams
from bookkeeper.testing import World


class Echo(asyncio.Protocol):
    """Sends back what it gets."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


class Caller(asyncio.Protocol):
    def __init__(self) -> None:
        self.got = bytearray()
        self.lost: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.got += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)


async def serve(seams: Seams) -> None:
    await seams.net.listen(Address("127.0.0.1", 7), Echo)
    await asyncio.Event().wait()


SERVER = Address("server", 7)


async def call(seams: Seams) -> Caller:
    return await seams.net.connect(SERVER, Caller, timeout_s=5)


def chatter(seed: int) -> str:
    """A little of everything; the digest of what happened."""
    with World(seed) as world:
        server, client = world.node("server"), world.node("client")
        server.start(serve)

        async def program(seams: Seams) -> int:
            caller = await call(seams)
            for i in range(50):
                caller.transport.write(bytes([i]) * seams.rng.randrange(1, 200))
                await asyncio.sleep(0.001 * seams.rng.random())
            worker = seams.workers.worker("disk")
            file = seams.disk.open("/x", create=True)
            await asyncio.gather(*[worker.call(lambda i=i: file.pwrite(b"x" * 700, 700 * i)) for i in range(5)])  # type: ignore[misc]
            await worker.call(file.sync)
            return len(caller.got)

        async def main() -> None:
            await asyncio.sleep(1)
            await client.start(program)
            server.crash()
            await asyncio.sleep(1)
            server.restart()
            await asyncio.gather(*{client.run(call(client.seams)) for _ in range(5)})

        world.run(main())
        return world.trace.digest


def test_the_same_seed_gives_the_same_events_and_another_seed_others() -> None:
    assert chatter(1) == chatter(1)
    assert chatter(1) != chatter(2)


@pytest.mark.rule("P6")
@pytest.mark.parametrize("hash_seed", ["0", "12345"])
def test_the_trace_does_not_depend_on_how_strings_hash(hash_seed: str) -> None:
    script = "from tests.bookkeeper.testing.world.test_world import chatter; print(chatter(1))"
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    out = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert out.stdout.strip() == chatter(1)


def test_a_crashed_node_does_nothing_more_and_its_peers_hear_of_it() -> None:
    with World(5) as world:
        server, client = world.node("server"), world.node("client")
        beats: list[float] = []

        async def beat(seams: Seams) -> None:
            await seams.net.listen(Address("127.0.0.1", 7), Echo)
            try:
                while True:
                    await asyncio.sleep(1)
                    beats.append(seams.clock.monotonic())
            finally:
                beats.append(-1.0)  # never: the machine just stops

        server.start(beat)

        async def main() -> None:
            await asyncio.sleep(2.5)
            caller = await client.run(call(client.seams))
            server.crash(power=False)
            assert isinstance(await caller.lost, ConnectionResetError)
            await asyncio.sleep(10)
            assert len(beats) == 2
            server.restart()
            await asyncio.sleep(1.5)
            assert len(beats) == 3

        world.run(main())
        assert -1.0 not in beats


def test_a_frozen_node_goes_on_where_it_was() -> None:
    with World(6) as world:
        node = world.node("n")
        seen: list[float] = []

        async def beat(seams: Seams) -> None:
            while True:
                await asyncio.sleep(1)
                seen.append(seams.clock.monotonic())

        node.start(beat)

        async def main() -> None:
            await asyncio.sleep(2.5)
            node.freeze()
            await asyncio.sleep(100)
            assert seen == [1, 2]
            node.thaw()
            await asyncio.sleep(1.2)
            assert seen[2] == pytest.approx(102.5)

        world.run(main())


def test_a_crashed_nodes_jobs_never_report_and_others_come_in_order() -> None:
    with World(7) as world:
        node = world.node("n")
        done: list[int] = []

        async def work(seams: Seams) -> None:
            worker = seams.workers.worker("w")
            for i in range(10):
                worker.submit(lambda i=i: i, lambda result, error: done.append(result))  # type: ignore[misc, arg-type]
            assert not done, "a result came inside submit"
            await asyncio.sleep(10)
            worker.submit(lambda: 99, lambda result, error: done.append(99))
            await asyncio.sleep(10)

        async def main() -> None:
            node.start(work)
            await asyncio.sleep(10)
            await asyncio.sleep(0)
            node.crash()
            await asyncio.sleep(10)

        world.run(main())
        assert done == list(range(10))


def test_an_error_nobody_looked_at_fails_the_run() -> None:
    with World(8) as world:

        async def fail(seams: Seams) -> None:
            asyncio.get_running_loop().call_soon(lambda: 1 // 0)
            await asyncio.sleep(1)

        async def main() -> None:
            await world.node("n").start(fail)

        with pytest.raises(AssertionError, match="seed 8"):
            world.run(main())
