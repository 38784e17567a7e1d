"""One gateway process: who owns the namespace, and what the others do meanwhile.

    starting --acquire lease, claim journal, replay--> owner --lease or journal lost--> standby --> ...
                                                                                        |
                                                          acquires again when the lease lies vacant

A gateway that starts takes over at once: whoever had the namespace is fenced by the journal's epoch and stops
answering within its lease. A request that comes while nobody is known to be the owner is parked for a while,
because the client gives up at once where it could wait; then it is refused in a way that the client may retry.
Where another gateway is known to be the owner, the client is told so at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from bookkeeper.seams import Clock
from journal_manager import JournalError, SnapshotStore
from spark_wal.webhdfs.content import BlobStore
from spark_wal.webhdfs.events import EventFeed
from spark_wal.webhdfs.lease import Lease
from spark_wal.webhdfs.owner import NamespaceLog, NotOwnerError, Owner, OwnerConfig
from spark_wal.webhdfs.records import SetQuota
from spark_wal.webhdfs.refusals import RetriableError, StandbyError

logger = logging.getLogger(__name__)

PARK_S: Final = 20.0
"""How long a request waits for an owner; well below the 60 s after which clients give up reading."""

RETRY_S: Final = 0.5
"""Pause before the namespace is opened again after a failure."""


class Role(Enum):
    STARTING = "starting"
    OWNER = "owner"
    STANDBY = "standby"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayConfig:
    """What may be set."""

    owner: OwnerConfig = field(default_factory=OwnerConfig)
    quotas: Mapping[str, int | None] = field(default_factory=dict)
    """Bytes that may lie below a path (a checkpoint's root); None lifts a quota that was set earlier."""
    park_s: float = PARK_S


@dataclass(frozen=True, slots=True)
class Opened:
    """A namespace that was just claimed: whoever had it is fenced."""

    log: NamespaceLog
    snapshots: SnapshotStore
    blobs: BlobStore


OpenNamespace = Callable[[], Awaitable[Opened]]


class Gateway:
    """Keeps the namespace open, as long as it may."""

    def __init__(
        self, open_namespace: OpenNamespace, lease: Lease, clock: Clock, config: GatewayConfig | None = None
    ) -> None:
        self._open_namespace = open_namespace
        self._lease = lease
        self._clock = clock
        self.config = config or GatewayConfig()
        self.events = EventFeed()
        self.role = Role.STARTING
        self.session: Owner | None = None
        self.problem: BaseException | None = None
        """Why the namespace could not be opened the last time."""
        self._changed = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._waits: list[asyncio.Future[object]] = []

    async def start(self) -> None:
        """Become the owner: returns when requests are answered.

        Raises:
            JournalError, RecordFormatError, BookKeeperError: the namespace cannot be opened; nothing is left open.
        """
        await self._lease.acquire(wait_vacant=False)
        try:
            await self._begin_session()
        except BaseException:
            await self._lease.release()
            raise
        self._running = asyncio.get_running_loop().create_task(self._run(), name="gateway ownership")

    async def owner(self) -> Owner:
        """The session that may answer now; waits for one for a while.

        Raises:
            StandbyError: another gateway has the namespace. RetriableError: nobody is known to have it.
        """
        session = self.session
        if session is not None and session.is_sure:
            return session
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.config.park_s
        while (left := deadline - loop.time()) > 0 and self.role is not Role.CLOSED:
            if self.session is not None and self.session.is_sure:
                return self.session
            if self._lease.is_others:
                break  # a client that is told at once goes there; one that is parked loses time
            try:
                async with asyncio.timeout(min(left, 0.05)):
                    await self._changed.wait()
            except TimeoutError:
                pass
        if self._lease.is_others:
            raise StandbyError("Operation category READ is not supported in state standby")
        raise RetriableError("The gateway does not own its namespace for certain now; try again")

    async def close(self) -> None:
        """Give the namespace up in order, so that a successor need not wait. Idempotent."""
        if self.role is Role.CLOSED:
            return
        self._set_role(Role.CLOSED)
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        await self._end_waits()
        await self._end_session(abort=False)
        await self._lease.release()
        self.events.close()

    async def _run(self) -> None:
        while True:
            session = self.session
            assert session is not None
            await self._until_lost(session)
            lease_lost = not session.failed.is_set()
            self._set_role(Role.STANDBY)
            try:
                await self._end_session(abort=True)
            except Exception as error:  # what it held is lost to it either way
                logger.warning("the session did not end cleanly: %r", error)
            await self._reopen(wait_vacant=lease_lost or session.fenced)

    async def _reopen(self, *, wait_vacant: bool) -> None:
        while True:
            try:
                await self._lease.acquire(wait_vacant=wait_vacant)
                self._set_role(Role.STARTING)
                await self._begin_session()
            except Exception as error:  # whatever it was (a lost race for the lease, too): never give up for good
                self.problem = error
                logger.warning("the namespace cannot be opened now: %r", error)
                self._set_role(Role.STANDBY)
                await self._lease.release()
                wait_vacant = True  # whoever took it meanwhile may be able to; we were not
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def _until_lost(self, session: Owner) -> None:
        self._waits = [asyncio.ensure_future(self._lease.lost()), asyncio.ensure_future(session.failed.wait())]
        await asyncio.wait(self._waits, return_when=asyncio.FIRST_COMPLETED)
        await self._end_waits()

    async def _end_waits(self) -> None:
        waits, self._waits = self._waits, []
        for wait in waits:
            wait.cancel()
        if waits:
            await asyncio.wait(waits)

    async def _begin_session(self) -> None:
        opened = await self._open_namespace()
        session = Owner(
            opened.log, opened.snapshots, opened.blobs, self._lease, self._clock, self.events, self.config.owner
        )
        try:
            await session.replay()
            for path, quota in self.config.quotas.items():
                await session.change(SetQuota(path, quota, self._clock.wall_ms()))
        except NotOwnerError as error:
            await session.close(abort=True)
            raise JournalError(str(error)) from error
        except BaseException:
            await session.close(abort=True)
            raise
        session.begin_collection()
        session.begin_looking()
        self.problem = None
        self.session = session
        self._set_role(Role.OWNER)
        logger.info("epoch %s owns the namespace, at edit %s", session.epoch, session.namespace.sequence)

    async def _end_session(self, *, abort: bool) -> None:
        session, self.session = self.session, None
        if session is not None:
            await session.close(abort=abort)

    def _set_role(self, role: Role) -> None:
        self.role = role
        self._changed.set()
        self._changed = asyncio.Event()
