"""What the console reads of a cluster: a simulated one."""

from __future__ import annotations

from bookkeeper.console.ledger_list import LedgerFilter
from bookkeeper.console.picture import LedgersReader, picture_of_bookies
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger.location import Location
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import written


def test_bookies_ledgers_marks_and_deleted_ledgers_are_read() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            first, second, gone = [await written(cluster, bk, 3) for _ in range(3)]
            await bk.metadata_store.locations.put(BookieId("b1"), Location.parse("/rack1"))
            await bk.metadata_store.under_replication.mark(second, [BookieId("b2")], 7)
            await bk.delete_ledger(gone, grace_s=1000)
            bookies = await picture_of_bookies(bk)
            assert bookies.status.up == {"b1", "b2", "b3"}
            assert [bookies.places[BookieId(name)] for name in ("b1", "b2")] == ["/rack1", "/default-rack"]
            assert bookies.autorecovery.marked == [second] and bookies.autorecovery.auditor is None
            reader = LedgersReader(bk)
            found = await reader.picture()
            assert reader.read_so_far == 2
            assert [row.ledger_id for row in found.ledgers.select(LedgerFilter(), 0, 9).rows] == [second, first]
            assert [row.ledger_id for row in found.ledgers.select(LedgerFilter(health="marked"), 0, 9).rows] == [second]
            (deleted,) = found.deleted
            assert (deleted.ledger_id, deleted.entries, deleted.problem) == (LedgerId(gone), 3, "")
            assert deleted.until_ms - deleted.deleted_ms == 1_000_000

    SimCluster(1, 3).run(story)
