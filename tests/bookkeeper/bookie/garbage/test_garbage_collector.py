"""Deleted ledgers go, after proof; nothing else does."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from bookkeeper import wire
from bookkeeper.bookie.identity.seen_metadata import SEEN_TRANSACTION
from bookkeeper.bookie.start import bookie_start
from bookkeeper.errors import MetadataRolledBackError, MetadataUnavailableError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.ledger import DigestType, Fragment, LedgerMetadata, LedgerState
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.meta import Metadata
from bookkeeper.meta.records import lineage as lineages
from bookkeeper.meta.records.lineage import COPIED, AcceptedLoss, Lineage, StoreMove
from bookkeeper.storage.engine import EngineState
from bookkeeper.testing.world import Fault
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import BOOKIE, Cluster, Follower, run

KEY = b"k" * 20


def ledger() -> LedgerMetadata:
    spec = QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1)
    return LedgerMetadata(
        spec=spec,
        state=LedgerState.OPEN,
        fragments=(Fragment(EntryId(0), (BOOKIE,)),),
        digest_type=DigestType.CRC32C,
        password=b"",
    )


@pytest.mark.rule("G1", "M6")
def test_deleted_ledgers_are_dropped_after_proof_and_stay_dead() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        kept, _ = await metadata.ledgers.create(ledger())
        gone, _ = await metadata.ledgers.create(ledger())
        others = [await metadata.ledgers.create(ledger()) for _ in range(5)]
        assert others

        def add(ledger_id: LedgerId, entry_id: int) -> wire.AddEntry:
            data = ledger_id.to_bytes(8, "big") + entry_id.to_bytes(8, "big") + bytes(16)
            return wire.AddEntry(ledger_id, EntryId(entry_id), KEY, data)

        for ledger_id in (kept, gone):
            assert (await cluster.ask(add(ledger_id, 0))).status is Status.OK
        server = cluster.server
        assert server is not None
        assert await server.collect_garbage() == set()
        await metadata.ledgers.delete(gone)
        assert await server.collect_garbage() == set(), "one pass is no proof"
        await asyncio.sleep(599)
        assert await server.collect_garbage() == set(), "nor are two in haste"
        await asyncio.sleep(1)
        assert await server.collect_garbage() == {gone}
        assert (await cluster.ask(wire.ReadEntry(kept, EntryId(0)))).status is Status.OK
        assert (await cluster.ask(wire.ReadEntry(gone, EntryId(0)))).status is Status.NO_LEDGER
        assert (await cluster.ask(add(gone, 1))).status is Status.FENCED

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("G1", "G8", "M6")
@pytest.mark.parametrize("then", ["made", "deleted again", "brought back"])
def test_a_ledger_that_is_made_under_an_id_at_the_end_of_its_proof_is_kept(
    monkeypatch: pytest.MonkeyPatch, then: str
) -> None:
    """Until the id is marked a client may choose it again: Apache's client had deleted the ledger, and left no mark. A
    pass looked, marked, and dropped the new ledger with what it had acknowledged since."""

    async def main(cluster: Cluster) -> None:
        ledgers = (metadata := await cluster.up()).ledgers
        gone, _ = await ledgers.create(ledger(), LedgerId(7))
        others = [await ledgers.create(ledger()) for _ in range(5)]
        data = gone.to_bytes(8, "big") + bytes(24)
        server = cluster.server
        assert others and server is not None
        assert (await cluster.ask(wire.AddEntry(gone, EntryId(0), KEY, data))).status is Status.OK
        await metadata.store.delete(ledgers.path(gone), None)
        assert await server.collect_garbage() == set()
        await asyncio.sleep(600)
        theirs = server.parts.garbage._metadata.ledgers
        mark, has = theirs.deleted.add, theirs.restorable.has

        async def made_at_last(ledger_id: LedgerId, path: str) -> bool:
            assert ledger_id == gone
            await ledgers.create(ledger(), gone)
            if then != "made":
                await ledgers.delete(gone, grace_s=60)
            if then == "brought back":
                monkeypatch.setattr(theirs.restorable, "has", brought_back)
            return await mark(ledger_id, path)

        async def brought_back(ledger_id: LedgerId) -> bool:
            await ledgers.restore(gone)
            return await has(ledger_id)

        monkeypatch.setattr(theirs.deleted, "add", made_at_last)
        assert await server.collect_garbage() == set()
        assert (await cluster.ask(wire.ReadEntry(gone, EntryId(0)))).status is Status.OK
        assert await ledgers.deleted.has(gone, fresh=True) is (then == "deleted again")

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("G3", "V4")
def test_the_space_of_deleted_ledgers_comes_back_beside_the_passes() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        kept, _ = await metadata.ledgers.create(ledger())
        gone, _ = await metadata.ledgers.create(ledger())
        others = [await metadata.ledgers.create(ledger()) for _ in range(5)]
        server = cluster.server
        assert others and server is not None
        for entry_id in range(400):
            for ledger_id in (gone, kept) if entry_id % 10 == 0 else (gone,):
                data = ledger_id.to_bytes(8, "big") + entry_id.to_bytes(8, "big") + bytes(1000)
                add = wire.AddEntry(ledger_id, EntryId(entry_id), KEY, data)
                assert (await cluster.ask(add)).status is Status.OK
        await metadata.ledgers.delete(gone)
        before = await server.parts.garbage.log_report()
        assert len(before) > 4 and not any(row["major"] for row in before)
        await asyncio.sleep(60)
        stats = server.engine.stats
        assert stats.compacted_logs > 4 and stats.compaction_reclaimed_bytes > 300_000
        after = await server.parts.garbage.log_report()
        assert len(after) < 4 and not any(row["left"] for row in after)
        for entry_id in range(0, 400, 10):
            assert (await cluster.ask(wire.ReadEntry(kept, EntryId(entry_id)))).status is Status.OK
        assert not server.engine.compactor.sentences()

    storage = {
        "journal_file_bytes": 64 * 1024,
        "entry_log_bytes": 64 * 1024,
        "checkpoint_bytes": 32 * 1024,
        "reserve_bytes": 0,
        "minor_compaction_interval_s": 5.0,
        "compaction_bytes_per_s": 100_000,
    }
    run(main, garbage_interval_s=4.0, garbage_grace_s=1.0, storage=storage)


@pytest.mark.rule("G5")
def test_a_compaction_that_cannot_begin_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        server = cluster.server
        assert server is not None

        def broken(_callback: object) -> None:
            raise RuntimeError("a bug")

        compactor: Any = server.engine.compactor
        kept, type(compactor).run_if_due = type(compactor).run_if_due, lambda self, callback: broken(callback)
        try:
            await asyncio.sleep(10)
        finally:
            type(compactor).run_if_due = kept
        assert server.parts.garbage.age_s is not None and server.parts.garbage.age_s <= 4.0
        assert "a compaction could not begin" in caplog.text

    run(main, garbage_interval_s=4.0)


@pytest.mark.rule("G1", "Z6")
def test_a_store_that_is_behind_is_no_proof_though_a_listing_has_missed_the_ledger() -> None:
    """The point read is the second proof: without its sync a follower of the store, which does not have the ledger yet,
    gives it as often as it is asked, and the data of a ledger that lives are dropped."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        server = cluster.server
        assert server is not None
        follower = Follower(cluster.metadata.connect())
        behind = await Metadata.over(cast(Any, follower), cluster.node.seams)
        others = [await metadata.ledgers.create(ledger()) for _ in range(5)]
        before = cluster.metadata.snapshot()
        lives, _ = await metadata.ledgers.create(ledger())
        data = lives.to_bytes(8, "big") + bytes(24)
        assert (await cluster.ask(wire.AddEntry(lives, EntryId(0), KEY, data))).status is Status.OK
        server.parts.garbage._metadata.ledgers = behind.ledgers

        async def missing_one() -> AsyncIterator[LedgerId]:
            for other, _ in others:
                yield other
            follower.falls_behind(before)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(behind.ledgers, "list", missing_one)
            for _ in range(3):
                assert await server.collect_garbage() == set()
                await asyncio.sleep(601)
        assert (await cluster.ask(wire.ReadEntry(lives, EntryId(0)))).status is Status.OK

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("M10", "G1", "G5")
def test_a_store_that_went_back_in_time_stops_garbage_collection_and_the_next_start() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        backup = cluster.metadata.snapshot()
        for _ in range(3):
            await metadata.ledgers.create(ledger())
        server = cluster.server
        assert server is not None
        await server.collect_garbage()
        cluster.metadata.restore(backup)
        with pytest.raises(MetadataRolledBackError):
            await server.collect_garbage()
        cluster.node.crash(power=False)
        with pytest.raises(MetadataRolledBackError):
            await cluster.again()

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("M10", "G1")
@pytest.mark.parametrize("hidden", [False, True])
def test_a_bookie_whose_metadata_went_back_serves_on_and_says_why_it_collects_nothing(hidden: bool) -> None:
    """It found that out at a collection only, a quarter of an hour later, and told nobody. ``hidden``: transactions
    have come past what was seen, as ZooKeeper's do with a new leader; what the bookie had counted there tells it."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        server = cluster.server
        assert server is not None
        here, _ = await metadata.ledgers.create(ledger())
        data = here.to_bytes(8, "big") + bytes(24)
        assert (await cluster.ask(wire.AddEntry(here, EntryId(0), KEY, data))).status is Status.OK
        await server.collect_garbage()
        assert server.health()["nothing_is_collected"] is None
        backup = cluster.metadata.snapshot()
        lost, _ = await metadata.ledgers.create(ledger())
        data = lost.to_bytes(8, "big") + bytes(24)
        assert (await cluster.ask(wire.AddEntry(lost, EntryId(0), KEY, data))).status is Status.OK
        await asyncio.sleep(70)
        cluster.metadata.restore(backup)
        if hidden:
            cluster.metadata.transaction += 1 << 32
            with pytest.raises(MetadataRolledBackError):
                await server.collect_garbage()
        await asyncio.sleep(10)
        health = server.health()
        assert health["status"] == "ok" and "older state" in str(health["nothing_is_collected"])
        for _ in range(3):
            with pytest.raises(MetadataRolledBackError):
                await server.collect_garbage()
            await asyncio.sleep(600)
        assert (await cluster.ask(wire.ReadEntry(lost, EntryId(0)))).status is Status.OK
        await server.stop()
        assert server.engine.state is EngineState.CLOSED, (
            "it stops cleanly, though it cannot take its registration away"
        )
        cluster.node.crash(power=False)
        with pytest.raises(MetadataRolledBackError):
            await cluster.again()

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("K26")
def test_a_full_disk_does_not_keep_deleted_ledgers_from_being_dropped() -> None:
    """Nothing else makes room: the pass goes on without the file that it cannot replace."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        gone, _ = await metadata.ledgers.create(ledger())
        for _ in range(5):
            await metadata.ledgers.create(ledger())
        server = cluster.server
        assert server is not None
        data = gone.to_bytes(8, "big") + bytes(24)
        assert (await cluster.ask(wire.AddEntry(gone, EntryId(0), KEY, data))).status is Status.OK
        await server.collect_garbage()
        await metadata.ledgers.delete(gone)
        assert await server.collect_garbage() == set()
        await asyncio.sleep(600)
        disk = cluster.node.disk
        disk.faults.append(Fault(operation="pwrite", code=errno.ENOSPC, path=SEEN_TRANSACTION))
        assert await server.collect_garbage() == {gone}

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("M6", "K19", "W10a", "B3")
@pytest.mark.parametrize("away", [False, True])
def test_a_deleted_ledger_stays_dead_though_index_and_logs_have_forgotten_it(away: bool) -> None:
    """That a ledger is deleted is in the index alone once its logs are gone: after a loss of the index, which is built
    anew from the logs that are left, whoever still wrote to the ledger was let in. ``away``: the start that built it
    ended before it could ask the store; the next one found a whole index, and let them in."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        gone, *others = [(await metadata.ledgers.create(ledger()))[0] for _ in range(8)]

        async def fill_and_delete(ledger_id: LedgerId) -> None:
            assert cluster.server is not None
            for entry_id in range(20):
                data = ledger_id.to_bytes(8, "big") + entry_id.to_bytes(8, "big") + bytes(4000)
                assert (await cluster.ask(wire.AddEntry(ledger_id, EntryId(entry_id), KEY, data))).status is Status.OK
            await cluster.server.collect_garbage()
            await metadata.ledgers.delete(ledger_id)
            assert await cluster.server.collect_garbage() == set()
            await asyncio.sleep(600)
            assert await cluster.server.collect_garbage() == {ledger_id}
            cluster.node.crash(power=False)
            await cluster.again()

        await fill_and_delete(gone)
        await fill_and_delete(others[0])  # the log with nothing but the first one's end goes, too
        cluster.node.crash(power=False)
        disk = cluster.node.disk
        for name in [name for name in disk.list("/data/ledgers") if name.endswith(".index")]:
            disk.unlink(f"/data/ledgers/{name}")
        if away:

            async def no_answer(*_: object) -> LedgerId:
                raise MetadataUnavailableError("away")

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(bookie_start, "newest", no_answer)
                with pytest.raises(MetadataUnavailableError, match="away"):
                    await cluster.again()
            cluster.node.crash(power=False)
        await cluster.again()
        assert cluster.server is not None and cluster.server.engine.report.rebuilt is not away
        assert not cluster.server.engine.is_fenced(gone), "forgotten"
        late = wire.AddEntry(gone, EntryId(40), KEY, gone.to_bytes(8, "big") + (40).to_bytes(8, "big") + bytes(16))
        assert (await cluster.ask(late)).status is Status.FENCED
        new, _ = await metadata.ledgers.create(ledger())
        add = wire.AddEntry(new, EntryId(0), KEY, new.to_bytes(8, "big") + bytes(24))
        assert (await cluster.ask(add)).status is Status.OK

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("V4", "G5")
def test_space_that_could_not_be_freed_is_freed_by_a_later_pass() -> None:
    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        gone, _ = await metadata.ledgers.create(ledger())
        for _ in range(5):
            await metadata.ledgers.create(ledger())
        server = cluster.server
        assert server is not None
        for entry_id in range(40):
            data = gone.to_bytes(8, "big") + entry_id.to_bytes(8, "big") + bytes(4000)
            assert (await cluster.ask(wire.AddEntry(gone, EntryId(entry_id), KEY, data))).status is Status.OK
        await server.collect_garbage()
        await metadata.ledgers.delete(gone)
        assert await server.collect_garbage() == set()
        await asyncio.sleep(600)
        cluster.node.disk.faults.append(Fault(operation="rename", code=errno.EMFILE, path="manifest", times=1))
        with pytest.raises(OSError, match="Too many open files"):
            await server.collect_garbage()
        assert await server.collect_garbage() == set()
        assert server.engine.stats.removed_logs > 0

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("M6", "G1")
def test_what_a_bookie_remembers_of_dropped_ledgers_are_a_few_ranges_also_of_those_it_never_had() -> None:
    """It remembered each of them for ever, in memory and in every index segment that was merged. Ledgers that others
    deleted without leaving a mark are marked before their data go."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        server = cluster.server
        assert server is not None
        ledgers = metadata.ledgers
        made = [(await ledgers.create(ledger()))[0] for _ in range(40)]
        kept = made[30:]
        for ledger_id in (*made[:30:3], kept[0]):
            data = ledger_id.to_bytes(8, "big") + bytes(24)
            assert (await cluster.ask(wire.AddEntry(ledger_id, EntryId(0), KEY, data))).status is Status.OK
        for ledger_id in made[1:30]:
            await ledgers.delete(ledger_id)
        await metadata.store.delete(ledgers.path(made[0]), None)
        assert await server.collect_garbage() == set()
        assert not await ledgers.deleted.has(made[0])
        await asyncio.sleep(600)
        assert await server.collect_garbage() == set(made[:30:3])
        assert await ledgers.deleted.has(made[0])
        await asyncio.sleep(1)
        for _ in range(2):
            server = cluster.server
            assert server is not None
            assert list(server.engine.dropped) == [(made[0], made[29])]
            data = kept[0].to_bytes(8, "big") + (1).to_bytes(8, "big") + bytes(16)
            assert (await cluster.ask(wire.AddEntry(kept[0], EntryId(1), KEY, data))).status is Status.OK
            data = made[4].to_bytes(8, "big") + bytes(24)
            assert (await cluster.ask(wire.AddEntry(made[4], EntryId(0), KEY, data))).status is Status.FENCED
            cluster.node.crash()
            await cluster.again()

    run(main, garbage_interval_s=10**6, garbage_shrink_max=1.0)


