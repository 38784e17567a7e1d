"""What a bookie allows, by principal, operation and owner, in both dialects; and whose a ledger becomes."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from typing import Any, Final

import pytest

from bookkeeper import wire
from bookkeeper.access import LedgerOperation, Mode, Policy, Principal, PrincipalKind, Resource
from bookkeeper.bookie.ownership.ledger_permissions import WAITING_MAX, AccessRequest, LedgerPermissions
from bookkeeper.bookie.ownership.owner_log import OwnerLog
from bookkeeper.errors import MetadataUnavailableError, NoSuchLedgerError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.wire import Dialect, Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster
from tests.bookkeeper.bookie.identity.test_ledger_keys import KEY, OTHER, add, fence, write_lac
from tests.bookkeeper.bookie.identity.test_limbo_ledgers import named
from tests.bookkeeper.bookie.ownership.house import (
    Clients,
    apply,
    clients_of,
    control_of,
    create,
    policy,
    put_policy,
    run_named,
)

TENANTS: Final = policy(
    "reader read streams:app",
    "writer append streams:app",
    "recoverer recover streams:app",
    "bookie repair cluster",
    "admin administer cluster",
    "anyone append streams:lobby",
)

OWNERS: Final[tuple[str | None, ...]] = ("ledgers:a", "streams:app/x", "streams:lobby", "cluster", None)

REPAIR: Final = "recovery_add fence read list"
ALLOWED: Final[dict[tuple[str, str | None], str]] = {
    ("a", "ledgers:a"): "add recovery_add fence read list force write_lac",
    ("reader", "streams:app/x"): "read list",
    ("writer", "streams:app/x"): "add force write_lac",
    ("recoverer", "streams:app/x"): "recovery_add fence read list force",
    **{("bookie", owner): REPAIR for owner in OWNERS},
    **{(who, "streams:lobby"): "add force write_lac" for who in ("a", "b", "reader", "writer", "recoverer", "admin")},
    ("bookie", "streams:lobby"): REPAIR + " add force write_lac",
}
PRINCIPALS: Final = ("a", "b", "reader", "writer", "recoverer", "bookie", "admin")


def requests(ledger: LedgerId) -> dict[str, list[wire.Request]]:
    """What each operation is on the wire."""
    return {
        "add": [add(ledger), add(ledger, 1, priority=1), add(ledger, 2, deferred_sync=True)],
        "recovery_add": [add(ledger, recovery=True)],
        "fence": [fence(ledger), wire.BatchRead(ledger, EntryId(0), 7, 1, 1000, KEY, fence=True)],
        "read": [
            wire.ReadEntry(ledger, EntryId(0)),
            wire.ReadEntry(ledger, EntryId(-1), previous_lac=-1, timeout_ms=1),
            wire.ReadLac(ledger),
            wire.BatchRead(ledger, EntryId(0), 7, 1, 1000),
        ],
        "list": [wire.ListEntries(ledger)],
        "force": [wire.ForceLedger(ledger)],
        "write_lac": [write_lac(ledger)],
    }


def of_dialect(request: wire.Request, dialect: Dialect) -> bool:
    """Whether a dialect has such a request."""
    try:
        wire.encode_request(request, dialect, 1)
    except ValueError:
        return False
    return True


def same_shape(one: wire.Reply, other: wire.Reply) -> bool:
    """Whether two replies differ in nothing but what their requests named."""
    named = ("ledger_id", "request_id")
    fields = [{at: getattr(each, at) for at in each.__slots__ if at not in named} for each in (one, other)]
    return type(one) is type(other) and fields[0] == fields[1]


@pytest.mark.rule("X12", "X12b", "X13", "X14", "X22")
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("who", PRINCIPALS)
def test_the_matrix(who: str, dialect: Dialect) -> None:
    """Each operation on each owner's ledgers: allowed as the table says; what is refused makes nothing, fences nothing,
    and is refused like that of a ledger that does not exist."""

    async def cell(clients: Clients, cluster: Cluster, metadata: Metadata, owner: str | None, operation: str) -> None:
        assert cluster.server is not None
        engine = cluster.server.engine
        nowhere = LedgerId(1_000_000)
        for at in range(len(requests(nowhere)[operation])):
            ledger = await create(metadata, owner)
            request = requests(ledger)[operation][at]
            if not of_dialect(request, dialect):
                continue
            reply = await clients.ask(who, request, dialect)
            allowed = operation in ALLOWED.get((who, owner), "").split()
            claims = owner is None and operation in ("add", "fence")  # it names no owner: the first one becomes it
            assert (reply.status is not Status.UNAUTHORIZED) == (allowed or claims), (owner, operation, reply)
            if not allowed and not claims:
                assert engine.is_strange(ledger) and control_of(cluster)._owners.get(ledger) is None
                gone = await clients.ask(who, requests(nowhere)[operation][at], dialect)
                assert (who == "bookie") or same_shape(reply, gone), (owner, operation)

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, TENANTS)
        async with clients_of(cluster) as clients:
            for owner in OWNERS:
                for operation in requests(LedgerId(0)):
                    await cell(clients, cluster, metadata, owner, operation)

    run_named(main)


async def statuses(clients: Clients, who: str, *wanted: wire.Request) -> list[Status]:
    return [(await clients.ask(who, request)).status for request in wanted]


@pytest.mark.rule("X12")
def test_the_first_writer_owns_a_ledger_that_names_nobody() -> None:
    """All bookies see the same owner, since the claim is in the metadata; a wrong key claims nothing, nor does a read,
    nor what is here from before."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy("bookie repair cluster"))
        async with clients_of(cluster) as clients:
            one = await create(metadata)
            assert await statuses(clients, "b", add(one, key=OTHER)) == [Status.UNAUTHORIZED]
            assert await statuses(clients, "b", wire.ReadEntry(one, EntryId(0))) == [Status.UNAUTHORIZED]
            assert await statuses(clients, "a", add(one)) == [Status.OK]
            assert await metadata.ledger_owners.claimed_by(one) == Resource.parse("ledgers:a")
            assert await statuses(clients, "b", add(one, 1), fence(one), wire.ReadEntry(one, EntryId(0))) == (
                [Status.UNAUTHORIZED] * 3
            )
            assert await statuses(clients, "a", wire.ReadEntry(one, EntryId(0)), add(one, 1)) == [Status.OK] * 2

            repaired = await create(metadata)
            assert await metadata.ledger_owners.claim(repaired, Resource.parse("ledgers:a"))  # on another bookie
            assert await statuses(clients, "bookie", add(repaired, recovery=True)) == [Status.OK]
            assert await statuses(clients, "b", wire.ReadEntry(repaired, EntryId(0))) == [Status.UNAUTHORIZED]
            assert await statuses(clients, "a", wire.ReadEntry(repaired, EntryId(0))) == [Status.OK]

    run_named(main)


