"""One gateway process: whether it owns the namespace, and what it does while another one does.

    starting --take the lease, claim the journal, replay, be alone--> owner --lease or journal lost--> standby --> ...
        |                                                                                               |
        '-- another renews the lease --> standby                          takes the lease when it lies vacant

A gateway that starts does not disturb a living owner, and stands by. If it is told to take over, it does so at once:
the journal's epoch then fences the former owner, which stops answering within its lease.

While no owner is known, a request waits for a while, because the client itself would give up at once. After that it is
refused with an error that the client may retry. If another gateway is the owner, the client is told so and asks that
one, but only after that gateway was seen to renew its lease *after* the request came. Otherwise a client that comes
because the owner has just died would be sent back and forth, ten times within milliseconds, and then give up.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from bookkeeper.errors import in_words
from bookkeeper.leases.lease import Lease, LeaseEntry, LeaseLostError, NamespaceOwnedError
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Clock
from journal_manager import JournalError, SnapshotStore
from spark_wal.webhdfs.config import GatewayConfig
from spark_wal.webhdfs.contents.blob_store import BlobStore
from spark_wal.webhdfs.errors import RetriableError, StandbyError
from spark_wal.webhdfs.files.records import SetNamesQuota, SetQuota
from spark_wal.webhdfs.ownership.events import TreeEventFeed
from spark_wal.webhdfs.ownership.growing_file import settle_left_behind
from spark_wal.webhdfs.ownership.namespace_owner import NamespaceLog, NamespaceOwner, NotOwnerError

logger = logging.getLogger(__name__)


PARKED_LOOK_S: Final = 0.05
"""Seconds between two checks of a waiting request whether the lease is certain again."""

FINISH_S: Final = 3.0
"""The most seconds for closing the journal when the gateway stops. The gateway has ten seconds for everything: running
uploads, this, the lease, and the session with the metadata store."""

RETRY_S: Final = 0.5
"""Seconds before the namespace is opened again after a failure."""


class GatewayRole(Enum):
    STARTING = "starting"
    OWNER = "owner"
    STANDBY = "standby"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class ClaimedNamespace:
    """A namespace that was just claimed. Its former owner is fenced."""

    log: NamespaceLog
    snapshots: SnapshotStore
    blobs: BlobStore


OpenNamespace = Callable[[], Awaitable[ClaimedNamespace]]


class Gateway:
    """Keeps the namespace open as long as it owns the lease."""

    def __init__(
        self, open_namespace: OpenNamespace, lease: Lease, clock: Clock, config: GatewayConfig | None = None
    ) -> None:
        self._open_namespace = open_namespace
        self._lease = lease
        self._clock = clock
        self.config = config or GatewayConfig()
        self.events = TreeEventFeed()
        self.role = GatewayRole.STARTING
        self.session: NamespaceOwner | None = None
        self.problem: BaseException | None = None
        """Why the namespace could not be opened the last time."""
        self._changed = asyncio.Event()
        self._parks = True
        self._running: asyncio.Task[None] | None = None
        self._waits: list[asyncio.Future[object]] = []

    async def start(self, *, take_over: bool = False, stand_by: bool = True) -> None:
        """Become the owner, or find another one. Returns when requests are answered, if only with "standby".

        An owner that renews its lease stays the owner, unless ``take_over`` is set. Without ``stand_by`` this does not
        wait for its end.

        Raises:
            NamespaceOwnedError: another gateway owns the namespace (without ``stand_by``).
            JournalError, RecordFormatError, BookKeeperError: the namespace cannot be opened; nothing is left open.
        """
        try:
            await self._lease.acquire(LeaseEntry.TAKE_OVER if take_over else LeaseEntry.IF_VACANT)
            await self._begin_session()
        except (NamespaceOwnedError, LeaseLostError) as error:
            await self._lease.release()
            if not stand_by:
                raise NamespaceOwnedError(self._lease.other or "an unknown address") from error
            logger.info("this gateway stands by, because the gateway at %s owns the namespace", self._lease.other)
            self._set_role(GatewayRole.STANDBY)
        except BaseException:
            await self._lease.release()
            raise
        self._running = asyncio.get_running_loop().create_task(self._run(), name="gateway ownership")

    async def owner(self) -> NamespaceOwner:
        """The session that may answer now. Waits for one for a while.

        Raises:
            StandbyError: another gateway owns the namespace. RetriableError: no owner is known.
        """
        session = self.session
        if session is not None and session.holds_lease:
            return session
        loop = asyncio.get_running_loop()
        deadline, seen = loop.time() + self.config.park_s, self._lease.others_seen
        while (left := deadline - loop.time()) > 0 and self._parks:
            if self.session is not None and self.session.holds_lease:
                return self.session
            if self._lease.others_seen != seen:
                raise StandbyError("Operation category READ is not supported in state standby")
            try:
                async with asyncio.timeout(min(left, PARKED_LOOK_S)):
                    await self._changed.wait()
            except TimeoutError:
                pass
        raise RetriableError("The gateway does not own its namespace for certain now; try again")

    def park_no_more(self) -> None:
        """Stop waiting for an owner, because the gateway closes. Waiting requests are refused and may be retried."""
        self._parks = False
        self._wake()

    async def close(self) -> None:
        """Give the namespace up in order, so that a successor need not wait. Idempotent."""
        if self.role is GatewayRole.CLOSED:
            return
        self.park_no_more()
        self._set_role(GatewayRole.CLOSED)
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        await self._end_waits()
        try:
            await self._finish_session()
        finally:
            await self._lease.release()
            self.events.close()

    async def _finish_session(self) -> None:
        """End the session in order if the store answers soon. The end of the process does not wait longer."""
        try:
            async with asyncio.timeout(FINISH_S):
                await self._end_session(abort=False)
        except TimeoutError:
            logger.warning(
                "the journal was not closed, because its store did not answer within %g s. Nothing is lost: everything "
                "that was answered is durable, and the next owner closes the journal",
                FINISH_S,
            )

    async def _run(self) -> None:
        while True:
            session = self.session
            if session is not None:
                await self._wait_until_lost(session)
                await self._step_down()
            await self._reopen()

    async def _step_down(self) -> None:
        self._set_role(GatewayRole.STANDBY)
        if self._lease.other is not None:
            logger.warning(
                "this gateway stands by, because the gateway at %s took the namespace over", self._lease.other
            )
        try:
            await self._end_session(abort=True)
        except Exception as error:  # the session is over either way
            logger.warning(
                "this gateway could not close the journal that it gave up; the next owner closes it: %s",
                in_words(error),
            )

    async def _reopen(self) -> None:
        """Become the owner again once nobody else is. If only the journal failed, this gateway still has the lease."""
        while True:
            try:
                await self._lease.acquire(LeaseEntry.WHEN_VACANT)
                self._set_role(GatewayRole.STARTING)
                await self._begin_session()
            except Exception as error:  # whatever it is, also a lost race for the lease: try again
                self.problem = error
                logger.warning("the namespace cannot be opened now, and is tried again: %s", in_words(error))
                self._set_role(GatewayRole.STANDBY)
                await self._lease.release()
                await asyncio.sleep(RETRY_S)
            else:
                return

    async def _wait_until_lost(self, session: NamespaceOwner) -> None:
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
        """Claim the journal and replay it while waiting for earlier holders of the lease. Nothing is answered or
        changed before that wait is over."""
        opened = await self._open_namespace()
        session = NamespaceOwner(
            opened.log, opened.snapshots, opened.blobs, self._lease, self._clock, self.events, self.config.owner
        )
        try:
            await session.replay()
            await self._lease.wait_until_held()
            for path, quota in self.config.quotas.items():
                await session.change(SetQuota(path, quota, self._clock.wall_ms()))
            for path, quota in self.config.names_quotas.items():
                await session.change(SetNamesQuota(path, quota, self._clock.wall_ms()))
        except NotOwnerError as error:
            await session.close(abort=True)
            raise JournalError(str(error)) from error
        except BaseException:
            await session.close(abort=True)
            raise
        session.begin_collection()
        session.begin_looking()
        session.spawn(settle_left_behind(session))
        self.problem = None
        self.session = session
        self._set_role(GatewayRole.OWNER)
        logger.info(
            "this gateway owns the namespace with epoch %s, from edit %s on", session.epoch, session.namespace.sequence
        )

    async def _end_session(self, *, abort: bool) -> None:
        session, self.session = self.session, None
        if session is not None:
            await session.close(abort=abort)

    def update_metrics(self, metrics: Metrics) -> None:
        """Update the metrics of the tree."""
        session = self.session
        used = metrics.gauge("tree_bytes", "Memory that files and directories take, about; 0 while standing by.")
        most = metrics.gauge("tree_bytes_max", "The most that they may take; infinite without a limit.")
        memory = None if session is None else session.namespace.memory
        used.value = 0 if memory is None else memory.used
        most.value = math.inf if memory is None or memory.limit is None else memory.limit

    def _set_role(self, role: GatewayRole) -> None:
        self.role = role
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
