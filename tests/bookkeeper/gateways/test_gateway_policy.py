from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from bookkeeper.access import Grant, Mode, Policy, PolicyChange, Resource, Right, Subject
from bookkeeper.gateways.caller import Caller, stream_resource
from bookkeeper.gateways.gateway_policy import GatewayPolicy
from bookkeeper.gateways.permissions import one_of
from bookkeeper.meta.records.access_policy import AccessPolicies
from bookkeeper.meta.records.access_servers import AccessServers
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.stores.memory import MemoryCluster
from bookkeeper.metrics import Metrics
from bookkeeper.real import system_seams
from tests.spark_wal.webhdfs.virtual import in_virtual_time

READ = one_of(Right.READ)
GRANT = Grant(Subject.parse("a"), frozenset({Right.READ}), Resource.parse("streams:x"))
ON = stream_resource("x")


@dataclass
class Records:
    """What a gateway uses of a cluster's metadata."""

    access: AccessPolicies
    access_servers: AccessServers


@pytest.mark.rule("X12", "X12a")
@in_virtual_time
async def test_a_gateway_asks_the_clusters_policy_and_says_what_it_denies() -> None:
    store = MemoryCluster().connect()
    records = Records(AccessPolicies(store, Paths()), AccessServers(store, Paths()))
    policy = GatewayPolicy(
        records,  # type: ignore[arg-type]  # the part of it that is used
        system_seams(),
        Metrics(),
        kind="gateway",
        name="g:1",
    )
    assert policy.permissions.denial(Caller("a"), READ, ON) is not None, "before it was read everything is denied"
    await policy.start()
    assert policy.permissions.denial(Caller("b"), READ, ON) is None, "there is no policy"
    note = PolicyChange(5, "somebody", "a test")
    await records.access.change(lambda _: Policy(Mode.ENFORCE, (GRANT,)), note)
    await asyncio.sleep(5)
    assert policy.permissions.denial(Caller("b"), READ, ON) is not None
    assert policy.permissions.denial(Caller("a"), READ, ON) is None
    await asyncio.sleep(5)
    [report] = await records.access_servers.reports()
    assert (report.kind, report.name, report.mode) == ("gateway", "g:1", Mode.ENFORCE)
    assert [(each.who, each.what, each.on) for each in report.denials] == [("b", "read", "streams:x")]
    await policy.close()
    await policy.close()
    await records.access.change(lambda _: Policy(), note)
    await asyncio.sleep(10)
    assert policy.permissions.denial(Caller("b"), READ, ON) is not None, "it follows no more"


@in_virtual_time
async def test_without_a_cluster_there_is_no_policy() -> None:
    policy = GatewayPolicy(None, system_seams(), Metrics(), kind="gateway", name="g:1")
    await policy.start()
    assert policy.permissions.denial(None, READ, ON) is None
    await policy.close()
