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
import shutil
import signal
import sys
import time
import urllib.request
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from bookkeeper import BookKeeper
from bookkeeper.errors import BookKeeperError, ConfigError
from bookkeeper.gateways.lease import LEASE_S
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.waiting import StalledError
from bookkeeper.launchers.zookeeper import free_port
from bookkeeper.meta.service_uri import sqlite_uri
from examples.demo_kit.slow_machine import client_config, environment
from examples.flights.events import Feed, FeedProgress
from examples.flights.verdict import Verdict
from examples.flights.view import Picture, View
from examples.processes import Child, Children

ROOT: Final = Path(__file__).resolve().parents[2]
FILES: Final = 300
CHECKPOINT: Final = "flights"
NAMESPACE: Final = "demo"
_KILL_ATTEMPTS: Final = 20
"""How often the moment between offsets/N and commits/N may be missed before the demo gives up."""
SERVES: Final = r"^bookie \S+ serves at "
"""The line by which a bookie says that it is up, and registered."""
CONCURRENT: Final = "CONCURRENT_STREAM_LOG_UPDATE"


class DemoError(Exception):
    """The demo could not go on; the message says what and where to look."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a person may choose."""

    directory: Path
    metadata: str = "zk"
    state_store: str = "hdfs"
    sabotage: bool = False
    files_per_trigger: int = 3
    bookies: str = "ours"


@dataclass(slots=True)
class Told:
    """What was done, for the last line."""

    driver_killed: int = 0
    bookie_lost: int = 0
    gateway_killed: int = 0
    zombie_refused: int = 0
    zombie_words: str = ""
    first_commit_s: float = 0.0


