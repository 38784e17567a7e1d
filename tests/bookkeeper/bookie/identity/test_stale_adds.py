"""A bookie whose disk is younger than its name: the rule that nobody writes to it by mistake."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper import codec, wire
from bookkeeper.bookie.identity.disk_identity import BIRTH
from bookkeeper.bookie.identity.stale_adds import READ_S, StaleAdds
from bookkeeper.errors import BookKeeperError, InvariantError, MetadataUnavailableError
from bookkeeper.ids import Address, EntryId, LedgerId
from bookkeeper.ledger.digest import master_key
from bookkeeper.meta import Metadata
from bookkeeper.net.connection import AddRun, BookieConnection, connect_bookie
from bookkeeper.testing.cluster import PORT, SimCluster
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster, run
from tests.bookkeeper.bookie.identity.test_limbo_ledgers import KEY, OTHERS, add, change, named, status


def stale_adds(cluster: Cluster) -> StaleAdds | None:
    assert cluster.server is not None and cluster.server.port.connections is not None
    return cluster.server.port.connections.bookie.stale_adds


def fence(ledger: LedgerId) -> wire.ReadEntry:
    return wire.ReadEntry(ledger, EntryId(0), KEY, fence=True)


async def stream(cluster: Cluster, ledger: LedgerId, got: list[AddRun]) -> tuple[BookieConnection, Any]:
    client = cluster.world.node("client")
    connection = await client.run(connect_bookie(client.seams.net, Address("b", 3181), timeout_s=5))
    return connection, connection.open_stream(1 + ledger, ledger, got.extend, lambda error: None)


def frames(ledger: LedgerId, first: int, count: int, base: int, *, deferred: bool = False) -> bytes:
    return bytes(codec.encode_adds(3, ledger, first, [b"p"] * count, -1, 0, KEY, 3, b"", base, deferred)[0])


class SlowReads:
    """Stands before a bookie's reads of ledger metadata."""

    def __init__(self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
        assert cluster.server is not None
        ledgers = cluster.server._metadata.ledgers
        self.asked: list[LedgerId] = []
        self.go = asyncio.Event()
        self.error: Exception | None = None
        read = ledgers.read

        async def slow(ledger_id: LedgerId, *, fresh: bool = False) -> Any:
            self.asked.append(ledger_id)
            assert fresh, "a stale answer would show the ledger open (Z6)"
            await self.go.wait()
            if self.error is not None:
                raise self.error
            return await read(ledger_id, fresh=fresh)

        monkeypatch.setattr(ledgers, "read", slow)


@pytest.mark.rule("W10a")
def test_a_bookie_of_a_new_cluster_is_no_newcomer() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        assert stale_adds(cluster) is None
        assert not cluster.node.disk.exists(f"/data/{BIRTH}")
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await status(cluster, add(ledger, 0))
        cluster.node.crash()
        await cluster.again()
        assert stale_adds(cluster) is None, "there are ledgers now, and they are younger than the disk"

    run(main)


@pytest.mark.rule("W10a", "B5", "B9", "M6")
def test_who_takes_disk_and_cookie_away_loses_neither_fences_nor_entries() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledgers = metadata.ledgers
        opened, closed, gone = [(await ledgers.create(named(BOOKIE)))[0] for _ in range(3)]
        elsewhere, _ = await ledgers.create(named(*OTHERS))
        for ledger in (opened, closed, gone):
            assert await status(cluster, add(ledger, 0)) is Status.OK
        assert await status(cluster, fence(closed)) is Status.OK
        await change(metadata, closed, 0)
        await ledgers.delete(gone)
        await cluster.wiped()
        for _ in range(2):  # also in its next life
            assert await metadata.bookies.writable() == [BOOKIE]
            for ledger in (closed, gone, elsewhere):
                assert await status(cluster, add(ledger, 1)) is Status.FENCED, "whoever writes here was fenced"
            assert await status(cluster, add(opened, 1)) is Status.OK, "nobody has begun to recover it"
            for ledger in (opened, closed):
                assert await status(cluster, wire.ReadEntry(ledger, EntryId(0))) is Status.UNKNOWN_STATE
                assert await status(cluster, wire.ListEntries(ledger)) is Status.UNKNOWN_STATE
            assert await status(cluster, wire.ReadEntry(elsewhere, EntryId(0))) is Status.NO_LEDGER
            new, _ = await ledgers.create(named(BOOKIE))
            assert await status(cluster, add(new, 0)) is Status.OK
            assert await status(cluster, wire.ReadEntry(new, EntryId(7))) is Status.NO_ENTRY
            cluster.node.crash(power=True)
            await cluster.again()
        assert cluster.server is not None and cluster.server.health()["ledgers_in_doubt"] == 2
        cluster.server.refresh_metrics()
        assert cluster.server.metrics.gauge("doubted_ledgers").value == 2

        for entry_id in (0, 1):  # a recovery brings them back, and closes
            assert await status(cluster, add(opened, entry_id, recovery=True)) is Status.OK
        assert await status(cluster, add(closed, 0, recovery=True)) is Status.OK
        await change(metadata, opened, 1)
        await asyncio.sleep(150)
        assert cluster.server.health()["ledgers_in_doubt"] == 0
        cluster.node.crash(power=True)
        await cluster.again()
        for ledger in (opened, closed):
            assert await status(cluster, wire.ReadEntry(ledger, EntryId(7))) is Status.NO_ENTRY, "whole again, for good"
            assert await status(cluster, add(ledger, 9)) is Status.FENCED, "closed it is for ever"

    run(main)


@pytest.mark.rule("W10a")
def test_the_greatest_id_that_may_be_older_than_the_disk_is_looked_up() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        await metadata.ledgers.create(named(BOOKIE))
        await cluster.wiped()
        stale = stale_adds(cluster)
        assert stale is not None
        assert stale.must_verify(stale.highest) and not stale.must_verify(LedgerId(stale.highest + 1))

    run(main)


@pytest.mark.rule("W10a")
def test_runs_wait_for_one_read_in_order_and_what_waits_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        one, two = [(await metadata.ledgers.create(named(BOOKIE)))[0] for _ in range(2)]
        await cluster.wiped()
        reads = SlowReads(cluster, monkeypatch)
        new, _ = await metadata.ledgers.create(named(BOOKIE))
        got: dict[LedgerId, list[AddRun]] = {one: [], two: [], new: []}
        connection, first = await stream(cluster, one, got[one])
        streams = {one: first}
        for ledger in (two, new):
            streams[ledger] = connection.open_stream(1 + ledger, ledger, got[ledger].extend, lambda error: None)
        for at in range(0, 20, 5):
            connection.write(b"".join(frames(key, at, 5, each.txn_base) for key, each in streams.items()))
            await asyncio.sleep(0.1)
        single: list[Any] = []
        connection.request_nowait(add(one, 20), 100, single.append)
        await asyncio.sleep(1)
        assert cluster.server is not None
        assert sorted(reads.asked) == [one, two], "one read for each ledger, none for a younger one"
        assert (got[one], got[two], single) == ([], [], [])
        assert sum(count for _, count, _ in got[new]) == 20, "nobody else waits"
        charged = cluster.server.port.admission.in_progress
        assert charged > 40 * 42
        reads.go.set()
        await asyncio.sleep(1)
        for ledger in (one, two):
            ids = [entry for first, count, _ in got[ledger] for entry in range(first, first + count)]
            assert (ids, {status for _, _, status in got[ledger]}) == (list(range(20)), {Status.OK}), "in their order"
        assert [reply.status for reply in single] == [Status.OK]
        assert cluster.server.port.admission.in_progress == 0
        streams[one].send(frames(one, 21, 5, streams[one].txn_base))
        await asyncio.sleep(1)
        assert got[one][-1] == (21, 5, Status.OK) and len(reads.asked) == 2, "it was asked about once"
        assert await status(cluster, wire.ReadEntry(one, EntryId(25))) is Status.OK

    run(main)


@pytest.mark.rule("W10a", "W11")
def test_deferred_runs_wait_for_metadata_too_and_then_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await cluster.wiped()
        reads = SlowReads(cluster, monkeypatch)
        got: list[AddRun] = []
        _, each = await stream(cluster, ledger, got)
        each.send(frames(ledger, 0, 3, each.txn_base) + frames(ledger, 3, 3, each.txn_base, deferred=True))
        await asyncio.sleep(1)
        assert got == []
        reads.go.set()
        await asyncio.sleep(1)
        assert got == [(3, 3, Status.OK), (0, 3, Status.OK)], "the plain ones wait for the disk besides"

    run(main)


@pytest.mark.rule("W10a", "Q2")
@pytest.mark.parametrize("error", [MetadataUnavailableError("away"), None])
def test_without_metadata_the_answer_is_unknown_never_yes(
    monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await cluster.wiped()
        reads = SlowReads(cluster, monkeypatch)
        if error is not None:
            reads.error = error
            reads.go.set()
        got: list[AddRun] = []
        _, each = await stream(cluster, ledger, got)
        each.send(frames(ledger, 0, 3, each.txn_base))
        await asyncio.sleep(READ_S + 1)
        assert got == [(0, 3, Status.IO_ERROR)]
        assert await status(cluster, add(ledger, 0, recovery=True)) is Status.OK, "recovery does not ask"
        reads.error = None
        reads.go.set()
        assert await status(cluster, add(ledger, 1)) is Status.OK, "asked again"

    run(main)


@pytest.mark.rule("W10a", "B3")
def test_a_fence_that_comes_while_metadata_are_read_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await cluster.wiped()
        reads = SlowReads(cluster, monkeypatch)
        got: list[AddRun] = []
        _, each = await stream(cluster, ledger, got)
        each.send(frames(ledger, 0, 3, each.txn_base))
        await asyncio.sleep(1)
        assert await status(cluster, fence(ledger)) is Status.UNKNOWN_STATE
        reads.go.set()
        await asyncio.sleep(1)
        assert got == [(0, 3, Status.FENCED)]

    run(main)


@pytest.mark.rule("W10a", "B13")
def test_whoever_waits_when_the_bookie_stops_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main(cluster: Cluster) -> None:
        metadata: Metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await cluster.wiped()
        SlowReads(cluster, monkeypatch)
        got: list[AddRun] = []
        _, each = await stream(cluster, ledger, got)
        each.send(frames(ledger, 0, 3, each.txn_base))
        await asyncio.sleep(0.1)
        assert cluster.server is not None
        await cluster.node.run(cluster.server.stop())
        await asyncio.sleep(1)
        assert got == [(0, 3, Status.IO_ERROR)]

    run(main)


# -- what it is for ------------------------------------------------------------------------------------------


async def reborn(cluster: SimCluster, name: str) -> None:
    """An operator empties a bookie's disk, deletes its cookie, and starts it again."""
    cluster.node(name).crash(power=True)
    cluster.lose_disk(name)
    await cluster.forget_cookie(name)
    cluster.node(name).restart()
    await cluster.wait_until_up(name)


async def adds_to(cluster: SimCluster, name: str, request: wire.AddEntry) -> Status:
    address = Address(name, PORT)
    connection = await cluster.client.run(connect_bookie(cluster.client.seams.net, address, timeout_s=5))
    try:
        reply: wire.Reply = await cluster.client.run(connection.request(request, 10))
        return reply.status
    finally:
        connection.close()


@pytest.mark.parametrize("without", [False, pytest.param(True, id="without-the-rule")])
@pytest.mark.rule("W10a", "B5", "R11")
def test_an_acknowledged_entry_outlives_a_wiped_copy(monkeypatch: pytest.MonkeyPatch, without: bool) -> None:
    if without:
        monkeypatch.setattr(StaleAdds, "__init__", _trusting(StaleAdds.__init__))

    async def story(cluster: SimCluster) -> bool:
        writer = cluster.world.node("writer")
        bk = await writer.run(cluster.new_client(node=writer))
        ledger = await writer.run(bk.create_ledger())
        cluster.world.network.cut("writer", "b3")
        cluster.acked(ledger.id, await writer.run(ledger.append(b"on b1 and b2 only")), b"on b1 and b2 only")
        writer.crash(power=False)
        await reborn(cluster, "b2")
        cluster.node("b1").crash()
        try:  # b2 has forgotten the entry, and b3 never had it
            await cluster.check_acked()
        except InvariantError as error:
            assert "rule R11" in str(error)
            return False
        except BookKeeperError:
            cluster.node("b1").restart()
            await cluster.wait_until_up("b1")
            await cluster.check_acked()
        return True

    assert SimCluster(seed=5).run(story) is not without


@pytest.mark.parametrize("without", [False, pytest.param(True, id="without-the-rule")])
@pytest.mark.rule("W10a", "B3")
def test_a_fenced_writer_finds_no_quorum_at_a_wiped_bookie(monkeypatch: pytest.MonkeyPatch, without: bool) -> None:
    if without:
        monkeypatch.setattr(StaleAdds, "must_verify", lambda self, ledger_id: False)

    async def story(cluster: SimCluster) -> list[Status]:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"0")
            cluster.world.network.cut("client", "b3")  # the recovery covers the ensemble without it
            async with await bk.open_ledger(ledger.id, b"") as reader:
                assert reader.last_add_confirmed == 0
            cluster.world.network.mend()
            await reborn(cluster, "b2")
            data = ledger.id.to_bytes(8, "big") + (1).to_bytes(8, "big") + bytes(20)
            late = wire.AddEntry(ledger.id, EntryId(1), master_key(b""), data)  # from a client that does not ask again
            return [await adds_to(cluster, name, late) for name in ("b1", "b2", "b3")]

    expected = [Status.FENCED, Status.OK if without else Status.FENCED, Status.OK]
    assert SimCluster(seed=5).run(story) == expected


def _trusting(original: Any) -> Any:
    def trusting(self: StaleAdds, *args: Any) -> None:
        original(self, *args)
        self._engine.doubt(())

    return trusting


@pytest.mark.rule("B13")
def test_a_stop_sends_new_writers_elsewhere_and_waits_for_an_add_that_waits_for_metadata(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await cluster.wiped()
        server = cluster.server
        assert server is not None
        reads = SlowReads(cluster, monkeypatch)
        adding = asyncio.ensure_future(status(cluster, add(ledger, 0)))
        await asyncio.sleep(0.5)
        stopping = asyncio.ensure_future(cluster.node.run(server.stop()))
        await asyncio.sleep(1)
        assert ledger in reads.asked and not adding.done() and not stopping.done()
        assert await metadata.bookies.writable() == []
        reads.go.set()
        assert await adding is Status.OK
        await stopping

    run(main)
