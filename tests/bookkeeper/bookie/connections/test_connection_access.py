"""What a connection remembers, what it tells, and quotas."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.access import Mode, Principal, PrincipalKind, Quota, Resource, Subject, Tenant
from bookkeeper.access.quota import PrincipalQuota
from bookkeeper.access.quota_book import QuotaBook
from bookkeeper.bookie.connections import connection_access
from bookkeeper.bookie.ownership.ledger_permissions import LedgerPermissions
from bookkeeper.errors import BookieError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import Dialect, Status
from tests.bookkeeper.bookie.cluster import Cluster
from tests.bookkeeper.bookie.identity.test_ledger_keys import KEY, add, fence, write_lac
from tests.bookkeeper.bookie.ownership.house import apply, clients_of, control_of, create, policy, run_named
from tests.bookkeeper.bookie.ownership.test_ledger_permissions import of_dialect

NOT_HERE = (Status.NO_LEDGER, Status.NO_ENTRY)


@pytest.mark.rule("X12")
def test_a_ledger_is_asked_for_once_not_for_each_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    allowed = LedgerPermissions.allowed

    def counted(self: LedgerPermissions, who: Any, ledger_id: Any) -> int | None:
        asked.append(ledger_id)
        return allowed(self, who, ledger_id)

    monkeypatch.setattr(LedgerPermissions, "allowed", counted)
    monkeypatch.setattr(connection_access, "KNOWN_MAX", 2)

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        async with clients_of(cluster) as clients:
            ledgers = [await create(metadata, "ledgers:a") for _ in range(3)]
            for ledger in ledgers:
                for entry in range(20):
                    assert (await clients.ask("a", add(ledger, entry))).status is Status.OK
                    assert (await clients.ask("a", wire.ReadEntry(ledger, EntryId(entry)))).status is Status.OK
            assert len(asked) == 6, "once before the owner is known, once after it"
            assert (await clients.ask("a", add(ledgers[0], 20))).status is Status.OK
            assert len(asked) == 7, "what is remembered has an end"

    run_named(main)


@pytest.mark.rule("X16")
def test_a_denial_is_audited_once_for_a_connection_ledger_and_operation() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        assert cluster.server is not None
        async with clients_of(cluster) as clients:
            ledger = await create(metadata, "ledgers:a")
            assert (await clients.ask("a", add(ledger))).status is Status.OK
            for entry in range(1, 30):
                assert (await clients.ask("b", add(ledger, entry))).status is Status.UNAUTHORIZED
                assert (await clients.ask("b", wire.ReadEntry(ledger, EntryId(0)))).status is Status.UNAUTHORIZED
            await clients.ask("b", wire.ReadEntry(ledger, EntryId(0), bytes(20), fence=True))
        await cluster.server.stop()
        lines = [json.loads(line) for line in cluster.node.disk.read_file("/data/audit").splitlines()]
        found = [(each["what"], each["on"], each["who"], each["allowed"]) for each in lines if each["who"] == "b"]
        on = f"ledger {ledger}"
        assert found[1:] == [("deny", on, "b", False)] * 2 + [("fence", on, "b", False)]
        reasons = [each["reason"] for each in lines if each["who"] == "b"]
        assert reasons[1].startswith("add: the access policy") and reasons[2].startswith("read: the access policy")

    run_named(main, audit={"to": "/data/audit"})


def test_adds_that_come_together_count_as_many_bytes_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[int, int]] = []
    take = QuotaBook.charge

    def noted(self: QuotaBook, principal: Any, tenant: Any, adds: int, size: int, *rest: Any, **more: Any) -> Any:
        counted.append((adds, size))
        return take(self, principal, tenant, adds, size, *rest, **more)

    monkeypatch.setattr(QuotaBook, "charge", noted)

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        quota = PrincipalQuota(Subject.parse("a"), Quota(bytes_per_s=10**9))
        await apply(cluster, metadata, replace(policy("bookie repair cluster"), quotas=(quota,)))
        async with clients_of(cluster) as clients:
            ledgers = [await create(metadata, "ledgers:a"), await create(metadata, "ledgers:a")]
            for ledger in ledgers:
                await clients.ask("a", add(ledger))
            (_, one), _ = counted
            assert one > 0
            counted.clear()
            together = [add(ledger, entry) for ledger in ledgers for entry in (1, 2, 3)]
            replies = await asyncio.gather(*(clients.ask("a", each) for each in together))
            assert [each.status for each in replies] == [Status.OK] * 6
            assert counted == [(3, 3 * one), (3, 3 * one)], "two runs, each with the bytes of its own records"

    run_named(main)


def test_a_used_up_quota_refuses_adds_and_nothing_else_and_no_repair() -> None:
    """Cause: no recovery add was counted, so a member wrote what he liked as such."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        quota = PrincipalQuota(Subject.parse("a"), Quota(adds_per_s=5))
        wanted = replace(policy("bookie repair cluster"), quotas=(quota,))
        await apply(cluster, metadata, wanted)
        async with clients_of(cluster) as clients:
            ledger = await create(metadata, "ledgers:a")
            found = [(await clients.ask("a", add(ledger, entry))).status for entry in range(12)]
            assert found[:5] == [Status.OK] * 5 and Status.TOO_MANY_REQUESTS in found[5:]
            assert (await clients.ask("a", wire.ReadEntry(ledger, EntryId(0)))).status is Status.OK
            found = [(await clients.ask("a", add(ledger, 20 + entry, recovery=True))).status for entry in range(30)]
            assert found[0] is Status.OK, "a writer's quota does not keep his ledger from being recovered"
            assert found[-1] is Status.TOO_MANY_REQUESTS, "and it is no way around it"
            for entry in range(30):
                assert (await clients.ask("bookie", add(ledger, 50 + entry, recovery=True))).status is Status.OK
            assert control_of(cluster).over_quota.value >= 1
            await apply(cluster, metadata, replace(wanted, mode=Mode.OBSERVE))
            found = [(await clients.ask("a", add(ledger, 90 + entry))).status for entry in range(12)]
            assert found == [Status.OK] * 12

    run_named(main)


