"""A program for the tests of replicas, and an election in the hands of the test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from journal_manager import Op
from journal_manager.backends.memory import MemoryHub
from journal_manager.errors import ElectionLostError
from journal_manager.journals.election import Election
from journal_manager.replicas.replica_config import ReplicaConfig
from journal_manager.replicas.replicated_program import ReplicatedProgram, replicated
from journal_manager.snapshots.checkpoints import CheckpointPolicy


class RefusedError(Exception):
    """The program does not want this edit."""


class Ledger:
    """A list of words, none of them twice. An edit that is applied twice is refused, so that replaying it fails."""

    def __init__(self) -> None:
        self.words: list[bytes] = []
        self.breaks_at: bytes | None = None

    def apply(self, op: Op) -> bytes:
        if op.body in self.words or op.body == self.breaks_at:
            raise RefusedError(op.body)
        self.words.append(op.body)
        return b"%d" % len(self.words)

    def snapshot(self) -> Iterable[bytes]:
        for word in self.words:
            yield word + b"\n"

    async def restore(self, chunks: AsyncIterator[bytes]) -> None:
        self.words = []
        content = b"".join([chunk async for chunk in chunks])
        self.words = content.split(b"\n")[:-1]


class Ballot:
    """Elects whom the test wants. The former one learns of it when the test says so, as a paused process would."""

    def __init__(self, elected: str | None = None) -> None:
        self.elected = elected
        self.change = asyncio.Event()

    def elect(self, name: str | None) -> None:
        self.elected = name
        change, self.change = self.change, asyncio.Event()
        change.set()


class Candidate(Election):
    """Believes what it saw last, until ``look``."""

    def __init__(self, ballot: Ballot, name: str, *, paused: bool = False) -> None:
        self.ballot, self.name = ballot, name
        self.paused = paused
        """Goes on to believe that it is elected."""
        self.doubts = False
        """Its lease was not renewed in time."""
        self.closed = False
        self._believes = False

    @property
    def is_held(self) -> bool:
        return self._believes and not self.doubts

    @property
    def holder(self) -> str | None:
        return self.ballot.elected if self.ballot.elected != self.name else None

    async def campaign(self) -> None:
        while self.ballot.elected not in (self.name, None):
            await self.ballot.change.wait()
        if self.ballot.elected is None:
            self.ballot.elect(self.name)
        self._believes = True

    async def wait_until_held(self) -> None:
        if self.ballot.elected != self.name:
            raise ElectionLostError("another one")

    async def lost(self) -> None:
        while self.ballot.elected == self.name or self.paused:
            await self.ballot.change.wait()
        self._believes = False

    async def resign(self) -> None:
        self._believes = False
        if self.ballot.elected == self.name:
            self.ballot.elect(None)

    async def close(self) -> None:
        await self.resign()
        self.closed = True


def config_of(*, edits: int = 1_000_000, seconds: float = 3600.0, check_s: float = 5.0, **config: Any) -> ReplicaConfig:
    return ReplicaConfig(checkpoints=CheckpointPolicy(edits=edits, seconds=seconds, check_s=check_s), **config)


def replica_of(
    hub: MemoryHub, candidate: Candidate, config: ReplicaConfig | None = None, machine: Ledger | None = None
) -> ReplicatedProgram:
    machine = machine if machine is not None else Ledger()
    return replicated("mem:x", machine, name=candidate.name, config=config, election=candidate, hub=hub)


def words(replica: ReplicatedProgram) -> list[bytes]:
    machine = replica.machine
    assert isinstance(machine, Ledger)
    return machine.words
