"""Programs of a simulated world that publish batches: drivers of one query, and executors that run their tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from bookkeeper.errors import BookKeeperError
from bookkeeper.seams import Seams
from segments.entries.columns import RecordColumns
from segments.errors import (
    AppendOutcomeUnknownError,
    BatchRefusedError,
    OwnershipLostError,
    StreamError,
    StreamUnavailableError,
)
from segments.namespace import StreamNamespace
from segments.protocol import segments_pb2 as pb
from segments.protocol.publish_messages import get_published, put_key, put_rows
from segments.publish import BatchKey, PublishedBatch, StagedRows, StreamPublisher
from segments.publish.staged_writer import INLINE_BYTES, StagedWriter
from segments.stream import Stream
from tests.segments.world.batch_judge import Attempt
from tests.segments.world.world_state import APP, DRIVERS, EXECUTORS, STREAM, PublishCall, WorldState

Program = Callable[[Seams], Coroutine[Any, Any, None]]

_LOOK_S: Final = 0.01
_LOOKS: Final = 200
"""A task that has told nothing after so many looks is run again."""
_CLAIMS: Final = 4
_CALLS: Final = 12
"""Most gateways only say that another one owns the stream."""


@dataclass(slots=True, eq=False)
class Task:
    """One task of an attempt, as an executor gets it."""

    staging: str
    rows: list[bytes]
    inline: int
    message: StagedRows | None = None
    """The first that came."""


@dataclass(slots=True)
class TaskQueue:
    """Tasks that wait for an executor."""

    waiting: list[Task] = field(default_factory=list)


def start_batches(world: WorldState) -> None:
    """Start the drivers and executors of the world, each on a machine of its own."""
    queue = TaskQueue()
    for name in EXECUTORS:
        world.cluster.world.node(name).start(executor(world, name, queue))
    for name in DRIVERS:
        world.cluster.world.node(name).start(driver(world, name, queue))


def executor(world: WorldState, name: str, queue: TaskQueue) -> Program:
    """A program that runs one task after the other, for whichever driver."""

    async def serve(seams: Seams) -> None:
        client = await world.connect(world.cluster.world.node(name))
        while not world.calm:
            if not queue.waiting:
                await asyncio.sleep(0.01)
                continue
            task = queue.waiting.pop(0)
            try:
                stream = await StreamNamespace(client).open(STREAM)
                message = await _run(stream, task)
            except (StreamError, BookKeeperError):
                continue  # its driver will miss it
            task.message = task.message or message

    return serve


async def _run(stream: Stream, task: Task) -> StagedRows:
    writer = StagedWriter(stream.client, (stream.name, stream.id), stream.config, task.staging, APP, inline=task.inline)
    try:
        for at in range(0, len(task.rows), 3):
            await writer.add(RecordColumns.of_values(task.rows[at : at + 3]))
        return await writer.finish()
    except BaseException:
        await writer.abandon()
        raise


def driver(world: WorldState, name: str, queue: TaskQueue) -> Program:
    """A program that runs the query from where the log of its checkpoint ends. Several may be alive at a time."""

    async def serve(seams: Seams) -> None:
        machine = world.cluster.world.node(name)
        life = machine.life
        rng = Random(f"{world.seed}/{name}/{life}")
        client = await world.connect(machine)
        while not world.calm:
            await asyncio.sleep(rng.random() * (1.0 if world.driving == name else 8.0))
            try:
                stream = await StreamNamespace(client).open(STREAM)
                await _Driver(world, stream, name, rng, queue).run()
            except (StreamError, BookKeeperError):
                continue
            except Exception as error:
                if not machine.alive or machine.life != life:
                    raise  # its remains are collected
                world.judge.find(f"{name} met {type(error).__name__}: {error}")

    return serve


class _Driver:
    """What one driver does, until something fails."""

    def __init__(self, world: WorldState, stream: Stream, name: str, rng: Random, queue: TaskQueue) -> None:
        self._world, self._stream, self._name, self._rng, self._queue = world, stream, name, rng, queue
        self._publisher: StreamPublisher | None = None

    async def run(self) -> None:
        rng = self._rng
        for _ in range(rng.randint(1, 4)):
            if self._world.calm:
                return
            app = "" if rng.random() < 0.1 else APP
            attempt = self._world.batches.attempt(app, [rng.randrange(7) for _ in range(rng.randrange(5))])
            staged = await self._staged(attempt)
            if staged is None or rng.random() < 0.05:  # a task has failed for good, or the batch was aborted
                continue
            await self._publish(attempt, staged)

    async def _staged(self, attempt: Attempt) -> list[StagedRows] | None:
        rng = self._rng
        staging = f"{rng.getrandbits(64):016x}"
        tasks = [Task(staging, rows, rng.choice([-1, INLINE_BYTES])) for rows in attempt.tasks]
        waiting = [task for task in tasks for _ in range(1 + (rng.random() < 0.1))]  # some are run twice
        self._world.batch_busy.set()
        for _ in range(3):
            self._queue.waiting += waiting
            for _ in range(_LOOKS):
                if all(task.message is not None for task in tasks):
                    break
                await asyncio.sleep(_LOOK_S)
            told = [task.message for task in tasks if task.message is not None]
            if len(told) == len(tasks):
                return told
            waiting = [task for task in tasks if task.message is None]
        return None

    async def _publish(self, attempt: Attempt, staged: list[StagedRows]) -> None:
        world = self._world
        key = BatchKey(attempt.app, "query", attempt.number) if attempt.app else None
        for row in attempt.rows:
            world.judge.on_sent(row)
        through_gateway = world.gateways and self._rng.random() < 0.7
        for _ in range(_CALLS if through_gateway else _CLAIMS):
            attempt.calls += 1
            world.publishing.set()
            world.batch_busy.set()
            world.busy.set()
            try:
                if through_gateway:
                    done = await self._through_gateway(key, staged)
                else:
                    publisher = self._publisher or await self._claimed()
                    done = await publisher.publish(key, staged)
                world.batches.on_published(attempt, done)
                return
            except BatchRefusedError:
                attempt.refused = True
                raise
            except AppendOutcomeUnknownError:
                raise
            except (OwnershipLostError, StreamError):
                self._publisher = None
                if key is None:
                    raise
            await asyncio.sleep(self._rng.random() * 0.3)

    async def _through_gateway(self, key: BatchKey | None, staged: list[StagedRows]) -> PublishedBatch:
        """Have a gateway publish the batch. A call that is not answered may be done later all the same."""
        call = PublishCall(
            pb.PublishRequest(stream=STREAM, key=None if key is None else put_key(key), rows=map(put_rows, staged))
        )
        self._world.calls.append(call)
        for _ in range(_LOOKS):
            if call.error is not None:
                raise call.error
            if call.reply is not None:
                return get_published(call.reply)
            await asyncio.sleep(_LOOK_S)
        raise StreamUnavailableError("no gateway answers")

    async def _claimed(self) -> StreamPublisher:
        self._publisher = await self._stream.publisher(owner=self._name, take_over=self._rng.random() < 0.5)
        return self._publisher