@pytest.mark.rule("X12")
def test_a_ledger_does_not_begin_here_before_its_owner_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy("a append streams:x"))
        one = await create(metadata, "streams:x")
        assert cluster.server is not None
        engine, keep = cluster.server.engine, OwnerLog.keep
        held: list[tuple[Any, ...]] = []
        monkeypatch.setattr(OwnerLog, "keep", lambda *given: held.append(given))
        async with clients_of(cluster) as clients:
            asked = asyncio.ensure_future(statuses(clients, "a", add(one)))
            await asyncio.sleep(2)
            assert len(held) == 1 and not asked.done() and engine.is_strange(one)
            keep(*held[0])
            assert await asked == [Status.OK]
            assert not engine.is_strange(one)

    run_named(main)


@pytest.mark.rule("X12")
def test_nobody_claims_a_ledger_whose_key_nobody_can_check() -> None:
    """Cause: where the metadata tell no password any key was its key, and whoever came first shut out its writer."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        async with clients_of(cluster) as clients:
            told_nowhere = replace(named(BOOKIE), password=None, digest_type=None, format_version=1)
            ledger = (await metadata.ledgers.create(told_nowhere))[0]
            for key in (KEY, OTHER):
                assert await statuses(clients, "b", add(ledger, key=key), fence(ledger, key)) == (
                    [Status.UNAUTHORIZED] * 2
                )
            assert await metadata.ledger_owners.claimed_by(ledger) is None
            await metadata.ledger_owners.hand_over([ledger], Resource.parse("ledgers:a"))
            await control_of(cluster).read_handed_over()
            assert await statuses(clients, "a", add(ledger)) == [Status.OK]

    run_named(main)


@pytest.mark.rule("X12")
def test_what_was_here_before_anybody_was_asked_is_nobodys() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        async with clients_of(cluster) as clients:
            marked, unmarked = await create(metadata, "ledgers:a"), await create(metadata)
            assert await statuses(clients, "b", add(marked), add(unmarked)) == [Status.OK] * 2
            assert cluster.server is not None
            assert len(cluster.server.parts.owners) == 0, "nothing is kept while nobody is asked"
            assert not cluster.node.disk.exists("/data/owners")
            await apply(cluster, metadata, policy("old read,append,recover ledgers:/"))
            refused = [Status.UNAUTHORIZED] * 2
            assert await statuses(clients, "b", add(marked, 1), add(unmarked, 1)) == refused
            assert await statuses(clients, "b", wire.ReadEntry(unmarked, EntryId(0)), fence(unmarked)) == refused
            assert await statuses(clients, "a", add(marked, 1)) == [Status.OK]
            lookups = control_of(cluster)._lookups.value
            assert await statuses(clients, "old", *[wire.ReadEntry(unmarked, EntryId(0))] * 3) == [Status.OK] * 3
            assert control_of(cluster)._lookups.value == lookups, "what has no owner is not looked up for each entry"

    run_named(main)


@pytest.mark.rule("X12b")
def test_an_owner_stays_through_restarts_and_whatever_becomes_of_the_metadata() -> None:
    """It is durable before the first add is answered; only a hand-over changes it."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        async with clients_of(cluster) as clients:
            ledger = await create(metadata, "ledgers:a")
            assert await statuses(clients, "a", add(ledger)) == [Status.OK]
        cluster.node.crash(power=True)
        await cluster.again()
        found = await metadata.ledgers.read(ledger)
        stolen = replace(found.value, custom={"bookkeeper.owner": b"ledgers:b"})
        await metadata.ledgers.write(ledger, stolen, found.version)
        async with clients_of(cluster) as clients:
            assert await statuses(clients, "b", wire.ReadEntry(ledger, EntryId(0)), fence(ledger)) == (
                [Status.UNAUTHORIZED] * 2
            )
            assert await statuses(clients, "a", wire.ReadEntry(ledger, EntryId(0))) == [Status.OK]
            await metadata.ledger_owners.hand_over([ledger], Resource.parse("ledgers:b"))
            await control_of(cluster).read_handed_over()
            assert await statuses(clients, "a", wire.ReadEntry(ledger, EntryId(0))) == [Status.UNAUTHORIZED]
            assert await statuses(clients, "b", wire.ReadEntry(ledger, EntryId(0))) == [Status.OK]
        cluster.node.crash(power=True)
        await cluster.again()
        async with clients_of(cluster) as clients:
            assert await statuses(clients, "a", wire.ReadEntry(ledger, EntryId(0))) == [Status.UNAUTHORIZED]
            assert await statuses(clients, "b", wire.ReadEntry(ledger, EntryId(0))) == [Status.OK]

    run_named(main)


