"""A ledger begins to exist on a bookie only with the key that its metadata tell, where clients are told apart."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper import codec, wire
from bookkeeper.auth.provider import ServerProvider
from bookkeeper.bookie.bookie import Bookie
from bookkeeper.bookie.identity.ledger_keys import ANSWER_S, READS, LedgerKeys
from bookkeeper.errors import MetadataUnavailableError, NoSuchLedgerError
from bookkeeper.ids import Address, EntryId, LedgerId
from bookkeeper.ledger import master_key
from bookkeeper.meta import Metadata
from bookkeeper.metrics import Metrics
from bookkeeper.net.connection import AddRun, connect_bookie
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster, run
from tests.bookkeeper.bookie.identity.test_limbo_ledgers import OTHERS, named

KEY, OTHER = master_key(b""), master_key(b"another password")


def add(ledger: int, entry_id: int = 0, key: bytes = KEY, **more: Any) -> wire.AddEntry:
    data = codec.encode_adds(2, ledger, entry_id, [b"p"], -1, 0, KEY, 3)[0][28:]
    return wire.AddEntry(LedgerId(ledger), EntryId(entry_id), key, data, **more)


def fence(ledger: int, key: bytes = KEY) -> wire.ReadEntry:
    return wire.ReadEntry(LedgerId(ledger), EntryId(-1), key, fence=True)


def write_lac(ledger: int, key: bytes = KEY) -> wire.WriteLac:
    body = ledger.to_bytes(8, "big") + (4).to_bytes(8, "big") + b"sum!"
    return wire.WriteLac(LedgerId(ledger), 4, key, body)


def each_kind(ledger: int, key: bytes) -> list[wire.Request]:
    return [
        add(ledger, key=key),
        add(ledger, key=key, priority=1),
        add(ledger, key=key, deferred_sync=True),
        add(ledger, key=key, recovery=True),
        fence(ledger, key),
        write_lac(ledger, key),
    ]


def bookie_of(cluster: Cluster) -> Bookie:
    assert cluster.server is not None and cluster.server.port.connections is not None
    return cluster.server.port.connections.bookie


async def up(cluster: Cluster) -> Metadata:
    """A bookie that is as one with TLS or authentication, and lets everybody in all the same."""
    metadata = await cluster.up()
    assert cluster.server is not None
    bookie = bookie_of(cluster)
    bookie.ledger_keys = LedgerKeys(cluster.server.engine, cluster.server._metadata, BOOKIE, Metrics())
    return metadata


async def status(cluster: Cluster, request: wire.Request) -> Status:
    reply: wire.Reply = await cluster.ask(request)
    return reply.status


class Reads:
    """Stands before a bookie's reads of ledger metadata."""

    def __init__(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        assert cluster.server is not None
        ledgers = cluster.server._metadata.ledgers
        self.asked: list[tuple[LedgerId, bool]] = []
        """Ledger, and whether a sync went ahead."""
        self.behind: dict[LedgerId, Any] = {}
        """What is seen without a sync; None: no such ledger."""
        self.go = asyncio.Event()
        self.go.set()
        self.error: Exception | None = None
        read = ledgers.read

        async def seen(ledger_id: LedgerId, *, fresh: bool = False) -> Any:
            self.asked.append((ledger_id, fresh))
            await self.go.wait()
            if self.error is not None:
                raise self.error
            if not fresh and ledger_id in self.behind:
                if self.behind[ledger_id] is None:
                    raise NoSuchLedgerError(f"there is no ledger {ledger_id}")
                return self.behind[ledger_id]
            return await read(ledger_id, fresh=fresh)

        monkeypatch.setattr(ledgers, "read", seen)


@pytest.mark.rule("X21a", "X21")
def test_nobody_owns_a_ledger_by_naming_it_first() -> None:
    """The first request that named a ledger gave it its key, or fenced it: whoever named the next million ids had
    them all, and their writers were refused everywhere."""

    async def main(cluster: Cluster) -> None:
        metadata = await up(cluster)
        engine = bookie_of(cluster).engine
        nowhere = 1_000_000
        expected = [Status.FENCED] * 4 + [Status.UNKNOWN_STATE, Status.NO_LEDGER]
        assert [await status(cluster, request) for request in each_kind(nowhere, KEY)] == expected
        for _ in range(6):
            ledger, _ = await metadata.ledgers.create(named(BOOKIE))
            refused = [await status(cluster, request) for request in each_kind(ledger, OTHER)]
            assert refused == [Status.UNAUTHORIZED] * 6
            assert list(engine.ledgers()) == [] and engine.journal_bytes_in_flight == 0
        assert await status(cluster, wire.ReadEntry(LedgerId(nowhere), EntryId(0))) is Status.NO_LEDGER
        assert await status(cluster, wire.ForceLedger(LedgerId(nowhere))) is Status.OK, "they make nothing"

    run(main)


@pytest.mark.rule("X21a")
@pytest.mark.parametrize("kind", range(6))
def test_the_owner_is_asked_for_once_and_then_never_again(kind: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await up(cluster)
        reads = Reads(cluster, monkeypatch)
        ledger, _ = await metadata.ledgers.create(named(*OTHERS))
        first = each_kind(ledger, KEY)[kind]
        assert await status(cluster, first) in (Status.OK, Status.NO_ENTRY), "nobody has to be named: a recovery is not"
        assert reads.asked == [(ledger, False)], "what lets pass needs no sync"
        assert await status(cluster, add(ledger, 1, OTHER, recovery=True)) is Status.UNAUTHORIZED
        for request in each_kind(ledger, KEY):
            await status(cluster, request)
        assert len(reads.asked) == 1
        cluster.node.crash()
        await cluster.again()
        bookie = bookie_of(cluster)
        assert not bookie.engine.is_strange(ledger), "also after a start"

    run(main)


@pytest.mark.rule("X21a", "Z6")
def test_a_follower_that_lags_behind_refuses_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """It shows no node of a ledger that was made a moment ago, or the node of one that was deleted and made anew."""

    async def main(cluster: Cluster) -> None:
        metadata = await up(cluster)
        reads = Reads(cluster, monkeypatch)
        fresh, _ = await metadata.ledgers.create(named(BOOKIE))
        anew, stored = await metadata.ledgers.create(named(BOOKIE))
        reads.behind = {fresh: None, anew: replace(stored, value=replace(stored.value, password=b"before"))}
        assert [await status(cluster, add(ledger)) for ledger in (fresh, anew)] == [Status.OK] * 2
        assert reads.asked == [(fresh, False), (fresh, True), (anew, False), (anew, True)]

    run(main)


@pytest.mark.rule("X21a")
def test_metadata_without_a_password_leave_nothing_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await up(cluster)
        reads = Reads(cluster, monkeypatch)
        ledger, stored = await metadata.ledgers.create(named(BOOKIE))
        reads.behind = {ledger: replace(stored, value=replace(stored.value, password=None, digest_type=None))}
        assert await status(cluster, add(ledger, key=OTHER)) is Status.OK
        assert await status(cluster, add(ledger, 1, key=KEY)) is Status.UNAUTHORIZED, "the first key counts"

    run(main)


@pytest.mark.rule("X21a", "B1")
def test_adds_that_wait_stay_in_order_and_a_fence_behind_them() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await up(cluster)
        bookie = bookie_of(cluster)
        with pytest.MonkeyPatch.context() as patch:
            reads = Reads(cluster, patch)
            reads.go.clear()
            ledger, _ = await metadata.ledgers.create(named(BOOKIE))
            client = cluster.world.node("client")
            connection = await client.run(connect_bookie(client.seams.net, Address("b", 3181), timeout_s=5))
            got: list[AddRun] = []
            answers: list[Any] = []
            stream = connection.open_stream(1, ledger, got.extend, lambda error: None)
            plain = codec.encode_adds(3, ledger, 0, [b"p"] * 3, -1, 0, KEY, 3, b"", stream.txn_base)[0]
            foreign = codec.encode_adds(3, ledger, 3, [b"p"], -1, 0, OTHER, 3, b"", stream.txn_base)[0]
            stream.send(plain + foreign)
            connection.request_nowait(fence(ledger), 100, answers.append)
            late = codec.encode_adds(3, ledger, 3, [b"p"], -1, 0, KEY, 3, b"", stream.txn_base)[0]
            await asyncio.sleep(1)
            stream.send(late)
            await asyncio.sleep(1)
            assert (got, answers) == ([], []) and len(reads.asked) == 1, "one read for all of them"
            reads.go.set()
            await asyncio.sleep(1)
        assert sorted(got) == [(0, 3, Status.OK), (3, 1, Status.UNAUTHORIZED), (3, 1, Status.FENCED)]
        assert answers[0].status is Status.OK and bookie.engine.is_fenced(ledger)
        assert cluster.server is not None and cluster.server.port.admission.in_progress == 0

    run(main)


@pytest.mark.rule("X21a", "X32")
def test_a_store_that_does_not_answer_refuses_for_now_and_reads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await up(cluster)
        reads = Reads(cluster, monkeypatch)
        known, _ = await metadata.ledgers.create(named(BOOKIE))
        assert await status(cluster, add(known)) is Status.OK
        reads.asked.clear()
        reads.go.clear()
        waiting = asyncio.ensure_future(cluster.ask_all([fence(100 + n) for n in range(READS + 8)]))
        await asyncio.sleep(ANSWER_S / 2)
        assert len(reads.asked) == READS and await status(cluster, add(known, 1)) is Status.OK, "it asks nothing (Z12)"
        assert {reply.status for reply in await waiting} == {Status.IO_ERROR}
        reads.go.set()
        reads.error = MetadataUnavailableError("away")
        assert await status(cluster, fence(100)) is Status.IO_ERROR
        reads.error = None
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        assert await status(cluster, add(ledger)) is Status.OK
        reads.go.clear()
        stopped = asyncio.ensure_future(cluster.ask(fence(7777)))
        await asyncio.sleep(0.1)
        keys = bookie_of(cluster).ledger_keys
        assert keys is not None
        keys.close()
        assert (await stopped).status is Status.IO_ERROR

    run(main)


class Nobody(ServerProvider):
    """A provider of authentication that nobody passes."""

    plugin = "nobody"

    def exchange(self, peer: Any) -> Any:
        raise NotImplementedError


def provider(options: Mapping[str, Any]) -> ServerProvider:
    return Nobody()


@pytest.mark.rule("X21a")
@pytest.mark.parametrize("several", [(), ("/d1", "/d2")])
def test_it_is_asked_where_clients_are_told_apart_with_one_disk_and_several(several: tuple[str, ...]) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        assert bookie_of(cluster).ledger_keys is None, "without TLS and authentication everybody may do everything"

    async def secured(cluster: Cluster) -> None:
        await cluster.up()
        bookie = bookie_of(cluster)
        assert bookie.ledger_keys is not None and bookie.must_verify(LedgerId(7), regular=False)
        bookie.engine.append_entry(LedgerId(7), KEY, add(7).entry)
        assert not bookie.must_verify(LedgerId(7), regular=True)
        told: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        bookie.engine.collect([LedgerId(7)], told.set_result)
        assert await told is None and not bookie.must_verify(LedgerId(7), regular=True), (
            "deleted ones are refused anyway"
        )

    run(main, ledger_dirs=several)
    run(secured, ledger_dirs=several, auth={"provider": f"{__name__}:provider"})
