"""A program whose state is replicated by a journal: one replica is active, the others stand by.

    async with replicated("bk:accounts", machine, name="10.0.0.1:7000", metadata="zk://…") as replica:
        await replica.wait_until_active()
        answer = await replica.submit(b"deposit 5")            # durable, applied once, on every replica
        balance = await replica.read(lambda: machine.balance)  # what was answered anywhere before is seen

What is submitted is applied, logged, made durable, and answered. A second active replica is impossible to confirm
anything: the journal fences the earlier one. A client that lost its connection repeats its request under the same
request id, at any replica, and gets the first answer.

A standby applies what is durable, and takes the snapshots. When the active replica dies the next one claims the
journal, applies the rest, and goes on. When the active one is fenced it stands by again; if it had applied more than
was durable it restores the newest snapshot and replays. So does each replica whose edits were discarded meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from journal_manager.edits.ops import Op
from journal_manager.edits.requests import RequestAnswer, RequestId, RequestTable
from journal_manager.errors import (
    EditsDiscardedError,
    JournalClosedError,
    JournalError,
    JournalGapError,
    JournalInvariantError,
    JournalNotFormattedError,
    JournalOverloadedError,
    NotActiveError,
    ReplicaFailedError,
)
from journal_manager.journals.backend import JournalWriter
from journal_manager.journals.election import Election, open_election
from journal_manager.journals.open_journal import open_reader, open_snapshots
from journal_manager.read.edit_reader import read_runs
from journal_manager.replicas.kept_edits import KeptEdits
from journal_manager.replicas.program_state import ProgramState, StateMachine
from journal_manager.replicas.replica import Replica, ReplicaRole
from journal_manager.replicas.replica_config import ReplicaConfig
from journal_manager.replicas.snapshot_keeper import SnapshotKeeper
from journal_manager.replicas.status import ReplicaStatus
from journal_manager.snapshots.snapshots import SnapshotInfo
from journal_manager.txid import NOTHING, TxId
from journal_manager.write.edit_log import EditLog

logger = logging.getLogger(__name__)

T = TypeVar("T")

DOUBT_CHECK_S: Final = 0.02
"""Seconds between two checks whether the election is certain again."""

FINISH_S: Final = 3.0
"""The most seconds for closing the journal in order. After that it is left to the next active replica."""


class ReplicatedProgram:
    """One replica of a program. Made by :func:`replicated`; an async context manager."""

    def __init__(
        self,
        uri: str,
        machine: StateMachine,
        *,
        name: str,
        config: ReplicaConfig,
        election: Election | None,
        wrap: Callable[[JournalWriter], JournalWriter] | None,
        options: dict[str, Any],
    ) -> None:
        self.machine = machine
        self._wrap = wrap
        self._uri, self._name, self._config, self._options = uri, name, config, options
        self._given = election
        self._election: Election | None = None
        self._replica = Replica()
        self._state = ProgramState(machine, self._replica, RequestTable(config.max_answers, config.max_clients))
        self._snapshots: SnapshotKeeper | None = None
        self._log: EditLog | None = None
        """The log of the active replica."""
        self._running: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        """Set, and then replaced, when the role changes."""
        self._problem: BaseException | None = None
        self._kept = KeptEdits(self._replica, config.doubt_s)
        self._closed = False

    # -- for the program -----------------------------------------------------------------------------------

    @property
    def role(self) -> ReplicaRole:
        return self._replica.role

    @property
    def applied(self) -> TxId:
        """The state holds every edit up to this one. On the active replica the last ones may not be durable yet."""
        return self._replica.applied

    def status(self) -> ReplicaStatus:
        """What this replica knows of itself and the others."""
        replica, active = self._replica, self._election.holder if self._election is not None else None
        return ReplicaStatus(
            self._name,
            replica.role,
            replica.token.epoch if replica.token is not None else 0,
            replica.applied,
            self._log.durable_txid if self._log is not None else replica.applied,
            self._snapshots.newest if self._snapshots is not None else NOTHING,
            self._name if self._log is not None else active,
            str(self._problem) or type(self._problem).__name__ if self._problem is not None else None,
        )

    async def submit(
        self, body: bytes, opcode: int = 0, *, request: RequestId | None = None, since: TxId | None = None
    ) -> RequestAnswer:
        """Apply an edit on every replica. Returns its id and what ``apply`` answered, once the edit is durable.

        A ``request`` that was carried out before changes nothing and gets its first answer. Cancelling does not
        withdraw the edit.

        Args:
            since: a durable edit that was there when the request's client began, before its first request, as
                ``status`` tells it. Without it a request that is repeated when its client is forgotten, behind more
                than ``max_answers`` other requests and ``max_clients`` other clients, is carried out a second time.

        Raises:
            NotActiveError, OpTooLargeError: nothing was done. And what ``apply`` raises: the edit was refused.
            JournalFencedError, JournalFailedError: the outcome is unknown. Repeat it under the same request id.
            RequestForgottenError: the request is too old to tell whether it was carried out.
            ReplicaFailedError, JournalClosedError.
        """
        while True:
            log = self._active()
            if request is not None:
                known = self._state.requests.answer_to(request, since, log.next_txid - 1)
                if known is not None:
                    await log.sync(known.txid)
                    return known
            try:
                log.ensure_loggable(body, opcode, request=request)
            except JournalOverloadedError:
                await log.room()
                continue
            return await self._carry_out(log, Op(opcode, log.next_txid, body, request))

    async def _carry_out(self, log: EditLog, op: Op) -> RequestAnswer:
        answer = self._state.carry_out(op)
        try:
            durable = log.log(op.body, op.opcode, request=op.request)
        except BaseException:  # the state has more than the journal
            await log.abort()
            raise
        if op.request is not None:
            self._state.requests.record(op.request, answer)
        await durable
        return answer

    async def read(self, query: Callable[[], T]) -> T:
        """Call ``query``, which looks at the state, and return its result.

        The result shows every edit that any replica answered before this call, and none that could still be lost.

        Raises:
            NotActiveError: this replica is not the active one, or not certainly for ``doubt_s`` seconds.
            JournalFencedError, JournalFailedError: the state that ``query`` saw was not durable yet, and may be lost.
            ReplicaFailedError, JournalClosedError. And what ``query`` raises.
        """
        log = await self._certain()
        value = query()  # in the same turn of the loop
        if self._replica.applied > log.durable_txid:
            await log.sync(self._replica.applied)
        return value

    async def wait_until_active(self) -> None:
        """Wait until this replica is the active one. Raises ReplicaFailedError, JournalClosedError."""
        while self._log is None:
            self._ensure_usable()
            await self._changed.wait()

    async def checkpoint(self) -> SnapshotInfo | None:
        """Take a snapshot now, and apply the retention policy. None if there is no edit since the newest snapshot.

        For the active replica: it holds the whole snapshot in memory meanwhile. Standbys take theirs by themselves.

        Raises:
            NotActiveError. JournalUnavailableError, JournalError: it was not kept; the replica goes on.
        """
        log = self._active()
        assert self._snapshots is not None
        return await self._snapshots.checkpoint(log)

    # -- life ----------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Begin to follow the journal, and to stand for election.

        Raises:
            JournalConfigError, JournalUnavailableError: the election cannot be reached.
        """
        self._election = self._given or await open_election(self._uri, name=self._name, **self._options)
        opens_store = partial(open_snapshots, self._uri, **self._options)
        self._snapshots = SnapshotKeeper(
            self._state, self._replica, opens_store, self._config.checkpoints, self._config.retention
        )
        self._running = asyncio.get_running_loop().create_task(self._run(), name="replica")

    async def close(self) -> None:
        """Give everything up in order, so that a successor need not wait. Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])
        log, self._log = self._log, None
        self._wake()
        try:
            if log is not None:
                await self._finish(log)
        finally:
            if self._election is not None:
                await self._election.close()

    async def _finish(self, log: EditLog) -> None:
        try:
            async with asyncio.timeout(FINISH_S):
                await log.close()
        except (JournalError, TimeoutError) as error:
            logger.warning("the journal was not closed in order; the next active replica recovers it: %s", error)
            await log.abort()

    async def __aenter__(self) -> ReplicatedProgram:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def _run(self) -> None:
        try:
            while True:
                await self._stand_by()
                log = await self._take_over()
                if log is not None:
                    await self._serve(log)
                    self._replica.fence(log.durable_txid)
                    await log.abort()
                await self._step_down(pause=log is None)
        except Exception as error:
            await self._give_up(error)

    async def _give_up(self, error: Exception) -> None:
        """The program's state cannot be trusted any more, or an invariant does not hold: leave it to the others."""
        logger.critical("this replica has failed: %s", error, exc_info=error)
        self._problem = error
        self._replica.fail()
        log, self._log = self._log, None
        self._wake()
        if log is not None:
            await log.abort()
        assert self._election is not None
        await self._election.resign()

    # -- standby -------------------------------------------------------------------------------------------

    async def _stand_by(self) -> None:
        """Follow the journal until this replica is elected."""
        campaign = asyncio.ensure_future(self._campaign())
        following = asyncio.ensure_future(self._follow())
        try:
            await asyncio.wait([campaign, following], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _ended(campaign, following)
        if not following.cancelled():
            following.result()  # it ends by a failure only
        campaign.result()
        self._replica.elected()

    async def _campaign(self) -> None:
        assert self._election is not None
        while True:
            try:
                return await self._election.campaign()
            except JournalError as error:
                await self._pause(error)

    async def _follow(self) -> None:
        assert self._snapshots is not None
        while True:
            try:
                if not self._state.is_loaded:
                    await self._snapshots.load()
                await self._read_on(self._snapshots)
            except (ReplicaFailedError, JournalInvariantError):
                raise
            except JournalNotFormattedError:
                await asyncio.sleep(self._config.follow_poll_s)  # nobody was active yet
            except (JournalGapError, EditsDiscardedError) as error:
                self._state.forget()  # edits were removed behind a newer snapshot, or discarded
                await self._pause(error)
            except JournalError as error:
                await self._pause(error)

    async def _read_on(self, snapshots: SnapshotKeeper) -> None:
        """Replay until the end, or until a snapshot is due, again and again."""
        async with await open_reader(self._uri, **self._options) as reader:
            while True:
                if (lacking := await self._kept.check(reader)) is not None:
                    self._problem = lacking
                runs = read_runs(reader, self._replica.applied + 1, epoch=self._replica.applied_epoch)
                more = await self._state.replay(runs, snapshots.is_due)
                self._problem = lacking
                if not more:
                    await snapshots.refresh()
                if snapshots.is_due():
                    await snapshots.offer()
                if not more:
                    await reader.changed(self._config.follow_poll_s)

    # -- catching up, and being active ---------------------------------------------------------------------

    async def _take_over(self) -> EditLog | None:
        """Claim the journal, and apply everything that is in it. None if that was not possible now."""
        assert self._election is not None and self._snapshots is not None
        log: EditLog | None = None
        try:
            log = await EditLog.open(
                self._uri, owner=self._name, config=self._config.edit_log, wrap=self._wrap, **self._options
            )
            # Nobody else discards edits from here on. What was discarded before may be in this state.
            discarded, known = await log.discarded(), self._replica.known
            if discarded.covers(self._replica.applied, self._replica.applied_epoch):
                self._state.forget()
            known.without(discarded)
            known.ensure_same(await log.segments())
            known.ensure_reached(log.recovery.last_txid)
            self._replica.claimed(log.token, log.recovery.last_txid)
            if not self._state.is_loaded:
                await self._snapshots.load()
            try:
                await self._catch_up(log)
            except JournalGapError:
                await self._snapshots.load()  # the edits that this replica lacks are in a snapshot
                await self._catch_up(log)
            known.ensure_reached(log.recovery.last_txid, "there is a snapshot of the edits")
            await self._election.wait_until_held()
            self._replica.activate()
        except (ReplicaFailedError, JournalInvariantError):
            if log is not None:
                await log.abort()
            raise
        except JournalError as error:
            self._problem = error
            logger.warning("this replica could not become active, and tries again: %s", error)
            if log is not None:
                await log.abort()
            self._replica.fence()
            return None
        except BaseException:
            if log is not None:
                await log.abort()
            raise
        return log

    async def _catch_up(self, log: EditLog) -> None:
        end = self._replica.end
        while self._replica.applied < end:
            await self._state.replay(log.read_runs(self._replica.applied + 1, end))

    async def _serve(self, log: EditLog) -> None:
        """Answer until another replica has the election or the journal, or the journal fails."""
        assert self._election is not None and self._snapshots is not None
        self._log, self._problem = log, None
        self._wake()
        logger.info("replica %s is active with epoch %s, from edit %s on", self._name, log.token.epoch, log.next_txid)
        waits = [
            asyncio.ensure_future(self._election.lost()),
            asyncio.ensure_future(log.wait_failed()),
            asyncio.ensure_future(self._snapshots.keep_up(log)),
        ]
        try:
            await asyncio.wait(waits[:2], return_when=asyncio.FIRST_COMPLETED)
        finally:
            await _ended(*waits)
        self._problem = log.failure
        self._log = None
        logger.warning(
            "replica %s is not active any more: %s", self._name, log.failure or "another replica was elected"
        )

    async def _step_down(self, *, pause: bool) -> None:
        """Make the state one of durable edits only, and follow again."""
        assert self._election is not None and self._snapshots is not None
        self._wake()
        await self._election.resign()
        if pause:
            await asyncio.sleep(self._config.retry_s)
        while self._replica.must_rebuild:
            try:
                await self._snapshots.load()
            except ReplicaFailedError:
                raise
            except JournalError as error:
                await self._pause(error)
        self._replica.step_down()
        self._wake()

    # -- small parts ---------------------------------------------------------------------------------------

    def _active(self) -> EditLog:
        """The log. Raises NotActiveError, ReplicaFailedError, JournalClosedError."""
        self._ensure_usable()
        if self._log is None:
            active = self._election.holder if self._election is not None else None
            raise NotActiveError(
                f"this replica is not the active one ({self._replica.role.value}); "
                + (f"{active} is" if active is not None else "ask another one, or try again"),
                active=active,
            )
        return self._log

    async def _certain(self) -> EditLog:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._config.doubt_s
        while True:
            log = self._active()
            assert self._election is not None
            if self._election.is_held:
                return log
            if loop.time() >= deadline:
                raise NotActiveError("this replica cannot be certain now that no other one is active: try again")
            await asyncio.sleep(DOUBT_CHECK_S)

    def _ensure_usable(self) -> None:
        if self._closed:
            raise JournalClosedError("this replica was closed")
        if self._replica.role is ReplicaRole.FAILED:
            raise ReplicaFailedError(f"this replica has failed: {self._problem}") from self._problem

    async def _pause(self, error: Exception) -> None:
        if self._problem is None:
            logger.warning("this replica cannot read its journal now, and tries again: %s", error)
        self._problem = error
        await asyncio.sleep(self._config.retry_s)

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


def replicated(
    uri: str,
    machine: StateMachine,
    *,
    name: str = "",
    config: ReplicaConfig | None = None,
    election: Election | None = None,
    wrap: Callable[[JournalWriter], JournalWriter] | None = None,
    **options: Any,
) -> ReplicatedProgram:
    """Make ``machine`` one replica of the program whose journal is at ``uri``. Use it with ``async with``.

    Args:
        name: what the other replicas and people see, for instance the address at which clients reach this replica.
        election: who is active, if not the journal's own election decides.
        wrap: goes around the journal's writer whenever this replica becomes active, for instance
            ``JournalStats(…).measured``.
        options: as for ``open_writer``.
    """
    return ReplicatedProgram(
        uri, machine, name=name, config=config or ReplicaConfig(), election=election, wrap=wrap, options=options
    )


async def _ended(*tasks: asyncio.Future[Any]) -> None:
    """Cancel tasks, and wait for their ends. Their failures are not raised here."""
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.exception()
