"""What one connection's client may do with each ledger: a cache in front of the bookie's permissions.

It is made when the connection begins and anew when the policy changes, so that no earlier answer is used any longer.
With the policy off there is none; otherwise a run of adds or of reads costs one look-up in a dict.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final, Protocol

from bookkeeper import wire
from bookkeeper.access import LedgerOperation, Principal, QuotaRefusal
from bookkeeper.bookie.connections.connection_audit import Audited, ConnectionAudit
from bookkeeper.bookie.ownership.ledger_permissions import AccessRequest, LedgerPermissions
from bookkeeper.bookie.ownership.operation import ADD, BIT, RECOVERY_ADD, REPAIR, key_of, operation_of
from bookkeeper.codec import Adds, Run
from bookkeeper.ids import LedgerId
from bookkeeper.rate_limited_log import RateLimitedLogger
from bookkeeper.wire import Status

log = logging.getLogger(__name__)

KNOWN_MAX: Final = 1024
"""The most ledgers whose permissions a connection caches; with one more the cache is cleared."""

REPORTED_MAX: Final = 256
"""Denials that a connection reports once each, to the audit log and the log; after so many they are reported again."""


class Client(Audited, Protocol):
    """The connection."""

    host: str


class ConnectionAccess:
    """The permissions of one connection's client."""

    __slots__ = ("_audit", "_client", "_complaints", "_control", "_known", "_limits", "_now", "_reported")

    def __init__(
        self,
        client: Client,
        control: LedgerPermissions,
        audit: ConnectionAudit,
        complaints: RateLimitedLogger,
        now: Callable[[], float],
    ) -> None:
        self._client, self._control = client, control
        self._audit, self._complaints, self._now = audit, complaints, now
        self._known: dict[int, int] = {}
        self._reported: set[tuple[LedgerId, str]] = set()
        self._limits = control.limits

    @property
    def principal(self) -> Principal:
        """The client; nobody before the handshake is done."""
        return self._client.principal

    def is_allowed(self, ledger_id: LedgerId, bit: int) -> bool:
        """Whether this is allowed, as far as it is known without waiting."""
        bits = self._known.get(ledger_id)
        if bits is None:
            bits = self._bits(ledger_id)
        return bits is not None and bool(bits & bit)

    def _bits(self, ledger_id: LedgerId) -> int | None:
        bits = self._control.allowed(self.principal, ledger_id)
        if bits is not None:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[ledger_id] = bits
        return bits

    # -- runs of adds -------------------------------------------------------------------------------------

    def judge_run(self, run: Run, adds: Adds) -> Status | None:
        """The status for a run of adds: OK, or the reason to refuse it. None: not known yet, call
        :meth:`resolve_run`."""
        bits = self._known.get(run.ledger_id)
        if bits is None:
            bits = self._bits(LedgerId(run.ledger_id))
            if bits is None:
                return None
        if not bits & (RECOVERY_ADD if run.recovery else ADD) and not self._tolerates(
            LedgerId(run.ledger_id), _operation(run), run.i1 - run.i0
        ):
            return Status.UNAUTHORIZED
        return self.charge_run(run, adds) if self._limits else Status.OK

    def resolve_run(self, run: Run, then: Callable[[Status], None]) -> None:
        """Call ``then`` with the status of a run of adds once the ledger's owner is known."""
        self._resolve(LedgerId(run.ledger_id), _operation(run), run.master_key, then, run.i1 - run.i0)

    def charge_run(self, run: Run, adds: Adds) -> Status:
        """Charge a run of adds to the quotas. Returns OK, or TOO_MANY_REQUESTS if one is used up.

        Adds of a repair are copies and are not charged; those of a recovery are, because a client may call any entry
        one.
        """
        ledger_id = LedgerId(run.ledger_id)
        if not self._limits or (run.recovery and self.is_allowed(ledger_id, REPAIR)):
            return Status.OK
        begin = adds.record_ends[run.i0 - 1] if run.i0 else adds.record_start
        return self._charge_quotas(
            ledger_id, run.i1 - run.i0, adds.record_ends[run.i1 - 1] - begin, recovery=run.recovery
        )

    # -- other requests -----------------------------------------------------------------------------------

    def judge(self, request: wire.Request) -> Status | None:
        """The status for a request: OK, or the reason to refuse it. None: not known yet, call :meth:`resolve`."""
        operation = operation_of(request)
        if operation is None:
            return Status.OK
        ledger_id = _ledger(request)
        bits = self._known.get(ledger_id)
        if bits is None:
            bits = self._bits(ledger_id)
            if bits is None:
                return None
        if not bits & BIT[operation] and not self._tolerates(ledger_id, operation, 1):
            return Status.UNAUTHORIZED
        return self._charge_add(request)

    def without_forbidden_advice(self, request: wire.GetBookieInfo) -> wire.GetBookieInfo:
        """The request without its advice that a ledger is closed, if the client may not write that ledger."""
        closed = request.closed_ledger
        if closed is None or closed < 0 or self.is_allowed(closed, ADD | RECOVERY_ADD) or not self._control.enforces:
            return request
        return replace(request, closed_ledger=None)

    def resolve(self, request: wire.Request, then: Callable[[Status], None]) -> None:
        """Call ``then`` with the status of a request for which :meth:`judge` returned None."""
        operation = operation_of(request)
        assert operation is not None, "everybody may do this"

        def judged(status: Status) -> None:
            then(self._charge_add(request) if status is Status.OK else status)

        self._resolve(_ledger(request), operation, key_of(request), judged, 1)

    def _charge_add(self, request: wire.Request) -> Status:
        if not self._limits or not isinstance(request, wire.AddEntry):
            return Status.OK
        if request.recovery and self.is_allowed(request.ledger_id, REPAIR):
            return Status.OK
        return self._charge_quotas(request.ledger_id, 1, len(request.entry), recovery=request.recovery)

    # -- inside -------------------------------------------------------------------------------------------

    def _resolve(
        self,
        ledger_id: LedgerId,
        operation: LedgerOperation,
        key: bytes | None,
        then: Callable[[Status], None],
        count: int,
    ) -> None:
        denied = partial(self._report_denial, ledger_id, operation, count)
        self._control.resolve(
            ledger_id,
            AccessRequest(self.principal, operation, key, then, denied, partial(self._on_over_quota, ledger_id)),
        )

    def _tolerates(self, ledger_id: LedgerId, operation: LedgerOperation, count: int) -> bool:
        """Report a denial. Returns whether the request is performed nevertheless (mode ``observe``)."""
        self._report_denial(ledger_id, operation, count)
        return not self._control.enforces

    def _report_denial(self, ledger_id: LedgerId, operation: LedgerOperation, count: int) -> None:
        """Count a denial. The audit log and the log get it once for each ledger and operation."""
        self._control.count_denied(self.principal, ledger_id, operation, count)
        self._report(ledger_id, operation.value, "the access policy does not allow it")

    def _charge_quotas(self, ledger_id: LedgerId, adds: int, size: int, *, recovery: bool) -> Status:
        control = self._control
        tenant = control.tenant_of(ledger_id)
        refusal = control.quotas.charge(self.principal, tenant, adds, size, self._now(), recovery=recovery)
        if refusal is None:
            return Status.OK
        self._on_over_quota(ledger_id, refusal)
        return Status.TOO_MANY_REQUESTS if control.enforces else Status.OK

    def _on_over_quota(self, ledger_id: LedgerId, refusal: QuotaRefusal) -> None:
        self._control.over_quota.add()
        self._report(ledger_id, f"add, beyond {refusal.quota}", str(refusal))

    def _report(self, ledger_id: LedgerId, what: str, why: str) -> None:
        if (ledger_id, what) in self._reported:
            return
        if len(self._reported) >= REPORTED_MAX:
            self._reported.clear()
        self._reported.add((ledger_id, what))
        refused = self._control.enforces
        self._audit.note_denied(self._client, what, ledger_id, why, refused=refused)
        self._complaints.warning(
            "%s %s of ledger %d by %s at %s: %s",
            "refused" if refused else "observed, and did:",
            what,
            ledger_id,
            self.principal,
            self._client.host,
            why,
            kind="access",
        )


def _operation(run: Run) -> LedgerOperation:
    return LedgerOperation.RECOVERY_ADD if run.recovery else LedgerOperation.ADD


def _ledger(request: wire.Request) -> LedgerId:
    assert not isinstance(request, wire.GetBookieInfo | wire.Auth | wire.StartTls), "the request names no ledger"
    return request.ledger_id
