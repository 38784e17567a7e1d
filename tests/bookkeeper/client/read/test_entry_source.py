"""Runs of entries: batches, single reads, bad copies, missing ones, silent bookies."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper import wire
from bookkeeper.errors import (
    BookieFailedError,
    BookieUnavailableError,
    ClientClosedError,
    DataMissingError,
    DigestMismatchError,
)
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import ScriptedCluster, written


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
                with pytest.raises(DataMissingError, match="entry 20 is confirmed, but none of its bookies has it"):
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


@pytest.mark.rule("L7")
@pytest.mark.parametrize("batches", [True, False])
def test_a_reader_finds_what_was_moved_while_its_bookies_are_gone(batches: bool) -> None:
    """A closed ledger is not followed, and a bookie that is gone says nothing: a reader that was opened before a
    repair asked the old bookies for ever. All reads together ask the store twice, not once each."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk)
            async with await bk.open_ledger(ledger_id) as reader:
                await reader.read_entry(0)
                ledgers = bk.services.metadata.ledgers
                old_ones = reader.metadata.last_fragment.ensemble
                spare = [bookie.id for bookie in cluster.bookies if bookie.id not in old_ones]
                for old, new in zip(old_ones, spare, strict=True):
                    cluster[new].entries[ledger_id] = dict(cluster[old].entries[ledger_id])
                    cluster[new].batches = batches
                    stored = await ledgers.read(ledger_id, fresh=True)
                    swapped = stored.value.swap_bookie(0, old, new)
                    await ledgers.write(ledger_id, swapped, stored.version)
                    cluster.world.node(old).crash()
                await asyncio.sleep(3)  # their sessions end, and whoever connects is refused
                looks = 0
                refresh = reader._record.refresh

                async def counted() -> LedgerMetadata:
                    nonlocal looks
                    looks += 1
                    return await refresh()

                reader._record.refresh = counted  # type: ignore[method-assign,assignment]
                found = await asyncio.gather(*[reader.read_entry(i) for i in range(0, 50, 2)])
                assert [int(payload) for payload in found] == list(range(0, 50, 2))
                assert [int(e.payload) async for e in reader.read(0, 49)] == list(range(50))
                assert 1 <= looks <= 2

    ScriptedCluster(bookies=6).run(story)


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


def test_a_bookie_that_ends_the_connection_over_batch_reads_is_asked_for_single_entries() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 30)
            for bookie in cluster.bookies:
                bookie.batches_end_connections = True
            async with await bk.open_ledger(ledger_id) as reader:
                for _ in range(4):
                    assert [int(e.payload) async for e in reader.read(0, 29)] == list(range(30))
        for bookie in cluster.bookies:
            assert sum(isinstance(r, wire.BatchRead) for r in bookie.requests) <= 2

    ScriptedCluster().run(story)


def test_a_bookie_that_has_answered_batch_reads_is_not_doubted_for_a_lost_connection() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.open_ledger(await written(bk, 30)) as reader:
            for _ in range(4):
                assert len([e async for e in reader.read(0, 29)]) == 30
            for bookie in cluster.bookies:
                bookie.batches_end_connections = True
            with pytest.raises(BookieUnavailableError):
                assert [e async for e in reader.read(0, 29)]
            for bookie in cluster.bookies:
                bookie.batches_end_connections = False
                bookie.requests.clear()
            await asyncio.sleep(3)
            assert len([e async for e in reader.read(0, 29)]) == 30
            assert [type(r) for b in cluster.bookies for r in b.requests] == [wire.BatchRead]

    ScriptedCluster().run(story)


@pytest.mark.parametrize("shape", [{}, {"ensemble": 4, "write_quorum": 2, "ack_quorum": 2}])
def test_whole_entries_are_the_bytes_that_bookies_keep(shape: dict[str, int]) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 30, 3, **shape)
            async with await bk.open_ledger(ledger_id) as reader:
                runs = [(0, 30)] if not shape else [(i, 1) for i in range(30)]
                for first, count in runs:
                    found = await reader._source.read(first, count, whole=True)
                    for entry_id, entry in enumerate(found, first):
                        assert entry in [b.entries.get(ledger_id, {}).get(entry_id) for b in cluster.bookies]

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("L7", "V1")
def test_a_read_that_waits_for_metadata_ends_when_its_reader_is_closed() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger() as ledger:
                await ledger.append(b"x")
            reader = await bk.open_ledger(ledger.id)
            for bookie in cluster.bookies:
                bookie.entries[ledger.id].clear()
            cluster.store.begin_outage()
            reading = asyncio.ensure_future(reader.read_entry(0))
            await asyncio.sleep(1)  # everybody has said no by now, and the metadata are read again
            await reader.close()
            with pytest.raises(ClientClosedError):
                await asyncio.wait_for(reading, 60)
            cluster.store.end_outage()

    ScriptedCluster().run(story)
