"""Reading through a read handle, against bookies that do as they are told."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper import wire
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import (
    BookieFailedError,
    DataMissingError,
    DigestMismatchError,
    IllegalOperationError,
    NoSuchEntryError,
    NoSuchLedgerError,
)
from bookkeeper.ids import LedgerId
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import ScriptedCluster


async def written(bk: BookKeeper, count: int = 50, size: int = 1, **shape: int) -> LedgerId:
    """A closed ledger of ``count`` entries."""
    async with await bk.create_ledger(**shape) as ledger:  # type: ignore[arg-type]
        await ledger.append_many([b"%d" % i * size for i in range(count)])
    await asyncio.sleep(1)  # the slowest bookie has them, too
    return ledger.id


def test_a_closed_ledger_is_read_in_batches() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(ClientConfig(batch_read_bytes=4096)) as bk:
            ledger_id = await written(bk, 300, 20)
            async with await bk.open_ledger(ledger_id) as reader:
                assert [e async for e in reader.read(0, 299)] == [(i, b"%d" % i * 20) for i in range(300)]
                assert [e async for e in reader.read(0, -1)] == []
                assert [e.entry_id async for e in reader.read(299, 299)] == [299]
                assert await reader.read_entry(7) == b"7" * 20
        asked = [r for b in cluster.bookies for r in b.requests if isinstance(r, wire.BatchRead)]
        assert 4 < len(asked) < 60

    ScriptedCluster().run(story)


def test_what_was_not_confirmed_is_refused_by_read_and_available_under_its_own_name() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"confirmed")
            for bookie in cluster.bookies[:2]:
                bookie.refuse_adds = Status.IO_ERROR
            pending = ledger.append_nowait(b"unconfirmed")
            await asyncio.sleep(0.5)
            async with await bk.open_ledger(ledger.id, recovery=False) as reader:
                assert reader.last_add_confirmed == 0 and not reader.closed
                with pytest.raises(IllegalOperationError, match="the last add confirmed is 0"):
                    await reader.read_entry(1)
                for bookie in cluster.bookies:
                    bookie.refuse_adds = None
                assert await reader.read_unconfirmed(1) == b"unconfirmed"
                with pytest.raises(NoSuchEntryError):
                    await reader.read_unconfirmed(2)
            await ledger.abandon()
            pending.exception()

    ScriptedCluster().run(story)


@pytest.mark.rule("L5")
def test_a_damaged_copy_is_reported_and_another_is_read() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk)
            for entry in (0, 10, 11, 49):
                for bookie in cluster.bookies[:2]:
                    packet = bytearray(bookie.entries[ledger_id][entry])
                    packet[-1] ^= 1
                    bookie.entries[ledger_id][entry] = bytes(packet)
            async with await bk.open_ledger(ledger_id) as reader:
                assert [int(e.payload) async for e in reader.read(0, 49)] == list(range(50))
                assert await reader.read_entry(10) == b"10"
            counters = {name: metric for name, _, _, metric in bk.metrics}
            assert counters["bookkeeper_client_corrupt_copies"].value > 0  # type: ignore[union-attr]
            packet = bytearray(cluster.bookies[2].entries[ledger_id][10])
            packet[-1] ^= 1
            cluster.bookies[2].entries[ledger_id][10] = bytes(packet)
            async with await bk.open_ledger(ledger_id) as reader:
                with pytest.raises(DigestMismatchError):
                    await reader.read_entry(10)

    ScriptedCluster().run(story)


@pytest.mark.rule("L5")
def test_another_entry_than_the_one_asked_for_is_not_handed_out() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk)
            for bookie in cluster.bookies[:2]:
                stored = bookie.entries[ledger_id]
                stored[3], stored[4] = stored[4], stored[3]
            async with await bk.open_ledger(ledger_id) as reader:
                assert [int(e.payload) async for e in reader.read(0, 49)] == list(range(50))
                assert await reader.read_entry(3) == b"3"

    ScriptedCluster().run(story)


@pytest.mark.rule("L7")
def test_an_entry_that_no_bookie_has_is_data_missing_not_the_end() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk)
            for bookie in cluster.bookies:
                del bookie.entries[ledger_id][20]
            async with await bk.open_ledger(ledger_id) as reader:
                seen = []
                with pytest.raises(DataMissingError, match="entry 20 is confirmed, and on none of its bookies"):
                    async for entry in reader.read(0, 49):
                        seen.append(entry.entry_id)
                assert seen == list(range(20)) or seen == []
                assert [e.entry_id async for e in reader.read(21, 49)] == list(range(21, 50))

    ScriptedCluster().run(story)


@pytest.mark.rule("L1")
def test_while_no_good_copy_can_be_had_the_error_is_a_transient_one() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk)
            async with await bk.open_ledger(ledger_id) as reader:
                for bookie in cluster.bookies:
                    bookie.refuse_reads = Status.IO_ERROR
                with pytest.raises(BookieFailedError):
                    await reader.read_entry(0)
                with pytest.raises(BookieFailedError):
                    async for _ in reader.read(0, 49):
                        pass
                cluster["b2"].refuse_reads = None
                assert len([e async for e in reader.read(0, 49)]) == 50

    ScriptedCluster().run(story)


def test_a_bookie_that_refuses_batches_is_asked_for_single_entries() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        for bookie in cluster.bookies:
            bookie.batches = False
        async with cluster.connect() as bk, await bk.open_ledger(await written(bk)) as reader:
            assert [int(e.payload) async for e in reader.read(0, 49)] == list(range(50))

    ScriptedCluster().run(story)


def test_a_silent_bookie_costs_a_reader_the_hedging_time_only() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk)
            async with await bk.open_ledger(ledger_id) as reader:
                for bookie in cluster.bookies[:2]:
                    bookie.silent = True
                began = asyncio.get_running_loop().time()
                assert len([e async for e in reader.read(0, 49)]) == 50
                assert asyncio.get_running_loop().time() - began < 1.5

    ScriptedCluster().run(story)


def test_a_striped_ledger_is_read_entry_by_entry_from_those_who_hold_it() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 200, ensemble=4, write_quorum=2, ack_quorum=2)
            async with await bk.open_ledger(ledger_id) as reader:
                assert [int(e.payload) async for e in reader.read(0, 199)] == list(range(200))
        assert not [r for b in cluster.bookies for r in b.requests if isinstance(r, wire.BatchRead)]

    ScriptedCluster(bookies=4).run(story)


def test_reading_goes_across_fragments() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger() as ledger:
                for _ in range(3):
                    await ledger.append_many([b"x"] * 7)
                    victim = cluster[ledger.metadata.last_fragment.ensemble[0]]
                    victim.refuse_adds = Status.READ_ONLY
                    await ledger.append(b"y")
                    await asyncio.sleep(0.2)
                    victim.refuse_adds = None
            assert len(ledger.metadata.fragments) >= 3
            async with await bk.open_ledger(ledger.id) as reader:
                assert b"".join([e.payload async for e in reader.read(0, 23)]) == (b"x" * 7 + b"y") * 3

    ScriptedCluster(bookies=5).run(story)


def test_leaving_a_read_early_forgets_what_was_read_ahead() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        config = ClientConfig(batch_read_bytes=4096)
        async with cluster.connect(config) as bk, await bk.open_ledger(await written(bk, 300, 20)) as reader:
            entries = reader.read(0, 299)
            async for entry in entries:
                if entry.entry_id == 3:
                    break
            await entries.aclose()  # type: ignore[attr-defined]
            await asyncio.sleep(1)

    ScriptedCluster().run(story)


@pytest.mark.rule("L9", "L3")
def test_a_tail_hears_of_an_entry_as_soon_as_it_is_confirmed_and_ends_with_the_ledger() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                seen: list[tuple[float, int]] = []
                loop = asyncio.get_running_loop()

                async def tail() -> None:
                    async for entry in reader.tail():
                        seen.append((loop.time(), entry.entry_id))

                tailing = asyncio.ensure_future(tail())
                for i in range(10):
                    await asyncio.sleep(1.7)
                    await ledger.append(b"x")
                    began = loop.time()
                    await asyncio.sleep(0.1)
                    assert seen[-1][1] == i and seen[-1][0] - began < 0.1
                await ledger.close()
                await asyncio.wait_for(tailing, 3)
                assert [entry_id for _, entry_id in seen] == list(range(10))

    ScriptedCluster().run(story)


@pytest.mark.rule("L8")
def test_a_tail_survives_the_metadata_store_and_a_lost_watch() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            async with await other.open_ledger(ledger.id, recovery=False) as reader:

                async def tail() -> list[int]:
                    return [entry.entry_id async for entry in reader.tail()]

                tailing = asyncio.ensure_future(tail())
                await ledger.append(b"a")
                cluster.store.expire(other.metadata_store.store)  # type: ignore[arg-type]
                cluster.store.begin_outage()
                await ledger.append(b"b")
                await asyncio.sleep(5)
                cluster.store.end_outage()
                await ledger.append(b"c")
                await ledger.close()
                assert await asyncio.wait_for(tailing, 20) == [0, 1, 2]

    ScriptedCluster().run(story)


def test_a_tail_of_a_deleted_ledger_ends_with_the_reason_and_one_that_is_closed_here_ends_quietly() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append(b"a")
            async with await other.open_ledger(ledger.id, recovery=False) as reader:

                async def tail() -> list[int]:
                    return [entry.entry_id async for entry in reader.tail()]

                ends_quietly = asyncio.ensure_future(tail())
                await asyncio.sleep(0.5)
            assert await ends_quietly == [0]
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                told = asyncio.ensure_future(tail())
                await asyncio.sleep(0.5)
                await bk.delete_ledger(ledger.id)
                with pytest.raises(NoSuchLedgerError):
                    await told
            await ledger.abandon()

    ScriptedCluster().run(story)


def test_read_last_add_confirmed_asks_those_who_know() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append(b"a")
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                await ledger.append_many([b"b"] * 9)
                await asyncio.sleep(0.1)
                assert await reader.read_last_add_confirmed() == 9  # by an explicit one (D14)
                cluster["b1"].silent = True
                await ledger.append(b"c")
                await asyncio.sleep(0.1)
                assert await reader.read_last_add_confirmed() == 10
                await ledger.close()
                assert await reader.read_last_add_confirmed() == 10
                assert reader.closed
                assert reader.length == 11

    ScriptedCluster().run(story)
