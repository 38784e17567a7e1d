"""Adds up what tenants and owners have. Pure."""

from __future__ import annotations

from bookkeeper.access.policy import Policy
from bookkeeper.access.resource import Resource, ResourceKind
from bookkeeper.access.usage import NOTHING, Amount, Usage


class UsageCount:
    """One count under one policy: ledger by ledger."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._tenants: dict[str, Amount] = {tenant.name: NOTHING for tenant in policy.tenants}
        self._owners: dict[str, Amount] = {}
        self._known: dict[Resource, str | None] = {}

    def tenant_of(self, owner: Resource) -> str | None:
        """The tenant for which a ledger of this owner counts; None: for no tenant."""
        if owner not in self._known:
            self._known[owner] = self._policy.tenant_of(owner)
        return self._known[owner]

    def add(self, owner: Resource, bytes_kept: int) -> None:
        """Count one ledger, with the bytes of all its copies."""
        amount = Amount(bytes_kept, 1)
        if (tenant := self.tenant_of(owner)) is not None:
            self._tenants[tenant] += amount
        if owner.kind is ResourceKind.LEDGERS and owner.name:
            self._owners[owner.name] = self._owners.get(owner.name, NOTHING) + amount

    def usage(self, counted_ms: int) -> Usage:
        """What was counted. ``counted_ms``: when it began."""
        return Usage(counted_ms, dict(self._tenants), dict(self._owners))
