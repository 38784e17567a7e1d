"""Is a ledger whole?"""

from __future__ import annotations

import pytest

from bookkeeper.replication.check import incomplete_copies
from bookkeeper.replication.repair import RepairContext
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import append, record_of, written


@pytest.mark.rule("A4", "A7")
def test_whole_missing_unknown_and_undecided_are_told_apart() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            context = RepairContext(services=bk.services)
            whole = await written(cluster, bk, 20, ensemble=3, write_quorum=2, ack_quorum=2)
            assert await incomplete_copies(context, await record_of(bk, whole)) == []
            empty = await written(cluster, bk, 0)
            assert await incomplete_copies(context, await record_of(bk, empty)) == []
            ledger = await bk.create_ledger(password=b"pw")
            await append(cluster, ledger, 10)
            cluster.node("b3").crash()
            await append(cluster, ledger, 10)
            (away,) = await incomplete_copies(context, await record_of(bk, ledger.id))
            assert str(away).startswith("entries 0..? on b3: it is not known whether they are there: ")
            await ledger.close()
            (away,) = await incomplete_copies(context, await record_of(bk, ledger.id))
            assert away.copy.bookie == "b3" and away.missing == 0 and away.unknown is not None
            assert "not known" in str(away)
            cluster.node("b3").restart()
            await cluster.until_up()
            bk.services.pool.forgive(away.copy.bookie)
            (lacks,) = await incomplete_copies(context, await record_of(bk, ledger.id))
            assert (lacks.copy.bookie, lacks.unknown) == ("b3", None) and 10 <= lacks.missing <= 12
            assert str(lacks) == f"entries 0..19 on b3: {lacks.missing} are missing"

    SimCluster().run(story)
