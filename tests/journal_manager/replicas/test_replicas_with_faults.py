"""Three replicas, clients that repeat their requests, and a bad day: simulated, by seeds.

Whatever is paused, killed, overtaken or fails: what was answered is in the state of every later active replica, nothing
is applied twice, a read shows everything that was answered before it, and equal edits make equal states. Each planted
bug breaks one of these.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random

import pytest

from bookkeeper.testing import SimLoop
from journal_manager import (
    JournalError,
    JournalUnavailableError,
    RequestAnswer,
    RequestId,
    RequestTable,
    RetentionPolicy,
)
from journal_manager.backends import memory
from journal_manager.backends.memory import MemoryHub
from journal_manager.edits import Batch
from journal_manager.errors import JournalInvariantError
from journal_manager.replicas.replica import Replica, ReplicaRole
from journal_manager.replicas.replicated_program import ReplicatedProgram
from journal_manager.write import EditLog
from tests.journal_manager.replicas import Ballot, Candidate, RefusedError, config_of, replica_of, words

SEEDS = 25
CLIENTS, CALLS = 3, 25
FAULTS = 25


class Broken(AssertionError):
    """A promise was broken."""


class BadDay:
    """One run."""

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rng = Random(seed)
        self.hub, self.ballot = MemoryHub(), Ballot("r0")
        self.replicas: list[ReplicatedProgram] = []
        self.candidates: list[Candidate] = []
        self.acknowledged: list[bytes] = []
        self.names = 0
        self.calm = False
        real = memory.MemorySegmentWriter.append

        async def append(segment: memory.MemorySegmentWriter, batch: Batch) -> None:
            await asyncio.sleep(self.rng.random() * 0.3)
            fate = 1.0 if self.calm else self.rng.random()
            if fate < 0.02:
                raise JournalUnavailableError("lost")
            await real(segment, batch)
            if fate < 0.08:
                raise JournalUnavailableError("stored, and the reply is lost")
            await asyncio.sleep(self.rng.random() * 0.1)

        def begin(segment: memory.MemorySegmentWriter, batch: Batch) -> Awaitable[None]:
            return append(segment, batch)

        monkeypatch.setattr(memory.MemorySegmentWriter, "append", begin)

    async def add(self) -> None:
        candidate = Candidate(self.ballot, f"r{self.names}")
        self.names += 1
        config = config_of(edits=4, check_s=2.5, retention=RetentionPolicy(snapshots=2), doubt_s=1.0)
        replica = replica_of(self.hub, candidate, config)
        await replica.start()
        self.candidates.append(candidate)
        self.replicas.append(replica)

    async def kill(self, index: int) -> None:
        """As kill -9 does: nothing is closed in order, and the election is noticed to be free later."""
        replica, candidate = self.replicas.pop(index), self.candidates.pop(index)
        assert replica._running is not None
        replica._running.cancel()
        await asyncio.wait([replica._running])
        if replica._log is not None:
            await replica._log.abort()
        if self.ballot.elected == candidate.name:
            self.ballot.elect(None)

    async def client(self, number: int) -> None:
        """Each call is repeated until somebody has answered it; sometimes one comes a second time, much later."""
        rng = Random(self.rng.random())
        answers: list[RequestAnswer] = []
        for call in range(CALLS):
            answers.append(await self.call(rng, number, call))
            self.acknowledged.append(b"%d.%d" % (number, call))
            if rng.random() < 0.3:
                again = rng.randrange(0, len(answers))
                if await self.call(rng, number, again) != answers[again]:
                    raise Broken(f"call {again} of client {number} got two answers")
            await asyncio.sleep(rng.random() * 0.3)

    async def call(self, rng: Random, number: int, call: int) -> RequestAnswer:
        word, request = b"%d.%d" % (number, call), RequestId(b"client %d" % number, call)
        while True:
            replica = rng.choice(self.replicas)
            try:
                async with asyncio.timeout(5):
                    return await replica.submit(word, request=request)
            except RefusedError:
                raise Broken(f"{word!r} was to be carried out twice") from None
            except (JournalError, TimeoutError):
                await asyncio.sleep(rng.random() * 0.3)

    async def reader(self) -> None:
        while True:
            before, replica = list(self.acknowledged), self.rng.choice(self.replicas)
            with suppress(JournalError):
                async with asyncio.timeout(5):
                    seen = await replica.read(lambda replica=replica: list(words(replica)))  # type: ignore[misc]
                self.compare(before, seen, "a read")
            await asyncio.sleep(self.rng.random() * 0.04)

    async def faults(self) -> None:
        for _ in range(FAULTS):
            await asyncio.sleep(self.rng.random() * 1.0)
            index = self.rng.randrange(0, len(self.replicas))
            candidate = self.candidates[index]
            match self.rng.randrange(0, 5):
                case 0:
                    self.ballot.elect(candidate.name)
                case 1:
                    candidate.paused = candidate.doubts = True
                    self.ballot.elect(self.rng.choice(self.candidates).name)
                case 2:
                    candidate.paused = candidate.doubts = False
                case 3:
                    await self.kill(index)
                    await self.add()
                case _:
                    candidate.doubts = not candidate.doubts

    async def live(self) -> None:
        for _ in range(3):
            await self.add()
        reader = asyncio.create_task(self.reader())
        async with asyncio.TaskGroup() as tasks:
            clients = [tasks.create_task(self.client(number)) for number in range(CLIENTS)]
            await self.faults()
            self.calm = True
            for candidate in self.candidates:
                candidate.paused = candidate.doubts = False
            self.ballot.elect(self.rng.choice(self.candidates).name)
            async with asyncio.timeout(300):
                await asyncio.wait(clients)
        reader.cancel()
        await asyncio.wait([reader])
        if not reader.cancelled():
            reader.result()
        await self.check()

    async def check(self) -> None:
        await asyncio.sleep(30)
        active = [replica for replica in self.replicas if replica.role is ReplicaRole.ACTIVE]
        if len(active) != 1:
            raise Broken(f"{[replica.status() for replica in self.replicas]}")
        expected = await active[0].read(lambda: list(words(active[0])))
        self.compare(self.acknowledged, expected, "the active replica")
        for replica in self.replicas:
            if replica.applied != active[0].applied or words(replica) != expected:
                raise Broken(f"states differ at edit {replica.applied}: {replica.status()}")
            await replica.close()

    @staticmethod
    def compare(acknowledged: list[bytes], seen: list[bytes], who: str) -> None:
        if missing := set(acknowledged) - set(seen):
            raise Broken(f"{who} does not show {sorted(missing)}")
        if len(seen) != len(set(seen)):
            raise Broken(f"{who} shows something twice")


def run(seed: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        day = BadDay(seed, monkeypatch)
        with asyncio.Runner(loop_factory=SimLoop) as runner:
            runner.run(day.live())


@pytest.mark.rule("C4", "C5", "C7", "C8")
@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_lost_or_applied_twice(seed: int) -> None:
    run(seed)


# -- planted bugs --------------------------------------------------------------------------------------

Plant = Callable[[pytest.MonkeyPatch], None]


def keeps_what_may_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fenced replica goes on with a state that has more than the journal."""
    monkeypatch.setattr(Replica, "must_rebuild", property(lambda replica: False))
    real = Replica.fence
    monkeypatch.setattr(Replica, "fence", lambda replica, durable=None: real(replica))