@pytest.mark.rule("X12b")
def test_a_ledger_without_an_owner_that_is_handed_over_has_one_though_it_was_asked_for_before() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        async with clients_of(cluster) as clients:
            ledger = await create(metadata)
            assert await statuses(clients, "a", add(ledger)) == [Status.OK]
            await apply(cluster, metadata, policy())
            read = wire.ReadEntry(ledger, EntryId(0))
            assert await statuses(clients, "a", read, read) == [Status.UNAUTHORIZED] * 2, "it is nobody's"
            await metadata.ledger_owners.hand_over([ledger], Resource.parse("ledgers:a"))
            await control_of(cluster).read_handed_over()
            assert await statuses(clients, "a", read, add(ledger, 1)) == [Status.OK] * 2
            assert await statuses(clients, "b", read) == [Status.UNAUTHORIZED]

    run_named(main)


@pytest.mark.rule("X12b")
def test_a_hand_over_counts_for_a_request_that_waits_for_the_former_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever was found before does not become the owner after it, neither by a claim nor by the ledger's metadata."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        assert cluster.server is not None
        owners = cluster.server._metadata.ledger_owners
        claimed_by, keep, asked, go = (
            owners.claimed_by,
            cluster.server.parts.owners.keep,
            asyncio.Event(),
            asyncio.Event(),
        )

        async def late(ledger_id: LedgerId) -> Resource | None:
            found = await claimed_by(ledger_id)
            asked.set()
            await go.wait()
            return found

        def held_up(ledger_id: LedgerId, owner: Resource, done: Any) -> None:
            if asked.is_set():
                return keep(ledger_id, owner, done)
            asked.set()
            task = asyncio.ensure_future(go.wait())
            return task.add_done_callback(lambda _: keep(ledger_id, owner, done))

        monkeypatch.setattr(owners, "claimed_by", late)
        monkeypatch.setattr(cluster.server.parts.owners, "keep", held_up)
        async with clients_of(cluster) as clients:
            for owner in (None, "ledgers:a"):
                asked.clear()
                go.clear()
                ledger = await create(metadata, owner)
                waits = asyncio.ensure_future(clients.ask("a", add(ledger)))
                await asked.wait()
                await metadata.ledger_owners.hand_over([ledger], Resource.parse("ledgers:b"))
                await control_of(cluster).read_handed_over()
                go.set()
                await waits
                read = wire.ReadEntry(ledger, EntryId(0))
                assert await statuses(clients, "a", read, add(ledger, 1)) == [Status.UNAUTHORIZED] * 2
                assert await statuses(clients, "b", add(ledger, 1)) == [Status.OK]

    run_named(main)


