"""``bk access usage``."""

from __future__ import annotations

from bookkeeper.access import Amount, Usage
from bookkeeper.meta import Metadata
from tests.bookkeeper.admin.access.clusters import Cluster
from tests.bookkeeper.admin.commands import bk

ONE = ("--ensemble", 1, "--write-quorum", 1, "--ack-quorum", 1)


def test_before_the_first_count_it_says_who_counts(cluster: Cluster) -> None:
    cluster.access("tenant", "set", "red", "--quota", "ledgers=5")
    found = cluster.document("usage")
    assert found["counted_ms"] is None and "nothing was counted yet" in found["notes"][0]
    none = {"streams": 0, "streams_quota": None}
    assert found["tenants"] == [
        {"who": "red", "bytes_kept": 0, "bytes_quota": None, "ledgers": 0, "ledgers_quota": 5, **none}
    ]
    assert "note: nothing was counted yet" in cluster.access("usage").out


def test_the_last_count_is_shown_beside_the_quotas(cluster: Cluster) -> None:
    async def count(metadata: Metadata) -> None:
        await metadata.access.write_usage(Usage(7, {"red": Amount(2048, 1)}, {"bob": Amount(5, 2)}))

    cluster.access("tenant", "set", "red", "--quota", "bytes_kept=1G")
    cluster.access("quota", "bob", "ledgers=9")
    cluster.meanwhile(count)
    found = cluster.document("usage")
    assert found["tenants"] == [
        {
            "who": "red",
            "bytes_kept": 2048,
            "bytes_quota": 1 << 30,
            "ledgers": 1,
            "ledgers_quota": None,
            "streams": 0,
            "streams_quota": None,
        }
    ]
    assert found["owners"] == [{"who": "bob", "bytes_kept": 5, "bytes_quota": None, "ledgers": 2, "ledgers_quota": 9}]
    shown = cluster.access("usage").out
    assert "2.0 KiB" in shown and "1.0 GiB" in shown and "counted 19" in shown


def test_streams_are_counted_as_they_are_now(cluster: Cluster) -> None:
    async def make(metadata: Metadata) -> None:
        for name in ("red", "red%2Forders", "redder", "blue"):
            await metadata.store.create(metadata.own("segments", "names", name), b"id", parents=True)

    cluster.access("tenant", "set", "red", "--owns", "streams:red", "--quota", "streams=2")
    cluster.meanwhile(make)
    (row,) = cluster.document("usage")["tenants"]
    assert (row["who"], row["streams"], row["streams_quota"]) == ("red", 2, 2)
    assert "streams" in cluster.access("usage").out.partition("0 owners")[0]
    refused = cluster.access("quota", "etl", "streams=2")
    assert refused.status and "the quota streams is a tenant's" in refused.err


def test_a_count_on_demand_is_for_all_servers_and_names_what_was_deleted(embedded: str) -> None:
    assert bk("ledger", "append", "-m", embedded, "--size", 10, "--count", 5, *ONE).status == 0
    assert bk("ledger", "delete", "-m", embedded, "0", "--yes").status == 0
    shown = bk("access", "usage", "-m", embedded, "--count", "--json").document
    assert shown["counted_ms"] and [each["bytes_kept"] for each in shown["still_counting"]] == [50]
    assert shown["still_counting"][0]["until_ms"] > shown["counted_ms"]
    assert shown["still_counting"][0]["owner"] is None
    told = bk("access", "usage", "-m", embedded)
    assert "still counting" in told.out and "nobody" in told.out
