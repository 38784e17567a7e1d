"""Stand-ins: found, recorded, waited for; and the close, which is the same kind of write."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest

from bookkeeper.errors import (
    LedgerFencedError,
)
from bookkeeper.meta.records.ledger_format import decode, encode
from bookkeeper.meta.stores.memory import Fate
from bookkeeper.meta.stores.tree import find
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import CONFIG, ScriptedBookie, ScriptedCluster


@pytest.mark.rule("W13")
def test_without_a_spare_appends_go_on_with_the_ack_quorum_and_the_absent_copy_is_marked_at_close() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"three copies")
            cluster.world.node("b3").crash()
            for _ in range(5):
                await ledger.append(b"two copies")
            assert ledger.failed_bookies == ("b3",)
            store, root = bk.metadata_store.store, bk.metadata_store.paths.root
            await ledger.close()
            from bookkeeper.meta.records.under_replication import decode_mark, mark_path

            assert decode_mark("a mark", (await store.get(mark_path(root, ledger.id))).value).replica == ["b3"]
            assert (await bk.metadata(ledger.id)).last_entry == 5

    ScriptedCluster().run(story)


@pytest.mark.rule("W14")
@pytest.mark.parametrize("lags", [True, False])
def test_a_ledger_is_marked_if_a_bookie_lags_at_its_close_and_only_then(lags: bool) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"three copies")
            await asyncio.sleep(0.1)
            cluster["b3"].silent = lags
            await ledger.append(b"two copies or three")
            await ledger.close()
            marked = await bk.metadata_store.under_replication.read(ledger.id)
            assert marked is None if not lags else marked is not None and list(marked.bookies) == ["b3"]

    ScriptedCluster().run(story)


@pytest.mark.rule("W13")
def test_a_spare_that_appears_later_takes_the_place() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"a")
            cluster.world.node("b3").crash()
            await ledger.append(b"b")
            await cluster.add(ScriptedBookie("b4"))
            await asyncio.sleep(5)
            await ledger.append(b"c")
            assert set(ledger.metadata.last_fragment.ensemble) == {"b1", "b2", "b4"}
            await asyncio.sleep(1)
            assert 2 in cluster["b4"].entries[ledger.id]

    ScriptedCluster().run(story)


@pytest.mark.rule("Z12")
def test_appends_go_on_while_the_metadata_store_is_away_and_a_change_waits_for_it() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"a")
            cluster.store.begin_outage()
            for _ in range(5):
                await ledger.append(b"b")
            victim = ledger.metadata.last_fragment.ensemble[0]
            cluster[victim].refuse_adds = Status.IO_ERROR
            for _ in range(5):
                await ledger.append(b"c")
            assert ledger.failed_bookies == (victim,)
            cluster.store.end_outage()
            for _ in range(20):
                await ledger.append(b"d")
                await asyncio.sleep(0.5)
            assert victim not in ledger.metadata.last_fragment.ensemble

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("R13")
def test_an_owner_that_finds_its_ledger_in_recovery_does_not_close_it() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"kept")
            stored = await bk.metadata_store.ledgers.read(ledger.id)
            await bk.metadata_store.ledgers.write(ledger.id, stored.value.begin_recovery(), stored.version)
            with pytest.raises(LedgerFencedError):
                await ledger.close()
            assert not (await bk.metadata(ledger.id)).is_closed

    ScriptedCluster().run(story)


class GoesAwayWithTheReply:
    """The first compare-and-set is done; its reply is lost, and so is the store."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self.cluster = cluster
        self.done = False

    def fate(self, session: int, kind: str, path: str) -> Fate:
        if kind != "set" or self.done:
            return Fate()
        self.done = True
        asyncio.get_running_loop().call_soon(self.cluster.store.begin_outage)
        return Fate(reply_lost=True)


@pytest.mark.rule("M8", "W4")
def test_while_nobody_knows_whether_a_change_was_made_nothing_is_confirmed() -> None:
    config = CONFIG.__class__(add_timeout_ms=60_000)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"a")
            cluster.store.interference = GoesAwayWithTheReply(cluster)
            cluster[ledger.metadata.last_fragment.ensemble[0]].refuse_adds = Status.IO_ERROR
            pending = ledger.append_nowait(b"b")
            await asyncio.sleep(25)  # long enough for every attempt to settle it to end
            assert not pending.done()
            cluster.store.end_outage()
            assert await pending == 1
            stored = await bk.metadata(ledger.id)
            assert stored == ledger.metadata and len(stored.fragments) == 2
            assert not ledger.failed_bookies

    ScriptedCluster(bookies=4).run(story)


class TakenOverAndAway:
    """The first compare-and-set is done and its reply lost; a recovery sets its own on top of it before anybody looks;
    and when that was seen, the store is away."""

    def __init__(self, cluster: ScriptedCluster, path: str) -> None:
        self.store = cluster.store
        self.path = path
        self.steps = ["set", "sync", "sync"]

    def fate(self, session: int, kind: str, path: str) -> Fate:
        if path != self.path or not self.steps or kind != self.steps[0]:
            return Fate()
        del self.steps[0]
        if kind == "set":
            return Fate(reply_lost=True)
        if self.steps:
            node = self.store.read(lambda tree: find(tree, path))
            taken = encode(decode(node.value).begin_recovery())
            self.store.write(session, lambda transaction: transaction.set(path, taken, None))
        else:
            self.store.begin_outage()
        return Fate()


@pytest.mark.rule("M8", "W4")
def test_a_set_that_may_have_been_done_and_replaced_is_not_taken_for_one_that_was_not_done() -> None:
    """The bookie that was replaced still counted else, in an ensemble whose recovery does not ask it."""
    config = CONFIG.__class__(add_timeout_ms=60_000)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"a")
            cluster.store.interference = TakenOverAndAway(cluster, bk.metadata_store.ledgers.path(ledger.id))
            cluster[ledger.metadata.last_fragment.ensemble[0]].refuse_adds = Status.IO_ERROR
            pending = ledger.append_nowait(b"b")
            await asyncio.sleep(25)  # long enough for every attempt to settle it to end
            assert not pending.done()
            cluster.store.end_outage()
            with pytest.raises(LedgerFencedError):
                await pending
            assert len((await bk.metadata(ledger.id)).fragments) == 2

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("W5", "M1")
def test_a_change_that_loses_its_compare_and_set_starts_again_from_what_is_stored() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"a")
            ledgers = bk.metadata_store.ledgers
            stored = await ledgers.read(ledger.id)
            changed = dataclasses.replace(stored.value, custom={"by": b"someone else"})
            await ledgers.write(ledger.id, changed, stored.version)
            victim = ledger.metadata.last_fragment.ensemble[0]
            cluster[victim].refuse_adds = Status.IO_ERROR
            await ledger.append(b"b")
            await asyncio.sleep(0.5)
            found = await bk.metadata(ledger.id)
            assert found.custom == {"by": b"someone else"} and victim not in found.last_fragment.ensemble

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("W6")
def test_a_change_that_meets_a_ledger_in_recovery_ends_the_writer() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"a")
            stored = await bk.metadata_store.ledgers.read(ledger.id)
            await bk.metadata_store.ledgers.write(ledger.id, stored.value.begin_recovery(), stored.version)
            cluster[ledger.metadata.last_fragment.ensemble[0]].refuse_adds = Status.IO_ERROR
            with pytest.raises(LedgerFencedError):
                for _ in range(5):  # the two others may have confirmed some before the refusal arrived
                    await ledger.append(b"b")
                    await asyncio.sleep(0.1)

    ScriptedCluster(bookies=4).run(story)
