"""A whole world in one thread: nodes that crash, freeze and come back, one network, one clock, one seed.

::

    world = World(seed=7)
    node = world.node("b1")
    node.start(lambda seams: serve(seams))     # the program of this node; runs again after restart()
    world.run(test())                          # until test() is done; virtual time costs nothing
    node.crash(); node.restart()

The same seed gives the same ``world.trace.digest``, in every process and under every PYTHONHASHSEED.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from bookkeeper.real.workers import called
from bookkeeper.seams import Seams, Worker
from bookkeeper.testing.world.disk import NodeCrashed, SimDisk
from bookkeeper.testing.world.disks import SimDisks
from bookkeeper.testing.world.loop import OWNER, SimLoop, drop_task
from bookkeeper.testing.world.network import SimNetwork
from bookkeeper.testing.world.trace import Trace

T = TypeVar("T")
Done = Callable[[Any, BaseException | None], None]

EPOCH_MS = 1_700_000_000_000
"""What the walls of a world show when it begins."""


class SimClock:
    """Virtual time as one node sees it. Steps of ``wall_offset_ms`` must not matter to anyone (F6)."""

    def __init__(self, loop: SimLoop, disk: SimDisk) -> None:
        self._loop = loop
        self._disk = disk
        self.wall_offset_ms = 0

    def monotonic(self) -> float:
        return self._loop.time() + self._disk.waited

    def wall_ms(self) -> int:
        return EPOCH_MS + int(self._loop.time() * 1000) + self.wall_offset_ms


@dataclass(slots=True, kw_only=True)
class WorkerPace:
    """How long workers take to begin; what they do takes as long as the disk says."""

    delay_s: float = 0.00005
    jitter_s: float = 0.0002
    slow_share: float = 0.01
    slow_s: float = 0.01


class SimWorker:
    """Jobs run one after the other at later virtual times. A crashed node's jobs never report."""

    def __init__(self, node: Node, name: str) -> None:
        self._node = node
        self._name = name
        self._jobs: deque[tuple[Callable[[], Any], Done]] = deque()
        self._scheduled = False
        self._free_at = 0.0
        self._closed = False

    def submit(self, job: Callable[[], T], done: Callable[[T | None, BaseException | None], None]) -> None:
        """See :class:`bookkeeper.seams.Worker`."""
        if self._closed:
            raise RuntimeError(f"worker {self._name} is closed")
        self._jobs.append((job, done))
        if not self._scheduled:
            self._schedule()

    def call(self, job: Callable[[], T]) -> Awaitable[T]:
        return called(self, job)

    def close(self) -> None:
        """Run what is left now, as joining a thread would."""
        self._closed = True
        while self._jobs and self._node.alive:
            self._run_one(self._node.world.loop.time())

    def die(self) -> None:
        """The node's process ends: the job at hand may have got as far as chance says."""
        node = self._node
        if self._jobs and node.rng.random() < 0.7:
            job, _ = self._jobs[0]
            node.disk.die_after(node.rng.randrange(0, 12))
            try:
                node.context.copy().run(job)
            except (NodeCrashed, Exception):
                pass
        self._jobs.clear()

    def _schedule(self) -> None:
        pace, rng, loop = self._node.pace, self._node.rng, self._node.world.loop
        start = max(self._free_at, loop.time()) + pace.delay_s + pace.jitter_s * rng.random()
        if rng.random() < pace.slow_share:
            start += pace.slow_s * rng.random()
        self._scheduled = True
        loop.call_at(start, self._begin, context=self._node.context)

    def _begin(self) -> None:
        self._scheduled = False
        if self._jobs:
            self._run_one(self._node.world.loop.time())
        if self._jobs:
            self._schedule()

    def _run_one(self, now: float) -> None:
        node = self._node
        job, done = self._jobs.popleft()
        result, error = None, None
        node.disk.waited = 0.0
        try:
            result = job()
        except NodeCrashed:
            raise
        except BaseException as failure:
            error = failure
        took, node.disk.waited = node.disk.waited, 0.0
        self._free_at = now + took
        node.world.trace.add(now, "job", node.name, self._name, type(error).__name__ if error else "ok")
        node.world.loop.call_at(self._free_at, done, result, error, context=node.context)


