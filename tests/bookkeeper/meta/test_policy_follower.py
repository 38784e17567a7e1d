"""A server's copy of the access policy: fresh within seconds, kept while it cannot be read, never open by mistake."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import pytest

from bookkeeper.access import (
    Amount,
    Grant,
    Mode,
    Policy,
    PolicyChange,
    Principal,
    PrincipalKind,
    PrincipalQuota,
    Quota,
    Resource,
    Right,
    Subject,
    Usage,
)
from bookkeeper.access.observation import ObservedDenial
from bookkeeper.audit import AuditEvent
from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.ids import BookieId
from bookkeeper.meta.policy_follower import DENY_ALL, AccessReporter, PolicyFollower, PolicyState
from bookkeeper.meta.records.access_policy import AccessPolicies
from bookkeeper.meta.records.access_servers import BOOKIE, AccessServers
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.stores.memory import MemoryCluster, MemoryStore
from bookkeeper.metrics import Metrics
from tests.spark_wal.webhdfs.virtual import LoopClock, in_virtual_time

NOTE = PolicyChange(5, "eve on host", "x")
ETL = Principal(PrincipalKind.TOKEN, "etl")
APP = Resource.parse("streams:app")
GRANT = Grant(Subject.parse("etl"), frozenset({Right.READ}), APP)
WITHIN_S = 5.0


@dataclass
class Followed:
    """A follower at work, and somebody else who changes what it follows."""

    cluster: MemoryCluster
    store: MemoryStore
    others: AccessPolicies
    other: MemoryStore
    follower: PolicyFollower
    metrics: Metrics
    heard: list[Policy]

    async def write(self, data: bytes) -> None:
        """Whatever somebody puts there."""
        found = await self.others.read_bytes()
        if found is None:
            await self.other.create(self.others.path, data, parents=True)
        else:
            await self.other.set(self.others.path, data, None)

    async def enforce(self) -> None:
        await self.others.change(lambda policy: replace(policy.with_grant(GRANT), mode=Mode.ENFORCE), NOTE)

    def state(self) -> PolicyState:
        return self.follower.status.state

    def gauge(self, name: str) -> float:
        return self.metrics.gauge(name).value


@asynccontextmanager
async def followed(*, data: bytes | None = None, required: bool = False, read: bool = True) -> AsyncIterator[Followed]:
    cluster = MemoryCluster()
    store, other = cluster.connect(), cluster.connect()
    others = AccessPolicies(other, Paths())
    metrics = Metrics()
    follower = PolicyFollower(AccessPolicies(store, Paths()), LoopClock(), metrics, required=required)
    found = Followed(cluster, store, others, other, follower, metrics, [])
    follower.on_change(found.heard.append)
    if data is not None:
        await found.write(data)
    if read:
        await follower.read()
    running = asyncio.create_task(follower.run())
    try:
        yield found
    finally:
        running.cancel()


@in_virtual_time
async def test_without_a_policy_nobody_is_asked() -> None:
    async with followed() as it:
        assert it.follower.policy == Policy() and it.state() is PolicyState.NONE
        assert it.follower.status.mode is Mode.OFF and it.gauge("access_policy_enforced") == 0


@in_virtual_time
async def test_before_the_first_reading_everything_is_denied() -> None:
    follower = PolicyFollower(AccessPolicies(MemoryCluster().connect(), Paths()), LoopClock())
    assert follower.policy == DENY_ALL and follower.status.state is PolicyState.UNREAD
    assert follower.policy.rights(ETL, APP) == frozenset() and follower.policy.mode is Mode.ENFORCE


@pytest.mark.rule("X12a")
@in_virtual_time
async def test_a_change_is_heard_at_once_by_the_watch() -> None:
    async with followed() as it:
        await asyncio.sleep(1)
        await it.enforce()
        await asyncio.sleep(0.01)
        assert it.heard[-1].grants == (GRANT,) and it.follower.policy is it.heard[-1]
        assert it.gauge("access_policy_enforced") == 1
        before = len(it.heard)
        await asyncio.sleep(60)
        assert len(it.heard) == before, "an unchanged policy is not told again"


@pytest.mark.rule("X12a")
@in_virtual_time
async def test_a_change_of_which_no_watch_tells_is_there_within_five_seconds() -> None:
    async with followed() as it:
        deaf = PolicyFollower(_Deaf(it.store), LoopClock())
        await deaf.read()
        running = asyncio.create_task(deaf.run())
        await asyncio.sleep(1)
        await it.enforce()
        await asyncio.sleep(WITHIN_S)
        assert deaf.policy.mode is Mode.ENFORCE
        running.cancel()


class _Deaf(AccessPolicies):
    """Records whose watches never tell anything."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store, Paths())

    def watch(self, callback: object) -> _NoWatch:
        return _NoWatch()

    def watch_usage(self, callback: object) -> _NoWatch:
        return _NoWatch()