@pytest.mark.rule("X12b")
def test_the_claim_of_a_ledger_that_can_be_brought_back_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause: a bookie that holds nothing of it any more took its claim for that of a ledger that is gone for good."""
    monkeypatch.setattr("bookkeeper.bookie.ownership.owner_log.FORGET_MIN", 1)

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy("bookie repair cluster"))
        control, wanted = control_of(cluster), Resource.parse("ledgers:a")
        deleted, gone = [await create(metadata) for _ in range(2)]
        for each in (deleted, gone):
            assert await metadata.ledger_owners.claim(each, wanted) == wanted
            await cluster.node.run(control._keep(each, wanted))
        await metadata.ledgers.delete(deleted, grace_s=3600)
        await metadata.ledgers.delete(gone)
        for _ in range(2):
            await control._forget_deleted()
        assert len(control._owners) == 0
        assert await metadata.ledger_owners.claimed_by(gone) is None
        assert await metadata.ledger_owners.claimed_by(deleted) == wanted

    run_named(main)


@pytest.mark.rule("X12b")
def test_a_hand_over_that_could_not_be_kept_is_kept_with_the_next_reading() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        async with clients_of(cluster) as clients:
            ledger = await create(metadata, "ledgers:a")
            assert await statuses(clients, "a", add(ledger)) == [Status.OK]
            await metadata.ledger_owners.hand_over([ledger], Resource.parse("ledgers:b"))
            read = wire.ReadEntry(ledger, EntryId(0))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(cluster.node.disk, "capacity", cluster.node.disk.used())
                with pytest.raises(OSError, match="No space left"):
                    await control_of(cluster).read_handed_over()
                assert await statuses(clients, "a", read) == [Status.UNAUTHORIZED], "it counts all the same"
                assert await statuses(clients, "b", read) == [Status.OK]
            await control_of(cluster).read_handed_over()
            assert cluster.server is not None
            assert cluster.server.parts.owners.get(ledger) == Resource.parse("ledgers:b")

    run_named(main)


@pytest.mark.rule("X12")
def test_what_would_be_refused_is_told_and_done_while_the_mode_is_observe() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy(mode=Mode.OBSERVE))
        assert cluster.server is not None
        async with clients_of(cluster) as clients:
            ledger = await create(metadata, "ledgers:a")
            wanted = add(ledger), wire.ReadEntry(ledger, EntryId(0)), add(ledger, 1), wire.ListEntries(ledger)
            assert await statuses(clients, "b", *wanted) == [Status.OK] * 4
            denials = {(each.what, each.count) for each in cluster.server.parts.policy.observations}
            assert denials == {("add", 2), ("read", 1), ("list", 1)}
            await apply(cluster, metadata, policy())
            assert await statuses(clients, "b", *wanted) == [Status.UNAUTHORIZED] * 4

    run_named(main)


@pytest.mark.rule("X15a")
def test_a_right_that_is_taken_away_is_gone_with_the_next_request() -> None:
    """A long poll under way ends, on connections that were open before."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy("reader read streams:app", "writer append streams:app"))
        async with clients_of(cluster) as clients:
            ledger = await create(metadata, "streams:app/x")
            assert await statuses(clients, "writer", add(ledger)) == [Status.OK]
            poll = wire.ReadEntry(ledger, EntryId(-1), previous_lac=5, timeout_ms=3_600_000)
            waits = asyncio.ensure_future(clients.ask("reader", poll))
            assert cluster.server is not None and cluster.server.port.connections is not None
            bookie = cluster.server.port.connections.bookie
            while not bookie.long_polls:  # noqa: ASYNC110 - virtual time, and nobody tells
                await asyncio.sleep(0.001)
            begun = cluster.world.loop.time()
            await put_policy(metadata, policy("writer append streams:other"))
            assert (await waits).status is Status.UNAUTHORIZED
            assert cluster.world.loop.time() - begun <= 5
            assert await statuses(clients, "reader", wire.ReadEntry(ledger, EntryId(0))) == [Status.UNAUTHORIZED]
            assert await statuses(clients, "writer", add(ledger, 1)) == [Status.UNAUTHORIZED]
            assert bookie.long_polls == 0

    run_named(main)


