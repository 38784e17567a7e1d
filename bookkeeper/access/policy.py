"""The policy: who has which rights on what (X12). Everything that it does not grant is denied."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from bookkeeper.access.change import CHANGES_MAX, PolicyChange
from bookkeeper.access.principal import TENANT, Principal, PrincipalKind, Subject
from bookkeeper.access.quota import PrincipalQuota, Quota, smallest
from bookkeeper.access.resource import Resource, ResourceKind
from bookkeeper.access.rights import Right
from bookkeeper.access.tenant import Tenant, check_tenants

OWNERS_RIGHTS: Final = frozenset(
    {Right.APPEND, Right.READ, Right.RECOVER, Right.CREATE, Right.DELETE, Right.HOLD},
)
"""What a principal may do with the ledgers that he owns, and a member with what his tenant owns, without a grant."""


class Mode(StrEnum):
    """What servers do with the policy's answers."""

    OFF = "off"
    """Nobody is asked: every admitted client may do everything."""
    OBSERVE = "observe"
    """What would be denied is told and counted, and done."""
    ENFORCE = "enforce"
    """What is denied is not done."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Rights that somebody has on a resource and all below it."""

    who: Subject
    rights: frozenset[Right]
    on: Resource

    def __str__(self) -> str:
        return f"{self.who} {','.join(sorted(self.rights))} {self.on}"


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer of the policy."""

    allowed: bool
    reason: str
    """The grant that decided, or what there is none of."""


@dataclass(frozen=True, slots=True)
class Policy:
    """All grants, tenants and quotas of a cluster, and what servers do with them.

    Raises:
        ConfigError: two tenants have one name, or own the same.
    """

    mode: Mode = Mode.OFF
    grants: tuple[Grant, ...] = ()
    tenants: tuple[Tenant, ...] = ()
    quotas: tuple[PrincipalQuota, ...] = ()
    changes: tuple[PolicyChange, ...] = ()
    """The last changes, oldest first."""

    def __post_init__(self) -> None:
        check_tenants(self.tenants)

    def rights(self, principal: Principal, resource: Resource) -> frozenset[Right]:
        """The rights of a principal on a resource. They are the same until the policy changes."""
        found: set[Right] = set()
        for grant in self.grants:
            if grant.on.covers(resource) and self.matches(grant.who, principal):
                found |= grant.rights
        if self._owner(principal, resource) is not None:
            found |= OWNERS_RIGHTS
        return frozenset(found)

    def decide(self, principal: Principal, right: Right, resource: Resource) -> Decision:
        """Whether the policy grants this, and why; its mode is not looked at."""
        for grant in self.grants:
            if right in grant.rights and grant.on.covers(resource) and self.matches(grant.who, principal):
                return Decision(True, f"granted: {grant}")
        if right in OWNERS_RIGHTS and (owner := self._owner(principal, resource)) is not None:
            return Decision(True, owner)
        return Decision(False, f"no grant gives {principal} the right to {right} on {resource}")

    def matches(self, who: Subject, principal: Principal) -> bool:
        """Whether ``principal`` is meant by ``who``."""
        if who.kind == TENANT:
            return (tenant := self.tenant(who.name)) is not None and tenant.has_member(principal)
        return who.matches(principal)

    def reachable(self, principal: Principal) -> list[Resource]:
        """Every resource that is named somewhere and on which a principal has a right: by a grant, through his tenants,
        and his own ledgers. What he may do is below these, and nowhere else."""
        found = [grant.on for grant in self.grants if grant.rights and self.matches(grant.who, principal)]
        for tenant in self.tenants:
            if tenant.has_member(principal):
                found += tenant.owns
        if principal.kind is not PrincipalKind.NOBODY and principal.name:
            found.append(Resource(ResourceKind.LEDGERS, principal.name))
        return found

    def tenant_of(self, resource: Resource) -> str | None:
        """The name of the tenant that owns a resource, and whose quota counts for it; None: no tenant does."""
        return next((tenant.name for tenant in self.tenants if tenant.is_owner_of(resource)), None)

    def tenant(self, name: str) -> Tenant | None:
        """The tenant with this name."""
        return next((tenant for tenant in self.tenants if tenant.name == name), None)

    def quota_of(self, principal: Principal) -> Quota:
        """A principal's own quota: the smallest limit of each kind among those that mean him."""
        return smallest(each.quota for each in self.quotas if self.matches(each.who, principal))

    def with_change(self, change: PolicyChange) -> Policy:
        """The policy, with a note of who made it what it is."""
        return replace(self, changes=(*self.changes, change)[-CHANGES_MAX:])

    def with_grant(self, grant: Grant) -> Policy:
        """The policy with a further grant; the rights of an equal subject and resource are put together."""
        same = [each for each in self.grants if (each.who, each.on) == (grant.who, grant.on)]
        joined = Grant(grant.who, grant.rights.union(*(each.rights for each in same)), grant.on)
        rest = tuple(each for each in self.grants if each not in same)
        return replace(self, grants=(*rest, joined))

    def without_rights(self, grant: Grant) -> Policy:
        """The policy without these rights of exactly this subject on exactly this resource."""
        kept: list[Grant] = []
        for each in self.grants:
            if (each.who, each.on) == (grant.who, grant.on):
                if each.rights - grant.rights:
                    kept.append(replace(each, rights=each.rights - grant.rights))
            else:
                kept.append(each)
        return replace(self, grants=tuple(kept))

    def _owner(self, principal: Principal, resource: Resource) -> str | None:
        """Why somebody has an owner's rights on a resource; None: he has not."""
        if _owns(principal, resource):
            return f"{principal} owns {resource}"
        for tenant in self.tenants:
            if tenant.is_owner_of(resource) and tenant.has_member(principal):
                return f"{principal} is a member of the tenant {tenant.name}, which owns {resource}"
        return None


def _owns(principal: Principal, resource: Resource) -> bool:
    named = principal.kind is not PrincipalKind.NOBODY and bool(principal.name)
    return named and resource == Resource(ResourceKind.LEDGERS, principal.name)
