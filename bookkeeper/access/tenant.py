"""Tenants: who belongs together, what they own, and how much of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bookkeeper.access.names import checked_name
from bookkeeper.access.principal import ANYONE, TENANT, Principal, Subject
from bookkeeper.access.quota import NO_QUOTA, Quota
from bookkeeper.access.resource import Resource, ResourceKind
from bookkeeper.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Tenant:
    """Principals who share what they own. Members have an owner's rights on it; others need grants."""

    name: str
    members: tuple[Subject, ...] = ()
    owns: tuple[Resource, ...] = ()
    quota: Quota = NO_QUOTA

    def __post_init__(self) -> None:
        checked_name(self.name, "a tenant's name")
        for member in self.members:
            if member.kind in (TENANT, ANYONE.kind):
                raise ConfigError(f"{member} is no member of a tenant: name principals or roles")
        for each in self.owns:
            if each.kind is ResourceKind.CLUSTER or not each.name:
                raise ConfigError(f"a tenant owns resources with names, not {each}: grant rights on it instead")

    def has_member(self, principal: Principal) -> bool:
        """Whether a principal belongs to it."""
        return any(member.matches(principal) for member in self.members)

    def is_owner_of(self, resource: Resource) -> bool:
        """Whether the resource, or one above it, is this tenant's."""
        return any(each.covers(resource) for each in self.owns)

    def without(self, resources: Sequence[Resource]) -> Tenant:
        """The tenant without these resources."""
        return replace(self, owns=tuple(each for each in self.owns if each not in resources))


def check_tenants(tenants: Sequence[Tenant]) -> None:
    """Each thing has one owner at most.

    Raises:
        ConfigError: two tenants have one name, or one owns what another owns, or something below it.
    """
    names: set[str] = set()
    owners: dict[Resource, str] = {}
    for tenant in tenants:
        if tenant.name in names:
            raise ConfigError(f"there are two tenants {tenant.name}")
        names.add(tenant.name)
        for resource in tenant.owns:
            if owners.setdefault(resource, tenant.name) != tenant.name:
                raise _overlap(resource, tenant.name, resource, owners[resource])
    for resource, name in owners.items():
        for above in resource.above():
            if owners.get(above, name) != name:
                raise _overlap(resource, name, above, owners[above])


def _overlap(one: Resource, ones: str, two: Resource, twos: str) -> ConfigError:
    return ConfigError(
        f"{one} of the tenant {ones} overlaps with {two} of the tenant {twos}: each thing has one owner; "
        "`bk access tenant hand-over` gives it to another one"
    )
