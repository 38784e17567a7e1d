"""Forgetting bookies: only those that nobody needs any more."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.operators import Operator
from bookkeeper.errors import BookKeeperError, IllegalOperationError, NotEnoughBookiesError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerMetadata
from bookkeeper.meta import Version
from bookkeeper.meta.stores.memory import Fate
from bookkeeper.replication import drain, forget
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import Story, set_read_only, written


def run(story: Story, bookies: int = 4, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


async def stop(cluster: SimCluster, bk: BookKeeper, name: str) -> None:
    """And wait until it is registered no more."""
    await cluster.servers[name].stop()
    bookies = bk.metadata_store.bookies
    while name in [*await bookies.writable(), *await bookies.read_only()]:  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def known(bk: BookKeeper) -> list[BookieId]:
    return await bk.metadata_store.bookies.known()


@pytest.mark.rule("A11", "K32")
def test_a_bookie_is_forgotten_when_it_is_stopped_and_no_ledger_names_it() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = [await written(cluster, bk, 10) for _ in range(4)]
            naming = [ledger for ledger in ledgers if "b1" in (await bk.metadata(ledger)).bookies]
            assert len(naming) > 0
            with pytest.raises(IllegalOperationError, match=r"b1 is registered \(writable\): drain it, stop it"):
                await forget(bk, ["b1"])
            await set_read_only(cluster, "b1")
            with pytest.raises(IllegalOperationError, match=r"b1 is registered \(read-only\)"):
                await forget(bk, ["b1"])
            await stop(cluster, bk, "b1")
            with pytest.raises(IllegalOperationError) as refused:
                await forget(bk, ["b1"])
            assert f"b1 still has ledger{'s' if len(naming) > 1 else ''} {', '.join(map(str, naming))}" in str(
                refused.value
            )
            assert "bk bookies drain b1" in str(refused.value)
            assert (await drain(bk, ["b1"])).is_complete
            assert await bk.metadata_store.disks.read(BookieId("b1")) is not None
            told: list[int] = []
            done = await forget(bk, ["b1", "b1"], told.append)
            assert await bk.metadata_store.disks.read(BookieId("b1")) is None, "nor is anything known of its disk (K32)"
            assert (done.removed, done.ledgers, told) == (["b1"], 4, [1, 2, 3, 4])
            assert await known(bk) == ["b2", "b3", "b4"]
            with pytest.raises(IllegalOperationError, match="there is no bookie b1; known are b2, b3, b4"):
                await forget(bk, ["b1"])
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A11")
def test_several_are_forgotten_together_or_none() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await written(cluster, bk, 10, ensemble=2, write_quorum=2, ack_quorum=2)
            members = (await bk.metadata(0)).bookies
            idle, *rest = sorted({"b1", "b2", "b3", "b4"} - set(members))
            for name in (idle, *rest):
                await stop(cluster, bk, name)
            victim = sorted(members)[0]
            await stop(cluster, bk, victim)
            with pytest.raises(IllegalOperationError, match=f"{victim} still has ledger 0: "):
                await forget(bk, [idle, victim])
            with pytest.raises(IllegalOperationError, match="no bookie was named"):
                await forget(bk, [])
            assert len(await known(bk)) == 4
            assert (await forget(bk, [idle, *rest])).removed == [idle, *rest]

    run(story)


@pytest.mark.rule("A11", "X29")
def test_a_ledger_that_cannot_be_read_may_name_anybody() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 10, ensemble=3)
            idle = sorted({"b1", "b2", "b3", "b4"} - set((await bk.metadata(ledger)).bookies))[0]
            await stop(cluster, bk, idle)
            metadata = bk.metadata_store
            await metadata.store.set(metadata.ledgers.path(ledger), b"nonsense", None)
            with pytest.raises(
                IllegalOperationError, match=f"ledger {ledger} may name {idle}, but its metadata cannot be read"
            ):
                await forget(bk, [idle])
            assert idle in await known(bk)

    run(story)


@pytest.mark.rule("A11")
def test_one_that_is_started_while_the_ledgers_are_looked_at_is_not_forgotten() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await written(cluster, bk, 10, ensemble=3)
            idle = sorted({"b1", "b2", "b3", "b4"} - set((await bk.metadata(0)).bookies))[0]
            cluster.node(idle).crash()
            bookies = bk.metadata_store.bookies
            while idle in await bookies.writable():  # noqa: ASYNC110
                await asyncio.sleep(0.1)
            look = bookies.forget

            async def started_first(bookie: BookieId, cookie: Version, named: Version) -> None:
                cluster.node(idle).restart()
                while idle not in await bookies.writable():  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
                await look(bookie, cookie, named)

            bookies.forget = started_first  # type: ignore[method-assign]
            with pytest.raises(IllegalOperationError, match=f"{idle} was registered meanwhile"):
                await forget(bk, [idle])
            assert idle in await known(bk)

    run(story)


@pytest.mark.rule("A11")
def test_one_that_came_and_went_while_the_ledgers_were_looked_at_is_not_forgotten() -> None:
    """A ledger that was looked at already, or is younger, may name it by now."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await written(cluster, bk, 10, ensemble=3)
            idle = sorted({"b1", "b2", "b3", "b4"} - set((await bk.metadata(0)).bookies))[0]
            bookies = bk.metadata_store.bookies
            came = False

            async def ends() -> None:
                cluster.node(idle).crash()
                while idle in await bookies.writable():  # noqa: ASYNC110
                    await asyncio.sleep(0.1)

            async def comes_and_goes() -> None:
                nonlocal came
                cluster.node(idle).restart()
                while idle not in await bookies.writable():  # noqa: ASYNC110
                    await asyncio.sleep(0.1)
                await ends()
                came = True

            await ends()

            all_metadata = Operator.all_metadata

            async def slowly(operator: Operator) -> AsyncIterator[object]:
                if not came:
                    await comes_and_goes()
                async for found in all_metadata(operator):
                    yield found

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Operator, "all_metadata", slowly)
                with pytest.raises(IllegalOperationError, match=f"{idle} was started while the ledgers were read"):
                    await forget(bk, [idle])
            assert came and idle in await known(bk)
            assert (await forget(bk, [idle])).removed == [idle]

    run(story)


