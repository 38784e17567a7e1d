"""Is a ledger whole?"""

from __future__ import annotations

import pytest

from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import QuorumSpec
from bookkeeper.replication.copying import RepairContext
from bookkeeper.replication.copying.copies import Copy
from bookkeeper.replication.inspection.check import CopyGaps, incomplete_copies, missing_entries
from bookkeeper.testing.cluster import SimCluster
from bookkeeper.wire.availability import decode_availability, encode_availability
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
            await cluster.wait_until_up()
            bk.services.pool.forgive(away.copy.bookie)
            (lacks,) = await incomplete_copies(context, await record_of(bk, ledger.id))
            assert (lacks.copy.bookie, lacks.unknown) == ("b3", None) and 10 <= lacks.missing <= 12
            assert str(lacks) == f"entries 0..19 on b3: {lacks.missing} are missing"

    SimCluster().run(story)


@pytest.mark.parametrize("held", [[], [(0, 99)], [(0, 9), (20, 99)], [(0, 49), (50, 98)], [(5, 5), (7, 60)], [(1, 99)]])
@pytest.mark.parametrize("striped", [False, True])
def test_gaps_are_those_that_a_look_at_every_entry_finds(held: list[tuple[int, int]], striped: bool) -> None:
    spec = QuorumSpec(ensemble_size=4 if striped else 3, write_quorum=3 if not striped else 2, ack_quorum=2)
    copy = Copy(EntryId(0), EntryId(99), 1, BookieId("b1"))
    listed = decode_availability(encode_availability(held))
    mine = [entry for run in copy.runs(spec, 7) for entry in run]
    lacks = [entry for entry in mine if not any(first <= entry <= last for first, last in held)]
    found = missing_entries(copy, spec, listed)
    assert sum(count for _, count in found) == len(lacks)
    assert [entry for entry in mine if any(entry in some for some, _ in found)] == lacks
    gaps = CopyGaps()
    for run in copy.runs(spec, 7):
        gaps.compare(run, listed)
    assert gaps.ranges == found, "whatever the runs are"
