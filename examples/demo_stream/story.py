"""What is done to the streams, and when.

    the cluster    metadata (SQLite or ZooKeeper), four bookies, autorecovery and two gateways, each a process
    two streams    of the year's flights: an owner's process appends to one, two producers to the other by gateways
    readers        a tail of each, one by a cursor that begins again and again, one that begins at a time
    first blow     rolls are forced in both streams
    second         the owner is killed; the next one takes over
    third          a bookie is killed, and its disk deleted
    fourth         the owner is paused; the next one takes over, and the first one is woken: a zombie
    fifth          the gateway that owns a stream is killed; the other takes over
    sixth          a prefix is truncated, as far as a hold allows

With ``sabotage`` batches have no ids: what is sent again is there twice, and must be found out.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from bookkeeper.amounts import counted
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.zookeeper import free_port
from examples.demo_kit.cluster import DemoError, listens
from examples.demo_kit.pause import pause
from examples.demo_kit.story import DemoPlan, DemoStory
from examples.demo_stream.flights import GATEWAY, LIBRARY, PRODUCERS, STREAMS, read_flights
from examples.demo_stream.gateway_writers import GatewayWriter
from examples.demo_stream.owner import LOST
from examples.demo_stream.readers import ReadCheck, by_cursor, seconds_ago, tail
from examples.demo_stream.verdict import StreamVerdict, judge
from examples.demo_stream.view import StreamView
from examples.processes import Child, Children
from segments import Position, ProducerPolicy, RollPolicy, StoredRecord, StreamConfig, StreamError, remote
from segments.errors import StreamHeldError
from segments.namespace import StreamNamespace

BOOKIES: Final = ("b1", "b2", "b3", "b4")
GATEWAYS: Final = ("g1", "g2")
HOLD: Final = "audit"
MANY: Final = 100
"""Producers that a stream may remember: more than it has."""
REMEMBERED: Final = 2000
"""Batches of each producer whose places the stream remembers: what an owner's successor may send again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPlan(DemoPlan):
    """What a person may choose, and how long things take."""

    pause_s: float = 9.0
    batch_pause_s: float = 0.05
    """Between two batches of a producer."""
    segment_bytes: int = 512 * 1024


def settings(plan: StreamPlan) -> StreamConfig:
    """Those of both streams."""
    return StreamConfig(
        roll=RollPolicy(max_bytes=plan.segment_bytes, min_age_s=1.0),
        producers=ProducerPolicy(max_producers=MANY, positions_each=REMEMBERED),
    )


@dataclass(slots=True)
class StreamFacts:
    """What was done, for the table and the last line."""

    rolls: int = 0
    owners_killed: int = 0
    zombies: int = 0
    bookies_lost: int = 0
    gateways_killed: int = 0
    truncated: int = 0
    """Records that were truncated."""
    take_over_s: dict[str, float] = field(default_factory=dict)
    """From each blow until the next acknowledgement."""