@pytest.mark.rule("A11")
def test_an_absent_one_that_a_new_ledger_names_while_it_is_being_forgotten_stays_known() -> None:
    """The ledgers were looked at before, and the cookie went afterwards: the new ledger named a bookie that could never
    come back. No sign of the naming stood where the write that removes the cookie would have met it."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await stop(cluster, bk, "b3")
            bookies, made = bk.metadata_store.bookies, list[int]()
            look = bookies.forget

            async def named_first(bookie: BookieId, cookie: Version, named: Version) -> None:
                async with await bk.create_ledger(when_short="name_absent") as ledger:
                    made.append(ledger.id)
                    assert "b3" in ledger.metadata.bookies
                await look(bookie, cookie, named)

            bookies.forget = named_first  # type: ignore[method-assign]
            with pytest.raises(IllegalOperationError, match="a new ledger names it"):
                await forget(bk, ["b3"])
            bookies.forget = look  # type: ignore[method-assign]
            assert "b3" in await known(bk)
            with pytest.raises(IllegalOperationError, match=f"b3 still has ledger {made[0]}"):
                await forget(bk, ["b3"])

    run(story, bookies=3)


@pytest.mark.rule("A11")
def test_one_that_a_new_ledger_names_while_the_ledgers_are_looked_at_stays_known() -> None:
    """The sign of the naming is read before the ledgers are looked at: read after it, a ledger that is younger than the
    listing leaves none."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await written(cluster, bk, 1, ensemble=2, write_quorum=2, ack_quorum=2)
            await stop(cluster, bk, "b3")
            all_metadata = Operator.all_metadata

            async def then_named(operator: Operator) -> AsyncIterator[object]:
                async for found in all_metadata(operator):
                    yield found
                async with await bk.create_ledger(when_short="name_absent") as ledger:
                    assert "b3" in ledger.metadata.bookies

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Operator, "all_metadata", then_named)
                with pytest.raises(IllegalOperationError, match=r"a new ledger names it|b3 still has"):
                    await forget(bk, ["b3"])
            assert "b3" in await known(bk)

    run(story, bookies=3)


@pytest.mark.rule("A11", "M8")
@pytest.mark.parametrize("forgotten", [True, False])
def test_a_creation_does_not_name_an_absent_one_that_was_forgotten_since_it_was_chosen(forgotten: bool) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            await stop(cluster, bk, "b3")
            await written(cluster, bk, 1, ensemble=2, write_quorum=2, ack_quorum=2)
            watcher = bk.services.watcher
            look = watcher.known_absent

            async def chosen_and_forgotten() -> list[BookieId]:
                chosen = await look()
                if chosen and forgotten:
                    await forget(other, chosen)
                return chosen

            watcher.known_absent = chosen_and_forgotten  # type: ignore[method-assign]
            cluster.store.interference = LosesOne()
            if forgotten:
                with pytest.raises(NotEnoughBookiesError):
                    await bk.create_ledger(when_short="name_absent")
                assert [ledger async for ledger in bk.list_ledgers()] == [0]
            else:
                async with await bk.create_ledger(when_short="name_absent") as ledger:
                    assert "b3" in ledger.metadata.bookies
                assert [ledger async for ledger in bk.list_ledgers()] == [0, 1]

    run(story, bookies=3)


