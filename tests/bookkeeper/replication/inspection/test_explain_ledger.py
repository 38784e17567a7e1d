"""A ledger explained from what its bookies say."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import NoSuchLedgerError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.replication.inspection.explain import CopyState, Loss
from bookkeeper.replication.inspection.explain_ledger import explain_ledger
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import Story, append, written


def run(story: Story, bookies: int = 3, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


@pytest.mark.rule("A4")
def test_seen_lacking_believed_and_gone_are_told_apart() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = LedgerId(await written(cluster, bk, 20, ensemble=3))
            whole = await explain_ledger(bk, ledger)
            (each,) = whole.ranges
            assert whole.is_whole and {copy.state for copy in each.copies} == {CopyState.SEEN}
            assert (each.one_more, each.two_more) == (Loss(0, ()), Loss(0, ())), "the third copy is left"

            cluster.world.network.cut("client", "b2")
            cluster.node("b3").crash()
            await asyncio.sleep(5)
            found = await explain_ledger(bk, ledger)
            (each,) = found.ranges
            states = {copy.bookie: copy.state for copy in each.copies}
            assert states == {"b1": CopyState.SEEN, "b2": CopyState.BELIEVED, "b3": CopyState.GONE}
            assert all(copy.reason for copy in each.copies if copy.bookie != "b1")
            assert not found.is_whole and (found.unseen, found.lost) == (0, 0)
            assert found.after(1) == Loss(20, (BookieId("b1"),)) == each.one_more
            cluster.node("b1").crash()
            await asyncio.sleep(5)
            found = await explain_ledger(bk, ledger)
            assert (found.unseen, found.lost) == (20, 0), "the one that does not answer may have everything"

    run(story)


@pytest.mark.rule("A3")
def test_an_open_ledger_is_explained_up_to_its_last_add_confirmed() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"pw", ensemble=3)
            await append(cluster, ledger, 10)
            cluster.node("b3").crash()
            await append(cluster, ledger, 10)
            found = await explain_ledger(bk, LedgerId(ledger.id))
            (each,) = found.ranges
            assert not each.is_decided and each.end is not None and 0 <= each.end <= 19
            assert {copy.state for copy in each.copies if copy.bookie != "b3"} == {CopyState.SEEN}
            await ledger.close()
            cluster.node("b3").restart()
            await cluster.wait_until_up()
            bk.services.pool.forgive(each.copies[0].bookie)
            for copy in each.copies:
                bk.services.pool.forgive(copy.bookie)
            found = await explain_ledger(bk, LedgerId(ledger.id))
            (each,) = found.ranges
            (lacking,) = (copy for copy in each.copies if copy.state is CopyState.LACKING)
            assert lacking.bookie == "b3" and 10 <= lacking.missing <= 12 and lacking.lacks[-1].stop == 20
            assert each.two_more.entries == lacking.missing and set(each.two_more.bookies) == {"b1", "b2"}

    run(story)


def test_an_empty_ledger_and_none_at_all() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            empty = await explain_ledger(bk, LedgerId(await written(cluster, bk, 0)))
            assert empty.is_whole and empty.ranges[0].span == "no entries"
            with pytest.raises(NoSuchLedgerError):
                await explain_ledger(bk, LedgerId(99))

    run(story)
