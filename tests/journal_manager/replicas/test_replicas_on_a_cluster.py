"""Replicas on production bookies, leases and sessions in one simulated world: crashes, zombies, an absent store."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
from collections.abc import Iterator
from random import Random

import pytest

from bookkeeper.leases.process_location import NOWHERE
from bookkeeper.seams import Seams
from bookkeeper.testing.cluster import SimCluster
from journal_manager import JournalError, RequestId, RetentionPolicy, replicated
from journal_manager.replicas.replica import ReplicaRole
from journal_manager.replicas.replicated_program import ReplicatedProgram
from tests.journal_manager.replicas import Ledger, RefusedError, config_of, words

CALLS, FAULTS = 60, 8


class Story:
    """Two replicas on nodes of their own, clients that repeat their calls, and faults."""

    def __init__(self, cluster: SimCluster, seed: int) -> None:
        self.cluster, self.rng = cluster, Random(seed)
        self.replicas: dict[str, ReplicatedProgram] = {}
        self.acknowledged: list[bytes] = []

    async def program(self, name: str, seams: Seams) -> None:
        client = await self.cluster.new_client(node=self.cluster.node(name))
        config = config_of(edits=15, check_s=2.0, retention=RetentionPolicy(snapshots=2), doubt_s=2.0)
        async with replicated(
            "bk:words", Ledger(), name=name, config=config, client=client, here=NOWHERE
        ) as self.replicas[name]:
            await asyncio.Event().wait()

    def start(self, name: str) -> None:
        self.cluster.node(name).start(lambda seams: self.program(name, seams))

    async def submit(self, word: bytes, request: RequestId) -> None:
        """Ask the replicas in turn, each on its own node, until one answers."""
        while True:
            for name in ("r1", "r2"):
                node = self.cluster.node(name)
                if not node.alive or name not in self.replicas:
                    continue
                asked = node.run(self.replicas[name].submit(word, request=request))
                await asyncio.wait([asked], timeout=3)
                if not asked.done():
                    asked.add_done_callback(lambda task: task.cancelled() or task.exception())
                    continue
                try:
                    asked.result()
                except RefusedError:
                    raise AssertionError(f"{word!r} was to be carried out twice") from None
                except (JournalError, asyncio.CancelledError):
                    continue
                return
            await asyncio.sleep(0.2)

    async def clients(self, number: int) -> None:
        for call in range(CALLS):
            word = b"%d.%d" % (number, call)
            await self.submit(word, RequestId(b"client %d" % number, call))
            self.acknowledged.append(word)
            await asyncio.sleep(0.3 * self.rng.random())

    async def faults(self) -> None:
        for _ in range(FAULTS):
            await asyncio.sleep(3 * self.rng.random())
            node = self.cluster.node(self.rng.choice(["r1", "r2", "r1", "r2", "b1"]))
            match self.rng.randrange(0, 3):
                case 0 if node.alive:
                    node.crash()
                    await asyncio.sleep(2 * self.rng.random())
                    node.restart()
                case 1 if node.alive:
                    node.freeze()
                    await asyncio.sleep(5 * self.rng.random())
                    node.thaw()
                case _:
                    self.cluster.store.begin_outage()
                    await asyncio.sleep(5)
                    self.cluster.store.end_outage()

    async def live(self) -> None:
        for name in ("r1", "r2"):
            self.start(name)
        await asyncio.gather(self.faults(), *(self.clients(number) for number in range(2)))
        await asyncio.sleep(20)
        active = [replica for replica in self.replicas.values() if replica.role is ReplicaRole.ACTIVE]
        assert len(active) == 1, [replica.status() for replica in self.replicas.values()]
        seen = words(active[0])
        assert set(self.acknowledged) <= set(seen) and len(seen) == len(set(seen))
        assert all(words(replica) == seen for replica in self.replicas.values())
        for name in self.replicas:
            self.cluster.node(name).crash()


@pytest.fixture(autouse=True)
def silence(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Nothing is said about coroutines of machines that crashed: nobody ends them in order."""
    caplog.set_level(logging.CRITICAL + 1, "journal_manager")
    caplog.set_level(logging.CRITICAL + 1, "asyncio")
    monkeypatch.setattr(sys, "unraisablehook", lambda *_: None)
    yield
    gc.collect()


@pytest.mark.rule("C4", "C5", "C8")
@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_or_applied_twice(seed: int) -> None:
    cluster = SimCluster(seed)
    cluster.run(lambda cluster: Story(cluster, seed).live(), within_s=900)
