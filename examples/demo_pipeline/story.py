"""What is done to the pipeline, and when.

    the cluster    metadata (SQLite or ZooKeeper), four bookies, autorecovery, and a pair of gateways for checkpoints
    two streams    of flights, whose owner is a feeder's process, and of totals, which the query writes
    the query      a driver and two executors of Spark, from stream to stream
    first blow     the driver is killed between offsets/N and commits/N; it starts again, elsewhere
    second         a bookie is killed, and its disk deleted
    third          an executor is killed
    fourth         the feeder, which owns the stream of flights, is killed; the next one takes over
    fifth          the active gateway is killed; the other takes over
    last           the driver is killed after it has published batch N and before commits/N, as often as it takes

"Elsewhere" is an empty working directory: all that a driver needs to go on is in the checkpoint and in the streams.

With ``sabotage`` each driver publishes under another application's name, so that a batch which comes again is not
known any more: it is there twice, and must be found out.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.waiting import ProgressSource, StalledError, until_async
from bookkeeper.launchers.zookeeper import free_port
from examples.demo_kit.cluster import DemoError
from examples.demo_kit.spark import SparkDriver, compared, start_spark
from examples.demo_kit.story import DemoPlan, DemoStory
from examples.demo_pipeline.totals import FLIGHTS, TOTALS
from examples.demo_pipeline.verdict import PipelineVerdict
from examples.demo_pipeline.view import PipelineView
from examples.flights.data import ROWS, cut
from examples.flights.events import Feed, FeedProgress
from examples.processes import Child, Children
from segments import RollPolicy, StreamConfig, StreamError
from segments.namespace import StreamNamespace

BOOKIES: Final = ("b1", "b2", "b3", "b4")
GATEWAYS: Final = ("g1", "g2")
NAMESPACE: Final = "pipeline"
LOCATION: Final = "webhdfs://ckpt/pipeline"
"""Of the checkpoint, at either of the two gateways."""
APP: Final = "pipeline"
FILES: Final = 120
"""Of flights. The feeder appends them one after the other."""
_ATTEMPTS: Final = 12
"""How often the moment between publishing a batch and ``commits/N`` may be missed."""
_EXECUTOR: Final = b"CoarseGrainedExecutorBackend"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelinePlan(DemoPlan):
    """What a person may choose, and how long things take."""

    files: int = FILES
    file_pause_s: float = 3.0
    """Of the feeder, between two files, until the last blow was struck."""
    limit_s: float = 120.0


@dataclass(slots=True)
class PipelineFacts:
    """What was done, for the table and the last line."""

    drivers_killed: int = 0
    published_uncommitted: int = 0
    """Drivers that were killed between publishing a batch and ``commits/N``."""
    executors_killed: int = 0
    feeders_killed: int = 0
    bookies_lost: int = 0
    gateways_killed: int = 0
    first_commit_s: float = 0.0


class PipelineStory(DemoStory[PipelinePlan, PipelineView, PipelineFacts, PipelineVerdict]):
    """The whole of it."""

    def __init__(self, plan: PipelinePlan, children: Children, view: PipelineView) -> None:
        super().__init__(plan, children, view, PipelineFacts())
        self._namespace: StreamNamespace
        self._ports = {name: free_port() for name in GATEWAYS}
        self._gateways: dict[str, Child] = {}
        self._feeds = [Feed(f"http://127.0.0.1:{port}/events") for port in self._ports.values()]
        self._driver: SparkDriver
        self._drivers = 0
        self._feeder: Child
        self._feeders = 0
        self._fed = asyncio.Event()
        self._feeding = asyncio.Event()
        self._others: list[str] = []
        self.data = plan.directory / "flights"

    # -- from the beginning to the end --------------------------------------------------------------------

    async def start(self) -> None:
        view, cluster, plan = self.view, self.cluster, self.plan
        view.waits("the metadata store, four bookies and two gateways start")
        cutting = asyncio.create_task(asyncio.to_thread(cut, self.data, plan.files))
        await self.start_bookies(BOOKIES)
        self.picture.processes |= dict.fromkeys(BOOKIES, "runs")
        self._namespace = StreamNamespace(self.client)
        await cluster.start_autorecovery(3, 10.0)
        for name in GATEWAYS:
            await self._start_gateway(name)
        config = StreamConfig(roll=RollPolicy(max_bytes=4 << 20, min_age_s=1.0))
        for stream in (FLIGHTS, TOTALS):
            await self._namespace.create(stream, config=config)
        await cutting
        view.happened("four bookies, autorecovery and a pair of gateways are up; two streams were made")
        if plan.sabotage:
            view.happened("SABOTAGE: each driver publishes under another name, and knows no earlier batch")
        self.tasks += [asyncio.create_task(feed.follow()) for feed in self._feeds]
        self.beside(self._look(), "watch")
        await self._start_feeder()
        await self._start_driver()
        await self._reach(lambda told: told.commits >= 0)
        self.facts.first_commit_s = self.picture.seconds
        view.happened(f"the first batch is committed {self.picture.seconds:.0f} s after the start")

    @property
    def blows(self) -> Sequence[Callable[[], Awaitable[None]]]:
        if self.plan.sabotage:
            return (self._kill_published,)
        return (
            self._kill_driver,
            self._lose_bookie,
            self._kill_executor,
            self._kill_feeder,
            self._kill_gateway,
            self._kill_published,
        )

    async def strike(self) -> None:
        for blow in self.blows:
            await self._batches(3)
            await blow()
        await self._batches(2)

    # -- the cluster --------------------------------------------------------------------------------------

    async def _start_gateway(self, name: str) -> None:
        arguments = ("--namespace", NAMESPACE)
        child = await self.cluster.start_gateway(name, "webhdfs", self._ports[name], *arguments)
        self._gateways[name] = child
        await child.until_said("serves namespace|stands by", f"gateway {name}")
        self.picture.processes[name] = "active" if "serves namespace" in child.said else "stands by"

    async def _start_feeder(self) -> None:
        self._feeders += 1
        name = f"feeder{self._feeders}"
        arguments = ["--metadata", self.cluster.uri, "--stream", FLIGHTS, "--name", name, "--data", str(self.data)]
        arguments += ["--pause-s", f"{self.plan.file_pause_s * stretch():g}"]
        self._feeding.clear()
        self._feeder = child = await self.cluster.start_program(name, "examples.demo_pipeline.feeder", *arguments)
        self.picture.processes[name] = "starts"
        self.beside(self._listen_to_feeder(child), f"listen to {name}")

    async def _listen_to_feeder(self, feeder: Child) -> None:
        while line := await feeder.stdout.readline():
            with suppress(ValueError):
                said = json.loads(line)
                if said["event"] == "failed":
                    self._others.append(f"{feeder.name} failed: {said['why']}")
                    continue
                self.picture.flights = max(self.picture.flights, said["acknowledged"])
                self.picture.processes[feeder.name] = "appends"
                self._feeding.set()
                if said["event"] == "done":
                    self.picture.processes[feeder.name] = "done"
                    self._fed.set()

    # -- drivers ------------------------------------------------------------------------------------------

    async def _start_driver(self) -> None:
        """A driver in an empty working directory, as on another machine."""
        self._drivers += 1
        name = f"driver{self._drivers}"
        app = f"{APP}-{self._drivers}" if self.plan.sabotage else APP
        child = await start_spark(
            self.children,
            self.plan.directory / name,
            "examples.demo_pipeline.driver",
            *("--metadata", self.cluster.uri, "--checkpoint", LOCATION),
            *("--app", app, "--finish", str(self._finish), "--conf", json.dumps(self._conf())),
        )
        self.view.waits("Spark's JVMs start and plan a batch, 10 s or more on a busy machine")
        self._driver = driver = SparkDriver(child)
        self.picture.processes[name] = "runs"
        self.beside(self._listen_to_driver(driver), f"listen to {name}")

    @property
    def _finish(self) -> Path:
        return self.plan.directory / "finish"

    def _conf(self) -> dict[str, str]:
        from spark_wal.service import spark_conf

        return spark_conf(LOCATION, gateways=[f"127.0.0.1:{port}" for port in self._ports.values()])

    async def _listen_to_driver(self, driver: SparkDriver) -> None:
        await driver.listen(self._on_batch)
        self.picture.processes[driver.child.name] = "ended"

    def _on_batch(self, line: Mapping[str, Any]) -> None:
        self.picture.counted += line["rows"]
        self.picture.trigger_ms, self.picture.state_rows = line["ms"], line["state_rows"]
        self.view.looked()

    # -- what is done to it -------------------------------------------------------------------------------

    async def _kill_driver(self) -> None:
        await self._reach(lambda told: told.offsets > told.commits and told.state_since_offsets > 0)
        batch = await self._end_driver()
        self.view.happened(f"the driver and its executors were killed in batch {batch}")
        await self._start_driver()

    async def _end_driver(self) -> int:
        """SIGKILL Python and all JVMs. Returns the last batch that was planned."""
        batch = self._progress().offsets
        self._driver.child.signal(signal.SIGKILL)
        await self._driver.ended.wait()
        self.picture.processes[self._driver.child.name] = "killed"
        self.facts.drivers_killed += 1
        return batch

    async def _kill_published(self) -> None:
        """Kill drivers until one has published a batch of which Spark's commit log knows nothing."""
        for _ in range(_ATTEMPTS):
            before = self._progress().commits
            records = await self._published()
            while (now := await self._published()) == records and self._progress().commits <= before + 1:
                self._driver.require_running()
                await asyncio.sleep(0.002)
            batch = await self._end_driver()
            await asyncio.sleep(0.3 * stretch())  # what was on its way to a gateway when the driver died
            if now != records and self._progress().commits < batch:
                self.facts.published_uncommitted += 1
                self.view.happened(f"a driver was killed between publishing batch {batch} and commits/{batch}")
                await self._start_driver()
                return
            self.view.happened("a driver was killed, but not between publishing and committing: again")
            await self._start_driver()
            await self._batches(2)
        raise DemoError(f"the moment between publishing and committing was missed {_ATTEMPTS} times")

    async def _published(self) -> int:
        """The number behind the last record of the stream of totals."""
        return (await (await self._namespace.open(TOTALS)).info()).records

    async def _lose_bookie(self) -> None:
        await self.cluster.kill("b1")
        self.picture.processes["b1"] = "lost"
        self.facts.bookies_lost += 1
        self.view.happened("bookie b1 was killed, and its disk deleted")

    async def _kill_executor(self) -> None:
        async def there() -> list[int]:
            while not (found := executors(self._driver.child.pid)):
                self._driver.require_running()
                await asyncio.sleep(0.1)
            return found

        found = await self.within(there(), "no process of an executor was found")
        os.kill(found[0], signal.SIGKILL)
        self.facts.executors_killed += 1
        self.view.happened(f"one of {len(found)} executors was killed")

    async def _kill_feeder(self) -> None:
        killed = self._feeder
        await killed.kill()
        self.picture.processes[killed.name] = "killed"
        self.facts.feeders_killed += 1
        self.view.happened(f"{killed.name}, the owner of the stream of flights, was killed at {self.picture.flights}")
        await self._start_feeder()
        await self.within(self._feeding.wait(), f"{self._feeder.name} did not take the stream over")
        self.view.happened(f"{self._feeder.name} goes on at record {self.picture.flights}")

    async def _kill_gateway(self) -> None:
        name = next(each for each in GATEWAYS if self.picture.processes[each] == "active")
        await self._gateways[name].kill()
        self.picture.processes[name] = "killed"
        self.facts.gateways_killed += 1
        other = next(each for each in GATEWAYS if each != name)
        self.picture.processes[other] = "active"
        self.view.happened(f"gateway {name}, the active one, was killed")
        before = self._progress().commits
        try:
            await self._reach(lambda told: told.commits > before + 1)
        except DemoError:
            if not self._driver.ended.is_set():
                raise
            # The one request that Spark's client never repeats is the upload of a file's bytes.
            self.view.happened("the driver was in the middle of an upload and gave up; it starts again")
            await self._start_driver()
        await self._start_gateway(name)

    # -- what is waited for -----------------------------------------------------------------------------------

    def _progress(self) -> FeedProgress:
        """What the gateways have told: the later of both."""
        told = [feed.watch for feed in self._feeds]
        latest = max(told, key=lambda each: (each.offsets, each.state_since_offsets))
        return FeedProgress(latest.offsets, max(each.commits for each in told), latest.state_since_offsets)

    async def _batches(self, count: int) -> None:
        """Wait until some more batches are committed."""
        before = self._progress().commits
        await self._reach(lambda told: told.commits >= before + count)

    async def _reach(self, condition: Callable[[FeedProgress], bool]) -> None:
        """Wait for what the gateways tell. Raises DemoError: the driver has ended, or makes no progress."""
        driver = self._driver
        watched = ProgressSource(logs=[driver.child.log], pids=[driver.child.pid])
        while not condition(seen := self._progress()):
            driver.require_running()

            def goes_on(seen: FeedProgress = seen) -> bool:
                return driver.ended.is_set() or self._progress() != seen

            try:
                await until_async(goes_on, "the end of its next batch", watched, quiet_s=self.plan.limit_s)
            except StalledError as error:
                raise driver.error(f"goes on no more: {error}") from None

    async def _look(self) -> None:
        """Bring the picture up to date, until cancelled."""
        picture = self.picture
        picture.flights_in_all = ROWS
        while True:
            told = self._progress()
            picture.planned, picture.committed = told.offsets, told.commits
            with suppress(StreamError):
                for name in (FLIGHTS, TOTALS):
                    picture.segments[name] = len(await (await self._namespace.open(name)).segments())
            self.view.looked()
            await asyncio.sleep(0.5 * stretch())

    # -- the end ----------------------------------------------------------------------------------------------

    async def judge(self) -> PipelineVerdict:
        view = self.view
        view.waits("the feeder appends the rest without pauses, and the query reads it")
        self._feeder.signal(signal.SIGUSR1)
        await self._fed.wait()
        self._finish.touch()
        await self._driver.until_finished()
        view.happened("the query has read all flights, and has ended")
        view.waits("another JVM starts, computes the same result in batch and compares")
        arguments = ("--data", str(self.data), "--metadata", self.cluster.uri)
        found = await compared(self.children, self.plan.directory, "examples.demo_pipeline.verdict", *arguments)
        return PipelineVerdict(**{**found, "others": tuple(self._others)})


def executors(driver: int) -> list[int]:
    """The processes of a driver's executors: JVMs in its group."""
    found = []
    for directory in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            if _EXECUTOR in (directory / "cmdline").read_bytes():
                group = int((directory / "stat").read_text().rpartition(")")[2].split()[2])
                if group == driver:
                    found.append(int(directory.name))
    return sorted(found)
