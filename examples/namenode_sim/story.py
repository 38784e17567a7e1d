"""What is done to the name node, and when.

    the cluster    metadata (SQLite or ZooKeeper), four bookies and autorecovery, two replicas, each a process; clients
    first blow     the active replica is killed; the other takes over
    second         the active replica is paused; the other takes over, and the first one is woken: a zombie
    third          a bookie is killed, and its disk deleted
    fourth         bits are flipped on the disk of another bookie, and in one copy of each record of a segment
    fifth          every copy of the newest checkpoint is damaged, and a replica is started that needs one
    sixth          the metadata store is away for five seconds

Each replica keeps a copy of the journal in a directory of its own, as a member of a journal set.
Nobody fences but the journal. An auditor reads the journal from its first edit on. With ``sabotage`` a replica that was
overtaken goes on answering, and must be found out.
"""

from __future__ import annotations

import asyncio
import re
import signal
import sqlite3
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from bookkeeper.amounts import counted
from bookkeeper.errors import BookKeeperError
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.waiting import StalledError, until_async
from examples.demo_heal.damage import damage_entries, flip_bits
from examples.demo_kit.cluster import DemoError
from examples.demo_kit.pause import pause
from examples.demo_kit.story import DemoPlan, DemoStory
from examples.namenode_sim.audit import JournalAuditor, NameNodeVerdict, may_read_on
from examples.namenode_sim.client import Conversation, NameNodeClient
from examples.namenode_sim.errors import NamespaceError, ReplicaNotActiveError
from examples.namenode_sim.name_node import NameNodeRole
from examples.namenode_sim.protocol import Question
from examples.namenode_sim.replica import copy_uri
from examples.namenode_sim.view import NameNodeView
from examples.namenode_sim.workload import WarehouseClient
from examples.processes import Child, Children
from journal_manager import (
    FIRST_TXID,
    JournalError,
    JournalGapError,
    SnapshotStore,
    open_reader,
    open_snapshots,
    read_ops,
    tail,
)

