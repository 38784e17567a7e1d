"""A closed ledger's bookies are told, and nobody waits for that."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from bookkeeper.ids import LedgerId
from bookkeeper.wire import GetBookieInfo
from tests.bookkeeper.client.scripted import CONFIG, ScriptedCluster, written


def told(cluster: ScriptedCluster) -> dict[str, list[LedgerId | None]]:
    """Of which ledgers each bookie was told."""
    return {
        bookie.id: [each.closed_ledger for each in bookie.requests if isinstance(each, GetBookieInfo)]
        for bookie in cluster.bookies
    }


def test_a_writer_that_closes_its_ledger_says_so_to_the_last_ensemble() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 3, ensemble=2, write_quorum=2, ack_quorum=2)
            ensemble = (await bk.metadata(ledger_id)).last_fragment.ensemble
            assert told(cluster) == {each.id: [ledger_id] * (each.id in ensemble) for each in cluster.bookies}
            request = next(each for each in cluster[ensemble[0]].requests if isinstance(each, GetBookieInfo))
            assert request.requested == 0, "nothing is asked"

    ScriptedCluster().run(story)


def test_a_recovery_says_so_too_and_a_handle_that_is_abandoned_does_not() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            await ledger.abandon()
            await asyncio.sleep(1)
            assert told(cluster) == {each.id: [] for each in cluster.bookies}
            await (await other.open_ledger(ledger.id)).close()
            await asyncio.sleep(1)
            assert told(cluster) == {each.id: [ledger.id] for each in cluster.bookies}

    ScriptedCluster().run(story)


def test_bookies_that_answer_nothing_or_refuse_hold_nobody_up() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            await asyncio.sleep(1)
            for bookie in cluster.bookies:
                bookie.silent = True
            before = asyncio.get_running_loop().time()
            await ledger.close()
            assert asyncio.get_running_loop().time() - before < 1
            assert (await bk.metadata(ledger.id)).is_closed

    ScriptedCluster().run(story)


@pytest.mark.parametrize("setting", [{"close_advice": False}, {"protocol": "v2"}], ids=["off", "without v3"])
def test_nothing_is_said_where_that_is_not_wanted_or_would_need_a_connection(setting: dict[str, object]) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(replace(CONFIG, explicit_lac_delay_ms=60_000, **setting)) as bk:  # type: ignore[arg-type]
            await written(bk, 3)
            assert told(cluster) == {each.id: [] for each in cluster.bookies}

    ScriptedCluster().run(story)
