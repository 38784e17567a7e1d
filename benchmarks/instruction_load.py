"""One client process whose work is counted: it prepares, says so, works when told to, and says when it has ended.

    python -m benchmarks.instruction_load URI

With ``simulated`` instead of a URI it is a whole cluster in one process and in virtual time: its counts are the same in
each run.

On standard input one line of JSON for each piece of work (``{"row": ..., "count": ..., "protocol": ...}``), then an
empty line to begin. On standard output ``ready`` and ``done``. What stands between the two is what a row counts.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from random import Random
from typing import Any, Final

from benchmarks.ledger_load import ClosedLoop
from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.real import run
from bookkeeper.testing.cluster import SimCluster
from segments.config import RollPolicy, StreamConfig
from segments.namespace import StreamNamespace

SIZE: Final = 1000
"""Bytes of an entry."""
WARM_UP: Final = 100
"""Pieces of work that are done before, so that nothing is done for the first time."""

SIMULATED: Final = "simulated"

_PATIENT: Final[dict[str, Any]] = {
    "metadata_session_ms": 300_000,
    "bookie_stall_ms": 60_000,
    "add_timeout_ms": 120_000,
    "request_timeout_ms": 60_000,
}
"""Everything takes fifty times as long as usual."""

_STREAM: Final = StreamConfig(roll=RollPolicy(max_bytes=0))
_Work = Callable[[int], Awaitable[None]]


async def adds(client: BookKeeper, ends: AsyncExitStack, command: dict[str, Any]) -> _Work:
    """One awaited future an entry, ``window`` of them in flight."""
    writer = await ends.enter_async_context(await client.create_ledger())

    async def work(count: int) -> None:
        await ClosedLoop(writer, bytes(command.get("size", SIZE)), count, min(command["window"], count)).run()

    return work


async def reads(client: BookKeeper, ends: AsyncExitStack, command: dict[str, Any]) -> _Work:
    """Entries of a closed ledger, from the front or in random order, ``window`` at a time; 0: by batches."""
    async with await client.create_ledger() as writer:
        await writer.append_many([bytes(SIZE)] * (command["count"] + WARM_UP))
    reader = await ends.enter_async_context(await client.open_ledger(writer.id, recovery=False))
    at = 0

    async def work(count: int) -> None:
        nonlocal at
        first, at = at, at + count
        if command["window"]:
            chance = Random(7).randrange
            wanted = iter([chance(count) for _ in range(count)] if command.get("random") else range(first, at))

            async def lane() -> None:
                for entry in wanted:
                    await reader.read_entry(entry)

            await asyncio.gather(*(lane() for _ in range(command["window"])))
        else:
            async for _ in reader.read_batches(first, at - 1):
                pass

    return work


async def creations(client: BookKeeper, ends: AsyncExitStack, command: dict[str, Any]) -> _Work:
    """Ledgers that are created and closed, one after the other."""

    async def work(count: int) -> None:
        for _ in range(count):
            await (await client.create_ledger()).close()

    return work


async def tails(client: BookKeeper, ends: AsyncExitStack, command: dict[str, Any]) -> _Work:
    """Entries that a reader with a client of its own gets by long polls, each before the next is added."""
    other = await ends.enter_async_context(BookKeeper.connect(command["uri"], config=ClientConfig(**_PATIENT)))
    writer = await client.create_ledger()
    await writer.append(bytes(SIZE))
    reader = await ends.enter_async_context(await other.open_ledger(writer.id, recovery=False))
    followed = reader.tail()
    await anext(followed)
    ends.push_async_callback(writer.close)
    ends.push_async_callback(followed.aclose)  # type: ignore[attr-defined]

    async def work(count: int) -> None:
        for _ in range(count):
            await writer.append(bytes(SIZE))
            await anext(followed)

    return work


async def records(client: BookKeeper, ends: AsyncExitStack, command: dict[str, Any]) -> _Work:
    """Records appended to a stream, ``window`` of them in flight."""
    stream = await StreamNamespace(client).create(f"counted-{command['row']}", config=_STREAM)
    writer = await ends.enter_async_context(stream.writer())

    async def work(count: int) -> None:
        loop = ClosedLoop(writer, bytes(SIZE), count, min(command["window"], count))  # type: ignore[arg-type]
        await loop.run()

    return work


KINDS: Final = {"adds": adds, "reads": reads, "creations": creations, "tails": tails, "records": records}


async def obey(uri: str) -> None:
    """Do what standard input says, until it ends."""
    loop = asyncio.get_running_loop()
    while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
        command = json.loads(line) | {"uri": uri}
        config = ClientConfig(protocol=command.get("protocol", "v3"), **_PATIENT)
        async with BookKeeper.connect(uri, config=config) as client, AsyncExitStack() as ends:
            work = await KINDS[command["kind"]](client, ends, command)
            await work(min(WARM_UP, command["count"]))
            print("ready", flush=True)
            await loop.run_in_executor(None, sys.stdin.readline)
            await work(command["count"])
            print("done", flush=True)
            await loop.run_in_executor(None, sys.stdin.readline)


async def simulated(cluster: SimCluster) -> None:
    """The same in a simulated cluster, where nothing happens while nobody is told anything."""
    while line := sys.stdin.readline().strip():
        command = json.loads(line)
        async with cluster.connect() as client, AsyncExitStack() as ends:
            work = await KINDS[command["kind"]](client, ends, command)
            await work(WARM_UP)
            print("ready", flush=True)
            sys.stdin.readline()
            await work(command["count"])
            print("done", flush=True)
            sys.stdin.readline()


if __name__ == "__main__":
    if sys.argv[1] == SIMULATED:
        SimCluster(seed=1).run(simulated)
    else:
        run(obey(sys.argv[1]))
