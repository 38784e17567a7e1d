"""Out of limbo: ledger by ledger, and only with proof."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.bookie.identity import limbo_ledgers
from bookkeeper.bookie.identity.disk_identity import naming
from bookkeeper.bookie.identity.limbo_ledgers import LimboLedgers
from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import DigestType, LedgerMetadata, QuorumSpec
from bookkeeper.meta import Metadata
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster, run

KEY = b"k" * 20
OTHERS = (BookieId("c:1"), BookieId("d:1"), BookieId("e:1"))


def named(*ensemble: BookieId, write_quorum: int | None = None) -> LedgerMetadata:
    size = len(ensemble)
    spec = QuorumSpec(ensemble_size=size, write_quorum=write_quorum or size, ack_quorum=1)
    return LedgerMetadata.create(spec, ensemble, digest_type=DigestType.CRC32C)


def add(ledger: LedgerId, entry_id: int, *, recovery: bool = False) -> wire.AddEntry:
    data = ledger.to_bytes(8, "big") + entry_id.to_bytes(8, "big") + (-1).to_bytes(8, "big", signed=True) + bytes(9)
    return wire.AddEntry(ledger, EntryId(entry_id), KEY, data, recovery=recovery)


def in_limbo(cluster: Cluster) -> bool:
    assert cluster.server is not None
    return cluster.server.engine.in_limbo


async def loses_its_journal(cluster: Cluster) -> None:
    """A crash, after which the journal is gone, and what the entry logs had of it; the bookie is up again."""
    cluster.node.crash()
    disk = cluster.node.disk
    for directory, ending in (("/data/journal", ".journal"), ("/data/ledgers", ".log")):
        for name in [name for name in disk.list(directory) if name.endswith(ending)]:
            disk.unlink(f"{directory}/{name}")
        disk.sync_directory(directory)
    await cluster.again()
    assert in_limbo(cluster)


async def status(cluster: Cluster, request: wire.Request) -> Status:
    reply: wire.Reply = await cluster.ask(request)
    return reply.status


async def change(metadata: Metadata, ledger: LedgerId, last: int) -> None:
    """Close a ledger as a recovery does."""
    stored = await metadata.ledgers.read(ledger, fresh=True)
    begun = stored.value.begin_recovery()
    version = (await metadata.ledgers.write(ledger, begun, stored.version)).version
    await metadata.ledgers.write(ledger, begun.close_recovered(last, 9 * (last + 1), begun.fragments), version)


@pytest.mark.rule("B9", "B3", "B5", "K18")
def test_ledgers_that_were_here_stay_in_limbo_until_they_are_whole_and_new_ones_are_taken() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        here, _ = await metadata.ledgers.create(named(BOOKIE))
        striped, _ = await metadata.ledgers.create(named(BOOKIE, *OTHERS, write_quorum=2))
        elsewhere, _ = await metadata.ledgers.create(named(*OTHERS))
        for entry_id in range(3):
            assert await status(cluster, add(here, entry_id)) is Status.OK
        await loses_its_journal(cluster)
        await asyncio.sleep(1)
        server = cluster.server
        assert server is not None
        assert await metadata.bookies.writable() == [BOOKIE], "what is created now cannot have been lost"
        new, _ = await metadata.ledgers.create(named(BOOKIE))
        for ledger in (here, striped):
            assert await status(cluster, add(ledger, 0)) is Status.FENCED
            fence = wire.ReadEntry(ledger, EntryId(0), KEY, fence=True)
            assert await status(cluster, fence) is Status.UNKNOWN_STATE
        for ledger in (elsewhere, new):
            assert await status(cluster, wire.ReadEntry(ledger, EntryId(0))) is Status.NO_LEDGER
        assert await status(cluster, add(new, 0)) is Status.OK
        assert await status(cluster, add(elsewhere, 0)) is Status.FENCED, "a fence of it may be lost, too (W10a)"

        for entry_id in (0, 2):
            assert await status(cluster, add(here, entry_id, recovery=True)) is Status.OK
        await change(metadata, here, 2)
        await asyncio.sleep(150)
        assert await status(cluster, wire.ReadEntry(here, EntryId(1))) is Status.UNKNOWN_STATE, "entry 1 is not back"
        assert await status(cluster, add(here, 1, recovery=True)) is Status.OK
        await asyncio.sleep(100)
        assert await status(cluster, wire.ReadEntry(here, EntryId(7))) is Status.NO_ENTRY
        assert in_limbo(cluster) and server.health()["limbo"]

        for entry_id in (0, 3):  # its share of entries 0..3
            assert await status(cluster, add(striped, entry_id, recovery=True)) is Status.OK
        await change(metadata, striped, 3)
        await asyncio.sleep(100)
        assert not in_limbo(cluster) and server.health()["limbo"] is None
        cluster.node.crash()
        await cluster.again()
        assert not in_limbo(cluster), "it is over for good"

    run(main)


@pytest.mark.rule("B9", "B3", "Z6", "W10a")
@pytest.mark.parametrize("where", ["_concerned", "newest"])
def test_while_the_store_cannot_say_what_was_here_every_ledger_is_in_limbo(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while it cannot say which ledgers may be older: limbo is narrowed only when those are asked for (W10a)."""

    async def away(*_: object) -> set[LedgerId]:
        raise MetadataUnavailableError("away")

    monkeypatch.setattr(LimboLedgers if where.startswith("_") else limbo_ledgers, where, away)

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        await status(cluster, add(ledger, 0))
        await loses_its_journal(cluster)
        server = cluster.server
        assert server is not None
        await asyncio.sleep(100)
        assert await metadata.bookies.writable() == [], "it answers 'fenced' to every writer: new ledgers must avoid it"
        assert await metadata.bookies.read_only() == [BOOKIE]
        assert server.health()["read_only"]
        assert await status(cluster, add(LedgerId(99), 0)) is Status.FENCED
        fence = wire.ReadEntry(ledger, EntryId(0), KEY, fence=True)
        assert await status(cluster, fence) is Status.UNKNOWN_STATE

    run(main)


