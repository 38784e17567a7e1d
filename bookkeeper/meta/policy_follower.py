"""Keeps a server's copy of the access policy: read at the start, followed by a watch, and read again and again."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from bookkeeper.access import Mode, Policy, QuotaBook, decode_policy
from bookkeeper.access.observation import Observations
from bookkeeper.audit import NO_AUDIT, AuditAction, AuditEvent, AuditLog
from bookkeeper.errors import BookKeeperError, MetadataForbiddenError, MetadataFormatError, in_words
from bookkeeper.meta.records.access_policy import AccessPolicies
from bookkeeper.meta.records.access_servers import AccessReport, AccessServers
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Clock

log = logging.getLogger(__name__)

READ_S: Final = 3.0
"""Seconds after which the policy is read again though no watch told of a change."""
RETRY_S: Final = 1.0
"""Seconds until the next try after it could not be read."""

DENY_ALL: Final = Policy(Mode.ENFORCE)
"""What counts where there is a policy, and nobody knows what it says."""


class PolicyState(StrEnum):
    """How much a server's copy of the policy is worth."""

    UNREAD = "unread"
    """It was not read yet. Everything is denied."""
    NONE = "none"
    """There is no policy: nobody is asked."""
    CURRENT = "current"
    """It is what the metadata have."""
    KEPT = "kept"
    """The present one cannot be read; the last one that could be read counts on."""
    DENYING = "denying"
    """There is a policy, or there must be one, and none could be read since the start. Everything is denied."""


@dataclass(frozen=True, slots=True)
class PolicyStatus:
    """For status pages."""

    state: PolicyState
    mode: Mode
    """What servers do now."""
    read_ms: int
    """When the policy that counts was read last, in milliseconds since 1970; 0: never."""
    reason: str
    """Why the present one cannot be read; empty: it can."""

    def document(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "state": self.state.value,
            "mode": self.mode.value,
            "read_ms": self.read_ms,
            "reason": self.reason,
        }


class AccessReporter:
    """Tells others what one server does with the policy, by a value that ends with the session."""

    def __init__(self, servers: AccessServers, kind: str, name: str) -> None:
        """``kind``: :data:`bookkeeper.meta.records.access_servers.BOOKIE` or another word; ``name``: the server's."""
        self._servers = servers
        self._kind = kind
        self._name = name
        self._told: AccessReport | None = None

    async def report(self, mode: Mode, state: PolicyState, changed_ms: int, observations: Observations) -> None:
        """Publish what there is, if it is new or the value is gone. Raises: MetadataError."""
        report = AccessReport(
            self._kind, self._name, mode, state.value, changed_ms, tuple(observations), observations.others
        )
        if report != self._told or not await self._servers.is_published(self._kind, self._name):
            await self._servers.publish(report)
            self._told = report


