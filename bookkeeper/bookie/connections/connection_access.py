"""What one connection's client may do with which ledgers, as it was answered; asked once for each ledger.

Made when the connection begins or the policy changes, so that nothing of an earlier answer counts on. With the
policy switched off there is none, and nothing of it is on the path of an entry; otherwise a run of adds and a run of
reads cost one look-up in a dict each.
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
from bookkeeper.bookie.ownership.operation import ADD, BIT, RECOVERY_ADD, REPAIRS, key_of, operation_of
from bookkeeper.codec import Adds, Run
from bookkeeper.ids import LedgerId
from bookkeeper.rate_limited_log import RateLimitedLogger
from bookkeeper.wire import Status

log = logging.getLogger(__name__)

KNOWN_MAX: Final = 1024
"""Ledgers of which a connection remembers what its client may do, at most; beyond it the bookie is asked again."""

TOLD_MAX: Final = 256
"""Denials of a connection that the audit log has, at most, until it may have them again."""


class Client(Audited, Protocol):
    """The connection."""

    host: str


class ConnectionAccess:
    """The permissions of one connection's client."""

    __slots__ = ("_audit", "_client", "_complaints", "_control", "_known", "_limits", "_now", "_told")

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
        self._told: set[tuple[LedgerId, str]] = set()
        self._limits = control.limits

    @property
    def who(self) -> Principal:
        """The client, once the handshake has told."""
        return self._client.principal

    def may(self, ledger_id: LedgerId, bit: int) -> bool:
        """Whether this is known to be allowed."""
        bits = self._known.get(ledger_id)
        if bits is None:
            bits = self._bits(ledger_id)
        return bits is not None and bool(bits & bit)

    def _bits(self, ledger_id: LedgerId) -> int | None:
        bits = self._control.allowed(self.who, ledger_id)
        if bits is not None:
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[ledger_id] = bits
        return bits

    # -- runs of adds -------------------------------------------------------------------------------------

    def judge_run(self, run: Run, adds: Adds) -> Status | None:
        """OK, or what to refuse a run of adds with; None: :meth:`ask_run` first."""
        bits = self._known.get(run.ledger_id)
        if bits is None:
            bits = self._bits(LedgerId(run.ledger_id))
            if bits is None:
                return None
        if not bits & (RECOVERY_ADD if run.recovery else ADD) and not self._passes(
            LedgerId(run.ledger_id), _operation(run), run.i1 - run.i0
        ):
            return Status.UNAUTHORIZED
        return self.within_quota(run, adds) if self._limits else Status.OK

    def ask_run(self, run: Run, then: Callable[[Status], None]) -> None:
        """Call ``then`` when it is known whether a run of adds is allowed."""
        self._ask(LedgerId(run.ledger_id), _operation(run), run.master_key, then, run.i1 - run.i0)

    def within_quota(self, run: Run, adds: Adds) -> Status:
        """Count a run of adds; OK, or TOO_MANY_REQUESTS if a quota is used up. What a repair writes is there already,
        elsewhere; what a recovery writes may be anything."""
        ledger_id = LedgerId(run.ledger_id)
        if not self._limits or (run.recovery and self.may(ledger_id, REPAIRS)):
            return Status.OK
        begin = adds.record_ends[run.i0 - 1] if run.i0 else adds.record_start
        return self._counted(ledger_id, run.i1 - run.i0, adds.record_ends[run.i1 - 1] - begin, recovery=run.recovery)

    # -- other requests -----------------------------------------------------------------------------------

    def judge(self, request: wire.Request) -> Status | None:
        """OK, or what to refuse a request with; None: :meth:`ask` first."""
        operation = operation_of(request)
        if operation is None:
            return Status.OK
        ledger_id = _ledger(request)
        bits = self._known.get(ledger_id)
        if bits is None:
            bits = self._bits(ledger_id)
            if bits is None:
                return None
        if not bits & BIT[operation] and not self._passes(ledger_id, operation, 1):
            return Status.UNAUTHORIZED
        return self._add_within_quota(request)

    def advice_of(self, request: wire.GetBookieInfo) -> wire.GetBookieInfo:
        """The request, without the advice that a ledger is closed if its client may not write that ledger."""
        closed = request.closed_ledger
        if closed is None or closed < 0 or self.may(closed, ADD | RECOVERY_ADD) or not self._control.enforces:
            return request
        return replace(request, closed_ledger=None)

    def ask(self, request: wire.Request, then: Callable[[Status], None]) -> None:
        """Call ``then`` when it is known whether a request is allowed that :meth:`judge` does not know."""
        operation = operation_of(request)
        assert operation is not None, "it is allowed to everybody"

        def judged(status: Status) -> None:
            then(self._add_within_quota(request) if status is Status.OK else status)

        self._ask(_ledger(request), operation, key_of(request), judged, 1)

    def _add_within_quota(self, request: wire.Request) -> Status:
        if not self._limits or not isinstance(request, wire.AddEntry):
            return Status.OK
        if request.recovery and self.may(request.ledger_id, REPAIRS):
            return Status.OK
        return self._counted(request.ledger_id, 1, len(request.entry), recovery=request.recovery)

    # -- inside -------------------------------------------------------------------------------------------

    def _ask(
        self,
        ledger_id: LedgerId,
        operation: LedgerOperation,
        key: bytes | None,
        then: Callable[[Status], None],
        count: int,
    ) -> None:
        denied = partial(self._note, ledger_id, operation, count)
        self._control.ask(
            ledger_id, AccessRequest(self.who, operation, key, then, denied, partial(self._over, ledger_id))
        )

    def _passes(self, ledger_id: LedgerId, operation: LedgerOperation, count: int) -> bool:
        """Note what is not allowed. Returns whether it is done all the same."""
        self._note(ledger_id, operation, count)
        return not self._control.enforces

    def _note(self, ledger_id: LedgerId, operation: LedgerOperation, count: int) -> None:
        """Count it; tell the audit log and the log once for this connection, ledger and operation."""
        self._control.denied(self.who, ledger_id, operation, count)
        self._tell(ledger_id, operation.value, "the access policy does not allow it")

    def _counted(self, ledger_id: LedgerId, adds: int, size: int, *, recovery: bool) -> Status:
        control = self._control
        tenant = control.tenant_of(ledger_id)
        refusal = control.quotas.take(self.who, tenant, adds, size, self._now(), recovery=recovery)
        if refusal is None:
            return Status.OK
        self._over(ledger_id, refusal)
        return Status.TOO_MANY_REQUESTS if control.enforces else Status.OK

    def _over(self, ledger_id: LedgerId, refusal: QuotaRefusal) -> None:
        self._control.over_quota.add()
        self._tell(ledger_id, f"add, beyond {refusal.quota}", str(refusal))

    def _tell(self, ledger_id: LedgerId, what: str, why: str) -> None:
        if (ledger_id, what) in self._told:
            return
        if len(self._told) >= TOLD_MAX:
            self._told.clear()
        self._told.add((ledger_id, what))
        refused = self._control.enforces
        self._audit.denied(self._client, what, ledger_id, why, refused=refused)
        self._complaints.warning(
            "%s %s of ledger %d by %s at %s: %s",
            "refused" if refused else "observed, and did:",
            what,
            ledger_id,
            self.who,
            self._client.host,
            why,
            kind="access",
        )


def _operation(run: Run) -> LedgerOperation:
    return LedgerOperation.RECOVERY_ADD if run.recovery else LedgerOperation.ADD


def _ledger(request: wire.Request) -> LedgerId:
    assert not isinstance(request, wire.GetBookieInfo | wire.Auth | wire.StartTls), "it is of no ledger"
    return request.ledger_id