@pytest.mark.rule("X34")
def test_one_principal_does_not_take_the_connections_of_the_others() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        info = wire.GetBookieInfo()

        async def open_as(stack: AsyncExitStack, *names: str) -> list[bool]:
            """Whether each of these is served, on a connection of its own."""
            served = []
            for name in names:
                clients = await stack.enter_async_context(clients_of(cluster))
                try:
                    served.append((await clients.ask(name, info)).status is Status.OK)
                except BookieError:
                    served.append(False)
            return served

        async with AsyncExitStack() as stack:
            assert await open_as(stack, "a", "a", "a") == [True] * 3, "nobody counts while nobody is asked"
        await apply(cluster, metadata, policy())
        async with AsyncExitStack() as stack:
            assert await open_as(stack, "a", "a", "a", "b") == [True, True, False, True]
        async with AsyncExitStack() as stack:
            assert await open_as(stack, "a", "a") == [True] * 2, "those that ended count no more"

    run_named(main, connections_per_principal_max=2)


def test_who_may_not_write_a_ledger_has_no_advice_about_it(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        assert cluster.server is not None
        advice: list[int] = []
        monkeypatch.setattr(cluster.server.engine, "ledger_closed", advice.append)
        async with clients_of(cluster) as clients:
            ledger = await create(metadata, "ledgers:a")
            assert (await clients.ask("a", add(ledger))).status is Status.OK
            for who in ("b", "a"):
                reply = await clients.ask(who, wire.GetBookieInfo(closed_ledger=ledger))
                assert reply.status is Status.OK
            assert advice == [ledger]

    run_named(main)


def any_request(rng: Random, ledger: LedgerId, entry: int) -> tuple[str, wire.Request]:
    """One request of a kind, and the kind's name in :data:`RIGHTS`."""
    at = EntryId(rng.randrange(6))
    fences = fence(ledger) if rng.random() < 0.2 else wire.ReadEntry(ledger, at)
    requests: list[tuple[str, wire.Request]] = [
        *[("add", add(ledger, entry)), ("add", add(ledger, entry, deferred_sync=True))],
        *[("recover", add(ledger, entry, recovery=True)), ("recover", add(ledger, entry, recovery=True, priority=9))],
        *[("read", wire.ReadEntry(ledger, at))] * 2,
        *[("read", wire.ReadEntry(ledger, at, KEY)), ("read", wire.ReadEntry(ledger, at, priority=3))],
        ("read", wire.ReadEntry(ledger, EntryId(-1), previous_lac=-1, timeout_ms=1, piggyback=True)),
        ("recover" if fences.fence else "read", fences),
        ("read", wire.BatchRead(ledger, EntryId(0), rng.randrange(1 << 30), 4, 4000)),
        ("read", wire.ReadLac(ledger)),
        ("add", write_lac(ledger)),
        ("force", wire.ForceLedger(ledger)),
        ("read", wire.ListEntries(ledger)),
        ("all", wire.ListEntries(wire.ledgers_held(ledger))),
    ]
    return rng.choice(requests)


RIGHTS = {
    "ledgers:a": {"add", "recover", "read", "force"},
    "streams:w": {"add", "force"},
    "streams:r": {"read"},
    "streams:c": {"recover", "read", "force"},
    "ledgers:b": set[str](),
    "streams:rx": set[str](),
}


@pytest.mark.rule("X12", "X13", "X22")
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("seed", range(3))
def test_whatever_comes_in_one_piece_each_request_is_judged_by_itself(seed: int, dialect: Dialect) -> None:
    """Runs of adds and of reads, of own ledgers and of others', and of one that is not there."""

    async def main(cluster: Cluster) -> None:
        rng = Random(seed)
        metadata = await cluster.up()
        grants = "a append streams:w", "a read streams:r", "a recover streams:c", "all append,read,recover cluster"
        await apply(cluster, metadata, policy(*grants))
        ledgers = {await create(metadata, owner): allowed for owner, allowed in RIGHTS.items()}
        async with clients_of(cluster) as clients:
            for ledger in ledgers:
                for entry in range(6 if seed else 0):
                    assert (await clients.ask("all", add(ledger, entry))).status is Status.OK
            ledgers[LedgerId(77_777)] = set()
            await clients.connection("a", dialect)
            chosen: dict[tuple[Any, ...], tuple[bool, wire.Request]] = {}
            for entry in range(10, 160):
                ledger = rng.choice(list(ledgers))
                kind, request = any_request(rng, ledger, entry)
                if not of_dialect(request, dialect):
                    continue
                named = (type(request), ledger, getattr(request, "entry_id", None))  # replies of v2 are known by these
                chosen.setdefault(named if dialect is Dialect.V2 else (entry,), (kind in ledgers[ledger], request))
            replies = await asyncio.gather(*[clients.ask("a", request, dialect) for _, request in chosen.values()])
            for (allowed, request), reply in zip(chosen.values(), replies, strict=True):
                assert (reply.status is not Status.UNAUTHORIZED) == allowed, (request, reply)
            assert {allowed for allowed, _ in chosen.values()} == {True, False}

    run_named(main)


@pytest.mark.parametrize("dialect", Dialect)
def test_a_new_ledger_beyond_its_owners_quota_gets_no_entry(dialect: Dialect) -> None:
    """Cause: a quota of ledgers was shown, and asked by nobody."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        quota = PrincipalQuota(Subject.parse("a"), Quota(ledgers=2))
        red = Tenant("red", (Subject.parse("m"),), (Resource.parse("streams:red"),), Quota(ledgers=1))
        wanted = replace(policy("bookie repair cluster"), quotas=(quota,), tenants=(red,))
        await apply(cluster, metadata, wanted)
        now_ms = cluster.world.node("client").seams.clock.wall_ms()

        def lookups() -> float:
            assert cluster.server is not None
            return cluster.server.metrics.counter("access_lookups_total", "").value

        async with clients_of(cluster) as clients:

            async def first_add(who: str, owner: str | None, **more: Any) -> tuple[LedgerId, Status]:
                ledger = await create(metadata, owner, ctime_ms=now_ms, **more)
                if who == "reader first":
                    who = "a"
                    assert (await clients.ask(who, wire.ReadEntry(ledger, EntryId(0)), dialect)).status in NOT_HERE
                return ledger, (await clients.ask(who, add(ledger), dialect)).status

            (mine, first), (_, second) = await first_add("a", "ledgers:a"), await first_add("a", None)
            assert (first, second) == (Status.OK, Status.OK)
            for who in ("a", "a", "reader first"):
                refused, status = await first_add(who, "ledgers:a")
                assert status is Status.TOO_MANY_REQUESTS
                looked = lookups()
                assert (await clients.ask("a", add(refused))).status is Status.TOO_MANY_REQUESTS, "also the next time"
                assert lookups() == looked, "who asks again and again does not make the bookie ask the store"
                assert cluster.server is not None and not cluster.server.engine.has(refused)
            assert (await clients.ask("a", add(mine, 1))).status is Status.OK, "those that have begun go on"
            assert [(await first_add("m", "streams:red/s"))[1] for _ in range(2)] == [
                Status.OK,
                Status.TOO_MANY_REQUESTS,
            ]
            elsewhere = await create(metadata, "streams:red/s", ctime_ms=now_ms, ensemble=("other:1",))
            assert (await clients.ask("m", add(elsewhere, 7))).status is Status.OK, "it began elsewhere"
            copied = await create(metadata, "streams:red/s", ctime_ms=now_ms)
            assert (await clients.ask("bookie", add(copied, 0, recovery=True))).status is Status.OK
            fenced = await create(metadata, "streams:red/s", ctime_ms=now_ms)
            assert (await clients.ask("m", fence(fenced))).status in NOT_HERE
            assert control_of(cluster).over_quota.value >= 7
            await apply(cluster, metadata, replace(wanted, mode=Mode.OBSERVE))
            assert (await first_add("m", "streams:red/s"))[1] is Status.OK

    run_named(main)


@pytest.mark.rule("X32")
def test_shares_are_those_of_principals_and_hold_while_the_policy_is_followed() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        assert cluster.server is not None
        admission, connections = cluster.server.port.admission, cluster.server.port.connections
        assert connections is not None
        await apply(cluster, metadata, policy())
        async with clients_of(cluster) as one, clients_of(cluster) as again:
            for clients, name in ((one, "a"), (one, "b"), (again, "a")):
                await clients.ask(name, wire.GetBookieInfo())
            found = {id(each.share): each.share for each in connections.connections}
            assert len(found) == 2 and None not in found.values()
            kept = list(connections.connections)
            for each, roles in zip(kept, ((), ("writer",), ("reader",)), strict=True):
                assert connections.on_admitted(each, Principal(PrincipalKind.TOKEN, "many", roles))
            assert len({id(each.share) for each in kept}) == 1, "a name with several credentials has one share"
            share = next(each for each in found.values() if each is not None)
            assert admission.admit(admission.limit // 2 - 1000, share=share)
            assert admission.is_crowded_for(share)
            await apply(cluster, metadata, policy(mode=Mode.OFF))
            assert not admission.is_crowded_for(share)
            admission.release(share.in_progress, share)

    run_named(main)