class PolicyFollower:
    """The access policy and the quotas, as this server knows them. Runs on the loop's thread.

    A change is here within 5 s while the metadata store answers: at once by a watch, and at the latest with the next
    reading. What cannot be read, because the store is away, or the record is damaged or of a newer version, changes
    nothing: the last policy counts on, and that is told once, by a metric, and in :attr:`status`. A record that is
    deleted counts as no policy, unless one is ``required``.
    """

    def __init__(
        self,
        records: AccessPolicies,
        clock: Clock,
        metrics: Metrics | None = None,
        *,
        required: bool = False,
        reporter: AccessReporter | None = None,
        audit: AuditLog = NO_AUDIT,
    ) -> None:
        """
        Args:
            required: without a policy everything is denied, or the last one counts on.
            reporter: tells others what this server does with the policy.
            audit: see :attr:`audit`.
        """
        self._records = records
        self._clock = clock
        self._required = required
        self._reporter = reporter
        self.audit = audit
        """Gets a line for each change that comes after the start, with who made it by his own account."""
        self._wake = asyncio.Event()
        self._listeners: list[Callable[[Policy], None]] = []
        self._policy = DENY_ALL
        self._state = PolicyState.UNREAD
        self._read_ms = 0
        self._reason = ""
        self._bytes: bytes | None = None
        self._usage_damaged = False
        metrics = metrics or Metrics()
        self._unread = metrics.gauge("access_policy_unreadable", "1 while the present access policy cannot be read")
        self._enforced = metrics.gauge("access_policy_enforced", "1 while the access policy is enforced")
        self._failures = metrics.counter(
            "access_policy_read_failures_total", "Readings of the access policy that failed"
        )
        self.observations: Final = Observations()
        """What this server has denied, or in the mode ``observe`` would have, since the policy changed. The server
        notes it."""
        self.quotas: Final = QuotaBook(self._policy)
        """The quotas of the policy, as they are used on this server."""

    @property
    def policy(self) -> Policy:
        """What counts now. Before the first reading: everything is denied."""
        return self._policy

    @property
    def status(self) -> PolicyStatus:
        """What to show."""
        return PolicyStatus(self._state, self._policy.mode, self._read_ms, self._reason)

    def on_change(self, callback: Callable[[Policy], None]) -> None:
        """Call back with each new policy, on the loop, before anything else is decided by it."""
        self._listeners.append(callback)

    async def read(self) -> Policy:
        """Read the policy now, for a start. A record that cannot be read denies everything, until it can be.

        Raises:
            MetadataError: the store does not answer, or does not know the cluster. The policy stays as it was.
        """
        try:
            await self._read()
        except BookKeeperError as error:
            self._failed(error)
            if not _is_records_fault(error):
                raise
        return self._policy

    async def run(self) -> None:
        """Follow the policy, and what tenants have, until it is cancelled."""
        watches = [self._records.watch(self._wake.set), self._records.watch_usage(self._wake.set)]
        try:
            while True:
                pause = READ_S
                try:
                    await self._read()
                except BookKeeperError as error:
                    self._failed(error)
                    pause = RETRY_S
                else:
                    await self._report()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), pause)
                self._wake.clear()
        finally:
            for watch in watches:
                watch.close()

    async def _report(self) -> None:
        if self._reporter is None:
            return
        try:
            changes = self._policy.changes
            await self._reporter.report(
                self._policy.mode, self._state, changes[-1].at_ms if changes else 0, self.observations
            )
        except BookKeeperError as error:
            log.debug("what this server does with the access policy is not told: %s", in_words(error))

    async def _read(self) -> None:
        found = await self._records.read_bytes()
        data = found.value if found is not None else None
        if data is None and self._required:
            raise MetadataFormatError(
                f"there is no access policy at {self._records.path}, and this server requires one"
            )
        if self._state not in (PolicyState.CURRENT, PolicyState.NONE) or data != self._bytes:
            policy = decode_policy(data) if data is not None else Policy()
            self._take(policy, data)
        self._read_ms = self._clock.wall_ms()
        await self._read_usage()

    async def _read_usage(self) -> None:
        """Take over what was counted. Where it cannot be read the last count stands, and what came in here since."""
        try:
            usage = await self._records.read_usage()
        except MetadataFormatError as error:
            if not self._usage_damaged:
                log.warning("quotas of what is kept follow the last count that could be read: %s", in_words(error))
            self._usage_damaged = True
        else:
            self._usage_damaged = False
            if usage is not None:
                self.quotas.set_usage(usage)

    def _take(self, policy: Policy, data: bytes | None) -> None:
        before, was = self._policy, self._state
        self._policy, self._bytes, self._reason = policy, data, ""
        self._state = PolicyState.CURRENT if data is not None else PolicyState.NONE
        self._unread.value = 0
        self._enforced.value = policy.mode is Mode.ENFORCE
        if was in (PolicyState.KEPT, PolicyState.DENYING):
            log.warning("the access policy can be read again: its mode is %s", policy.mode)
        elif data is None and was is PolicyState.CURRENT:
            log.warning("the access policy was removed from the metadata: nobody is asked for rights any more")
        elif policy.mode is not before.mode and was is not PolicyState.UNREAD:
            log.warning("the access policy's mode is %s from now on, and was %s", policy.mode, before.mode)
        if was is not PolicyState.UNREAD:
            self._note_changes(before, policy)
        if policy != before or was is PolicyState.UNREAD:
            self._notify()

    def _note_changes(self, before: Policy, policy: Policy) -> None:
        for change in policy.changes:
            if change not in before.changes:
                self.audit.note(
                    AuditEvent(
                        what=AuditAction.ADMINISTER,
                        who=change.by,
                        claimed=True,
                        address="metadata",
                        on="access policy",
                        allowed=True,
                        reason=change.what,
                    )
                )

    def _failed(self, error: BookKeeperError) -> None:
        """Keep what there is, and say so once."""
        self._failures.add()
        before, reason = self._state, in_words(error)
        if before in (PolicyState.CURRENT, PolicyState.NONE):
            self._state = PolicyState.KEPT
        elif before is PolicyState.UNREAD and _is_records_fault(error):
            self._state = PolicyState.DENYING
        self._unread.value = 1
        if (self._state, reason) != (before, self._reason):
            counts = "the last one counts on" if self._state is PolicyState.KEPT else "everything is denied"
            log.warning("the access policy cannot be read, so %s: %s", counts, reason)
        self._reason = reason
        if before is PolicyState.UNREAD and self._state is PolicyState.DENYING:
            self._enforced.value = 1
            self._notify()

    def _notify(self) -> None:
        self.observations.clear()
        self.quotas.set_policy(self._policy)
        for callback in self._listeners:
            callback(self._policy)


def _is_records_fault(error: BookKeeperError) -> bool:
    """Whether the store answered, and the record is what cannot be read."""
    return isinstance(error, MetadataFormatError | MetadataForbiddenError)