BOOKIES: Final = ("b1", "b2", "b3", "b4")
REPLICAS: Final = ("nn1", "nn2")
JOURNAL: Final = "bk:namenode"
_ZOMBIES_FILES: Final = 5
_REFUSED: Final = re.compile(
    r"failed: (?:BATCH_)?READ of .*: IO_ERROR after [^(\n]*(?:\(not logged since the last such line: (\d+)\))?"
)
_SETTLE_S: Final = 3.0
"""After so long the active replica has adopted what a dead standby had offered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NameNodePlan(DemoPlan):
    """What a person may choose, and how long things take."""

    clients: int = 6
    client_pause_s: float = 0.1
    pause_s: float = 7.0
    checkpoint_edits: int = 300
    segment_edits: int = 500
    away_s: float = 5.0
    bits: int = 50
    seed: int = 1


@dataclass(slots=True)
class NameNodeFacts:
    """What was done, for the table and the last line."""

    killed: int = 0
    zombies: int = 0
    bookies_lost: int = 0
    bits: int = 0
    damaged_met: int = 0
    """Damaged records that bookies were asked for, and refused."""
    checkpoints_damaged: int = 0
    away_s: float = 0.0
    take_over_s: list[float] = field(default_factory=list)
    """From each blow to the active replica until the next request was answered."""


class NameNodeStory(DemoStory[NameNodePlan, NameNodeView, NameNodeFacts, NameNodeVerdict]):
    """The whole of it."""

    def __init__(self, plan: NameNodePlan, children: Children, view: NameNodeView) -> None:
        super().__init__(plan, children, view, NameNodeFacts())
        self._replicas: dict[str, Child] = {}
        self._auditor = JournalAuditor()
        self._clients: list[WarehouseClient] = []
        self._working: list[asyncio.Task[None]] = []

    # -- from the beginning to the end --------------------------------------------------------------------

    @property
    def blows(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (
            self._kill_the_active,
            self._wake_a_zombie,
            self._lose_a_bookie,
            self._flip_bits,
            self._damage_records,
            self._damage_a_checkpoint,
            self._store_is_away,
        )

    async def start(self) -> None:
        plan, cluster, view = self.plan, self.cluster, self.view
        view.waits("the metadata store, four bookies and two replicas start")
        await self.start_bookies(BOOKIES)
        await cluster.start_autorecovery(2, 5.0)
        for name in REPLICAS:
            await self._start_replica(name)
        await self._operate("nn1", "become_active")
        view.happened("nn1 is active, nn2 stands by; nobody but the journal keeps them apart")
        if plan.sabotage:
            view.happened("SABOTAGE: a replica that is overtaken goes on answering")
        self._clients = [
            self._new_client(number, [self._socket(name) for name in REPLICAS]) for number in range(plan.clients)
        ]
        self.picture.clients = len(self._clients)
        self._working = [asyncio.create_task(client.run()) for client in self._clients]
        self.tasks = [*self._working, asyncio.create_task(self._audit()), asyncio.create_task(self._watch())]
        view.happened(f"{plan.clients} clients make, rename and delete files; an auditor reads the journal")

    def _new_client(self, number: int, sockets: list[str]) -> WarehouseClient:
        rng = Random(self.plan.seed * 1000 + number)
        sender = NameNodeClient(sockets, rng.randbytes(16))
        return WarehouseClient(number, sender, pause_s=self.plan.client_pause_s * stretch(), rng=rng)

    async def judge(self) -> NameNodeVerdict:
        view = self.view
        for client in self._clients:
            client.stop()
        await self._until(lambda: all(task.done() for task in self._working), "the clients finish their files")
        active = await self._active()
        last = (await self._ask(active, "status"))["txid"]
        view.waits(f"the auditor and both replicas read up to edit {last}")
        await self._until(lambda: self._auditor.ended or self._auditor.namespace.txid >= last, "the auditor")
        digests: dict[str, Any] = {}

        async def have_read_all() -> bool:
            for name in REPLICAS:
                digests[name] = await self._ask(name, "digest")
            behind = [name for name, digest in digests.items() if digest["txid"] != last]
            return all([await self._reads_no_more(name) for name in behind])

        with suppress(DemoError):
            await self._until(have_read_all, "both replicas")
        found = self._auditor.judge(self._clients, digests)
        for name in REPLICAS:
            found.different += await self._compare_copy(name)
        return found

    async def _reads_no_more(self, name: str) -> bool:
        role = NameNodeRole((await self._ask(name, "status"))["role"])
        return not may_read_on(role, unfenced=self.plan.sabotage)

    async def _compare_copy(self, name: str) -> list[str]:
        """Compare the journal's copy on the machine of a replica with the journal. Returns what differs."""
        compared = 0
        try:
            async with (
                await open_reader(copy_uri(self._copy(name))) as copy,
                await open_reader(JOURNAL, client=self.client) as journal,
            ):
                listed = [segment for segment in await copy.segments() if segment.last is not None]
                kept = [segment.first for segment in (*listed[:1], *(await journal.segments())[:1])]
                first, last = max(kept, default=FIRST_TXID), max((each.last or 0 for each in listed), default=0)
                ours, theirs = read_ops(copy, first, last), read_ops(journal, first, last)
                async with aclosing(ours), aclosing(theirs):
                    async for op in ours:
                        if await anext(theirs) != op:
                            return [f"edit {op.txid} is another in the copy of {name} than in the journal"]
                        compared += 1
        except JournalError as error:
            return [f"the copy of {name} cannot be compared with the journal: {error}"]
        self.view.happened(
            f"{counted(compared, 'edit')} of the copy of {name} are those of the journal, up to edit {last}"
        )
        return []

    # -- the blows ----------------------------------------------------------------------------------------

    async def _kill_the_active(self) -> None:
        active, other = await self._active_and_other()
        began = self._now()
        await self._replicas[active].kill()
        self.facts.killed += 1
        self.view.happened(f"{active}, the active replica, was killed")
        await self._take_over(other, began)
        await self._start_replica(active)
        self.view.happened(f"{active} was started again, and stands by")

    async def _wake_a_zombie(self) -> None:
        active, other = await self._active_and_other()
        began = self._now()
        zombie = self._replicas[active]
        await pause(lambda: zombie.signal(signal.SIGSTOP), lambda: zombie.signal(signal.SIGCONT), self.cluster.uri)
        self.view.happened(f"{active}, the active replica, was paused")
        await self._take_over(other, began)
        self._replicas[active].signal(signal.SIGCONT)
        self.facts.zombies += 1
        self.view.happened(f"{active} was woken: it believes that it is still active, and is asked to make files")
        if await self._zombie_answers(active):
            self.view.happened(f"{active} said that it made them")
            return
        self.view.happened(f"{active} was fenced by the journal: it answered nothing, and stands by again")

    async def _zombie_answers(self, zombie: str) -> bool:
        """Have a client of its own ask the zombie alone. What it acknowledges is expected in the end."""
        client = self._new_client(len(self._clients), [self._socket(zombie)])
        conversation = Conversation(self._socket(zombie))
        answered = False
        try:
            for call in range(_ZOMBIES_FILES):
                path = f"{client.directory}/f{call}"
                with suppress(NamespaceError, ReplicaNotActiveError):
                    await conversation.ask(Question("create", {"path": path}, "ff" * 16, call))
                    client.expected[path] = None
                    client.acknowledged += 1
                    answered = True
        finally:
            await conversation.close()
        self._clients.append(client)
        return answered

    async def _lose_a_bookie(self) -> None:
        await self.cluster.kill("b1")
        self.facts.bookies_lost += 1
        self.view.happened("the bookie b1 was killed, and its disk deleted")
        if await self._are_answered_again(self._acknowledged()):
            self.view.happened("requests are answered without it")

    async def _are_answered_again(self, before: int) -> bool:
        """Wait until clients hear more answers. Returns False if all have given up; the verdict says why."""

        def gave_up() -> bool:
            return all(task.done() for task in self._working)

        await self._until(lambda: self._acknowledged() > before + 20 or gave_up(), "requests are answered again")
        if not gave_up():
            return True
        self.view.happened("no client asks any more: each was refused what must be possible, or was not answered")
        return False

    async def _flip_bits(self) -> None:
        flipped = await asyncio.to_thread(
            flip_bits, self.cluster.entry_logs("b2"), self.plan.bits, Random(self.plan.seed)
        )
        self.facts.bits = len(set(flipped))
        self.view.happened(f"{self.facts.bits} bits were flipped in entry logs of b2, which runs")
        read = 0
        async with await open_reader(JOURNAL, client=self.client) as reader:
            for segment in await reader.segments():
                async with aclosing(reader.read(segment, segment.first)) as batches:
                    async for batch in batches:
                        read += len(batch.ops())
        self.view.happened(f"{counted(read, 'edit', 'was', 'were')} read back: readers reject damaged copies")

    async def _damage_records(self) -> None:
        """One copy of each record of a segment is damaged, on one bookie after the other: whoever reads meets some.

        Only once all copies are there again that were lost with b1: with two, of which one has flipped bits already,
        there might be none left.
        """
        rng, left = Random(self.plan.seed), [name for name in BOOKIES if name != "b1"]
        async with await open_reader(JOURNAL, client=self.client) as reader:
            segment = [each for each in await reader.segments() if not each.in_progress][-1]
        await self._until(lambda: self._is_without("b1", int(segment.location)), "the copies of b1 are replaced")
        entries = await self._entries(int(segment.location))
        for number, name in enumerate(left):
            chosen = entries[number :: len(left)]
            await asyncio.to_thread(damage_entries, self.cluster.entry_logs(name), chosen, rng)
        before = await asyncio.to_thread(self._reads_refused)

        async def is_met() -> bool:
            if await self._entries(int(segment.location)) != entries:
                raise DemoError(f"segment {segment} is read otherwise than it was written")
            self.facts.damaged_met = await asyncio.to_thread(self._reads_refused) - before
            return self.facts.damaged_met > 0

        await self._until(is_met, "a bookie is asked for a damaged record")
        self.view.happened(
            f"one copy of each of {counted(len(entries), 'record')} of segment {segment} was damaged: bookies refused "
            f"{self.facts.damaged_met} reads, and other copies were read"
        )

    async def _is_without(self, bookie: str, ledger: int) -> bool:
        return all(bookie not in fragment.ensemble for fragment in (await self.client.metadata(ledger)).fragments)

    async def _entries(self, ledger: int) -> list[bytes]:
        async with await self.client.open_ledger(ledger, None, recovery=False) as handle:
            return [entry.payload async for entry in handle.read(0, handle.last_add_confirmed)]

    def _reads_refused(self) -> int:
        """How often bookies have written into their logs that they cannot read what they have."""
        logs = [self.plan.directory / "logs" / f"{name}.log" for name in BOOKIES]
        told = [_REFUSED.findall(log.read_text()) for log in logs if log.exists()]
        return sum(1 + int(suppressed or 0) for found in told for suppressed in found)

    async def _damage_a_checkpoint(self) -> None:
        async def has_two() -> bool:
            return len(await self._checkpoints()) >= 2

        _, other = await self._active_and_other()
        if (await self._ask(other, "status"))["role"] == NameNodeRole.FENCED.value:
            self.view.happened(f"{other} does not stand by, so nobody writes checkpoints: none is damaged")
            return
        await self._until(has_two, "two checkpoints")
        await self._replicas[other].kill()
        await asyncio.sleep(_SETTLE_S * stretch())
        async with await self._snapshots() as store:
            newest = (await store.list())[-1]
        entries = await self._entries(int(newest.location.removeprefix("ledger ")))
        copies = 0
        for name in BOOKIES:
            if name != "b1":
                logs = self.cluster.entry_logs(name)
                copies += await asyncio.to_thread(damage_entries, logs, entries, Random(self.plan.seed))
        self.facts.checkpoints_damaged += 1
        self.view.happened(f"the newest checkpoint, at edit {newest.at}, was damaged where it is, in {copies} copies")
        await self._start_replica(other)
        await self._until(lambda: self._is_restored(other), f"{other} reads a checkpoint")
        status = await self._ask(other, "status")
        if status["restored_at"] >= newest.at:
            raise DemoError(f"{other} has believed the checkpoint at edit {newest.at}, which was damaged")
        self.view.happened(f"{other} was started, and read the checkpoint at edit {status['restored_at']} instead")

    async def _is_restored(self, name: str) -> bool:
        status = await self._ask(name, "status")
        return bool(status["restored_at"] and status["txid"] > status["restored_at"])

    async def _store_is_away(self) -> None:
        before = self._acknowledged()
        self.view.happened(f"the metadata store goes away for {self.plan.away_s:.0f} seconds")
        if self.plan.metadata == "zk":
            store = self.cluster.metadata_process
            assert store is not None, "ZooKeeper is a process"
            store.signal(signal.SIGSTOP)
            await asyncio.sleep(self.plan.away_s)
            store.signal(signal.SIGCONT)
        else:
            await asyncio.to_thread(self._hold_sqlite)
        self.facts.away_s += self.plan.away_s
        while_away = self._acknowledged() - before
        self.view.happened(f"it is back; {while_away} requests were answered meanwhile")
        if await self._are_answered_again(before + while_away):
            self.view.happened("the active replica has stayed active")

    def _hold_sqlite(self) -> None:
        """Nobody else can write the store while this transaction is open."""
        connection = sqlite3.connect(self.plan.directory / "metadata.db", timeout=self.plan.limit_s * stretch())
        connection.execute("BEGIN IMMEDIATE")
        try:
            time.sleep(self.plan.away_s)
        finally:
            connection.rollback()
            connection.close()

    # -- replicas -----------------------------------------------------------------------------------------

    async def _start_replica(self, name: str) -> None:
        await asyncio.to_thread(Path(self._socket(name)).unlink, missing_ok=True)
        command = ["--name", name, "--socket", self._socket(name), "--journal", JOURNAL, "--metadata", self.cluster.uri]
        command += ["--checkpoint-edits", str(self.plan.checkpoint_edits)]
        command += ["--segment-edits", str(self.plan.segment_edits)]
        command += ["--copy", self._copy(name)]
        command += ["--unfenced"] * self.plan.sabotage
        module = "examples.namenode_sim.replica"
        self._replicas[name] = child = await self.cluster.start_program(name, module, *command, pipe_output=False)

        async def answers() -> bool:
            with suppress(ReplicaNotActiveError):
                return bool(await self._ask(name, "status"))
            return False

        await self.cluster.until(answers, name, child)

    async def _take_over(self, name: str, began: float) -> None:
        before = self._acknowledged()
        await self._operate(name, "become_active")
        await self._until(lambda: self._acknowledged() > before, f"{name} answers")
        self.facts.take_over_s.append(self._now() - began)
        self.view.happened(f"{name} has taken over; the next request was answered {self._now() - began:.1f} s later")

    async def _operate(self, name: str, what: str) -> None:
        async def done() -> bool:
            with suppress(ReplicaNotActiveError):
                await self._ask(name, what, timeout_s=self.plan.limit_s)
                return True
            return False

        await self._until(done, f"{name}: {what}")

    async def _ask(self, name: str, what: str, timeout_s: float = 3.0) -> Any:
        conversation = Conversation(self._socket(name))
        try:
            return await conversation.ask(Question(what), timeout_s)
        finally:
            await conversation.close()

    async def _active(self) -> str:
        for name in REPLICAS:
            with suppress(ReplicaNotActiveError):
                if (await self._ask(name, "status"))["role"] == "active":
                    return name
        raise DemoError(f"no replica is active; see {self.plan.directory / 'logs'}")

    async def _active_and_other(self) -> tuple[str, str]:
        active = await self._active()
        return active, next(name for name in REPLICAS if name != active)

    def _copy(self, name: str) -> str:
        return str(self.plan.directory / f"{name}-edits")

    def _socket(self, name: str) -> str:
        return str(self.plan.directory / f"{name}.sock")

    # -- what goes on beside ------------------------------------------------------------------------------

    async def _audit(self) -> None:
        """Read the journal as it grows, from the first edit on, before anything is purged."""
        while True:
            try:
                async with await open_reader(JOURNAL, client=self.client) as reader:
                    start = self._auditor.namespace.txid + FIRST_TXID
                    async with aclosing(tail(reader, start, poll_s=0.2)) as edits:
                        async for edit in edits:
                            self._auditor.read(edit)
            except JournalGapError as error:
                self._auditor.stop(str(error))
                return
            except JournalError:
                await asyncio.sleep(0.3)

    async def _watch(self) -> None:
        picture = self.picture
        while True:
            for name in REPLICAS:
                try:
                    picture.replicas[name] = await self._ask(name, "status", timeout_s=1.0)
                except ReplicaNotActiveError:
                    picture.replicas[name] = {"role": "silent"}
            picture.acknowledged = self._acknowledged()
            picture.repeated = sum(client.repeated for client in self._clients)
            picture.audited = self._auditor.namespace.txid
            with suppress(JournalError, BookKeeperError):
                picture.checkpoints = tuple(await self._checkpoints())
                async with await open_reader(JOURNAL, client=self.client) as reader:
                    picture.segments = len(await reader.segments())
            self.view.looked()
            await asyncio.sleep(1.0)

    async def _checkpoints(self) -> list[int]:
        async with await self._snapshots() as store:
            return [info.at for info in await store.list()]

    async def _snapshots(self) -> SnapshotStore:
        return await open_snapshots(JOURNAL, client=self.client)

    def _acknowledged(self) -> int:
        return sum(client.acknowledged for client in self._clients)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    async def _until(self, holds: Callable[[], bool | Awaitable[bool]], what: str) -> None:
        """Wait until it holds. Raises: DemoError: it does not within the plan's limit, which is stretched."""
        self.view.waits(what)

        async def asked() -> bool:
            with suppress(ReplicaNotActiveError, JournalError, BookKeeperError):
                found = holds()
                return found if isinstance(found, bool) else await found
            return False

        try:
            await until_async(asked, what, quiet_s=self.plan.limit_s)
        except StalledError as error:
            raise DemoError(f"{error}; see {self.plan.directory / 'logs'}") from error
        self.picture.waits_for = ""