@pytest.mark.rule("B9", "G1", "M6")
def test_a_ledger_that_lies_here_and_is_not_listed_waits_for_the_proof_that_it_is_deleted() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        deleted, _ = await metadata.ledgers.create(named(BOOKIE))
        await status(cluster, add(deleted, 0))
        done: list[BaseException | None] = []
        assert cluster.server is not None
        cluster.server.engine.checkpoint(done.append)
        await asyncio.sleep(1)
        assert done == [None]
        await metadata.ledgers.delete(deleted)
        await loses_its_journal(cluster)
        await asyncio.sleep(100)
        server = cluster.server
        assert in_limbo(cluster)
        assert await status(cluster, add(deleted, 1)) is Status.FENCED
        await server.collect_garbage()
        await asyncio.sleep(601)
        assert await server.collect_garbage() == {deleted}
        await asyncio.sleep(100)
        assert not in_limbo(cluster)
        assert await status(cluster, add(deleted, 1)) is Status.FENCED

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("B3", "M6", "W10a")
def test_a_lost_fence_of_a_deleted_ledger_lets_nobody_in_though_no_ledger_has_a_greater_id() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        kept, _ = await metadata.ledgers.create(named(BOOKIE))
        gone, _ = await metadata.ledgers.create(named(BOOKIE))
        assert await status(cluster, add(kept, 0)) is Status.OK
        await cluster.ask(wire.ReadEntry(gone, EntryId(0), KEY, fence=True))
        await metadata.ledgers.delete(gone)
        await loses_its_journal(cluster)
        await asyncio.sleep(1)
        assert await metadata.bookies.writable() == [BOOKIE]
        assert await status(cluster, add(gone, 0)) is Status.FENCED
        new, _ = await metadata.ledgers.create(named(BOOKIE))
        assert await status(cluster, add(new, 0)) is Status.OK

    run(main, seed=1)  # the entry log, with the fence in it, is lost as well


@pytest.mark.rule("M10", "B9", "B5")
@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("looked", [False, True], ids=["while it looks", "after it looked"])
def test_an_older_state_of_the_metadata_ends_no_limbo(
    hidden: bool, looked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that was created since then looked deleted, and of a deleted one nothing is missing here: the limbo was
    over for good, and the bookie denied an acknowledged entry that it had lost. ``hidden``: transactions have come past
    what was seen, as ZooKeeper's do with a new leader."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        assert cluster.server is not None
        backup = cluster.metadata.snapshot()
        ledger, _ = await metadata.ledgers.create(named(BOOKIE))
        assert await status(cluster, add(ledger, 0)) is Status.OK
        await asyncio.sleep(70)  # it counts up what it has seen

        def goes_back() -> None:
            cluster.metadata.restore(backup)
            cluster.metadata.transaction += hidden << 32

        async def naming_then(*args: Any) -> frozenset[LedgerId]:
            goes_back()
            return await naming(*args)

        with monkeypatch.context() as patch:
            if not looked:
                patch.setattr(limbo_ledgers, "naming", naming_then)
            await loses_its_journal(cluster)
            await asyncio.sleep(1)
        if looked:
            goes_back()
        await asyncio.sleep(200)
        assert in_limbo(cluster)
        assert await status(cluster, wire.ReadEntry(ledger, EntryId(0))) is Status.UNKNOWN_STATE

    run(main, garbage_interval_s=10**6)