@dataclass(slots=True)
class Driver:
    """One Spark driver: a Python process and its JVM, in a working directory of its own."""

    child: Child
    failed: str = ""
    finished: bool = False
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Story:
    """The whole of it. ``run`` returns when the stream has read all files."""

    def __init__(self, options: Options, children: Children, view: View, picture: Picture) -> None:
        self._options = options
        self._children = children
        self._view = view
        self._picture = picture
        self._dir = options.directory
        self._gateway_port = 0
        self._bookies: dict[str, Child] = {}
        self._gateway: Child | None = None
        self._feed: Feed | None = None
        self._drivers = 0
        self._tasks: list[asyncio.Task[None]] = []
        self.told = Told()
        self.sink = self._dir / "results.db"
        self.data = self._dir / "flights"

    # -- the cluster --------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Bring everything up that outlives a driver."""
        self._view.waits("the metadata store, three bookies and the gateway start")
        await self._start_metadata()
        await self._bk("init")
        await asyncio.gather(*(self._start_bookie(name) for name in ("b1", "b2", "b3")))
        await self._start_gateway()
        self._feed = Feed(f"http://127.0.0.1:{self._gateway_port}/events")
        self._tasks.append(asyncio.create_task(self._feed.follow()))
        self._tasks.append(asyncio.create_task(self._look_around()))

    async def _start_metadata(self) -> None:
        if self._options.metadata == "sqlite":
            self.metadata = sqlite_uri(f"{self._dir}/metadata.db")
            return
        port = free_port()
        self.metadata = f"zk+hierarchical://127.0.0.1:{port}/ledgers"
        child = await self._start_bk(
            "zookeeper", "zookeeper", "--dir", str(self._dir / "zookeeper"), "--port", str(port)
        )
        await self._until_up("ZooKeeper", child, lambda: listening(port))
        self._view.happened("ZooKeeper is up (the one that ships in PySpark's jars)")

    async def _start_bookie(self, name: str) -> None:
        self._picture.bookies[name] = "starting"
        if self._options.bookies == "apache":
            child = await self._start_apache(name)
        else:
            child = await self._start_bk(
                name, "bookie", "--dir", str(self._dir / name), "--bookie-id", name, "--listen", "127.0.0.1:0"
            )
            await self._up(child.until_said(SERVES, f"bookie {name}", self._dir / name))
        self._bookies[name] = child
        self._picture.bookies[name] = "up"

    async def _start_apache(self, name: str) -> Child:
        """A Java bookie, up to where it answers; registered is not enough there."""
        from examples.apache_servers import QUICK_ADDS, ApacheBookie

        settings = {**QUICK_ADDS, "bookieId": name}
        try:
            bookie = await asyncio.to_thread(ApacheBookie, self._dir / name, self.metadata, settings=settings)
        except ConfigError as error:
            raise DemoError(f"Apache's bookies cannot be had: {error}") from error
        child = await self._children.start(name, bookie.command, directory=bookie.directory)
        await self._until_up(f"Java bookie {name}", child, bookie.serves)
        return child

    async def _start_gateway(self) -> None:
        self._picture.gateway = "starting"
        self._gateway_port = self._gateway_port or free_port()
        port = self._gateway_port
        child = await self._start_bk(
            "gateway",
            *("gateway", "webhdfs", "--listen", f"127.0.0.1:{port}", "--namespace", NAMESPACE),
            *("--lease-s", f"{LEASE_S * stretch():g}"),
        )
        await self._until_up(
            "the gateway", child, lambda: http_ok(f"http://127.0.0.1:{port}/webhdfs/v1/?op=GETFILESTATUS")
        )
        self._gateway = child
        self._picture.gateway = "up"

    async def _start_bk(self, name: str, *arguments: str) -> Child:
        return await self._children.start(
            name,
            [sys.executable, "-m", "bookkeeper.admin", *arguments],
            environment=self._environment(),
            directory=ROOT,
        )

    def _environment(self) -> dict[str, str]:
        return {"BK_METADATA": self.metadata, "PYTHONPATH": str(ROOT), **environment()}

    async def _bk(self, *arguments: str) -> str:
        child = await self._children.start(
            "bk",
            [sys.executable, "-m", "bookkeeper.admin", *arguments],
            environment=self._environment(),
            directory=ROOT,
            pipe_output=True,
        )
        output = (await child.stdout.read()).decode()
        if await child.wait():
            raise DemoError(f"bk {' '.join(arguments)} failed; {child.log}:\n{child.last_words()}")
        return output

    async def _until_up(self, what: str, child: Child, is_up: Callable[[], bool]) -> None:
        async def asked() -> bool:
            return await asyncio.to_thread(is_up)

        await self._up(child.until(asked, what, self._dir / child.name))

    async def _up(self, wait: Awaitable[None]) -> None:
        try:
            await wait
        except StalledError as error:
            raise DemoError(str(error)) from error

    async def _look_around(self) -> None:
        """Keep what the picture shows of the cluster up to date."""
        while True:
            try:
                async with BookKeeper.connect(self.metadata, config=client_config()) as client:
                    self._picture.ledgers = len([ledger async for ledger in client.list_ledgers()])
            except BookKeeperError:
                pass  # the store is busy or away: the picture keeps what it had
            self._picture.bytes_stored = sum(
                path.stat().st_size
                for name in self._bookies
                for path in (self._dir / name).rglob("*.log")
                if path.exists()
            )
            await asyncio.sleep(5 * stretch())

    # -- drivers ------------------------------------------------------------------------------------------

    async def start_driver(self) -> Driver:
        """A driver in an empty working directory, as on another machine."""
        self._drivers += 1
        home = self._dir / f"driver-{self._drivers}"
        home.mkdir()
        command = [
            sys.executable, "-m", "examples.flights.job",
            "--data", str(self.data), "--sink", str(self.sink),
            "--checkpoint", self.location, "--state-store", self._options.state_store,
            "--files-per-trigger", str(self._options.files_per_trigger), "--conf", json.dumps(self.conf),
        ]  # fmt: skip
        child = await self._children.start(
            f"driver-{self._drivers}",
            command,
            directory=home,
            environment=self._driver_environment(home),
            pipe_output=True,
        )
        self._view.waits("Spark's JVM starts and plans its first batch, 10 s or more on a busy machine")
        driver = Driver(child)
        self._picture.driver = f"number {self._drivers}"
        self._tasks.append(asyncio.create_task(self._listen(driver)))
        return driver

    def _driver_environment(self, home: Path) -> dict[str, str]:
        from bookkeeper.launchers.java import find_java

        return {
            "PYTHONPATH": str(ROOT),
            "JAVA_HOME": str(find_java().home),
            "SPARK_LOCAL_DIRS": str(home / "local"),
            "PYSPARK_PYTHON": sys.executable,
        }

    @property
    def location(self) -> str:
        return f"webhdfs://127.0.0.1:{self._gateway_port}/{CHECKPOINT}"

    @property
    def conf(self) -> dict[str, str]:
        from spark_wal.service import spark_conf

        return spark_conf(self.location)

    async def _listen(self, driver: Driver) -> None:
        """Read what a driver prints until it has ended."""
        async for raw in driver.child.stdout:
            try:
                line = json.loads(raw)
            except ValueError:
                continue  # Spark itself may print
            if "batch" in line:
                self._view.on_progress(line)
            driver.failed = line.get("failed", driver.failed)
            driver.finished = driver.finished or line.get("finished", False)
        await driver.child.wait()
        driver.ended.set()

    # -- what is done to it -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Tell the story from the first batch to the last file."""
        assert self._feed is not None
        driver = await self.start_driver()
        await self._reach(driver, lambda w: w.commits >= 0)
        self.told.first_commit_s = self._picture.seconds
        self._view.happened(f"the first batch is committed {self.told.first_commit_s:.1f} s after the start")
        await self._reach(driver, lambda w: w.commits >= 5)
        await self._lose_bookie("b2")
        driver = await self._kill_driver(driver, after=12)
        await self._reach(driver, lambda w: w.commits >= 22)
        await self._start_bookie("b4")
        self._view.happened("a new, empty bookie b4 has joined")
        driver = await self._kill_driver(driver, after=28)
        if self._options.sabotage:
            return await self._finish(driver)
        driver = await self._kill_gateway(driver, after=40)
        driver = await self._kill_driver(driver, after=52)
        driver = await self._pause_driver(driver, after=64)
        await self._finish(driver)
        return None

    async def _reach(self, driver: Driver, condition: Any) -> FeedProgress:
        """Wait for the feed; a driver that ends first is an error."""
        assert self._feed is not None
        reached = asyncio.create_task(self._feed.until(condition))
        ended = asyncio.create_task(driver.ended.wait())
        try:
            await asyncio.wait([reached, ended], return_when=asyncio.FIRST_COMPLETED)
            if reached.done():
                return reached.result()
            raise DemoError(
                f"the driver has ended too early: {driver.failed or 'no reason given'}; "
                f"{driver.child.log}:\n{driver.child.last_words()}"
            )
        finally:
            reached.cancel()
            ended.cancel()

    async def _lose_bookie(self, name: str) -> None:
        await self._bookies[name].kill()
        shutil.rmtree(self._dir / name)
        del self._bookies[name]
        self._picture.bookies[name] = "lost"
        self.told.bookie_lost += 1
        self._view.happened(f"bookie {name} was killed and its directories deleted")

    async def _kill_driver(self, driver: Driver, *, after: int) -> Driver:
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
                self._view.happened(f"the driver was killed just after batch {batch} was committed: too late, again")
                driver = await self.start_driver()
                wanted = batch + 3
                continue
            self.told.driver_killed += 1
            self._view.happened(f"the driver was killed between offsets/{batch} and commits/{batch}")
            if self._options.sabotage and self.told.driver_killed == 2:
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
        self._view.happened(f"SABOTAGE: offsets/{batch - 2} to offsets/{batch} were thrown away, with their commits")

    def _http(self, path: str, op: str) -> str:
        return f"http://127.0.0.1:{self._gateway_port}/webhdfs/v1/{CHECKPOINT}/{path}?op={op}"

    async def _kill_gateway(self, driver: Driver, *, after: int) -> Driver:
        await self._reach(driver, lambda w: w.commits >= after)
        assert self._gateway is not None
        await self._gateway.kill()
        self._picture.gateway = "killed"
        self.told.gateway_killed += 1
        began = time.monotonic()
        await self._start_gateway()
        self._view.happened(f"the gateway was killed; another one answers after {time.monotonic() - began:.1f} s")
        await asyncio.sleep(0)
        try:
            await self._reach(driver, lambda w: w.commits >= after + 4)
        except DemoError:
            # The one request Spark's client never repeats is the upload of a file's bytes: a query that was
            # in it ends and is started again by whoever runs it.
            self._view.happened("the driver was in the middle of an upload and gave up; it starts again")
            driver = await self.start_driver()
        return driver

    async def _pause_driver(self, driver: Driver, *, after: int) -> Driver:
        """SIGSTOP a driver, let a second one commit, let the first go on: it must find out and change nothing."""
        watch = await self._reach(driver, lambda w: w.commits >= after and w.offsets > w.commits)
        driver.child.signal(signal.SIGSTOP)
        self._view.happened(f"the driver was paused in batch {watch.offsets}")
        second = await self.start_driver()
        await self._reach(second, lambda w, n=watch.offsets: w.commits >= n + 2)
        driver.child.signal(signal.SIGCONT)
        self._view.happened("a second driver has taken over and committed; the first goes on")
        await driver.ended.wait()
        self.told.zombie_words = driver.failed
        if CONCURRENT in driver.failed or "FileAlreadyExists" in driver.failed:
            self.told.zombie_refused += 1
            self._view.happened(f"the first one was refused: [{CONCURRENT}]")
        else:
            self._view.happened(f"the first one was NOT refused: {driver.failed or 'it ended without an error'}")
        return second

    async def _finish(self, driver: Driver) -> None:
        await driver.ended.wait()
        self._picture.driver = "finished"
        if not driver.finished:
            raise DemoError(
                f"the driver has failed: {driver.failed or 'no reason given'}; "
                f"{driver.child.log}:\n{driver.child.last_words()}"
            )

    async def judge(self) -> Verdict:
        """The same result in batch, in a Spark session of its own, compared row by row."""
        self._view.waits("another JVM starts, computes the same result in batch and compares, 15 s or more")
        home = self._dir / "verdict"
        home.mkdir()
        child = await self._children.start(
            "verdict",
            [sys.executable, "-m", "examples.flights.verdict", "--data", str(self.data), "--sink", str(self.sink)],
            directory=home,
            environment=self._driver_environment(home),
            pipe_output=True,
        )
        lines = (await child.stdout.read()).decode().splitlines()
        await child.wait()
        documents = [line for line in lines if line.startswith("{")]
        if not documents:
            raise DemoError(f"the comparison has failed; {child.log}:\n{child.last_words()}")
        return Verdict(**json.loads(documents[-1]))

    async def close(self) -> None:
        """Stop watching."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def listening(port: int) -> bool:
    import socket

    with socket.socket() as probe:
        probe.settimeout(stretch())
        return probe.connect_ex(("127.0.0.1", port)) == 0


def http_ok(url: str, method: str = "GET") -> bool:
    """Whether a request is answered with success."""
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=10 * stretch()) as reply:
            return bool(200 <= reply.status < 300)
    except OSError:
        return False
