"""``bk access observe|enforce|off``."""

from __future__ import annotations

import asyncio
import json

import pytest

from bookkeeper.access import Grant, Mode, Policy, Resource, Right, Subject
from bookkeeper.access.observation import ObservedDenial
from bookkeeper.admin.access.modes import missing_duties
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.access_servers import BOOKIE, AccessReport
from tests.bookkeeper.admin.access.clusters import Cluster


def _mode(cluster: Cluster) -> str:
    found: str = cluster.document()["mode"]
    return found


@pytest.mark.rule("X14")
def test_enforcing_is_refused_while_nobody_could_repair_or_administer(cluster: Cluster) -> None:
    cluster.access("grant", "etl", "repair,administer", "streams:app")
    cluster.access("enforce").refused("right to repair on cluster", "right to administer on cluster", "--yes")
    assert _mode(cluster) == "off"
    cluster.access("grant", "role:bookie", "repair", "cluster")
    cluster.access("enforce").refused("right to administer on cluster")
    cluster.access("grant", "eve", "administer", "cluster")
    shown = cluster.access("enforce")
    assert shown.status == 0 and "`bk access off`" in shown.out and "was not observed" in shown.out
    assert _mode(cluster) == "enforce"


def test_with_yes_it_is_enforced_all_the_same_and_says_what_stops(cluster: Cluster) -> None:
    found = cluster.document("enforce", "--yes")
    assert found["mode"] == "enforce" and len(found["missing"]) == 2 and found["observed"] is False
    assert _mode(cluster) == "enforce"


def test_duties_are_missing_only_where_no_grant_on_the_cluster_gives_them() -> None:
    whole = Grant(Subject.parse("anyone"), frozenset(Right), Resource.parse("cluster"))
    assert missing_duties(Policy(grants=(whole,))) == []
    part = Grant(Subject.parse("anyone"), frozenset(Right), Resource.parse("ledgers:/"))
    assert len(missing_duties(Policy(grants=(part,)))) == 2


def test_the_way_back_in_keeps_the_grants(cluster: Cluster) -> None:
    cluster.access("grant", "etl", "read", "streams:app")
    cluster.access("enforce", "--yes")
    assert "the grants are kept" in cluster.access("off").out
    found = cluster.document()
    assert (found["mode"], len(found["grants"])) == ("off", 1)
    assert [each["what"] for each in found["changes"]][1:] == ["mode enforce", "mode off"]


def test_enforcing_tells_what_the_observation_would_have_denied(cluster: Cluster) -> None:
    assert "done all the same" in cluster.access("observe").out
    assert _mode(cluster) == "observe"
    shown: list[str] = []

    async def observed(metadata: Metadata) -> None:
        found = await metadata.access.read()
        assert found is not None
        newest = found.value.changes[-1].at_ms
        denials = (ObservedDenial("etl", "add", "ledgers:other", 7),)
        await metadata.access_servers.publish(AccessReport(BOOKIE, "b1", Mode.OBSERVE, "current", newest, denials, 3))
        old = (ObservedDenial("old", "add", "x", 9),)
        await metadata.access_servers.publish(AccessReport(BOOKIE, "b2", Mode.OBSERVE, "current", newest - 1, old))
        shown.append((await asyncio.to_thread(cluster.access, "enforce", "--yes", "--json")).out)

    cluster.meanwhile(observed)
    document = json.loads(shown[0])
    assert document["observed"] is True
    assert document["would_have_denied"] == [
        {"who": "etl", "what": "add", "on": "ledgers:other", "count": 7, "server": "bookie b1"},
        {"who": "others", "what": "", "on": "", "count": 3, "server": "bookie b1"},
    ], "what another policy would have denied is not told"


def test_an_observation_without_denials_says_so(cluster: Cluster) -> None:
    cluster.access("observe")
    assert "nothing would have been denied" in cluster.access("enforce", "--yes").out


def test_a_policy_that_cannot_be_read_is_given_up_only_on_demand(cluster: Cluster) -> None:
    async def damage(metadata: Metadata) -> None:
        await metadata.store.create(metadata.access.path, b'{"format":99}', parents=True)

    cluster.meanwhile(damage)
    for words in (("list",), ("off",), ("grant", "etl", "read", "cluster"), ("check", "etl", "read", "cluster")):
        cluster.access(*words).refused("has format 99", "`bk access off --discard`")
    assert cluster.access("off", "--discard").status == 0
    assert _mode(cluster) == "off"
