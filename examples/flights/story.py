"""What is done to the job, and when.

    the cluster    metadata (ZooKeeper or SQLite), three bookies (ours or Apache's), one gateway, each a process
    first blow     bookie b2 is killed and its directories are deleted
    second         the driver is killed between offsets/N and commits/N; it starts again, elsewhere
    third          a new, empty bookie b4 takes the lost one's place
    fourth         the driver is killed again
    fifth          the gateway is killed; it starts again
    sixth          the driver is killed a third time
    seventh        the driver is paused, a second one takes over and commits, the first goes on

"Elsewhere" is an empty working directory: all that a driver needs to go on is in the checkpoint.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
import urllib.request
from dataclasses import dataclass, replace
from typing import Any, Final

from bookkeeper import BookKeeper
from bookkeeper.errors import BookKeeperError, ConfigError
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.zookeeper import free_port
from examples.demo_kit.cluster import DemoError
from examples.demo_kit.slow_machine import client_config
from examples.demo_kit.spark import SparkDriver, compared, start_spark
from examples.demo_kit.story import DemoPlan, DemoStory
from examples.flights.data import ROWS, cut
from examples.flights.events import Feed, FeedProgress
from examples.flights.verdict import Verdict
from examples.flights.view import FlightView
from examples.processes import Child, Children

FILES: Final = 300
CHECKPOINT: Final = "flights"
NAMESPACE: Final = "demo"
_KILL_ATTEMPTS: Final = 20
"""How often the moment between offsets/N and commits/N may be missed before the demo gives up."""
SERVES: Final = r"^bookie \S+ serves at "
"""The line by which a bookie says that it is up, and registered."""
CONCURRENT: Final = "CONCURRENT_STREAM_LOG_UPDATE"


@dataclass(frozen=True, slots=True, kw_only=True)
class FlightPlan(DemoPlan):
    """What a person may choose."""

    metadata: str = "zk"
    state_store: str = "hdfs"
    files_per_trigger: int = 3
    bookies: str = "ours"


@dataclass(slots=True)
class FlightFacts:
    """What was done, for the last line."""

    driver_killed: int = 0
    bookie_lost: int = 0
    gateway_killed: int = 0
    zombie_refused: int = 0
    first_commit_s: float = 0.0
    """Since the story began."""
    first_commit_at: float = 0.0
    """Seconds since 1970."""


class FlightStory(DemoStory[FlightPlan, FlightView, FlightFacts, Verdict]):
    """The whole of it."""

    def __init__(self, plan: FlightPlan, children: Children, view: FlightView) -> None:
        super().__init__(plan, children, view, FlightFacts())
        self._dir = plan.directory
        self._gateway_port = free_port()
        self._gateway: Child
        self._feed = Feed(f"http://127.0.0.1:{self._gateway_port}/events")
        self._drivers = 0
        self.sink = self._dir / "results.db"
        self.data = self._dir / "flights"

    # -- the cluster --------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Bring everything up that outlives a driver."""
        await asyncio.to_thread(cut, self.data, FILES)
        self.view.happened(f"{ROWS:,} flights were cut into {FILES} files")
        self.view.waits("the metadata store, three bookies and the gateway start")
        await self.cluster.start_metadata()
        if self.cluster.metadata_process is not None:
            self.view.happened("ZooKeeper is up (the one that ships in PySpark's jars)")
        await asyncio.gather(*(self._start_bookie(name) for name in ("b1", "b2", "b3")))
        await self._start_gateway()
        self.beside(self._feed.follow(), "feed")
        self.beside(self._look_around(), "watch")
        kind = "bookies of Apache BookKeeper" if self.plan.bookies == "apache" else "bookies"
        self.view.happened(f"three {kind} and the gateway are up")

    async def _start_bookie(self, name: str) -> None:
        self.picture.bookies[name] = "starting"
        if self.plan.bookies == "apache":
            child = await self._start_apache(name)
        else:
            places = ("--dir", str(self._dir / name), "--listen", "127.0.0.1:0")
            child = await self.cluster.start_bk(name, "bookie", *places, "--bookie-id", name)
            await self.cluster.until(lambda: serves(child), f"bookie {name}", child)
        self.cluster.bookies[name] = child
        self.picture.bookies[name] = "up"

    async def _start_apache(self, name: str) -> Child:
        """A Java bookie, up to where it answers; registered is not enough there."""
        from examples.apache_servers import QUICK_ADDS, ApacheBookie

        settings = {**QUICK_ADDS, "bookieId": name}
        try:
            bookie = await asyncio.to_thread(ApacheBookie, self._dir / name, self.cluster.uri, settings=settings)
        except ConfigError as error:
            raise DemoError(f"Apache's bookies cannot be had: {error}") from error
        child = await self.children.start(name, bookie.command, directory=bookie.directory)
        await self.cluster.until(lambda: asyncio.to_thread(bookie.serves), f"Java bookie {name}", child)
        return child

    async def _start_gateway(self) -> None:
        self.picture.gateway = "starting"
        port, url = self._gateway_port, f"http://127.0.0.1:{self._gateway_port}/webhdfs/v1/?op=GETFILESTATUS"
        self._gateway = child = await self.cluster.start_gateway("gateway", "webhdfs", port, "--namespace", NAMESPACE)
        await self.cluster.until(lambda: asyncio.to_thread(http_ok, url), "the gateway", child)
        self.picture.gateway = "up"

    async def _look_around(self) -> None:
        """Keep what the picture shows of the cluster up to date."""
        while True:
            try:
                async with BookKeeper.connect(self.cluster.uri, config=client_config()) as client:
                    self.picture.ledgers = len([ledger async for ledger in client.list_ledgers()])
            except BookKeeperError:
                pass  # the store is busy or away: the picture keeps what it had
            self.picture.bytes_stored = sum(
                path.stat().st_size
                for name in self.cluster.bookies
                for path in (self._dir / name).rglob("*.log")
                if path.exists()
            )
            await asyncio.sleep(5 * stretch())

    # -- drivers ------------------------------------------------------------------------------------------

    async def start_driver(self) -> SparkDriver:
        """A driver in an empty working directory, as on another machine."""
        self._drivers += 1
        child = await start_spark(
            self.children,
            self._dir / f"driver-{self._drivers}",
            "examples.flights.job",
            *("--data", str(self.data), "--sink", str(self.sink)),
            *("--checkpoint", self.location, "--state-store", self.plan.state_store),
            *("--files-per-trigger", str(self.plan.files_per_trigger), "--conf", json.dumps(self.conf)),
        )
        self.view.waits("Spark's JVM starts and plans its first batch, 10 s or more on a busy machine")
        driver = SparkDriver(child)
        self.picture.driver = f"number {self._drivers}"
        self.beside(driver.listen(self.view.on_progress), f"listen to {child.name}")
        return driver

    @property
    def location(self) -> str:
        return f"webhdfs://127.0.0.1:{self._gateway_port}/{CHECKPOINT}"

    @property
    def conf(self) -> dict[str, str]:
        from spark_wal.service import spark_conf

        return spark_conf(self.location)

    # -- what is done to it -------------------------------------------------------------------------------

    async def strike(self) -> None:
        """Tell the story from the first batch to the last file."""
        driver = await self.start_driver()
        await self._reach(driver, lambda w: w.commits >= 0)
        self.facts.first_commit_s, self.facts.first_commit_at = self.picture.seconds, time.time()
        self.view.happened(f"the first batch is committed {self.facts.first_commit_s:.1f} s after the start")
        await self._reach(driver, lambda w: w.commits >= 5)
        await self._lose_bookie("b2")
        driver = await self._kill_driver(driver, after=12)
        await self._reach(driver, lambda w: w.commits >= 22)
        await self._start_bookie("b4")
        self.view.happened("a new, empty bookie b4 has joined")
        driver = await self._kill_driver(driver, after=28)
        if self.plan.sabotage:
            return await self._finish(driver)
        driver = await self._kill_gateway(driver, after=40)
        driver = await self._kill_driver(driver, after=52)
        driver = await self._pause_driver(driver, after=64)
        await self._finish(driver)
        return None

    async def _reach(self, driver: SparkDriver, condition: Any) -> FeedProgress:
        """Wait for the feed; a driver that ends first is an error."""
        reached = asyncio.create_task(self._feed.until(condition))
        ended = asyncio.create_task(driver.ended.wait())
        try:
            await asyncio.wait([reached, ended], return_when=asyncio.FIRST_COMPLETED)
            if reached.done():
                return reached.result()
            raise driver.error("has ended too early")
        finally:
            reached.cancel()
            ended.cancel()

    async def _lose_bookie(self, name: str) -> None:
        await self.cluster.kill(name)
        self.picture.bookies[name] = "lost"
        self.facts.bookie_lost += 1
        self.view.happened(f"bookie {name} was killed and its directories deleted")

    async def _kill_driver(self, driver: SparkDriver, *, after: int) -> SparkDriver:
        """SIGKILL Python and JVM between offsets/N and commits/N; start another one elsewhere."""
        wanted = after
        for _ in range(_KILL_ATTEMPTS):
            watch = await self._reach(
                driver, lambda w, n=wanted: w.offsets >= n and w.offsets > w.commits and w.state_since_offsets > 0
            )
            batch = watch.offsets
            driver.child.signal(signal.SIGKILL)
            await driver.ended.wait()
            if await self._committed(batch):
                self.view.happened(f"the driver was killed just after batch {batch} was committed: too late, again")
                driver = await self.start_driver()
                wanted = batch + 3
                continue
            self.facts.driver_killed += 1
            self.view.happened(f"the driver was killed between offsets/{batch} and commits/{batch}")
            if self.plan.sabotage and self.facts.driver_killed == 2:
                await self._throw_away(batch)
            return await self.start_driver()
        raise DemoError(f"the moment between offsets/N and commits/N was missed {_KILL_ATTEMPTS} times")

    async def _committed(self, batch: int) -> bool:
        await asyncio.sleep(0.2 * stretch())  # what was on its way to the gateway when the driver died
        return await asyncio.to_thread(http_ok, self._http(f"commits/{batch}", "GETFILESTATUS"))

    async def _throw_away(self, batch: int) -> None:
        for number in range(batch - 2, batch + 1):
            for log in ("offsets", "commits"):
                await asyncio.to_thread(http_ok, self._http(f"{log}/{number}", "DELETE"), "DELETE")
        self.view.happened(f"SABOTAGE: offsets/{batch - 2} to offsets/{batch} were thrown away, with their commits")

    def _http(self, path: str, op: str) -> str:
        return f"http://127.0.0.1:{self._gateway_port}/webhdfs/v1/{CHECKPOINT}/{path}?op={op}"

    async def _kill_gateway(self, driver: SparkDriver, *, after: int) -> SparkDriver:
        await self._reach(driver, lambda w: w.commits >= after)
        await self._gateway.kill()
        self.picture.gateway = "killed"
        self.facts.gateway_killed += 1
        began = time.monotonic()
        await self._start_gateway()
        self.view.happened(f"the gateway was killed; another one answers after {time.monotonic() - began:.1f} s")
        try:
            await self._reach(driver, lambda w: w.commits >= after + 4)
        except DemoError:
            # The one request Spark's client never repeats is the upload of a file's bytes: a query that was
            # in it ends and is started again by whoever runs it.
            self.view.happened("the driver was in the middle of an upload and gave up; it starts again")
            driver = await self.start_driver()
        return driver

    async def _pause_driver(self, driver: SparkDriver, *, after: int) -> SparkDriver:
        """SIGSTOP a driver, let a second one commit, let the first go on: it must find out and change nothing."""
        watch = await self._reach(driver, lambda w: w.commits >= after and w.offsets > w.commits)
        driver.child.signal(signal.SIGSTOP)
        self.view.happened(f"the driver was paused in batch {watch.offsets}")
        second = await self.start_driver()
        await self._reach(second, lambda w, n=watch.offsets: w.commits >= n + 2)
        driver.child.signal(signal.SIGCONT)
        self.view.happened("a second driver has taken over and committed; the first goes on")
        await driver.ended.wait()
        if CONCURRENT in driver.failed or "FileAlreadyExists" in driver.failed:
            self.facts.zombie_refused += 1
            self.view.happened(f"the first one was refused: [{CONCURRENT}]")
        else:
            self.view.happened(f"the first one was NOT refused: {driver.failed or 'it ended without an error'}")
        return second

    async def _finish(self, driver: SparkDriver) -> None:
        await driver.until_finished()
        self.picture.driver = "finished"
        self.view.happened("the stream has ended; the same result in batch is computed")

    async def judge(self) -> Verdict:
        """The same result in batch, in a Spark session of its own, compared row by row."""
        self.view.waits("another JVM starts, computes the same result in batch and compares, 15 s or more")
        arguments = ("--data", str(self.data), "--sink", str(self.sink))
        verdict = Verdict(**await compared(self.children, self._dir, "examples.flights.verdict", *arguments))
        return verdict if self.plan.sabotage else replace(verdict, missed=self._missed(verdict.replayed))

    def _missed(self, replayed: int) -> tuple[str, ...]:
        done = {
            "the driver was killed three times": self.facts.driver_killed >= 3,
            "three batches were begun more than once": replayed >= 3,
            "the gateway was killed": self.facts.gateway_killed == 1,
            "a zombie was refused": self.facts.zombie_refused == 1,
        }
        return tuple(f"not so: {what}" for what, is_done in done.items() if not is_done)


async def serves(bookie: Child) -> bool:
    """Whether a bookie has said that it is up."""
    return re.search(SERVES, bookie.said, re.MULTILINE) is not None


def http_ok(url: str, method: str = "GET") -> bool:
    """Whether a request is answered with success."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=10 * stretch()) as reply:
            return bool(200 <= reply.status < 300)
    except OSError:
        return False
