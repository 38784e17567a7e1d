"""The name node in simulated worlds, one seed one world: replicas and bookies on virtual time, and faults by chance.

    python -m tests.examples.namenode_sim.worlds --seeds 50          healthy worlds: nothing may be found
    python -m tests.examples.namenode_sim.worlds --bug NAME           the first seed at which a planted bug is found

In every world clients work, an auditor reads the journal, and a referee sees to it that somebody is active. Faults: the
active replica is killed, paused and woken, or overtaken while it is well; the standby is killed; a bookie crashes; the
session of a replica with the metadata store ends. Once in a world something is lost for good: a bookie comes back with
an empty disk, records of a segment rot on one bookie, or the newest checkpoint rots on all. Afterwards all is well
again, and the auditor judges:

* what was acknowledged is in the state of every later active replica, and looked at it is there;
* no request and no edit was applied twice;
* both replicas have the same state at the same edit;
* a record that rotted was met, and served from another copy; a checkpoint that rotted was not believed.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import ExitStack, aclosing
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, cast

from bookkeeper import BookKeeper
from bookkeeper.errors import BookKeeperError
from bookkeeper.meta.stores.memory import MemoryStore
from bookkeeper.metrics import Counter
from bookkeeper.seams import Seams
from bookkeeper.testing.cluster import SimCluster
from examples.namenode_sim.audit import JournalAuditor, NameNodeVerdict, digest_of
from examples.namenode_sim.decisions import ClientRequest
from examples.namenode_sim.errors import NoAnswerError, ReplayError, ReplicaNotActiveError
from examples.namenode_sim.name_node import NameNode, NameNodeConfig, NameNodeRole
from examples.namenode_sim.workload import WarehouseClient
from journal_manager import (
    FIRST_TXID,
    JournalError,
    JournalGapError,
    RetentionPolicy,
    SnapshotInfo,
    open_reader,
    open_snapshots,
    restore_newest,
    tail,
)
from tests.examples.namenode_sim.bugs import BUGS

REPLICAS: Final = ("nn1", "nn2")
JOURNAL: Final = "bk:namenode"
CONFIG: Final = NameNodeConfig(
    checkpoint_edits=30, housekeeping_s=0.5, segment_edits=40, retention=RetentionPolicy(extra_txns=400)
)
"""Edits stay for a while after their checkpoint, because the auditor must see every one."""
_FAULTS: Final = 6
_CLIENTS: Final = 2
_ANSWER_S: Final = 1.0
_SETTLE_S: Final = 60.0
_EPOCH_MS: Final = 1_795_000_000_000


@dataclass(slots=True)
class WorldReport:
    """What came of one world."""

    seed: int
    problems: list[str] = field(default_factory=list)
    acknowledged: int = 0
    edits: int = 0
    faults: list[str] = field(default_factory=list)
    fenced: int = 0
    repeated: int = 0
    restored: int = 0
    """How often a replica began with a checkpoint."""
    met: int = 0
    """Copies that had rotted, were read, and were not believed."""
    fallen_back: int = 0
    """Checkpoints that had rotted, so that the one before was restored."""


class DirectSender:
    """Asks replicas of the same world, one after the other in any order. A request that is not answered in time stays
    with the replica that was asked: if it was paused, it finds the request when it wakes up."""

    def __init__(self, world: NameNodeWorld, client_id: bytes, rng: Random) -> None:
        self._world = world
        self._client_id = client_id
        self._rng = rng
        self._calls = itertools.count(1)
        self.repeated = 0

    async def do(self, verb: str, **arguments: Any) -> int:
        request = ClientRequest(verb, arguments, self._client_id, next(self._calls))
        return int(await self._ask(lambda node: node.submit(request), verb))

    async def look(self, path: str) -> dict[str, Any] | None:
        found: dict[str, Any] | None = await self._ask(lambda node: node.look(path), path)
        return found

    async def _ask(self, question: Callable[[NameNode], Awaitable[Any]], what: str) -> Any:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SETTLE_S
        asked = 0
        while loop.time() < deadline:
            for name in self._rng.sample(REPLICAS, len(REPLICAS)):
                await asyncio.sleep(self._rng.random() * 0.005)
                task = self._world.on_replica(name, question)
                if task is None:
                    continue
                asked += 1
                await asyncio.wait([task], timeout=_ANSWER_S)
                if task.done() and not task.cancelled():
                    try:
                        return task.result()
                    except ReplicaNotActiveError:
                        continue
                self.repeated += 1
            await asyncio.sleep(0.1)
        raise NoAnswerError(f"nobody answered {what}")

    async def close(self) -> None:
        """There is nothing to release."""


class NameNodeWorld:
    """One world."""

    def __init__(self, seed: int, *, only: str | None = None, gentle: bool = False) -> None:
        """
        Args:
            only: no other fault than this one.
            gentle: no session ends, and no disk is harmed.
        """
        self.report = WorldReport(seed)
        self._only, self._gentle = only, gentle
        self._harmed = False
        """Whether something was lost for good: once is what three copies promise to bear."""
        self._rng = Random(f"{seed}/namenode")
        self._cluster = SimCluster(seed, bookies=4)
        self._nodes: dict[str, NameNode] = {}
        self._sessions: dict[str, BookKeeper] = {}
        """The client of each replica, with its session."""
        self._auditor = JournalAuditor()
        self._clients: list[WarehouseClient] = []

    def run(self) -> WorldReport:
        """Live through it. What goes wrong is in the report."""
        try:
            verdict = self._cluster.run(self._story, within_s=600)
        except Exception as error:  # also what a planted bug does to the program itself
            self.report.problems.append(f"the world ended: {type(error).__name__}: {error}")
            return self.report
        self.report.problems += verdict.problems
        self.report.acknowledged, self.report.edits = verdict.acknowledged, verdict.edits
        return self.report

    def on_replica(self, name: str, work: Callable[[NameNode], Awaitable[Any]]) -> asyncio.Task[Any] | None:
        """Do something on the machine of a replica; None: it is down."""
        machine = self._cluster.world.node(name)
        node = self._nodes.get(name)
        if not machine.alive or node is None:
            return None

        async def done() -> Any:
            return await work(node)

        task = machine.run(done())
        task.add_done_callback(_seen)
        return task

    # -- the story ----------------------------------------------------------------------------------------

    async def _story(self, cluster: SimCluster) -> NameNodeVerdict:
        for name in REPLICAS:
            cluster.world.node(name).start(self._serve(name))
        async with cluster.connect() as client:
            beside = [asyncio.create_task(self._audit(client)), asyncio.create_task(self._referee())]
            self._clients = [self._new_client(number) for number in range(_CLIENTS)]
            working = [asyncio.create_task(each.run()) for each in self._clients]
            for _ in range(_FAULTS):
                await asyncio.sleep(0.5 + self._rng.random() * 2)
                await self._fault()
            for each in self._clients:
                each.stop()
            await asyncio.wait(working)
            digests = await self._settled()
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)
            await self._close_replicas()
            for each in self._clients:
                self.report.repeated += each.repeated
            return self._auditor.judge(self._clients, digests)

    def _new_client(self, number: int) -> WarehouseClient:
        rng = Random(f"{self.report.seed}/client/{number}")
        return WarehouseClient(number, DirectSender(self, rng.randbytes(16), rng), pause_s=0.15, rng=rng, looks=1)

    def _serve(self, name: str) -> Callable[[Seams], Any]:
        async def serve(seams: Seams) -> None:
            machine = self._cluster.world.node(name)
            client = self._sessions[name] = await self._cluster.new_client(node=machine)
            node = NameNode(
                JOURNAL,
                name,
                now_ms=lambda: _EPOCH_MS + int(seams.clock.monotonic() * 1000),
                config=CONFIG,
                client=client,
            )
            await node.start()
            self._nodes[name] = node
            while True:
                await asyncio.sleep(0.1)
                if node.role is NameNodeRole.FENCED:
                    self.report.fenced += 1
                    await node.become_standby()
                elif node.role is NameNodeRole.FAILED:
                    self._find(f"{name} has failed: {node.stats.last_error}")
                    return

        return serve

    async def _referee(self) -> None:
        """The switch from outside: when nobody is active, somebody becomes active."""
        while True:
            await asyncio.sleep(0.3 + self._rng.random() * 0.5)
            if not any(self._role(name) in (NameNodeRole.ACTIVE, NameNodeRole.STARTING) for name in REPLICAS):
                await self._promote(self._rng.choice(REPLICAS))

    def _role(self, name: str) -> NameNodeRole:
        machine = self._cluster.world.node(name)
        node = self._nodes.get(name)
        return node.role if machine.alive and not machine.frozen and node is not None else NameNodeRole.CLOSED

    async def _promote(self, name: str) -> None:
        task = self.on_replica(name, NameNode.become_active)
        if task is None:
            return
        await asyncio.wait([task], timeout=10)
        if task.done() and not task.cancelled() and isinstance(task.exception(), ReplayError):
            self._find(f"{name} cannot become active: {task.exception()}")

    def _find(self, problem: str) -> None:
        if problem not in self.report.problems:
            self.report.problems.append(problem)

    async def _audit(self, client: BookKeeper) -> None:
        while True:
            try:
                async with await open_reader(JOURNAL, client=client) as reader:
                    start = self._auditor.namespace.txid + FIRST_TXID
                    async with aclosing(tail(reader, start, poll_s=0.1)) as edits:
                        async for edit in edits:
                            self._auditor.read(edit)
            except JournalGapError as error:
                self._auditor.stop(str(error))
                return
            except (JournalError, BookKeeperError):
                await asyncio.sleep(0.1)

    async def _settled(self) -> dict[str, Any]:
        """Wait until the auditor and both replicas have read everything; their digests."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SETTLE_S
        while loop.time() < deadline:
            nodes = [self._nodes[name] for name in REPLICAS if name in self._nodes]
            last = {node.namespace.txid for node in nodes} | {self._auditor.namespace.txid}
            roles = {node.role for node in nodes}
            if len(last) == 1 and roles == {NameNodeRole.ACTIVE, NameNodeRole.STANDBY}:
                break
            await asyncio.sleep(0.2)
        self.report.restored = sum(node.stats.restored_at > 0 for node in self._nodes.values())
        return {name: digest_of(node.namespace) for name, node in self._nodes.items()}

    async def _close_replicas(self) -> None:
        for name in REPLICAS:
            if (task := self.on_replica(name, NameNode.close)) is not None:
                await asyncio.wait([task], timeout=_ANSWER_S)

    # -- faults -------------------------------------------------------------------------------------------

    async def _fault(self) -> None:
        active = next((name for name in REPLICAS if self._role(name) is NameNodeRole.ACTIVE), None)
        if active is None:
            return
        other = next(name for name in REPLICAS if name != active)
        faults = [self._kill, self._pause, self._overtake, self._kill_standby, self._crash_bookie]
        if not self._gentle:
            faults.append(self._end_session)
        losses = [] if self._harmed or self._gentle else [self._empty_disk, self._rot_records, self._rot_checkpoint]
        if self._only is not None:
            chosen = next((each for each in [*faults, *losses] if each.__name__ == f"_{self._only}"), None)
            if chosen is None:
                return
        else:
            chosen = self._rng.choice([*faults, *losses])
        self.report.faults.append(chosen.__name__.removeprefix("_"))
        await chosen(active, other)

    async def _kill(self, active: str, other: str) -> None:
        self._cluster.world.node(active).crash()
        self._nodes.pop(active)
        await self._promote(other)
        await asyncio.sleep(self._rng.random() * 3)
        self._cluster.world.node(active).restart()

    async def _pause(self, active: str, other: str) -> None:
        machine = self._cluster.world.node(active)
        machine.freeze()
        await asyncio.sleep(self._rng.random() * 2)
        await self._promote(other)
        await asyncio.sleep(self._rng.random() * 3)
        machine.thaw()

    async def _overtake(self, active: str, other: str) -> None:
        await self._promote(other)

    async def _kill_standby(self, active: str, other: str) -> None:
        self._cluster.world.node(other).crash()
        self._nodes.pop(other)
        await asyncio.sleep(self._rng.random() * 3)
        self._cluster.world.node(other).restart()

    async def _crash_bookie(self, active: str, other: str) -> None:
        name = self._rng.choice(self._cluster.names)
        self._cluster.node(name).crash()
        await asyncio.sleep(self._rng.random() * 2)
        self._cluster.node(name).restart()
        await self._cluster.wait_until_up(name)

    async def _end_session(self, active: str, other: str) -> None:
        """The metadata store forgets a replica, which is well and notices it at once."""
        session = self._sessions[self._rng.choice((active, other))].metadata_store.store
        self._cluster.store.expire(cast(MemoryStore, session))

    async def _empty_disk(self, active: str, other: str) -> None:
        self._harmed = True
        name = self._rng.choice(self._cluster.names)
        self._cluster.node(name).crash(power=True)
        self._cluster.lose_disk(name)
        await asyncio.sleep(self._rng.random() * 2)
        await self._cluster.forget_cookie(name)
        self._cluster.node(name).restart()
        await self._cluster.wait_until_up(name)

    async def _rot_records(self, active: str, other: str) -> None:
        """One copy of each record of a segment rots, on one bookie after the other: so whoever reads meets some."""
        async with self._cluster.connect() as client:
            async with await open_reader(JOURNAL, client=client) as reader:
                final = [segment for segment in await reader.segments() if not segment.in_progress]
            if not final:
                return
            segment = self._rng.choice(final)
            entries = await _entries_of(client, int(segment.location))
            self._harmed = True
            names = self._rng.sample(self._cluster.names, len(self._cluster.names))
            rotten = [
                any(self._rot(name, [entry]) for name in names[number % len(names) :] + names[: number % len(names)])
                for number, entry in enumerate(entries)
            ]
            before = self._failed_reads()
            again = await _entries_of(client, int(segment.location))
            met = self._failed_reads() - before
        self.report.met += met
        if again != entries:
            self._find(f"records of segment {segment} were read back otherwise than they were written")
        if all(rotten) and len(rotten) >= len(names) and not met:
            self._find(f"a copy of each record of segment {segment} rotted, and nobody met one")

    def _failed_reads(self) -> int:
        """How often bookies have answered that they cannot read what they have."""
        return sum(
            int(metric.value)
            for server in self._cluster.servers.values()
            for name, _, labels, metric in server.metrics
            if name.endswith("requests_total") and labels.get("status") == "IO_ERROR" and isinstance(metric, Counter)
        )

    async def _rot_checkpoint(self, active: str, other: str) -> None:
        """Every copy of the newest checkpoint rots where it is; the one before is what is restored."""
        async with self._cluster.connect() as client, await open_snapshots(JOURNAL, client=client) as store:
            kept = await store.list()
            if len(kept) < 2:
                return
            ledger = int(kept[-1].location.removeprefix("ledger "))
            entries = await _entries_of(client, ledger)
            self._harmed = True
            for name in self._cluster.names:
                self._rot(name, entries)
            found = await restore_newest(store, _read_through)
        if found is not None and found.at == kept[-1].at:
            self._find(f"the checkpoint at edit {found.at} had rotted, and was believed")
        self.report.fallen_back += found is not None and found.at < kept[-1].at

    def _rot(self, bookie: str, entries: Sequence[bytes]) -> int:
        """Flip a bit in each of these entries that is in the entry logs of a bookie. Returns in how many."""
        disk, rotten = self._cluster.node(bookie).disk, 0
        logs = {path: data for path, data in disk.files().items() if path.endswith(".log")}
        for entry in entries:
            places = [(path, place) for path, data in logs.items() if (place := data.find(entry)) >= 0]
            for path, place in places:
                disk.flip_bit(path, 8 * (place + self._rng.randrange(len(entry))))
            rotten += bool(places)
        return rotten