@pytest.mark.rule("X22")
def test_which_ledgers_there_are_is_asked_of_the_cluster() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy("bookie repair cluster"))
        async with clients_of(cluster) as clients:
            every = wire.ListEntries(wire.ledgers_held())
            assert await statuses(clients, "a", every, wire.GetBookieInfo()) == [Status.UNAUTHORIZED, Status.OK]
            assert await statuses(clients, "bookie", every) == [Status.OK]

    run_named(main)


def test_without_the_metadata_only_known_owners_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        assert cluster.server is not None
        async with clients_of(cluster) as clients:
            known, new = await create(metadata, "ledgers:a"), await create(metadata, "ledgers:a")
            assert await statuses(clients, "a", add(known)) == [Status.OK]

            async def away(ledger_id: LedgerId, *, fresh: bool = False) -> Any:
                raise MetadataUnavailableError("the store is away")

            monkeypatch.setattr(cluster.server._metadata.ledgers, "read", away)
            assert await statuses(clients, "a", add(known, 1), fence(known)) == [Status.OK, Status.OK]
            assert await statuses(clients, "a", add(new)) == [Status.IO_ERROR]
            assert await statuses(clients, "b", add(known, 2), add(new)) == [Status.UNAUTHORIZED, Status.IO_ERROR]

    run_named(main)


def test_requests_of_a_ledger_wait_for_its_owner_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adds, and a fence between them: what came after the fence is refused as fenced, whatever waited."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        assert cluster.server is not None
        ledgers = cluster.server._metadata.ledgers
        read, go = ledgers.read, asyncio.Event()

        async def late(ledger_id: LedgerId, *, fresh: bool = False) -> Any:
            await go.wait()
            return await read(ledger_id, fresh=fresh)

        monkeypatch.setattr(ledgers, "read", late)
        async with clients_of(cluster) as clients:
            ledger = await create(metadata, "ledgers:a")
            await clients.connection("a")
            asked: list[wire.Request] = [add(ledger), add(ledger, 1), fence(ledger), add(ledger, 2)]
            waiting = [asyncio.ensure_future(clients.ask("a", each)) for each in asked]
            while not control_of(cluster)._waiting:  # noqa: ASYNC110 - virtual time, and nobody tells
                await asyncio.sleep(0.001)
            go.set()
            found = [(await each).status for each in waiting]
            assert found == [Status.OK, Status.OK, Status.OK, Status.FENCED]

    run_named(main)


def test_a_flood_of_unknown_ledgers_waits_in_a_queue_with_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        control = control_of(cluster)
        assert cluster.server is not None
        go = asyncio.Event()

        async def late(ledger_id: LedgerId, *, fresh: bool = False) -> Any:
            await go.wait()
            raise NoSuchLedgerError("there is none")

        monkeypatch.setattr(cluster.server._metadata.ledgers, "read", late)
        monkeypatch.setattr("bookkeeper.bookie.ownership.ledger_permissions.WAITING_MAX", 10)
        monkeypatch.setattr("bookkeeper.bookie.ownership.ledger_permissions.SHARE", 1)
        async with clients_of(cluster) as clients:
            await clients.connection("b")
            wanted = [wire.ReadEntry(LedgerId(1000 + at), EntryId(0)) for at in range(12)]
            asked = [asyncio.ensure_future(clients.ask("b", each)) for each in wanted]
            while len(control._waiting) < 10:  # noqa: ASYNC110 - virtual time, and nobody tells
                await asyncio.sleep(0.001)
            beyond = [(await each).status for each in asked[10:]]
            go.set()
            assert beyond == [Status.TOO_MANY_REQUESTS] * 2
            assert [(await each).status for each in asked[:10]] == [Status.UNAUTHORIZED] * 10
            assert not control._waiting

    run_named(main)


