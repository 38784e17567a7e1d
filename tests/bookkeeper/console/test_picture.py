"""What the console reads of a cluster: a simulated one."""

from __future__ import annotations

from collections import Counter

from bookkeeper.console.ledger_list import LedgerFilter
from bookkeeper.console.picture import LedgersPicture, LedgersReader, picture_of_bookies
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger.location import Location
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.meta.cluster import Metadata, init_cluster_in
from bookkeeper.meta.records.ledger_format import encode
from bookkeeper.meta.store import Create
from bookkeeper.meta.stores.memory import Fate, MemoryCluster
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.meta.services import seams
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
            reader = LedgersReader(bk.metadata_store)
            found = await reader.picture()
            assert reader.read_so_far == 2
            assert [row.ledger_id for row in found.ledgers.select(LedgerFilter(), 0, 9).rows] == [second, first]
            assert [row.ledger_id for row in found.ledgers.select(LedgerFilter(health="marked"), 0, 9).rows] == [second]
            (deleted,) = found.deleted
            assert (deleted.ledger_id, deleted.entries, deleted.problem) == (LedgerId(gone), 3, "")
            assert deleted.until_ms - deleted.deleted_ms == 1_000_000

    SimCluster(1, 3).run(story)


class Asked:
    """Counts what is asked of a store."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()

    def fate(self, session: int, kind: str, path: str) -> Fate:
        self.kinds[kind] += 1
        return Fate()


SPEC = QuorumSpec(ensemble_size=2, write_quorum=2, ack_quorum=2)


class Watched:
    """The metadata of so many ledgers, half of them closed, and a reader of them."""

    def __init__(self, cluster: MemoryCluster, metadata: Metadata) -> None:
        self.cluster, self.metadata, self.reader = cluster, metadata, LedgersReader(metadata)

    @classmethod
    async def of(cls, count: int) -> Watched:
        cluster = MemoryCluster()
        await init_cluster_in(cluster.connect(), seams())
        metadata = await Metadata.over(cluster.connect(), seams())
        for name in ("b1", "b2"):
            await metadata.store.create(f"/ledgers/available/{name}", ephemeral=True, parents=True)
        made = LedgerMetadata.create(SPEC, [BookieId("b1"), BookieId("b2")])
        values = [encode(made), encode(made.close(9, 100))]
        paths = [metadata.ledgers.path(LedgerId(number)) for number in range(count)]
        for first in paths[::10_000]:  # each of a directory of its own
            await metadata.store.create(first, values[0], parents=True)
        await metadata.store.multi([Create(path, values[at % 2]) for at, path in enumerate(paths) if at % 10_000])
        return cls(cluster, metadata)

    async def look(self) -> tuple[LedgersPicture, Counter[str]]:
        """The next picture, and what was asked for it."""
        asked = self.cluster.interference = Asked()
        found = await self.reader.picture()
        self.cluster.interference = None
        return found, asked.kinds

    async def close(self, *ledgers: int) -> None:
        """Somebody else closes ledgers."""
        other = await Metadata.over(self.cluster.connect(), seams())
        for number in ledgers:
            read = await other.ledgers.read(LedgerId(number))
            await other.ledgers.write(LedgerId(number), read.value.close(3, 40), read.version)


def states(found: LedgersPicture) -> dict[str, int]:
    return dict(found.ledgers.states)


async def test_what_is_asked_follows_the_changes_and_not_the_ledgers() -> None:
    later: list[Counter[str]] = []
    for count in (200, 1000):
        watched = await Watched.of(count)
        first, asked = await watched.look()
        assert asked["get"] >= count and first.read_anew == count
        await watched.close(0, 10, 20)
        second, asked = await watched.look()
        later.append(asked)
        assert second.read_anew == 3 and asked["get"] < 10 and asked.total() < 30
        assert states(second) == {"open": count // 2 - 3, "closed": count // 2 + 3}
        assert second.ledgers.status.size == first.ledgers.status.size + 120
        third, asked = await watched.look()
        assert third.read_anew == 0 and third.ledgers is second.ledgers, "nothing has changed"
    assert later[0] == later[1]


async def test_what_is_made_and_deleted_is_seen_by_the_next_look() -> None:
    watched = await Watched.of(20)
    await watched.look()
    other = await Metadata.over(watched.cluster.connect(), seams())
    made = LedgerMetadata.create(SPEC, [BookieId("b1"), BookieId("b2")])
    await other.ledgers.create(made, LedgerId(50))
    await other.ledgers.delete(LedgerId(1))
    await other.ledgers.delete(LedgerId(3), grace_s=1000)
    found, _ = await watched.look()
    ids = {row.ledger_id for row in found.ledgers.select(LedgerFilter(), 0, 99).rows}
    assert ids == {*range(20), 50} - {1, 3} and [each.ledger_id for each in found.deleted] == [3]
    assert found.read_anew == 1
    await other.ledgers.restore(LedgerId(3))
    found, _ = await watched.look()
    assert len(found.ledgers) == 20 and found.deleted == () and found.read_anew == 1


async def test_a_bookie_that_goes_has_its_ledgers_judged_anew() -> None:
    watched = await Watched.of(20)
    first, _ = await watched.look()
    await watched.metadata.store.delete("/ledgers/available/b2", None)
    second, _ = await watched.look()
    assert first.ledgers.healths == {"well": 20} and second.ledgers.healths == {"short": 20}
    assert second.read_anew == 20


async def test_a_mark_alone_is_seen() -> None:
    watched = await Watched.of(20)
    await watched.look()
    await watched.metadata.under_replication.mark(LedgerId(7), [BookieId("b2")], 7)
    found, _ = await watched.look()
    assert found.ledgers.healths["marked"] == 1 and [each.ledger_id for each in found.marked] == [7]


async def test_metadata_that_cannot_be_read_are_asked_for_again() -> None:
    watched = await Watched.of(4)
    path = watched.metadata.ledgers.path(LedgerId(2))
    good = await watched.metadata.store.get(path)
    damaged = await watched.metadata.store.set(path, b"no metadata", good.version)
    first, _ = await watched.look()
    assert set(first.ledgers.status.unreadable) == {2}
    again, _ = await watched.look()
    assert again.ledgers is first.ledgers, "they are as they were"
    await watched.metadata.store.set(path, good.value, damaged)
    healed, _ = await watched.look()
    assert not healed.ledgers.status.unreadable and healed.read_anew == 1
