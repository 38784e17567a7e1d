"""The programs of a simulated world that use its stream: writers, gateways, readers by a cursor, a cleaner."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final, cast

from bookkeeper import BookKeeper
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import BookKeeperError
from bookkeeper.leases.lease import StoreLease
from bookkeeper.outcome import Outcome
from bookkeeper.seams import Seams
from segments.errors import StreamError
from segments.gateway.calls.publish_calls import PublishCalls
from segments.gateway.calls.served_streams import ServedStream
from segments.gateway.config import GrpcGatewayConfig
from segments.gateway.guard.grpc_call import GrpcCall
from segments.gateway.ownership.stream_ownership import StreamOwnership
from segments.names import stream_path
from segments.namespace import StreamNamespace
from segments.protocol.refusals import as_stream_error
from segments.record import StoredRecord
from segments.retention.deletion import LeakedLedgers
from segments.stream import Stream
from segments.write import Writer
from segments.write.producer import Producer
from tests.segments.world.judge import producer_value
from tests.segments.world.world_state import CLEANER, CURSOR, HOSTS, PRODUCERS, READERS, STREAM, WorldState

Program = Callable[[Seams], Coroutine[Any, Any, None]]

GATEWAY: Final = GrpcGatewayConfig(lease_s=0.5, wait_s=2.0, probation_s=0.5)


def start_programs(world: WorldState) -> None:
    """Start every program of the world, each on a machine of its own."""
    hosts = Hosts(world)
    for name in HOSTS:
        world.cluster.world.node(name).start(hosts.gateway(name) if world.gateways else hosts.writer(name))
    for name in READERS:
        world.cluster.world.node(name).start(consumer(world, name))
    world.cluster.world.node(CLEANER).start(cleaner(world))


class Hosts:
    """Those who write: numbered records of two producers, which any host carries on, and plain ones."""

    def __init__(self, world: WorldState) -> None:
        self._world = world
        self._plain = itertools.count()

    def writer(self, name: str) -> Program:
        """A program with the library, which writes when it is its turn."""

        async def serve(seams: Seams) -> None:
            world, machine = self._world, self._world.cluster.world.node(name)
            life = machine.life
            rng = Random(f"{world.seed}/{name}/{life}")
            client = await world.connect(machine)
            while not world.calm:
                if world.turn != name:
                    await asyncio.sleep(0.02)
                    continue
                try:
                    stream = await StreamNamespace(client).open(STREAM)
                    await self._own(stream, name, rng)
                except (StreamError, BookKeeperError):
                    await asyncio.sleep(0.05 + rng.random() * 0.2)
                except Exception as error:
                    if not machine.alive or machine.life != life:
                        raise  # its remains are collected
                    world.judge.find(f"{name} met {type(error).__name__}: {error}")
                    await asyncio.sleep(0.5)

        return serve

    def gateway(self, name: str) -> Program:
        """A gateway, with what it uses to agree with the others about who appends."""

        async def serve(seams: Seams) -> None:
            world, machine = self._world, self._world.cluster.world.node(name)
            life = machine.life
            rng = Random(f"{world.seed}/{name}/{life}")
            client = await world.connect(machine)
            stream = await self._opened(client)
            tasks = Tasks(f"gateway {name}")
            path = stream_path(client.metadata_store, stream.id, "lease")

            def lease() -> StoreLease:
                return StoreLease(
                    client.metadata_store.store,
                    path,
                    seams.clock,
                    owner=f"{name}/{life}",
                    address=f"{name}:1",
                    lease_s=GATEWAY.lease_s,
                )

            async def open_writer() -> Writer:
                return await stream.writer(owner=name, location=f"{name}:1")

            ownership = StreamOwnership(STREAM, lease, open_writer, seams.clock, GATEWAY, tasks)
            world.ownerships[name] = ownership
            tasks.start(self._publish_for_drivers(stream, ownership), "publish for drivers")
            while not world.calm:
                try:
                    writer = await ownership.writer()
                    producers = [await Producer.open(writer, each) for each in PRODUCERS]
                    await self._append_all(producers, name, rng)
                    if world.turn != name and rng.random() < 0.1:
                        await ownership.release()
                except (StreamError, BookKeeperError):
                    await asyncio.sleep(0.05 + rng.random() * 0.2)
                except Exception as error:
                    if not machine.alive or machine.life != life:
                        raise  # its remains are collected
                    world.judge.find(f"{name} met {type(error).__name__}: {error}")
                    await asyncio.sleep(0.5)
            await ownership.end()

        return serve

    async def _publish_for_drivers(self, stream: Stream, ownership: StreamOwnership[Writer]) -> None:
        """Answer calls of drivers, whoever owns the stream."""
        world, served = self._world, ServedStream(stream, ownership, 0.0)

        class Table:
            async def get(self, name: str) -> ServedStream:
                return served

        calls = PublishCalls(cast(Any, Table()))
        while not world.calm:
            if not world.calls:
                await asyncio.sleep(0.01)
                continue
            call = world.calls.pop(0)
            try:
                call.reply = await calls.publish(call.request, GrpcCall(None))
            except (StreamError, BookKeeperError) as error:
                call.error = as_stream_error(error)

    async def _opened(self, client: BookKeeper) -> Stream:
        while True:
            try:
                return await StreamNamespace(client).open(STREAM)
            except (StreamError, BookKeeperError):
                await asyncio.sleep(0.1)

    async def _own(self, stream: Stream, name: str, rng: Random) -> None:
        """Write as long as the stream is this host's, whoever's turn it is."""
        producers = [await stream.producer(each) for each in PRODUCERS]
        try:
            await self._append_all(producers, name, rng)
        finally:
            for producer in producers:
                await producer.close()

    async def _append_all(self, producers: list[Producer], name: str, rng: Random) -> None:
        """Append until the writer is lost, an append fails, or by chance."""
        world = self._world
        nexts = {each.name: world.judge.first_unacked(each.name) for each in producers}
        again = Random(f"{world.seed}/{name}/{producers[0].writer.epoch}")
        while not world.calm and not producers[0].writer.closed:
            work: list[Coroutine[Any, Any, bool]] = []
            for producer in producers:
                count = rng.randint(1, 6)
                first, nexts[producer.name] = nexts[producer.name], nexts[producer.name] + count
                work.append(self._produce(producer, first, count, rng.random() < 0.3))
            for _ in range(rng.randrange(4)):
                work.append(self._append(producers[0], name))
            if again.random() < 0.05:
                work.append(self._open_again(again.choice(producers)))
            done = await asyncio.gather(*work)
            if not all(done):
                return
            await asyncio.sleep(rng.random() * 0.2)
            if rng.random() < 0.02:
                return

    async def _produce(self, producer: Producer, first: int, count: int, together: bool) -> bool:
        """Send numbered records; False if the host should begin anew."""
        judge = self._world.judge
        values = [producer_value(producer.name, first + n) for n in range(count)]
        for value in values:
            judge.on_sent(value)
        self._world.busy.set()
        try:
            if together:
                result = await producer.append_batch(values, seq=first)
                slots = [result.position._replace(slot=result.position.slot + n) for n in range(count)]
                if slots[-1] == result.last:
                    for value, position in zip(values, slots, strict=True):
                        self._world.on_acked(value, position, duplicate=result.duplicate)
                return True
            futures = [producer.append_nowait(value, seq=first + n) for n, value in enumerate(values)]
            results = await asyncio.gather(*futures, return_exceptions=True)
            for value, answer in zip(values, results, strict=True):
                if not isinstance(answer, BaseException):
                    self._world.on_acked(value, answer.position, duplicate=answer.duplicate)
            return not any(isinstance(answer, BaseException) for answer in results)
        except StreamError:
            return False

    async def _open_again(self, producer: Producer) -> bool:
        """Somebody opens the producer anew while its records are on their way. Its former holder is at its end."""
        try:
            opened = await Producer.open(producer.writer, producer.name)
        except StreamError:
            return False
        last = -1 if opened.last_seq is None else opened.last_seq
        if opened.next_seq != last + 1:
            self._world.judge.find(
                f"{producer.name} was told that number {opened.next_seq} comes next, and {last} is there", "C4"
            )
        return False

    async def _append(self, producer: Producer, name: str) -> bool:
        """Send a record without a number, once."""
        judge = self._world.judge
        value = f"plain {next(self._plain)} of {name}".encode()
        judge.on_sent(value)
        try:
            result = await producer.writer.append(value)
        except StreamError as error:
            if error.outcome is Outcome.REJECTED:
                judge.on_rejected(value)
            return False
        self._world.on_acked(value, result.position)
        return True


def consumer(world: WorldState, name: str) -> Program:
    """A program that reads by the cursor when it is its turn, and says of some records that they are done."""

    async def serve(seams: Seams) -> None:
        machine = world.cluster.world.node(name)
        rng = Random(f"{world.seed}/{name}/{machine.life}")
        client = await world.connect(machine)
        while not world.calm:
            if world.reading != name:
                await asyncio.sleep(0.05)
                continue
            try:
                await _consume(world, await StreamNamespace(client).open(STREAM), name, rng)
            except (StreamError, BookKeeperError):
                await asyncio.sleep(0.1)

    return serve


async def _consume(world: WorldState, stream: Stream, name: str, rng: Random) -> None:
    never = world.cursor.opened()
    pending: list[StoredRecord] = []
    async with stream.cursor(CURSOR) as cursor, cursor.read(follow=True, on_gap="skip") as reader:
        while not world.calm and world.reading == name:
            for record in (await reader.next_batch(rng.randint(1, 20), wait=0.2)).records():
                world.cursor.on_handed(record.seq_no, never)
                pending.append(record)
            rng.shuffle(pending)
            finished = [pending.pop() for _ in range(rng.randint(0, len(pending)))]
            if finished:
                world.cursor.on_said(record.seq_no for record in finished)
                await cursor.ack(*finished)
                world.cursor.on_done(record.seq_no for record in finished)
            if rng.random() < 0.02:
                return


def cleaner(world: WorldState) -> Program:
    """A program that truncates half of what was read, applies retention, and looks for ledgers that leaked."""

    async def serve(seams: Seams) -> None:
        machine = world.cluster.world.node(CLEANER)
        rng = Random(f"{world.seed}/{CLEANER}/{machine.life}")
        client = await world.connect(machine)
        while not world.calm:
            await asyncio.sleep(1 + rng.random() * 3)
            try:
                stream = await StreamNamespace(client).open(STREAM)
                if world.tailed and rng.random() < 0.3:
                    await stream.truncate(world.tailed[len(world.tailed) // 2].position)
                await stream.apply_retention()
                await LeakedLedgers(client).delete(older_than_s=0)
            except (StreamError, BookKeeperError):
                continue

    return serve