async def _entries_of(client: BookKeeper, ledger: int) -> list[bytes]:
    async with await client.open_ledger(ledger, None, recovery=False) as handle:
        return [entry.payload async for entry in handle.read(0, handle.last_add_confirmed)]


async def _read_through(info: SnapshotInfo, chunks: AsyncGenerator[bytes, None]) -> None:
    async for _ in chunks:
        pass


def _seen(task: asyncio.Task[Any]) -> None:
    """Whoever asked may have gone: an error that nobody looks at is none of the world's."""
    if not task.cancelled():
        task.exception()


def run_world(seed: int, bug: str | None = None, only: str | None = None) -> WorldReport:
    """Live through the world of ``seed``, with a planted bug or without, with all kinds of faults or ``only`` one.

    A planted bug has a gentle world: what is found there is the bug's.
    """
    with ExitStack() as stack:
        if bug is not None:
            stack.enter_context(BUGS[bug].planted())
        return NameNodeWorld(seed, only=only, gentle=bug is not None).run()


def find(bug: str) -> WorldReport | None:
    """The first world in which a planted bug shows; None: in none of as many as it may take."""
    for seed in range(BUGS[bug].within):
        report = run_world(seed, bug)
        if report.problems:
            return report
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description="The name node in simulated worlds.")
    parser.add_argument("--seeds", type=int, default=20, help="how many worlds")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--bug", choices=[*BUGS, "all"], help="plant a bug, and look for the seed that finds it")
    parser.add_argument("--only", help="no other fault than this one, for instance rot_checkpoint")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)  # the report says it
    sys.unraisablehook = lambda _: None  # what a crash leaves behind complains when it is collected
    bad = 0
    if given.bug is not None:
        for name in BUGS if given.bug == "all" else [given.bug]:
            found = find(name)
            bad += found is None
            seen = "not found" if found is None else f"seed {found.seed}: {found.problems[0][:120]}"
            print(f"{name}: {seen}", flush=True)
        return bad
    for seed in range(given.first, given.first + given.seeds):
        report = run_world(seed, only=given.only)
        bad += bool(report.problems)
        print(
            f"seed {seed}: {report.acknowledged} acknowledged, {report.edits} edits, {report.repeated} asked again, "
            f"fenced {report.fenced} times, {report.met} rotten copies met, "
            f"{report.fallen_back} checkpoints passed over; {', '.join(report.faults)}",
            flush=True,
        )
        for problem in report.problems[:5]:
            print(f"    {problem}", flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main())
