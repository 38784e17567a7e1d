"""What a caller may do at a gateway: what his credential is good for, and what the policy grants (X12, X57). Pure.

Both have to allow it. A gateway asks for the caller's rights and never for its own, which may be those of everybody
together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bookkeeper.access import (
    CLUSTER,
    Mode,
    Policy,
    Principal,
    PrincipalKind,
    QuotaKind,
    QuotaRefusal,
    Resource,
    Right,
    Tenant,
)
from bookkeeper.gateways.caller import Caller

Needs = tuple[tuple[Right, ...], ...]
"""What an operation needs: of each group one right, whichever."""

ANY_RIGHT: Final[Needs] = (tuple(Right),)
REMEMBERED: Final = 8192
"""Answers that are remembered, until the policy changes."""

NOBODY: Final = Principal(PrincipalKind.NOBODY, "")


def one_of(*rights: Right) -> Needs:
    """One of these rights is enough."""
    return (rights,)


def all_of(*rights: Right) -> Needs:
    """Each of these rights is needed."""
    return tuple((right,) for right in rights)


@dataclass(frozen=True, slots=True)
class Denial:
    """Something that a caller may not do."""

    who: str
    right: Right
    """The right that is missing; of several that would do, the first one."""
    on: Resource
    reason: str
    """For people."""


class CallerRights:
    """Answers for one gateway. Runs on the loop's thread."""

    def __init__(
        self,
        policy: Callable[[], Policy] = Policy,
        told: Callable[[Principal, Denial], None] | None = None,
        take: Callable[[Principal, int, int], QuotaRefusal | None] | None = None,
    ) -> None:
        """
        Args:
            policy: returns the one that counts now.
            told: gets what it denies, or would if it were enforced.
            take: counts entries and their bytes by a principal's quotas, or says why not.
        """
        self._take = take
        self._policy_now = policy
        self._policy = policy()
        self._answers: dict[tuple[Caller | None, Needs, Resource], Denial | None] = {}
        self._told = told
        self._version = 0

    @property
    def version(self) -> int:
        """Another number whenever the policy has changed."""
        self._current()
        return self._version

    def denial(self, caller: Caller | None, needs: Needs, on: Resource) -> Denial | None:
        """Why a caller may not do what needs these rights on a resource; None: he may.

        ``caller`` is None where nobody is asked who he is: then the policy alone decides.
        """
        policy = self._current()
        if caller is None and policy.mode is Mode.OFF:
            return None
        key = (caller, needs, on)
        if key not in self._answers:
            if len(self._answers) >= REMEMBERED:
                self._answers.clear()
            self._answers[key] = _denial(policy, caller, needs, on)
        denial = self._answers[key]
        if denial is None or not _is_policys(caller, needs, on):
            return denial
        if self._told is not None:
            self._told(_principal(caller), denial)
        return denial if policy.mode is Mode.ENFORCE else None

    def charge(self, caller: Caller | None, entries: int, size: int) -> QuotaRefusal | None:
        """Count what a caller adds, if his own rates allow it now; else when they do, and nothing is counted."""
        return None if self._take is None else self._take(_principal(caller), entries, size)

    def limits_streams(self, on: Resource) -> Tenant | None:
        """The tenant that owns a stream, if it has a quota of streams."""
        policy = self._current()
        name = None if policy.mode is Mode.OFF else policy.tenant_of(on)
        found = None if name is None else policy.tenant(name)
        return None if found is None or found.quota.streams is None else found

    def another_stream(self, caller: Caller | None, tenant: Tenant, on: Resource, has: int) -> QuotaRefusal | None:
        """Why there must be no further stream of a tenant that has so many; None: there may be one."""
        limit = tenant.quota.streams
        if limit is None or has < limit:
            return None
        refusal = QuotaRefusal(f"tenant {tenant.name}", QuotaKind.STREAMS, limit, None)
        if self._told is not None:
            self._told(_principal(caller), Denial(str(_principal(caller)), Right.CREATE, on, str(refusal)))
        return refusal if self._policy.mode is Mode.ENFORCE else None

    def sees(self, caller: Caller | None, on: Resource) -> bool:
        """Whether a caller may know that a resource exists: any right on it is enough. Nobody is told of this."""
        return self.has(caller, ANY_RIGHT, on)

    def has(self, caller: Caller | None, needs: Needs, on: Resource) -> bool:
        """Whether a caller could do now what needs these rights on a resource. Nobody is told of this."""
        policy = self._current()
        return _denial(policy, caller, needs, on, asked=policy.mode is Mode.ENFORCE) is None

    def leads_to(self, caller: Caller | None, on: Resource) -> bool:
        """Whether a resource is above something that a caller has a right on."""
        if caller is not None and caller.is_limited and not caller.leads_to(on):
            return False
        policy = self._current()
        if policy.mode is not Mode.ENFORCE:
            return True
        return any(on.covers(each) or each == CLUSTER for each in policy.reachable(_principal(caller)))

    def _current(self) -> Policy:
        policy = self._policy_now()
        if policy is not self._policy:
            self._policy = policy
            self._version += 1
            self._answers.clear()
        return policy


def _denial(
    policy: Policy, caller: Caller | None, needs: Needs, on: Resource, *, asked: bool | None = None
) -> Denial | None:
    """The first of the needs that is not met. ``asked``: whether the policy is asked; by default unless it is off."""
    asks = policy.mode is not Mode.OFF if asked is None else asked
    for rights in needs:
        first: str | None = None
        for right in rights:
            refusal = _refusal(policy if asks else None, caller, right, on)
            if refusal is None:
                break
            first = first or refusal
        else:
            return Denial(str(_principal(caller)), rights[0], on, first or "")
    return None


def _refusal(policy: Policy | None, caller: Caller | None, right: Right, on: Resource) -> str | None:
    if caller is not None and not caller.may(right, on):
        return _limits(caller, right, on)
    if policy is None:
        return None
    decision = policy.decide(_principal(caller), right, on)
    return None if decision.allowed else decision.reason


def _limits(caller: Caller, right: Right, on: Resource) -> str:
    if caller.kind is PrincipalKind.CERTIFICATE and not caller.roots and not caller.reads:
        return "no --allow of this gateway names its certificate"
    what = "its certificate is allowed" if caller.kind is PrincipalKind.CERTIFICATE else "its token is valid"
    if right is not Right.READ and caller.may(Right.READ, on):
        return f"{what} for reading only"
    return f"{what} below {caller.limits()}"


def _is_policys(caller: Caller | None, needs: Needs, on: Resource) -> bool:
    """Whether the credential alone would allow it."""
    return _denial(Policy(), caller, needs, on) is None


def _principal(caller: Caller | None) -> Principal:
    return NOBODY if caller is None else caller.principal
