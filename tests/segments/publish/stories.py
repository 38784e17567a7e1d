"""Stories of committers that die, or are overtaken, between any two writes of the metadata store; and their judge.

Ledgers are made and closed in the same store, so that every durable step of a publication is such a write.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import chain
from typing import Any

from bookkeeper import BookKeeper
from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.testing.cluster import SimCluster
from segments.config import StreamConfig
from segments.entries.columns import RecordColumns
from segments.errors import StreamError
from segments.namespace import StreamNamespace
from segments.publish import BatchKey, StagedRows, StreamPublisher
from segments.publish.staged_writer import StagedWriter
from segments.record import StoredRecord
from segments.retention.deletion import LeakedLedgers
from segments.stream import Stream
from tests.segments.publish.cluster import NAME

LEASE_S = 60
"""Of a batch that nobody renews, in these stories."""

Hook = Callable[[int, bool], Awaitable[None]]
"""Is told of each write by its number, before it and after it."""


class Died(BaseException):
    """The program ends here."""


class Steps:
    """The writes of one client, counted; a dead client writes nothing any more."""

    def __init__(self, client: BookKeeper, hook: Hook) -> None:
        self.count, self.is_dead, self._hook = 0, False, hook
        store: Any = client.metadata_store.store
        for name in ("set", "create", "delete", "multi"):
            setattr(store, name, self._counted(getattr(store, name)))

    def _counted(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def counted(*args: Any, **options: Any) -> Any:
            if self.is_dead:
                raise Died
            number, self.count = self.count, self.count + 1
            try:
                await self._hook(number, False)
                result = await call(*args, **options)
                await self._hook(number, True)
            except Died:
                self.is_dead = True
                raise
            return result

        return counted


def dies_at(step: int, after: bool) -> Hook:
    async def hook(number: int, is_after: bool) -> None:
        if (number, is_after) == (step, after):
            raise Died

    return hook


def loses_reply(step: int) -> Hook:
    async def hook(number: int, is_after: bool) -> None:
        if (number, is_after) == (step, True):
            raise MetadataUnavailableError("the reply was lost")

    return hook


def key(batch: int, run: str = "r1") -> BatchKey:
    return BatchKey("app", "q", batch, run=run)


async def batch_of(stream: Stream, staging: str, tasks: list[list[bytes]], *, large: bool) -> list[StagedRows]:
    """The messages of these tasks: with a ledger each if ``large``; two records in each entry."""
    found = []
    for values in tasks:
        writer = StagedWriter(
            stream.client, (stream.name, stream.id), stream.config, staging, "app", inline=-1 if large else 1 << 16
        )
        for at in range(0, len(values), 2):
            await writer.add(RecordColumns.of_values(values[at : at + 2]))
        found.append(await writer.finish())
    return found


FIRST = [[b"a", b"b"], [b"c"]]
OTHER = [[b"x"], [b"y", b"z"]]
NEXT = [[b"n"]]
BETWEEN = [[b"p"], [b"q"], [b"r"]]


class Story:
    """One batch, whose committer meets a fault; then the same batch with other rows by another run; then the next."""

    def __init__(self, *, large: bool, opened: bool = False, ahead: bool = False) -> None:
        self._large, self._opened, self._ahead = large, opened, ahead
        self.problems: list[str] = []
        self._between: tuple[BookKeeper, Stream] | None = None
        """For whoever comes in between."""
        self.rows: list[list[bytes]] | None = None
        """What was acknowledged to somebody."""
        self.ended = False
        """Whether the first committer came to its end."""
        self.steps = 0
        """Its writes."""

    def run(self, hook: Hook) -> list[str]:
        """Live through it; returns what is wrong."""

        async def work(cluster: SimCluster) -> None:
            try:
                await self._live(cluster, hook)
            except (AssertionError, StreamError) as error:
                self.problems.append(f"{type(error).__name__}: {error}")

        SimCluster(seed=1).run(work)
        return self.problems

    async def _live(self, cluster: SimCluster, hook: Hook) -> None:
        async with cluster.connect() as client:
            stream = await StreamNamespace(client).create(NAME, config=StreamConfig())
            before: list[bytes] = []
            if self._opened:
                writer = await stream.writer()
                await writer.append(b"before")
                before = [b"before"]
            self._between = client, stream
            if await self._first(cluster, hook) and self.rows is None:
                self.rows = FIRST
            other = await stream.publisher(owner="the second", take_over=True)
            again = await other.publish(key(0, run="r2"), await batch_of(stream, "s2", OTHER, large=self._large))
            if self.rows is not None and not again.already_there:
                self.problems.append("a batch that was acknowledged was published again")
            await other.publish(key(1, run="r2"), await batch_of(stream, "s3", NEXT, large=self._large))
            found = await self._read(stream)
            allowed = [FIRST, OTHER] if self.rows is None else [self.rows]
            wanted = [[*before, *chain.from_iterable(rows), b"n"] for rows in allowed]
            if found not in wanted:
                self.problems.append(f"the stream has {found}")
            await self._nothing_is_left(client, stream, other)

    async def _first(self, cluster: SimCluster, hook: Hook) -> bool:
        """The committer with the fault; returns whether its batch was acknowledged."""
        async with cluster.connect() as client:
            steps = Steps(client, hook)
            try:
                stream = await StreamNamespace(client).open(NAME)
                batch = await batch_of(stream, "s1", FIRST, large=self._large)
                publisher = await stream.publisher(owner="the first", take_over=True)
                if self._ahead:
                    publisher.last_was_small = True
                    await publisher.prepare("app")
                await publisher.publish(key(0), batch)
            except (Died, StreamError, MetadataUnavailableError):
                return False
            finally:
                self.steps = steps.count
        self.ended = True
        return True

    def overtaken_at(self, step: int) -> Hook:
        """Another committer publishes the batch before this write of the first one."""

        async def act(client: BookKeeper, stream: Stream) -> None:
            other = await stream.publisher(owner="the one between", take_over=True)
            staged = await batch_of(stream, "s9", BETWEEN, large=self._large)
            if not (await other.publish(key(0, run="r9"), staged)).already_there:
                self.rows = BETWEEN

        return self._hook(step, act)

    def cleaned_at(self, step: int) -> Hook:
        """Nobody works for the batch for longer than its lease, and a cleaner comes, before this write."""

        async def act(client: BookKeeper, stream: Stream) -> None:
            await asyncio.sleep(LEASE_S + 1)
            await stream.apply_retention()
            await LeakedLedgers(client).delete(older_than_s=30)

        return self._hook(step, act)

    def _hook(self, step: int, act: Callable[[BookKeeper, Stream], Awaitable[None]]) -> Hook:
        async def hook(number: int, is_after: bool) -> None:
            if (number, is_after) == (step, False):
                assert self._between is not None
                await act(*self._between)

        return hook

    async def _read(self, stream: Stream) -> list[bytes]:
        async with stream.read() as reader:
            found = [record async for record in reader]
        records = [record for record in found if isinstance(record, StoredRecord)]
        if len(records) != len(found):
            self.problems.append("there is a gap")
        if [record.seq_no for record in records] != list(range(len(records))):
            self.problems.append(f"the numbers are {[record.seq_no for record in records]}")
        for number, record in enumerate(records):
            if await stream.reading.locator.seq_no(record.position) != number:
                self.problems.append(f"record {number} is not found by its position")
        return [record.value for record in records]

    async def _nothing_is_left(self, client: BookKeeper, stream: Stream, publisher: StreamPublisher) -> None:
        await asyncio.sleep(LEASE_S + 1)
        await publisher.clean("app")
        await publisher.close()
        problems = await StreamNamespace(client).verify(NAME)
        self.problems += [str(each.text) for each in problems]
        await LeakedLedgers(client).delete(older_than_s=30)  # made, and not registered
        named = set((await stream.chain()).ledgers)
        left = [each async for each in client.list_ledgers() if each not in named]
        self.problems += [f"ledger {ledger} is left over" for ledger in left]
