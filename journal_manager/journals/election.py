"""Who of several replicas is the active one.

    campaign()          waits until nobody else holds the election, and takes it
    wait_until_held()   certain: no other replica believes that it holds it
    lost()              waits until another replica has taken it
    resign()            gives it up, so that a successor need not wait

The journal's fencing keeps the edits right whoever is elected: a replica that is not the newest writer can add nothing.
The election decides who should write, and whether the active replica may answer reads: only while ``is_held``.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol, runtime_checkable

from journal_manager.errors import ElectionLostError, JournalConfigError
from journal_manager.journals.backend import Backend, Options
from journal_manager.journals.journal_uri import JournalURI, parse_uri
from journal_manager.journals.registry import backend_for

LOOK_S: Final = 0.1
"""Seconds between two attempts to take a lock that another replica holds."""


class Election(Protocol):
    """One replica's part in the election of a journal."""

    @property
    def is_held(self) -> bool:
        """Whether this replica certainly is the elected one now. It may become true again by itself, unless lost."""

    @property
    def holder(self) -> str | None:
        """The name of the other replica that was last seen as the elected one; None if none is known."""

    async def campaign(self) -> None:
        """Wait until no other replica holds the election, and take it. Certain only after ``wait_until_held``."""

    async def wait_until_held(self) -> None:
        """Wait until no other replica can believe that it holds the election.

        Raises:
            ElectionLostError: another replica took it meanwhile.
        """

    async def lost(self) -> None:
        """Wait until another replica has taken the election. A store that does not answer is no loss."""

    async def resign(self) -> None:
        """Give the election up. Idempotent; also before it was won."""

    async def close(self) -> None:
        """Resign and release everything. Idempotent."""


@runtime_checkable
class ElectableBackend(Protocol):
    """A backend that can elect the active replica of a journal."""

    async def open_election(self, uri: JournalURI, options: Options, *, name: str) -> Election:
        """Take part under ``name``, which people and the other replicas see. The journal need not exist yet."""


async def open_election(uri: str, *, name: str, **options: object) -> Election:
    """Take part in the election of the journal at ``uri``.

    Raises:
        JournalConfigError: the backend of this address cannot elect.
    """
    parsed = parse_uri(uri)
    backend: Backend = backend_for(parsed)
    if not isinstance(backend, ElectableBackend):
        raise JournalConfigError(f"{parsed.scheme}: journals cannot elect an active replica: give an election")
    return await backend.open_election(parsed, options, name=name)


class TryLock(Protocol):
    """A lock that the system takes away from a process that ended."""

    async def try_acquire(self) -> bool:
        """Take the lock if nobody has it."""

    @property
    def in_force(self) -> bool:
        """Whether it is taken, and keeps others out still."""

    async def release(self) -> None:
        """Give the lock up. Idempotent."""


class LockElection(Election):
    """Whoever has a lock is elected, until it ends or is not in force any more. A stopped process keeps it."""

    def __init__(self, lock: TryLock) -> None:
        self._lock = lock
        self._held = False

    @property
    def is_held(self) -> bool:
        return self._held and self._lock.in_force

    @property
    def holder(self) -> str | None:
        return None

    async def campaign(self) -> None:
        while True:
            if await self._lock.try_acquire():
                self._held = True
                return
            await asyncio.sleep(LOOK_S)

    async def wait_until_held(self) -> None:
        if not self.is_held:
            raise ElectionLostError("this replica has given its lock up, or the lock's file was removed")

    async def lost(self) -> None:
        while True:
            if self._held and not self._lock.in_force:
                return
            await asyncio.sleep(LOOK_S)

    async def resign(self) -> None:
        self._held = False
        await self._lock.release()

    async def close(self) -> None:
        await self.resign()