@pytest.mark.rule("M10", "G1")
def test_a_store_that_goes_back_while_it_lists_the_ledgers_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the bookie has counted is compared after the listing: before it, a listing of an older state is believed."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        server = cluster.server
        assert server is not None
        backup = cluster.metadata.snapshot()
        here, _ = await metadata.ledgers.create(ledger())
        data = here.to_bytes(8, "big") + bytes(24)
        assert (await cluster.ask(wire.AddEntry(here, EntryId(0), KEY, data))).status is Status.OK
        await server.collect_garbage()
        real = server._metadata.ledgers.list

        async def listing() -> AsyncIterator[LedgerId]:
            cluster.metadata.restore(backup)
            cluster.metadata.transaction += 1 << 32  # as ZooKeeper's with a new leader
            async for found in real():
                yield found

        monkeypatch.setattr(server._metadata.ledgers, "list", listing)
        with pytest.raises(MetadataRolledBackError, match="was counted up to"):
            await server.collect_garbage()

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("M10", "G1")
def test_after_an_accepted_loss_a_ledger_is_kept_for_as_long_as_was_said_and_after_another_one_anew() -> None:
    """Only time in which this bookie ran since the last loss counts, and when it is over the ledger goes."""

    async def main(cluster: Cluster) -> None:
        metadata = await cluster.up()
        lost = LedgerId(5)
        data = lost.to_bytes(8, "big") + bytes(24)
        assert (await cluster.ask(wire.AddEntry(lost, EntryId(0), KEY, data))).status is Status.OK

        async def accept(name: str) -> None:
            store, path = metadata.store, metadata.own(COPIED)
            came = await lineages.read(store, metadata.paths)
            loss = StoreMove(name, store.last_transaction, AcceptedLoss(highest=lost, keep_s=1000))
            value = Lineage((*came.copies, loss)).encode()
            await (store.set(path, value, None) if came.copies else store.create(path, value, parents=True))
            cluster.node.crash(power=False)
            await cluster.again()

        async def one_pass(after_s: float) -> tuple[set[LedgerId], int]:
            await asyncio.sleep(after_s)
            assert cluster.server is not None
            return await cluster.server.collect_garbage(), cluster.server.parts.garbage.kept

        await accept("one")
        assert await one_pass(0) == (set(), 1)
        assert await one_pass(900) == (set(), 1)
        await accept("two")
        assert await one_pass(0) == (set(), 1)
        assert await one_pass(200) == (set(), 1), "that of the first loss does not count"
        assert await one_pass(700) == (set(), 1)
        assert await one_pass(101) == (set(), 0), "its time is over; it is looked for once more"
        assert await one_pass(601) == ({lost}, 0)

    run(main, garbage_interval_s=10**6)


@pytest.mark.rule("G5")
def test_a_pass_without_the_metadata_store_is_told_in_words_and_the_next_one_is_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.up()
        server = cluster.server
        assert server is not None
        garbage: Any = server.parts.garbage
        one_pass, errors = garbage.one_pass, [MetadataUnavailableError("no answer"), RuntimeError("a bug")]

        async def failing() -> Any:
            if errors:
                raise errors.pop(0)
            return await one_pass()

        garbage.one_pass = failing
        await asyncio.sleep(13)
        assert garbage.age_s is not None and garbage.age_s <= 4.0
        told = [record for record in caplog.records if "a garbage pass failed" in record.getMessage()]
        assert "no answer" in told[0].getMessage() and told[0].exc_info is None
        assert told[1].exc_info is not None, "a bug comes with its place"

    run(main, garbage_interval_s=4.0)
