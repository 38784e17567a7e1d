"""Single reads of one turn: neighbours are fetched together, and everybody gets their own answer."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper import wire
from bookkeeper.errors import DataMissingError
from tests.bookkeeper.client.scripted import ScriptedCluster, written


def asked(cluster: ScriptedCluster) -> list[tuple[int, int]]:
    """(first, count) of what the bookies were asked for."""
    found = []
    for bookie in cluster.bookies:
        for request in bookie.requests:
            if isinstance(request, wire.BatchRead):
                found.append((int(request.first_entry), request.count_max))
            elif isinstance(request, wire.ReadEntry):
                found.append((int(request.entry_id), 1))
    return sorted(found)


def test_neighbours_of_one_turn_are_one_run_and_strangers_are_not() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.open_ledger(await written(bk)) as reader:
            for bookie in cluster.bookies:
                bookie.requests.clear()
            wanted = [7, 3, 4, 30, 5, 4, 31]
            assert await asyncio.gather(*map(reader.read_entry, wanted)) == [b"%d" % i for i in wanted]
            assert asked(cluster) == [(3, 3), (7, 1), (30, 2)]

    ScriptedCluster().run(story)


@pytest.mark.rule("L7")
def test_a_missing_entry_is_told_to_those_who_asked_for_it_only() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk)
            for bookie in cluster.bookies:
                del bookie.entries[ledger_id][5]
            async with await bk.open_ledger(ledger_id) as reader:
                found = await asyncio.gather(*map(reader.read_entry, range(3, 8)), return_exceptions=True)
                assert [type(answer) for answer in found] == [bytes, bytes, DataMissingError, bytes, bytes]

    ScriptedCluster().run(story)


def test_a_reader_that_was_cancelled_takes_nothing_from_the_others() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.open_ledger(await written(bk)) as reader:
            reads = [asyncio.ensure_future(reader.read_entry(i)) for i in range(4)]
            await asyncio.sleep(0)
            reads[1].cancel()
            found = await asyncio.gather(*reads, return_exceptions=True)
            assert [type(answer) for answer in found] == [bytes, asyncio.CancelledError, bytes, bytes]

    ScriptedCluster().run(story)
