"""``bk access tenant`` and ``bk access quota``."""

from __future__ import annotations

from urllib.parse import quote

from bookkeeper.access import Amount, Usage
from bookkeeper.meta import Metadata
from tests.bookkeeper.admin.access.clusters import Cluster

RED = ("tenant", "set", "red", "--member", "role:red", "--owns", "streams:red", "--owns", "ledgers:red-etl")


async def _stream(metadata: Metadata) -> None:
    await metadata.store.create(metadata.own("segments", "names", quote("red/x", safe="")), b"", parents=True)


def test_a_tenant_is_made_changed_and_listed(cluster: Cluster) -> None:
    made = cluster.document(*RED, "--quota", "bytes_kept=1G")
    assert made == {
        "name": "red",
        "members": ["role:red"],
        "owns": ["streams:red", "ledgers:red-etl"],
        "quota": {"bytes_kept": 1 << 30},
    }
    changed = cluster.document(
        "tenant", "set", "red", "--member", "bob", "--no-member", "role:red", "--disowns", "ledgers:red-etl",
        "--quota", "bytes_kept=none", "--quota", "ledgers=5",
    )  # fmt: skip
    assert changed == {"name": "red", "members": ["bob"], "owns": ["streams:red"], "quota": {"ledgers": 5}}
    assert cluster.document("tenant") == [changed]
    assert "ledgers 5" in cluster.access("tenant", "list").out and "ledgers 5" in cluster.access().out
    assert "--no-member role:red" in cluster.document()["changes"][-1]["what"]


def test_members_may_use_what_their_tenant_owns_and_check_says_why(cluster: Cluster) -> None:
    cluster.access(*RED)
    shown = cluster.access("check", "etl", "append", "streams:red/x", "--role", "red")
    assert shown.status == 0 and "is a member of the tenant red, which owns streams:red/x" in shown.out
    assert cluster.access("check", "etl", "repair", "streams:red/x", "--role", "red").status == 1


def test_mistakes_change_nothing(cluster: Cluster) -> None:
    cluster.access(*RED)
    cluster.access("tenant", "set", "blue", "--owns", "streams:red/x").refused("overlaps", "hand-over")
    cluster.access("tenant", "set", "red", "--no-member", "bob").refused("bob is not a member of the tenant red")
    cluster.access("tenant", "set", "red", "--disowns", "streams:x").refused("is not a possession of the tenant red")
    cluster.access("tenant", "set", "red", "--member", "anyone").refused("name principals or roles")
    cluster.access("tenant", "export", "blue").refused("there is no tenant blue (red)")
    cluster.access("tenant", "hand-over", "red", "blue").refused("there is no tenant blue")
    cluster.access("tenant", "hand-over", "red", "red").refused("red has it already")
    cluster.access("tenant", "delete", "blue").refused("there is no tenant blue")
    assert len(cluster.document()["changes"]) == 1


def test_what_a_tenant_owns_is_handed_over_whole_or_in_part(cluster: Cluster) -> None:
    cluster.access(*RED)
    cluster.access("tenant", "set", "blue", "--member", "bob")
    cluster.access("grant", "eve", "read", "streams:red/x")
    found = cluster.document("tenant", "hand-over", "red", "blue", "streams:red")
    assert found["tenant"]["owns"] == ["streams:red"]
    assert found["grants"] == [{"who": "eve", "rights": ["read"], "on": "streams:red/x"}]
    assert cluster.access("check", "bob", "read", "streams:red").status == 0
    assert cluster.access("check", "etl", "read", "streams:red", "--role", "red").status == 1
    cluster.access("tenant", "hand-over", "red", "blue", "streams:red").refused("not a possession of the tenant red")
    assert cluster.document("tenant", "hand-over", "red", "blue")["tenant"]["owns"] == [
        "streams:red",
        "ledgers:red-etl",
    ]
    cluster.access("tenant", "hand-over", "red", "blue").refused("owns nothing")


def test_an_export_has_everything_that_is_said_of_a_tenant(cluster: Cluster) -> None:
    cluster.access(*RED)
    cluster.access("grant", "tenant:red", "read", "streams:blue")
    cluster.access("grant", "eve", "read", "streams:red/x")
    cluster.access("grant", "eve", "read", "streams:blue")

    async def count(metadata: Metadata) -> None:
        await _stream(metadata)
        await metadata.access.write_usage(Usage(7, {"red": Amount(5, 1)}, {"red-etl": Amount(2, 1)}))

    cluster.meanwhile(count)
    found = cluster.access("tenant", "export", "red").document
    assert [each["on"] for each in found["grants"]] == ["streams:blue", "streams:red/x"]
    assert found["there_is"] == {"streams:red": ["red/x"], "ledgers:red-etl": ["red-etl"]}
    assert (found["counted_ms"], found["bytes_kept"], found["ledgers"]) == (7, 5, 1)


def test_a_tenant_with_data_is_not_deleted_by_mistake(cluster: Cluster) -> None:
    cluster.access(*RED)
    cluster.access("grant", "tenant:red", "read", "streams:blue")
    cluster.meanwhile(_stream)
    cluster.access("tenant", "delete", "red").refused("still has streams:red (red/x)", "hand-over", "--yes")
    assert len(cluster.document("tenant")) == 1
    assert "its data were not touched" in cluster.access("tenant", "delete", "red", "--yes").out
    found = cluster.document()
    assert found["tenants"] == [] and found["grants"] == []


def test_a_quota_of_principals_is_set_changed_and_taken_away(cluster: Cluster) -> None:
    assert cluster.document("quota", "anyone", "adds_per_s=100", "ledgers=5")["quota"] == {
        "ledgers": 5,
        "adds_per_s": 100,
    }
    cluster.access("quota", "anyone", "ledgers=none")
    cluster.access("quota", "tenant:red", "ledgers=7")
    assert cluster.document()["quotas"] == [
        {"who": "anyone", "quota": {"adds_per_s": 100}},
        {"who": "tenant:red", "quota": {"ledgers": 7}},
    ]
    assert "adds_per_s 100" in cluster.access().out
    cluster.access("quota", "anyone", "adds_per_s=none")
    assert [each["who"] for each in cluster.document()["quotas"]] == ["tenant:red"]
    cluster.access("quota", "anyone", "speed=1").refused("is not a quota", "adds_per_s")
