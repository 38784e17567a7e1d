from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

import pytest

from bookkeeper.access import Grant, Mode, Policy, PolicyChange, PrincipalQuota, Quota, Resource, Right, Subject
from bookkeeper.gateways.caller import Caller, stream_resource
from bookkeeper.gateways.gateway_policy import GatewayPolicy
from bookkeeper.gateways.permissions import one_of
from bookkeeper.meta.records.access_policy import AccessPolicies
from bookkeeper.meta.records.access_servers import AccessServers
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.stores.memory import MemoryCluster
from bookkeeper.metrics import Metrics
from bookkeeper.real import system_seams
from tests.spark_wal.webhdfs.virtual import LoopClock, in_virtual_time

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


@pytest.mark.parametrize("mode", Mode)
def test_a_callers_own_rates_hold_at_the_gateway_where_the_policy_is_enforced(mode: Mode) -> None:
    @in_virtual_time
    async def story() -> None:
        store = MemoryCluster().connect()
        records = Records(AccessPolicies(store, Paths()), AccessServers(store, Paths()))
        seams = replace(system_seams(), clock=LoopClock())
        policy = GatewayPolicy(records, seams, Metrics(), kind="gateway", name="g:1")  # type: ignore[arg-type]
        quota = Quota(adds_per_s=10, bytes_kept=1)
        made = Policy(mode, quotas=(PrincipalQuota(Subject.parse("a"), quota),))
        await records.access.change(lambda _: made, PolicyChange(5, "somebody", "a test"))
        await policy.start()
        charge = policy.permissions.charge
        assert charge(Caller("a"), 20, 0) is None, "a batch may be larger than what is left, and is made up for"
        slower = charge(Caller("a"), 1, 0)
        if mode is not Mode.ENFORCE:
            assert slower is None
        else:
            assert slower is not None and slower.after_s is not None
            assert 0 < slower.after_s < 2
            assert "the quota adds_per_s of principal a, 10, is used up: come back in" in str(slower)
            await asyncio.sleep(slower.after_s + 0.01)
            assert charge(Caller("a"), 1, 0) is None
        assert charge(Caller("a"), 0, 100) is None, "what may be kept is the bookies' affair"
        assert charge(Caller("b"), 1000, 0) is None
        await policy.close()

    story()


@in_virtual_time
async def test_without_a_cluster_there_is_no_policy() -> None:
    policy = GatewayPolicy(None, system_seams(), Metrics(), kind="gateway", name="g:1")
    await policy.start()
    assert policy.permissions.denial(None, READ, ON) is None
    await policy.close()