def test_a_flood_of_one_principal_keeps_no_other_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A principal has a share of the ledgers that wait, whatever he asks for."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        assert cluster.server is not None
        ledgers = cluster.server._metadata.ledgers
        read, go = ledgers.read, asyncio.Event()
        monkeypatch.setattr("bookkeeper.bookie.ownership.ledger_permissions.WAITING_MAX", 16)

        async def late(ledger_id: LedgerId, *, fresh: bool = False) -> Any:
            if ledger_id >= 1_000_000:
                await go.wait()
            return await read(ledger_id, fresh=fresh)

        monkeypatch.setattr(ledgers, "read", late)
        async with clients_of(cluster) as clients:
            mine = await create(metadata, "ledgers:a")
            await clients.connection("b")
            wanted = [wire.ReadEntry(LedgerId(1_000_000 + at), EntryId(0)) for at in range(20)]
            asked = [asyncio.ensure_future(clients.ask("b", each)) for each in wanted]
            while not any(each.done() for each in asked):  # noqa: ASYNC110 - virtual time, and nobody tells
                await asyncio.sleep(0.001)
            assert await statuses(clients, "a", add(mine)) == [Status.OK]
            go.set()
            found = [(await each).status for each in asked]
            assert found == [Status.UNAUTHORIZED] * 4 + [Status.TOO_MANY_REQUESTS] * 16
            assert await statuses(clients, "b", wanted[-1]) == [Status.UNAUTHORIZED], "what waited counts no more"

    run_named(main)


def test_the_operations_of_the_table_are_all_there_are() -> None:
    assert {each.name.lower() for each in LedgerOperation} - {"priority"} == set(requests(LedgerId(0)))
    assert WAITING_MAX > 1000 and Policy().mode is Mode.OFF


def test_a_request_that_fails_keeps_nobody_waiting(caplog: pytest.LogCaptureFixture) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        ledger = await create(metadata, "ledgers:a")
        told: list[Status] = []
        who = Principal(PrincipalKind.PROVIDER, "a")

        def broken(status: Status) -> None:
            raise ZeroDivisionError("a bug")

        for then in (broken, told.append):
            wanted = AccessRequest(who, LedgerOperation.ADD, KEY, then, denied=lambda: None)
            await cluster.node.run(asked(control_of(cluster), ledger, wanted))
        while control_of(cluster)._waiting:  # noqa: ASYNC110 - virtual time, and nobody tells
            await asyncio.sleep(0.001)
        assert told == [Status.OK] and "unexpected error" in caplog.text

    async def asked(control: LedgerPermissions, ledger: LedgerId, wanted: AccessRequest) -> None:
        control.resolve(ledger, wanted)

    run_named(main)


def test_nothing_overtakes_what_waits_for_a_ledger() -> None:
    """Also not when its owner is durable already, and those who waited for that are not told yet."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        control, who = control_of(cluster), Principal(PrincipalKind.PROVIDER, "a")
        async with clients_of(cluster) as clients:
            ledger = await create(metadata, "ledgers:a")
            assert await statuses(clients, "a", add(ledger)) == [Status.OK]
        assert control.allowed(who, ledger)
        control._waiting[ledger] = deque()
        assert control.allowed(who, ledger) is None
        del control._waiting[ledger]

    run_named(main)


@pytest.mark.rule("X12b")
def test_what_was_handed_over_while_the_bookie_was_away_counts_from_its_first_request_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def never(self: LedgerPermissions) -> None:
        await asyncio.Event().wait()

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await apply(cluster, metadata, policy())
        async with clients_of(cluster) as clients:
            ledger = await create(metadata, "ledgers:a")
            assert await statuses(clients, "a", add(ledger)) == [Status.OK]
        monkeypatch.setattr(LedgerPermissions, "run", never)
        cluster.node.crash(power=True)
        await metadata.ledger_owners.hand_over([ledger], Resource.parse("ledgers:b"))
        await cluster.again()
        async with clients_of(cluster) as clients:
            assert await statuses(clients, "a", wire.ReadEntry(ledger, EntryId(0))) == [Status.UNAUTHORIZED]
            assert await statuses(clients, "b", wire.ReadEntry(ledger, EntryId(0))) == [Status.OK]

    run_named(main)
