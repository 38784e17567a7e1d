"""First starts of a bookie that are interrupted anywhere, and repeated: what the tests of first starts share.

Every operation on the disk and every call of the metadata store is a *point*. At a chosen point of each start one thing
happens: the process is killed or loses power, the session ends, the store is lost before or after the call took effect,
the call is refused once, the disk refuses once, or the start is cancelled.
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.ids import BookieId
from bookkeeper.meta import Metadata, init_cluster_in
from bookkeeper.meta.stores.memory import MemoryCluster
from bookkeeper.seams import Seams
from bookkeeper.testing import World
from bookkeeper.testing.world import NodeCrashed

CALLS: Final = (
    "get",
    "exists",
    "owner",
    "children",
    "sync",
    "check_not_rolled_back",
    "create",
    "set",
    "delete",
    "multi",
)
WRITES: Final = ("create", "set", "delete", "multi")

ON_DISK: Final = ("killed", "power lost", "disk refuses")
ON_CALL: Final = (
    "killed before",
    "killed after",
    "lost before",
    "lost after",
    "refused once",
    "session ends",
    "cancelled",
)
KINDS: Final = (*ON_DISK, *ON_CALL)


@dataclass(frozen=True, slots=True)
class Interruption:
    """What happens at the point of this number, if it is one at which that can happen; else at the next such point."""

    kind: str
    at: int


class Interrupter:
    """Counts the points of one start after the other, and lets the interruption of each happen."""

    def __init__(self, world: World, cluster: MemoryCluster) -> None:
        self.world = world
        self.node = world.node("b")
        self.cluster = cluster
        self.points = 0
        self.happened = ""
        self.plan: list[Interruption] = []
        self.dead = self.lost = False
        self.store: Any = None
        self._operation = self.node.disk.operation
        self.node.disk.operation = self._on_disk  # type: ignore[method-assign]

    def begin(self, plan: Sequence[Interruption]) -> None:
        """A process begins; these interruptions await it, one after the other."""
        self.points, self.happened, self.plan = 0, "", list(plan)
        self.dead = self.lost = False

    def _due(self, kinds: Sequence[str]) -> str:
        """The kind of interruption that happens here, and has not happened yet; empty: none."""
        self.points += 1
        if self.plan and self.points > self.plan[0].at and self.plan[0].kind in kinds:
            self.points = 0
            return self.plan.pop(0).kind
        return ""

    def _on_disk(self, name: str, path: str, tear: Callable[[float], None] = lambda share: None) -> None:
        if self.dead:
            raise NodeCrashed
        kind = self._due(ON_DISK)
        if kind:
            self.happened += f"{kind} at {name} {path}; "
        if kind == "disk refuses":
            raise OSError(errno.ENOSPC, "No space left on device", path)
        if kind:
            tear(0.5)
            self.die(power=kind == "power lost")
            raise NodeCrashed
        self._operation(name, path, tear)

    def die(self, *, power: bool) -> None:
        """The process ends here."""
        self.dead = True
        self.node.crash(power=power)

    async def call(self, name: str, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """One call of the store."""
        if self.lost:
            await asyncio.sleep(0.01)
            raise MetadataUnavailableError(f"{name} {args}: no answer")
        kind = self._due(ON_CALL if name in WRITES else [each for each in ON_CALL if not each.endswith("after")])
        if kind:
            self.happened += f"{kind} at {name} {args}; "
        if kind == "killed before":
            self.die(power=False)
            await asyncio.Future()
        if kind in ("lost before", "refused once"):
            self.lost = kind == "lost before"
            raise MetadataUnavailableError(f"{name} {args}: no answer")
        if kind == "session ends":
            self.cluster.expire(self.store)
        if kind == "cancelled":
            raise asyncio.CancelledError
        answer = await method(*args, **options)
        if kind == "killed after":
            self.die(power=False)
            await asyncio.Future()
        if kind == "lost after":
            self.lost = True
            raise MetadataUnavailableError(f"{name} {args}: no answer")
        return answer


class InterruptedStore:
    """A session with the store that passes through an :class:`Interrupter`."""

    def __init__(self, store: Any, through: Interrupter) -> None:
        self._store = store
        self._through = through

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in CALLS:
            return method

        async def call(*args: Any, **options: Any) -> Any:
            return await self._through.call(name, method, *args, **options)

        return call


class FirstStarts:
    """A cluster and one bookie, which is started again and again."""

    def __init__(self, world: World, **options: Any) -> None:
        self.world = world
        self.metadata = MemoryCluster()
        self.through = Interrupter(world, self.metadata)
        self.node = world.node("b")
        self.options = {
            "metadata_uri": "memory://test",
            "directory": "/data",
            "listen": "b:3181",
            "bookie_id": "b1",
            "insecure": True,
            "http_listen": "",
            "storage": {
                "journal_file_bytes": 64 * 1024,
                "journal_spares": 1,
                "entry_log_bytes": 64 * 1024,
                "checkpoint_bytes": 32 * 1024,
                "reserve_bytes": 0,
            },
            **options,
        }
        self.server: BookieServer | None = None
        self._serves = asyncio.Event()

    async def make(self) -> None:
        """Make the cluster."""
        self.seams = self.world.node("client").seams
        self.store = self.metadata.connect()
        await init_cluster_in(self.store, self.seams)

    async def _bookie(self, seams: Seams) -> None:
        store = self.metadata.connect()
        self.through.store = store
        try:
            through: Any = InterruptedStore(store, self.through)
            metadata = await Metadata.over(through, seams)
            self.server = BookieServer(config_from(self.options), seams, metadata)
            await self.server.start()
            self._serves.set()
            await self.server.run_until_failure()
        finally:
            if not self.through.dead:
                self.metadata.expire(store)

    async def start(self, plan: Sequence[Interruption] = ()) -> BaseException | None:
        """One process. Returns when it serves (None), or how it ended; then it is gone."""
        self.through.begin(plan)
        self._serves.clear()
        task = self.node.start(self._bookie) if self.node.alive and self.node.main is None else self.node.restart()
        waiting = asyncio.ensure_future(self._serves.wait())
        while not task.done() and not waiting.done() and not self.through.dead:
            await asyncio.wait([task, waiting], timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if waiting.done() and not waiting.cancelled() and not task.done():
            return None
        if self.through.dead:
            self.metadata.expire(self.through.store)
            return NodeCrashed()
        self.kill()
        return asyncio.CancelledError() if task.cancelled() else task.exception()

    def kill(self, *, power: bool = False) -> None:
        """End the process, if it runs."""
        if self.node.alive:
            self.through.die(power=power)
        self.metadata.expire(self.through.store)

    async def check_whole(self) -> None:
        """It serves, as one that was never interrupted."""
        assert self.server is not None
        metadata = await Metadata.over(self.store, self.seams)
        assert [str(each) for each in await metadata.cookies.known()] == ["b1"]
        assert BookieId("b1") in await metadata.bookies.writable()
        condition = self.server.condition()
        assert condition.limbo is None and condition.ledgers_in_doubt == 0, condition
        assert condition.running and condition.registered and not condition.read_only, condition


def told(plans: Sequence[Sequence[Interruption]]) -> str:
    return " | ".join(", ".join(f"{each.kind}@{each.at}" for each in plan) for plan in plans)


def run(plans: Sequence[Sequence[Interruption]], seed: int = 0, **options: Any) -> tuple[int, list[str]]:
    """Starts with these interruptions, and then one without any, which must serve, and another after a kill.

    Returns the points of the start without interruptions, what happened to the others, and which kind that one was.
    """
    happened: list[str] = []

    async def story(starts: FirstStarts) -> int:
        await starts.make()
        for plan in plans:
            error = await starts.start(plan)
            happened.append(f"{starts.through.happened}-> {type(error).__name__}: {error}")
            if error is None:
                starts.kill()
        if (error := await starts.start()) is not None:
            raise error
        points = starts.through.points
        assert starts.server is not None
        happened.append("a first start" if starts.server.first_start else "a later start")
        await starts.check_whole()
        starts.kill(power=True)
        if (error := await starts.start()) is not None:
            raise error
        await starts.check_whole()
        starts.kill()
        return points

    logging.getLogger("bookkeeper").setLevel(logging.CRITICAL + 1)
    with World(seed) as world:
        try:
            task = story(FirstStarts(world, **options))
            points = world.loop.run_until_complete(task)
        except BaseException as error:
            error.add_note(f"seed {seed}: {told(plans)}\n" + "\n".join(happened))
            raise
        finally:
            world.loop.failures[:] = [
                each for each in world.loop.failures if not isinstance(each.get("exception"), NodeCrashed)
            ]
            logging.getLogger("bookkeeper").setLevel(logging.NOTSET)
        world.check()
        return points, happened
