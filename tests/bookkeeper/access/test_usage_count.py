"""Adding up what tenants and owners have."""

from __future__ import annotations

from bookkeeper.access import Amount, Policy, Resource, Tenant
from bookkeeper.access.usage_count import UsageCount

RED = Tenant("red", (), (Resource.parse("streams:red"), Resource.parse("ledgers:red-etl")))


def test_each_ledger_counts_for_the_tenant_of_its_owner_and_for_the_owner_himself() -> None:
    count = UsageCount(Policy(tenants=(RED, Tenant("idle"))))
    for owner, size in (
        ("streams:red/x", 30),
        ("ledgers:red-etl", 6),
        ("ledgers:red-etl", 4),
        ("ledgers:bob", 5),
        ("streams:redder", 9),
        ("ledgers:/", 100),
    ):
        count.add(Resource.parse(owner), size)
    usage = count.usage(7)
    assert usage.counted_ms == 7
    assert usage.tenants == {"red": Amount(40, 3), "idle": Amount(0, 0)}
    assert usage.owners == {"red-etl": Amount(10, 2), "bob": Amount(5, 1)}
