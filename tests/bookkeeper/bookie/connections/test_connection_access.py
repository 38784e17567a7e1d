"""What a connection remembers, what it tells, and quotas."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.access import Mode, Quota, Subject
from bookkeeper.access.quota import PrincipalQuota
from bookkeeper.bookie.connections import connection_access
from bookkeeper.bookie.permissions.ledger_permissions import LedgerPermissions
from bookkeeper.errors import BookieError
from bookkeeper.ids import EntryId
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import Cluster
from tests.bookkeeper.bookie.identity.test_ledger_keys import add
from tests.bookkeeper.bookie.permissions.house import apply, clients_of, control_of, create, policy, run_named


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


def test_a_used_up_quota_refuses_adds_of_writers_and_of_nobody_else() -> None:
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
            for who in ("bookie", "a"):
                assert (await clients.ask(who, add(ledger, 50, recovery=True))).status is Status.OK
            assert control_of(cluster).over_quota.value >= 1
            await apply(cluster, metadata, replace(wanted, mode=Mode.OBSERVE))
            found = [(await clients.ask("a", add(ledger, 60 + entry))).status for entry in range(12)]
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