class _NoWatch:
    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.rule("X12a")
@pytest.mark.parametrize("data", [b"", b"{", b'{"format":99,"mode":"off"}'])
def test_a_record_that_cannot_be_read_changes_nothing_and_is_told_once(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    @in_virtual_time
    async def story() -> None:
        async with followed() as it:
            await it.enforce()
            await asyncio.sleep(1)
            before = it.follower.policy
            caplog.clear()
            await it.write(data)
            await asyncio.sleep(30)
            assert it.follower.policy is before and it.state() is PolicyState.KEPT
            assert "access policy" in it.follower.status.reason and it.gauge("access_policy_unreadable") == 1
            told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
            assert len(told) == 1 and "the last one counts on" in told[0]
            assert it.metrics.counter("access_policy_read_failures_total").value > 1
            await it.others.change(lambda policy: policy, NOTE, over_damaged=True)
            await asyncio.sleep(WITHIN_S)
            assert it.follower.policy.mode is Mode.OFF and it.state() is PolicyState.CURRENT
            assert it.follower.status.reason == "" and it.gauge("access_policy_unreadable") == 0

    story()


@pytest.mark.rule("X12a")
@in_virtual_time
async def test_while_the_store_is_away_the_last_policy_counts() -> None:
    async with followed() as it:
        await it.enforce()
        await asyncio.sleep(1)
        it.cluster.begin_outage()
        await asyncio.sleep(300)
        assert it.follower.policy.mode is Mode.ENFORCE and it.state() is PolicyState.KEPT
        read_ms = it.follower.status.read_ms
        assert 0 < read_ms < LoopClock().wall_ms() - 200_000
        it.cluster.end_outage()
        await asyncio.sleep(WITHIN_S)
        assert it.state() is PolicyState.CURRENT and it.follower.status.read_ms > read_ms


@pytest.mark.rule("X12a")
@pytest.mark.parametrize("data", [b"rubbish", b'{"format":99,"mode":"off"}'])
def test_a_start_with_a_policy_that_cannot_be_read_denies_everything(data: bytes) -> None:
    @in_virtual_time
    async def story() -> None:
        async with followed(data=data) as it:
            assert it.state() is PolicyState.DENYING and it.follower.policy == DENY_ALL
            assert it.heard == [DENY_ALL] and it.gauge("access_policy_enforced") == 1
            await it.others.change(lambda policy: policy.with_grant(GRANT), NOTE, over_damaged=True)
            await asyncio.sleep(WITHIN_S)
            assert it.follower.policy.mode is Mode.OFF and it.heard[-1] == it.follower.policy

    story()


@in_virtual_time
async def test_a_start_without_an_answer_of_the_store_raises_and_stays_denied() -> None:
    cluster = MemoryCluster()
    follower = PolicyFollower(AccessPolicies(cluster.connect(), Paths()), LoopClock())
    cluster.begin_outage()
    with pytest.raises(MetadataUnavailableError):
        await follower.read()
    assert follower.policy == DENY_ALL and follower.status.state is PolicyState.UNREAD
    cluster.end_outage()
    await follower.read()
    assert follower.policy == Policy()


@in_virtual_time
async def test_a_required_policy_that_is_missing_denies_and_one_that_is_removed_counts_on() -> None:
    async with followed(required=True) as it:
        assert it.state() is PolicyState.DENYING and it.follower.policy == DENY_ALL
        assert "requires one" in it.follower.status.reason
        await it.enforce()
        await asyncio.sleep(WITHIN_S)
        assert it.follower.policy.grants == (GRANT,)
        await it.other.delete(it.others.path, None)
        await asyncio.sleep(WITHIN_S)
        assert it.follower.policy.grants == (GRANT,) and it.state() is PolicyState.KEPT


def test_a_policy_that_is_removed_counts_no_more_and_that_is_said(caplog: pytest.LogCaptureFixture) -> None:
    @in_virtual_time
    async def story() -> None:
        async with followed() as it:
            await it.enforce()
            await asyncio.sleep(1)
            await it.other.delete(it.others.path, None)
            await asyncio.sleep(WITHIN_S)
            assert it.follower.policy == Policy() and it.state() is PolicyState.NONE
            assert "removed" in caplog.text

    story()


@in_virtual_time
async def test_an_older_state_of_the_store_changes_nothing() -> None:
    async with followed() as it:
        await it.enforce()
        backup = it.cluster.snapshot()
        await it.others.change(lambda policy: replace(policy, grants=()), NOTE)
        await asyncio.sleep(1)
        assert it.follower.policy.grants == ()
        it.cluster.restore(backup)
        await asyncio.sleep(WITHIN_S)
        assert it.follower.policy.grants == () and it.state() is PolicyState.KEPT


@in_virtual_time
async def test_quotas_follow_the_policy_and_the_count() -> None:
    async with followed() as it:
        limited = PrincipalQuota(Subject.parse("anyone"), Quota(bytes_kept=10))
        await it.others.change(lambda policy: Policy(Mode.ENFORCE, quotas=(limited,)), NOTE)
        await it.others.write_usage(Usage(1, {}, {"etl": Amount(10, 1)}))
        await asyncio.sleep(WITHIN_S)
        assert it.follower.quotas.charge(ETL, None, 1, 1, 0.0) is not None
        await it.other.set(it.others.usage_path, b"rubbish", None)
        await asyncio.sleep(WITHIN_S)
        assert it.follower.quotas.charge(ETL, None, 1, 1, 0.0) is not None, "the last count stands"
        assert it.state() is PolicyState.CURRENT
        await it.others.write_usage(Usage(2))
        await asyncio.sleep(WITHIN_S)
        assert it.follower.quotas.charge(ETL, None, 1, 1, 0.0) is None


@in_virtual_time
async def test_the_status_is_plain_data() -> None:
    async with followed() as it:
        found = it.follower.status.document()
        assert found == {"state": "none", "mode": "off", "read_ms": found["read_ms"], "reason": ""}


@in_virtual_time
async def test_a_server_says_what_it_does_with_the_policy_and_what_it_would_have_denied() -> None:
    cluster = MemoryCluster()
    store, other = cluster.connect(), cluster.connect()
    servers, others = AccessServers(store, Paths()), AccessServers(other, Paths())
    policies = AccessPolicies(other, Paths())
    follower = PolicyFollower(
        AccessPolicies(store, Paths()), LoopClock(), reporter=AccessReporter(servers, BOOKIE, "b1:3181")
    )
    running = asyncio.create_task(follower.run())
    await asyncio.sleep(WITHIN_S)
    assert [(each.kind, each.name, each.mode, each.state) for each in await others.reports()] == [
        ("bookie", "b1:3181", Mode.OFF, "none")
    ]
    await policies.change(lambda policy: replace(policy, mode=Mode.OBSERVE), NOTE)
    follower.observations.note(ETL, "add", APP)
    await asyncio.sleep(0.01)
    follower.observations.note(ETL, "read", APP)
    await asyncio.sleep(WITHIN_S)
    report = (await others.reports())[0]
    assert (report.mode, report.changed_ms) == (Mode.OBSERVE, NOTE.at_ms)
    assert report.denials == (ObservedDenial("etl", "read", "streams:app", 1),), "a new policy begins anew"
    await other.delete(others.path(BOOKIE, "b1:3181"), None)
    await asyncio.sleep(WITHIN_S)
    assert await others.without_report([BookieId("b1:3181"), BookieId("java:3181")]) == ["java:3181"]
    running.cancel()
    await store.close()
    assert await others.reports() == [], "a report ends with its server"


class _Lines:
    """An audit log that keeps its events."""

    def __init__(self) -> None:
        self.events: list[AuditEvent] = []

    def note(self, event: AuditEvent) -> None:
        self.events.append(event)

    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.rule("X16")
@in_virtual_time
async def test_each_change_after_the_start_has_a_line_in_the_audit_log() -> None:
    cluster = MemoryCluster()
    others, lines = AccessPolicies(cluster.connect(), Paths()), _Lines()
    await others.change(lambda policy: policy.with_grant(GRANT), NOTE)
    follower = PolicyFollower(AccessPolicies(cluster.connect(), Paths()), LoopClock(), audit=lines)
    await follower.read()
    running = asyncio.create_task(follower.run())
    await asyncio.sleep(WITHIN_S)
    assert lines.events == [], "what was changed before the start is in the history"
    await others.change(
        lambda policy: replace(policy, mode=Mode.ENFORCE), PolicyChange(6, "bob on host", "mode enforce")
    )
    await others.change(lambda policy: replace(policy, grants=()), PolicyChange(7, "eve on host", "revoke"))
    await asyncio.sleep(WITHIN_S)
    assert [(each.who, each.claimed, each.on, each.reason, each.allowed) for each in lines.events] == [
        ("bob on host", True, "access policy", "mode enforce", True),
        ("eve on host", True, "access policy", "revoke", True),
    ]
    running.cancel()
