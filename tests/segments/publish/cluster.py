"""A simulated cluster with a stream, for stories of batches. What a story leaves is checked by the streams' checker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from typing import Concatenate, ParamSpec

from bookkeeper.testing.cluster import SimCluster
from segments.config import RollPolicy, StreamConfig
from segments.namespace import connect
from segments.record import StoredRecord
from segments.stream import Stream

CONFIG = StreamConfig(roll=RollPolicy(min_age_s=0))
NAME = "totals"

P = ParamSpec("P")


class Programs:
    """Programs that have the stream, each with a client of its own."""

    def __init__(self, cluster: SimCluster) -> None:
        self.cluster = cluster

    @asynccontextmanager
    async def stream(self, name: str = NAME) -> AsyncIterator[Stream]:
        """The stream, as one program has it; made if it is not there."""
        async with self.cluster.connect() as client, connect("", client=client) as namespace:
            yield await namespace.open(name, create=True, config=CONFIG)

    async def check(self, name: str = NAME) -> None:
        """The checker reads every entry, and finds nothing wrong."""
        async with self.cluster.connect() as client, connect("", client=client) as namespace:
            assert await namespace.verify(name) == ()


def story(test: Callable[Concatenate[Programs, P], Awaitable[None]]) -> Callable[P, None]:
    """Run a test on a cluster of its own, in virtual time."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def told(cluster: SimCluster) -> None:
            await test(Programs(cluster), *args, **kwargs)

        SimCluster().run(told)

    del run.__wrapped__  # else pytest looks for a fixture with the name of its first argument
    return run


async def values_of(stream: Stream) -> list[bytes]:
    """The values of all records that a reader sees, in order; their numbers and places are checked."""
    async with stream.read() as reader:
        records = [record async for record in reader if isinstance(record, StoredRecord)]
    assert [record.seq_no for record in records] == list(range(len(records)))
    assert [record.position for record in records] == sorted({record.position for record in records})
    return [record.value for record in records]
