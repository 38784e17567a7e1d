"""Single reads of one turn: neighbours are fetched together, and everybody gets their own answer."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Literal

import pytest

from bookkeeper import wire
from bookkeeper.errors import DataMissingError
from bookkeeper.ledger.read.read_plan import LONE_READS, SHARE_MIN
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import CONFIG, ScriptedCluster, written

Protocol = Literal["v2", "v3"]
BOTH = pytest.mark.parametrize("protocol", ["v2", "v3"])


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


@BOTH
@pytest.mark.parametrize("shape", [(3, 3), (3, 2)])
def test_many_strangers_are_shared_out_among_the_bookies_and_few_stay_together(
    protocol: Protocol, shape: tuple[int, int]
) -> None:
    ensemble, quorum = shape

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(replace(CONFIG, protocol=protocol)) as bk:
            ledger = await written(bk, 100, ensemble=ensemble, write_quorum=quorum, ack_quorum=quorum)
            async with await bk.open_ledger(ledger) as reader:
                await asyncio.gather(*map(reader.read_entry, (0, 20, 40)))
                for wanted, shares in (
                    (range(0, 100, 2), 3),
                    (range(0, 3 * SHARE_MIN, 2), 2),
                    (range(1, 2 * SHARE_MIN, 2), 1),
                ):
                    for bookie in cluster.bookies:
                        bookie.requests.clear()
                    assert await asyncio.gather(*map(reader.read_entry, wanted)) == [b"%d" % i for i in wanted]
                    assert asked(cluster) == [(entry, 1) for entry in wanted]
                    counts = sorted(len(bookie.requests) for bookie in cluster.bookies)
                    if quorum == ensemble:
                        assert sum(count > 0 for count in counts) == shares
                        assert counts[-1] - counts[-shares] <= 1, "equal shares"
                    elif shares == ensemble:
                        assert counts[0] > 0

    ScriptedCluster().run(story)


@BOTH
def test_a_caller_that_waits_for_each_read_asks_in_the_same_turn_and_others_share_theirs(protocol: Protocol) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with (
            cluster.connect(replace(CONFIG, protocol=protocol)) as bk,
            await bk.open_ledger(await written(bk)) as reader,
        ):
            turns: list[int] = []

            async def turns_of(entry: int) -> None:
                """How many turns of the loop pass before the request is sent."""
                before = sent()
                read = asyncio.ensure_future(reader.read_entry(entry))
                await asyncio.sleep(0)  # the task's first step
                turns.append(0 if sent() > before else 1)
                assert await read == b"%d" % entry

            def sent() -> int:
                return sum(connection.sent_bytes + connection.unsent for connection in connections)

            await asyncio.gather(*map(reader.read_entry, (0, 9, 20)))
            pool = bk.services.pool
            connections = [found for b in reader.metadata.bookies if (found := pool.ready(b)) is not None]
            assert len(connections) == 3
            for _ in range(LONE_READS + 2):
                await turns_of(7)
            assert turns == [1] * LONE_READS + [0, 0]
            for bookie in cluster.bookies:
                bookie.requests.clear()
            wanted = [7, 3, 4, 30, 5, 31]
            assert await asyncio.gather(*map(reader.read_entry, wanted)) == [b"%d" % i for i in wanted]
            assert asked(cluster) == [(3, 3), (7, 1), (30, 2)], "only the first of many was sent alone"
            turns.clear()
            await turns_of(7)
            assert turns == [1]

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


@BOTH
def test_a_bookie_that_says_nothing_is_helped_out_in_time_and_its_late_answer_counts_for_nothing(
    protocol: Protocol,
) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        loop = asyncio.get_running_loop()
        async with (
            cluster.connect(replace(CONFIG, protocol=protocol)) as bk,
            await bk.open_ledger(await written(bk)) as reader,
        ):
            assert await asyncio.gather(*map(reader.read_entry, (0, 9, 20))) == [b"0", b"9", b"20"]
            cluster.bookies[0].silent = True
            began = loop.time()
            many = range(1, 6 * SHARE_MIN, 2)  # so many that each bookie gets a share
            assert await asyncio.gather(*map(reader.read_entry, many)) == [b"%d" % entry for entry in many]
            assert 0.4 < loop.time() - began < 0.8, "half a second, then the next one is asked"
            cluster.bookies[0].silent = False
            assert await reader.read_entry(5) == b"5"

    ScriptedCluster().run(story)


@pytest.mark.rule("L5")
@BOTH
def test_a_bad_copy_is_not_taken_and_is_counted(protocol: Protocol) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(replace(CONFIG, protocol=protocol)) as bk:
            ledger_id = await written(bk)
            entries = cluster.bookies[0].entries[ledger_id]
            entries[5] = entries[5][:-1] + b"!"
            entries[6] = entries[8]
            async with await bk.open_ledger(ledger_id) as reader:
                counters = {name: metric for name, _, _, metric in bk.metrics}
                for _ in range(3):  # whoever's turn it is
                    assert await reader.read_entry(5) == b"5"
                    assert await reader.read_entry(6) == b"6"
                assert counters["bookkeeper_client_corrupt_copies"].value == 2  # type: ignore[union-attr]

    ScriptedCluster().run(story)


@BOTH
def test_bookies_that_refuse_or_go_are_passed_over(protocol: Protocol) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with (
            cluster.connect(replace(CONFIG, protocol=protocol)) as bk,
            await bk.open_ledger(await written(bk)) as reader,
        ):
            cluster.bookies[0].refuse_reads = Status.IO_ERROR
            for _ in range(3):
                assert await reader.read_entry(4) == b"4"
            cluster.bookies[1].silent = True
            reads = [asyncio.ensure_future(reader.read_entry(entry)) for entry in (1, 11, 21)]
            await asyncio.sleep(0.1)
            for connection in list(cluster.bookies[1].connections):
                connection.abort()
            assert await asyncio.wait_for(asyncio.gather(*reads), 0.3) == [b"1", b"11", b"21"]

    ScriptedCluster().run(story)