class LosesOne:
    """The reply to the first transaction that was done."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def fate(self, session: int, kind: str, path: str) -> Fate:
        self.kinds.append(kind)
        return Fate(reply_lost=kind == "multi" and self.kinds.count("multi") == 2)


@pytest.mark.rule("A11", "G8")
def test_one_with_copies_of_deleted_ledgers_that_can_be_brought_back_is_forgotten_by_order_only() -> None:
    """Cause: the survey read the metadata of living ledgers alone, and the copies went without a word."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger, gone = [await written(cluster, bk, 10) for _ in range(2)]
            (bookie, *_) = sorted((await bk.metadata(ledger)).bookies & (await bk.metadata(gone)).bookies)
            await bk.delete_ledger(ledger, grace_s=86_400)
            await bk.delete_ledger(gone, grace_s=0)
            await stop(cluster, bk, bookie)
            drained = await drain(bk, [bookie])
            assert drained.is_complete and [each.ledger_id for each in drained.deleted] == [ledger]
            with pytest.raises(IllegalOperationError) as refused:
                await forget(bk, [bookie])
            text = str(refused.value)
            assert text.startswith(f"{bookie} has copies of ledgers that are deleted and can still be brought back: ")
            assert f": {ledger}. wait until " in text and "bk ledger undelete" in text and "--give-up-deleted" in text
            assert bookie in await known(bk)
            await Operator(bk).undelete_ledger(ledger)
            with pytest.raises(IllegalOperationError, match=f"{bookie} still has ledger {ledger}"):
                await forget(bk, [bookie], give_up_deleted=True)
            assert (await drain(bk, [bookie])).moved
            assert (await forget(bk, [bookie])).given_up == []

    run(story)


@pytest.mark.rule("A11", "G8")
def test_copies_of_deleted_ledgers_are_given_up_by_order_and_named() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 10)
            (bookie, *_) = sorted((await bk.metadata(ledger)).bookies)
            await bk.delete_ledger(ledger, grace_s=86_400)
            await stop(cluster, bk, bookie)
            done = await forget(bk, [bookie], give_up_deleted=True)
            assert done.removed == [bookie] and done.given_up == [ledger]

    run(story)


@pytest.mark.rule("A11", "G8")
@pytest.mark.parametrize("what", ["deleted", "brought back"])
def test_a_ledger_that_is_deleted_or_brought_back_while_the_ledgers_are_looked_at_is_seen(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 10)
            (bookie, *_) = sorted((await bk.metadata(ledger)).bookies)
            if what == "brought back":
                await bk.delete_ledger(ledger, grace_s=86_400)
            await stop(cluster, bk, bookie)
            surveyed = Operator.all_metadata

            async def meanwhile(self: Operator) -> AsyncIterator[tuple[LedgerId, LedgerMetadata | BookKeeperError]]:
                if what == "deleted":
                    await bk.delete_ledger(ledger, grace_s=86_400)
                async for each in surveyed(self):
                    yield each
                if what == "brought back":
                    await Operator(bk).undelete_ledger(ledger)

            monkeypatch.setattr(Operator, "all_metadata", meanwhile)
            with pytest.raises(IllegalOperationError, match="can still be brought back"):
                await forget(bk, [bookie])
            assert bookie in await known(bk)

    run(story)


@pytest.mark.rule("A11", "G8")
def test_the_record_of_a_deleted_ledger_that_is_damaged_may_be_anybodys() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 10)
            (bookie, *_) = sorted({"b1", "b2", "b3", "b4"} - (await bk.metadata(ledger)).bookies)
            await bk.delete_ledger(ledger, grace_s=86_400)
            store = bk.metadata_store.store
            await store.set(bk.metadata_store.ledgers.restorable.path(ledger), b"?", None)
            await stop(cluster, bk, bookie)
            with pytest.raises(IllegalOperationError, match=f"can still be brought back: {ledger}. bring them back"):
                await forget(bk, [bookie])

    run(story)