class StreamStory(DemoStory[StreamPlan, StreamView, StreamFacts, StreamVerdict]):
    """The whole of it."""

    def __init__(self, plan: StreamPlan, children: Children, view: StreamView) -> None:
        super().__init__(plan, children, view, StreamFacts())
        self._namespace: StreamNamespace
        self._remote: remote.RemoteNamespace
        self._gateways: dict[str, Child] = {}
        self._ports = {name: free_port() for name in GATEWAYS}
        self._owner: Child
        self._owners = 0
        self._owned = asyncio.Event()
        self._ends: dict[str, str] = {}
        """What each owner said last, before it ended."""
        self._refused: dict[str, int] = {}
        self._writers: list[GatewayWriter] = []
        self._writing: list[asyncio.Task[None]] = []
        self._checks: dict[str, ReadCheck] = {}
        self._others: list[str] = []

    # -- from the beginning to the end --------------------------------------------------------------------

    @property
    def blows(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (
            self._roll,
            self._kill_owner,
            self._lose_bookie,
            self._wake_zombie,
            self._kill_gateway,
            self._truncate,
        )

    async def start(self) -> None:
        view, cluster, plan = self.view, self.cluster, self.plan
        view.waits("the metadata store, four bookies and two gateways start")
        await self.start_bookies(BOOKIES)
        self.picture.processes |= dict.fromkeys(BOOKIES, "runs")
        self._namespace = StreamNamespace(self.client)
        await cluster.start_autorecovery(3, 10.0)
        for name in GATEWAYS:
            await self._start_gateway(name)
        addresses = ",".join(f"127.0.0.1:{port}" for port in self._ports.values())
        self._remote = await self.stack.enter_async_context(remote.connect(f"grpc://{addresses}"))
        for name in STREAMS:
            await self._namespace.create(name, config=settings(plan))
        view.happened("four bookies, autorecovery and two gateways are up; two streams were made")
        if plan.sabotage:
            view.happened("SABOTAGE: the producers append without ids")
        await self._start_owner()
        await self._start_writers()
        await self.within(self._owned.wait(), "the first owner did not take its stream")
        await self._start_readers()
        self.beside(self._look(), "watch")
        view.happened("four producers append flights: two with the library, two through the gateways")

    async def _start_gateway(self, name: str) -> None:
        port = self._ports[name]
        self._gateways[name] = child = await self.cluster.start_gateway(name, "grpc", port)
        await self.cluster.until(lambda: listens(port), f"gateway {name}", child)
        self.picture.processes[name] = "runs"

    async def _start_owner(self) -> None:
        """Start the next owner, where its predecessor is known to have stopped."""
        self._owners += 1
        name = f"owner{self._owners}"
        starts = {producer: self.picture.acknowledged.get(producer, 0) for producer in LIBRARY}
        arguments = ["--metadata", self.cluster.uri, "--stream", STREAMS[0], "--name", name]
        arguments += ["--starts", json.dumps(starts), "--pause-s", str(self.plan.batch_pause_s * stretch())]
        arguments += ["--sabotage"] if self.plan.sabotage else []
        self._owned.clear()
        self._owner = child = await self.cluster.start_program(name, "examples.demo_stream.owner", *arguments)
        self.picture.processes[name] = "takes over"
        self.beside(self._listen(child), f"listen to {name}")

    async def _listen(self, owner: Child) -> None:
        """Note what an owner says, until it ends."""
        while line := await owner.stdout.readline():
            with suppress(ValueError):
                said = json.loads(line)
                self._ends[owner.name] = said["event"]
                await self._heard(owner, said)
        self.picture.processes[owner.name] = "ended"

    async def _heard(self, owner: Child, said: dict[str, Any]) -> None:
        picture = self.picture
        match said["event"]:
            case "owns":
                picture.processes[owner.name] = f"owns, epoch {said['epoch']}"
            case "progress" | "done":
                for producer, count in said["acknowledged"].items():
                    picture.acknowledged[producer] = max(picture.acknowledged.get(producer, 0), count)
                self._refused[owner.name] = said["duplicates"]
                if owner is self._owner:
                    self._owned.set()
            case "rolled":
                self.facts.rolls += 1
            case "lost":
                self.view.happened(f"{owner.name} was refused: {said['why']}")
            case "failed":
                self._others.append(f"{owner.name} failed: {said['why']}")

    async def _start_writers(self) -> None:
        stream = await self._remote.open(STREAMS[1])
        for feed in (await asyncio.to_thread(read_flights, GATEWAY)).values():
            writer = GatewayWriter(stream, feed, self.plan.batch_pause_s * stretch(), sabotage=self.plan.sabotage)
            self._writers.append(writer)
            self._writing.append(asyncio.create_task(writer.run(), name=f"producer {feed.producer}"))
        self.tasks += self._writing

    async def _start_readers(self) -> None:
        library = await self._namespace.open(STREAMS[0])
        gateway = await self._remote.open(STREAMS[1])
        self._read("tail, library", lambda check: tail(library, check))
        self._read("tail, gateway", lambda check: tail(gateway, check))
        self._read("cursor", lambda check: by_cursor(library, check))

    def _read(self, name: str, read: Callable[[ReadCheck], Awaitable[None]], *, from_start: bool = True) -> None:
        check = self._checks[name] = ReadCheck(name, from_start)
        self.picture.readers.append(check)

        async def run() -> None:
            try:
                await read(check)
            except StreamError as error:
                self._others.append(f"the reader {name} ended: {type(error).__name__}: {error}")

        self.beside(run(), f"reader {name}")

    # -- the blows -------------------------------------------------------------------------------------------

    async def _roll(self) -> None:
        self._owner.signal(signal.SIGUSR1)
        stream = await self._remote.open(STREAMS[1])
        with suppress(StreamError):
            await stream.roll()
            self.facts.rolls += 1
        self.view.happened("a roll was asked for in both streams, while producers append")
        gateway, since = await self._remote.open(STREAMS[1]), seconds_ago(3.0)
        self._read("since a time", lambda check: tail(gateway, check, since=since), from_start=False)

    async def _kill_owner(self) -> None:
        killed = self._owner
        await killed.kill()
        self.facts.owners_killed += 1
        self.view.happened(f"{killed.name} was killed, with appends under way")
        await self._next_owner("owner killed")

    async def _next_owner(self, blow: str) -> None:
        began = asyncio.get_running_loop().time()
        await self._start_owner()
        self.view.waits(f"{self._owner.name} takes the stream over")
        await self.within(self._owned.wait(), f"{self._owner.name} did not take the stream over")
        self.facts.take_over_s[blow] = asyncio.get_running_loop().time() - began
        refused = self._refused.get(self._owner.name, 0)
        self.view.happened(
            f"{self._owner.name} appends, {self.facts.take_over_s[blow]:.1f} s after the blow, its start included; "
            f"{counted(refused, 'repeated record', 'was', 'were')} refused as duplicates"
        )

    async def _lose_bookie(self) -> None:
        await self.cluster.kill("b1")
        self.picture.processes["b1"] = "lost"
        self.facts.bookies_lost += 1
        self.view.happened("bookie b1 was killed, and its disk deleted")

    async def _wake_zombie(self) -> None:
        zombie = self._owner
        await pause(lambda: zombie.signal(signal.SIGSTOP), lambda: zombie.signal(signal.SIGCONT), self.cluster.uri)
        self.picture.processes[zombie.name] = "paused"
        self.view.happened(f"{zombie.name} was paused, in the middle of its appends")
        await self._next_owner("owner paused")
        zombie.signal(signal.SIGCONT)
        self.view.waits(f"{zombie.name}, woken, finds out")
        status = await self.within(zombie.wait(), f"{zombie.name} did not end")
        if status != LOST:
            self._others.append(f"{zombie.name}, a zombie, ended with status {status}")
        self.facts.zombies += 1
        self.view.happened(f"{zombie.name} was woken, could append nothing, and has ended")

    async def _kill_gateway(self) -> None:
        stream = await self._remote.open(STREAMS[1])
        address = await stream.owner()
        name = next((each for each, port in self._ports.items() if address == f"127.0.0.1:{port}"), GATEWAYS[0])
        before = self._through_gateways()
        await self._gateways[name].kill()
        self.picture.processes[name] = "killed"
        self.facts.gateways_killed += 1
        self.view.happened(f"gateway {name}, which owns {STREAMS[1]}, was killed")
        began = asyncio.get_running_loop().time()

        async def goes_on() -> None:
            while self._through_gateways() < before + 200:
                self.check()
                await asyncio.sleep(0.05)

        await self.within(goes_on(), "nothing was appended through the other gateway")
        self.facts.take_over_s["gateway killed"] = took = asyncio.get_running_loop().time() - began
        again = sum(writer.duplicates + writer.sent_again for writer in self._writers)
        self.view.happened(f"the other gateway has appended 200 records, {took:.1f} s later; {again} were sent again")
        await self._start_gateway(name)
        self.view.happened(f"{name} is started again")

    def _through_gateways(self) -> int:
        return sum(writer.acknowledged for writer in self._writers)

    async def _truncate(self) -> None:
        stream = await self._namespace.open(STREAMS[0])
        segments = await stream.segments()
        middle = segments[len(segments) // 2]
        held = Position(middle.number, 0, 0)
        await stream.hold(HOLD, held, note="the auditor reads from here on")
        wanted = Position(segments[-1].number, 0, 0)
        if held < wanted:
            try:
                await stream.truncate(wanted)
                self._others.append("a truncation went over a hold")
            except StreamHeldError:
                self.view.happened(f"a truncation was refused: hold {HOLD} covers records before it")
        done = await stream.truncate(wanted, up_to_holds=True)
        self.facts.truncated = sum(segment.records for segment in done.removable)
        removed = await stream.apply_retention()
        self.view.happened(
            f"{counted(self.facts.truncated, 'record', 'was', 'were')} truncated, up to the hold; "
            f"{counted(len(removed.deleted), 'ledger', 'is', 'are')} deleted"
        )
        async with stream.read() as reader:
            first = await reader.next(timeout=self.plan.limit_s * stretch())
        if not isinstance(first, StoredRecord) or first.position < held:
            self._others.append("after the truncation the stream does not begin where the hold does")

    # -- what is waited for -----------------------------------------------------------------------------------

    def check(self) -> None:
        for task in self._writing:
            if task.done() and (error := task.exception()) is not None:
                raise DemoError(f"{task.get_name()} ended: {type(error).__name__}: {error}")

    async def _look(self) -> None:
        """Bring the picture up to date, until cancelled."""
        picture = self.picture
        while True:
            for writer in self._writers:
                picture.acknowledged[writer.feed.producer] = writer.acknowledged
            picture.refused = sum(self._refused.values()) + sum(writer.duplicates for writer in self._writers)
            with suppress(StreamError):
                for name in STREAMS:
                    picture.segments[name] = len(await (await self._namespace.open(name)).segments())
            self.view.looked()
            await asyncio.sleep(0.5)

    # -- the end ----------------------------------------------------------------------------------------------

    async def judge(self) -> StreamVerdict:
        view, picture = self.view, self.picture
        view.waits("the producers end, and the readers read the rest")
        self._owner.signal(signal.SIGTERM)
        for writer in self._writers:
            writer.stop()
        await self.within(asyncio.gather(self._owner.wait(), *self._writing), "the producers did not end")
        await asyncio.sleep(1.0)
        acknowledged = {producer: picture.acknowledged.get(producer, 0) for producer in PRODUCERS}
        acknowledged |= {writer.feed.producer: writer.acknowledged for writer in self._writers}
        picture.acknowledged |= acknowledged
        of = {"tail, library": LIBRARY, "tail, gateway": GATEWAY, "cursor": LIBRARY, "since a time": GATEWAY}
        tails = [(check, of[name]) for name, check in self._checks.items()]

        await self._until_all_read(tails, acknowledged)
        refused = sum(self._refused.values()) + sum(writer.duplicates for writer in self._writers)
        view.happened("the producers have ended; everything that was read is compared with what was acknowledged")
        return judge(acknowledged, refused, tails, self._others)

    async def _until_all_read(
        self, tails: Sequence[tuple[ReadCheck, Sequence[str]]], acknowledged: dict[str, int]
    ) -> None:
        """Wait until every reader has read everything, or none of them reads anything more."""
        loop = asyncio.get_running_loop()
        read, changed = 0, loop.time()
        while loop.time() < changed + self.plan.limit_s / 2:
            if all(check.has({each: acknowledged[each] for each in producers}) for check, producers in tails):
                break
            if (now := sum(check.read for check, _ in tails)) != read:
                read, changed = now, loop.time()
            await asyncio.sleep(0.1)