class SimWorkers:
    """See :class:`bookkeeper.seams.Workers`."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.all: list[SimWorker] = []

    def worker(self, name: str) -> Worker:
        worker = SimWorker(self._node, name)
        self.all.append(worker)
        return worker


@dataclass(slots=True, eq=False)
class Node:
    """A machine with one process on it. Its disk survives crashes, nothing else does."""

    world: World
    name: str
    rng: Random
    disk: SimDisk
    pace: WorkerPace = field(default_factory=WorkerPace)
    alive: bool = True
    frozen: bool = False
    held: list[asyncio.Handle] = field(default_factory=list)
    tasks: list[asyncio.Task[Any]] = field(default_factory=list)
    context: contextvars.Context = field(default_factory=contextvars.Context)
    life: int = 0
    """Counts the starts of the process."""
    on_crash: list[Callable[[], None]] = field(default_factory=list)
    """Called at each crash: for what lives outside the node, as its session with a metadata store."""
    seams: Seams = field(init=False)
    clock: SimClock = field(init=False)
    main: asyncio.Task[Any] | None = None
    _workers: SimWorkers = field(init=False)
    _program: Callable[[Seams], Coroutine[Any, Any, Any]] | None = None
    _buried: list[asyncio.Task[Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._begin_life()

    def _begin_life(self) -> None:
        self.life += 1
        self.tasks = []
        self.held = []
        owner = _Life(self)
        self.context = contextvars.Context()
        self.context.run(OWNER.set, owner)
        self._owner = owner
        self.clock = SimClock(self.world.loop, self.disk)
        self._workers = SimWorkers(self)
        rng = Random(self.rng.getrandbits(64))
        net = self.world.network.of(self)
        self.seams = Seams(clock=self.clock, rng=rng, net=net, disk=self.disk, workers=self._workers)

    _owner: Any = None

    def start(self, program: Callable[[Seams], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        """Run ``program`` as this node; :meth:`restart` runs it again."""
        self._program = program
        self.main = self.run(program(self.seams))
        return self.main

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task of this node: it stops when the node crashes, and waits while the node is frozen."""
        return self.world.loop.create_task(work, context=self.context.copy())

    def call(self, function: Callable[..., None], *args: Any) -> None:
        """Run a function as this node, soon."""
        self.world.loop.call_soon(function, *args, context=self.context)

    def crash(self, *, power: bool | None = None) -> None:
        """The process ends at once. ``power``: the machine too, so un-synced bytes may be lost (None: by chance)."""
        if not self.alive:
            return
        power = self.rng.random() < 0.5 if power is None else power
        self.world.trace.add(self.world.loop.time(), "crash", self.name, power)
        for worker in self._workers.all:
            worker.die()
        self.alive = self._owner.alive = False
        self.frozen = self._owner.frozen = False
        self.world.network.crashed(self, silent=power and self.rng.random() < 0.3)
        if power:
            self.disk.crash()
        else:
            self.disk.process_died()
        self._buried.extend(self.tasks)
        for callback in list(self.on_crash):
            callback()

    def restart(self) -> asyncio.Task[Any]:
        """The same program again, on the disk as the crash left it."""
        assert not self.alive, f"{self.name} is running"
        assert self._program is not None, f"{self.name} has no program"
        self.alive = True
        self._begin_life()
        self.world.trace.add(self.world.loop.time(), "restart", self.name, self.life)
        return self.start(self._program)

    def freeze(self) -> None:
        """The process stops where it is (SIGSTOP) and keeps all its beliefs (F5)."""
        if self.alive and not self.frozen:
            self.frozen = self._owner.frozen = True
            self.world.trace.add(self.world.loop.time(), "freeze", self.name)

    def thaw(self) -> None:
        """It goes on, and does not know that time has passed."""
        if self.frozen:
            self.frozen = self._owner.frozen = False
            self.world.trace.add(self.world.loop.time(), "thaw", self.name)
            self.world.loop.thaw(self._owner)

    def bury(self) -> None:
        for task in self._buried:
            if not task.done():
                drop_task(task)
        self._buried.clear()


class _Life:
    """One life of a node: callbacks of an earlier life stay dead after a restart."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.alive = True
        self.frozen = False
        self.held: list[asyncio.Handle] = node.held
        self.tasks: list[asyncio.Task[Any]] = node.tasks


class World:
    """See the module."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.loop = SimLoop()
        self.trace = Trace()
        self.nodes: dict[str, Node] = {}
        self.network = SimNetwork(self.loop, self.trace, self.nodes, Random(self.rng.getrandbits(64)))

    def node(self, name: str, mounts: Sequence[str] = ()) -> Node:
        """The node of this name, made with the first call. Names are host names.

        Args:
            mounts: directories with a disk of their own.
        """
        if name not in self.nodes:
            rng = Random(f"{self.seed}/{name}")
            disk_rng, note = Random(f"{self.seed}/{name}/disk"), self._disk_note(name)
            disk = SimDisks(disk_rng, mounts, note) if mounts else SimDisk(disk_rng, note)
            self.nodes[name] = Node(self, name, rng, disk)
        return self.nodes[name]

    def run(self, main: Coroutine[Any, Any, T], *, within_s: float = 3600.0) -> T:
        """Run until ``main`` is done, at most ``within_s`` virtual seconds.

        Raises:
            TimeoutError: it was not done by then.
            SimDeadlockError: nothing is left that could happen.
            AssertionError: a task or callback of a living node failed and nobody looked.
        """

        async def limited() -> T:
            async with asyncio.timeout(within_s):
                return await main

        try:
            result = self.loop.run_until_complete(limited())
        except BaseException as error:
            error.add_note(f"seed {self.seed}; last events:\n  " + "\n  ".join(list(self.trace.last)[-40:]))
            raise
        self.check()
        return result

    def check(self) -> None:
        """Fail if something failed that nobody looked at."""
        if self.loop.failures:
            failure = self.loop.failures[0]
            raise AssertionError(f"seed {self.seed}: {failure.get('message')}") from failure.get("exception")

    def close(self) -> None:
        """End the world: every node is gone, nothing runs any more."""
        for node in self.nodes.values():
            node.frozen = False
            if node.alive:
                node.alive = node._owner.alive = False
                node.disk.process_died()
                node._buried.extend(node.tasks)
            node.bury()
        pending = [task for task in asyncio.all_tasks(self.loop) if not task.done()]
        for task in pending:
            drop_task(task)
        self.loop.close()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _disk_note(self, name: str) -> Callable[..., None]:
        def note(*details: object) -> None:
            self.trace.add(self.loop.time(), *map(str, (details[0], name, *details[1:])))

        return note
