"""Deleting: nobody goes on writing into what is gone."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import BookKeeperError, LedgerFencedError, NoSuchLedgerError, RecoveryInconclusiveError
from bookkeeper.meta.store import Create, Operation, Set
from bookkeeper.meta.stores.memory import Fate
from bookkeeper.meta.stores.tree import find
from tests.bookkeeper.client.scripted import ScriptedCluster


@pytest.mark.rule("M6")
def test_a_running_writer_is_fenced_before_its_ledger_goes() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger(password=b"its own")
            await ledger.append(b"x")
            await other.delete_ledger(ledger.id)
            assert all(ledger.id in bookie.fenced for bookie in cluster.bookies)
            with pytest.raises(LedgerFencedError):
                await ledger.append(b"y")
            with pytest.raises(NoSuchLedgerError):
                await other.delete_ledger(ledger.id)

    ScriptedCluster().run(story)


@pytest.mark.rule("M6")
def test_what_cannot_be_fenced_is_deleted_by_force_only() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            for bookie in cluster.bookies[1:]:
                bookie.silent = True
            with pytest.raises(RecoveryInconclusiveError, match=r"was not deleted.*force") as told:
                await other.delete_ledger(ledger.id)
            assert told.value.retryable and await other.exists(ledger.id)
            for bookie in cluster.bookies:
                cluster.world.node(bookie.id).crash()
            await other.delete_ledger(ledger.id, force=True)
            assert not await other.exists(ledger.id)
            await ledger.abandon()

    ScriptedCluster().run(story)


@pytest.mark.rule("M6", "M9")
def test_force_fences_those_that_answer() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            await other.delete_ledger(ledger.id, force=True)
            with pytest.raises(BookKeeperError):
                await ledger.append(b"y")
            assert all(ledger.id in bookie.fenced for bookie in cluster.bookies)

    ScriptedCluster().run(story)


@pytest.mark.rule("M6")
def test_two_who_delete_at_once_both_end() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            ends = await asyncio.gather(
                bk.delete_ledger(ledger.id), other.delete_ledger(ledger.id), return_exceptions=True
            )
            assert all(end is None or isinstance(end, NoSuchLedgerError) for end in ends), ends
            assert not await bk.exists(ledger.id)
            await ledger.abandon()

    ScriptedCluster().run(story)


class MadeAnew:
    """Right before the deletion somebody else deletes the ledger, and makes another one under its id."""

    def __init__(self, cluster: ScriptedCluster, path: str) -> None:
        self.store = cluster.store
        self.path = path
        self.done = False

    def fate(self, session: int, kind: str, path: str) -> Fate:
        if kind == "multi" and path == self.path and not self.done:
            self.done = True
            value = self.store.read(lambda tree: find(tree, path)).value
            self.store.write(session, lambda transaction: transaction.delete(path, None))
            made: list[Operation] = [Create(path, value), *[Set(path, value, None)] * 5]
            self.store.write(session, lambda transaction: transaction.run(made))
        return Fate()


@pytest.mark.rule("M6", "M9")
def test_a_ledger_that_was_made_anew_under_the_id_meanwhile_is_not_deleted() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(ledger_id=7)
            await ledger.close()
            cluster.store.interference = hand = MadeAnew(cluster, bk.metadata_store.ledgers.path(ledger.id))
            await bk.delete_ledger(7)
            assert hand.done and await bk.exists(7)

    ScriptedCluster().run(story)