def answers_before_it_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    real = EditLog.log

    def log(log: EditLog, *args: object, **options: object) -> asyncio.Future[int]:
        real(log, *args, **options).add_done_callback(lambda done: done.cancelled() or done.exception())  # type: ignore[arg-type]
        early: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        early.set_result(0)
        return early

    monkeypatch.setattr(EditLog, "log", log)


def reads_without_the_election(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Candidate, "is_held", True)


def forgets_requests_in_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestTable, "encode", lambda table: bytes(8))


def does_not_catch_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(replicated: ReplicatedProgram, log: EditLog) -> None:
        return None

    monkeypatch.setattr(ReplicatedProgram, "_catch_up", nothing)
    monkeypatch.setattr(Replica, "caught_up", True)


@pytest.mark.parametrize(
    "plant",
    [
        keeps_what_may_be_lost,
        answers_before_it_is_durable,
        reads_without_the_election,
        forgets_requests_in_snapshots,
        does_not_catch_up,
    ],
)
def test_a_planted_bug_is_found(plant: Plant) -> None:
    for seed in range(SEEDS):
        with pytest.MonkeyPatch.context() as monkeypatch:
            plant(monkeypatch)
            try:
                run(seed)
            except (Broken, JournalInvariantError, BaseExceptionGroup, TimeoutError):
                return
    pytest.fail("no seed found it")
