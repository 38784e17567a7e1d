"""Faults that come by chance to a simulated world of a stream."""

from __future__ import annotations

import asyncio
from random import Random

from bookkeeper.errors import BookKeeperError
from bookkeeper.testing.world import Node
from segments.errors import StreamError
from segments.retention.stagings import Stagings
from segments.stream import Stream
from tests.segments.world.stream_cluster import EndedWrite, LostReplies
from tests.segments.world.world_state import APP, CLEANER, DRIVERS, EXECUTORS, HOSTS, READERS, WorldState


class Faults:
    """The faults of one world."""

    def __init__(self, world: WorldState, stream: Stream) -> None:
        self._world, self._stream = world, stream
        self.names: list[str] = []
        """Those that came."""

    async def one(self) -> None:
        """One fault by chance, while something is on its way."""
        owner = self._world.owner
        other = self._world.rng.choice([name for name in HOSTS if name != owner])
        faults = [
            self._kill,
            self._pause,
            self._pause,
            self._overtake,
            self._crash_bookie,
            self._end_session,
            self._lose_replies,
            self._outage,
            self._cut_off,
            self._kill_reader,
            self._kill_cleaner,
        ]
        if self._world.with_batches:
            faults += [self._kill_driver, self._kill_driver, self._pause_driver, self._kill_executor]
            faults += [self._give_up_batches, self._give_up_batches]
        chosen = self._world.rng.choice(faults)
        self.names.append(chosen.__name__.removeprefix("_"))
        await self._next(self._world.busy, 0.006, 1)  # while it is on its way
        await chosen(owner, other)

    async def _kill(self, owner: str, other: str) -> None:
        self._world.cluster.world.node(owner).crash()
        self._world.turn = other
        await asyncio.sleep(self._world.rng.random() * 2)
        self._world.cluster.world.node(owner).restart()

    async def _pause(self, owner: str, other: str) -> None:
        machine = self._world.cluster.world.node(owner)
        machine.freeze()
        await asyncio.sleep(self._world.rng.random() * 0.5)
        self._world.turn = other
        await asyncio.sleep(self._world.rng.random() * 3)
        machine.thaw()

    async def _overtake(self, owner: str, other: str) -> None:
        """Another host takes over; among gateways, a program with the library does, and goes."""
        self._world.turn = other
        if self._world.gateways:
            try:
                async with self._stream.writer(owner="a program"):
                    pass
            except (StreamError, BookKeeperError):
                pass

    async def _crash_bookie(self, owner: str, other: str) -> None:
        name = self._world.rng.choice(self._world.cluster.names)
        self._world.cluster.node(name).crash()
        await asyncio.sleep(self._world.rng.random() * 2)
        self._world.cluster.node(name).restart()
        await self._world.cluster.wait_until_up(name)

    async def _end_session(self, owner: str, other: str) -> None:
        """At once, or with the next write that is done and that nobody answers."""
        if (session := self._world.sessions.get(owner)) is None:
            return
        store, before = self._world.cluster.store, self._world.cluster.store.interference
        if len(self.names) % 2:
            store.expire(session)
            return
        store.interference = EndedWrite(session.session_id)
        await asyncio.sleep(1)
        store.interference = before

    async def _lose_replies(self, owner: str, other: str) -> None:
        store, before = self._world.cluster.store, self._world.cluster.store.interference
        store.interference = LostReplies(Random(self._world.rng.getrandbits(64)), 0.05, 0.15)
        if self._world.rng.random() < 0.5:
            self._world.turn = other
        await asyncio.sleep(1 + self._world.rng.random() * 2)
        store.interference = before

    async def _kill_reader(self, owner: str, other: str) -> None:
        """Whoever reads by the cursor is killed, or paused and woken as a former owner; another one goes on."""
        reading = self._world.reading
        machine = self._world.cluster.world.node(reading)
        self._world.reading = next(name for name in READERS if name != reading)
        if self._world.rng.random() < 0.5:
            machine.crash()
            await asyncio.sleep(self._world.rng.random())
            machine.restart()
        else:
            machine.freeze()
            await asyncio.sleep(self._world.rng.random() * 2)
            machine.thaw()

    async def _kill_cleaner(self, owner: str, other: str) -> None:
        machine = self._world.cluster.world.node(CLEANER)
        machine.crash()
        await asyncio.sleep(self._world.rng.random())
        machine.restart()

    async def _kill_driver(self, owner: str, other: str) -> None:
        """Between any two steps of a batch."""
        machine = await self._driver_at_work()
        machine.crash()
        await asyncio.sleep(self._world.rng.random() * 2)
        machine.restart()

    async def _pause_driver(self, owner: str, other: str) -> None:
        """Another one publishes, and the former one does not know."""
        machine = await self._driver_at_work()
        machine.freeze()
        await asyncio.sleep(self._world.rng.random() * 12)
        machine.thaw()

    async def _give_up_batches(self, owner: str, other: str) -> None:
        """Another program of the application deletes what it takes for left over, while a driver is at work."""
        stream = self._stream
        await self._next(self._world.publishing, 0.03)
        stagings = Stagings(stream.client, stream.id, stream.name)

        async def named() -> tuple[int, ...]:
            return tuple((await stream.chain()).ledgers)

        try:
            await stagings.clean(named, stream.client.services.seams.clock.wall_ms(), app=APP)
        except (StreamError, BookKeeperError):
            pass

    async def _driver_at_work(self) -> Node:
        world = self._world
        machine = world.cluster.world.node(world.driving)
        world.driving = next(name for name in DRIVERS if name != world.driving)
        await self._next(world.batch_busy, 0.05)
        return machine

    async def _next(self, event: asyncio.Event, within_s: float, wait_s: float = 2) -> None:
        """Wait until it comes, and a little longer."""
        event.clear()
        try:
            async with asyncio.timeout(wait_s):
                await event.wait()
        except TimeoutError:
            pass
        await asyncio.sleep(self._world.rng.random() * within_s)

    async def _kill_executor(self, owner: str, other: str) -> None:
        machine = self._world.cluster.world.node(self._world.rng.choice(EXECUTORS))
        machine.crash()
        await asyncio.sleep(self._world.rng.random())
        machine.restart()

    async def _cut_off(self, owner: str, other: str) -> None:
        """The owner reaches no bookie, or hears nothing of them; somebody takes over."""
        network = self._world.cluster.world.network
        deaf = self._world.rng.random() < 0.5
        for bookie in self._world.cluster.names:
            if deaf:
                network.cut(bookie, owner, both=False)
            else:
                network.cut(owner, bookie)
        await asyncio.sleep(self._world.rng.random())
        self._world.turn = other
        await asyncio.sleep(self._world.rng.random() * 3)
        for bookie in self._world.cluster.names:
            network.mend(bookie, owner)
            network.mend(owner, bookie)

    async def _outage(self, owner: str, other: str) -> None:
        self._world.cluster.store.begin_outage()
        await asyncio.sleep(self._world.rng.random() * 3)
        self._world.cluster.store.end_outage()
