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


class MadeAnewAt:
    """Somebody else makes another ledger under the id, in the same version, right before one of the reads."""

    def __init__(self, cluster: ScriptedCluster, path: str, read: int, *, changed: bool = False) -> None:
        """``changed``: the first deletion meets other metadata than were read."""
        self.store, self.path = cluster.store, path
        self.left, self.changed = read, changed

    def fate(self, session: int, kind: str, path: str) -> Fate:
        if path != self.path:
            return Fate()
        node = self.store.read(lambda tree: find(tree, path))
        if kind == "multi" and self.changed:
            self.changed = False
            self.store.write(session, lambda transaction: transaction.set(path, node.value, None))
        elif kind == "get":
            self.left -= 1
            if not self.left:
                self.store.write(session, lambda transaction: transaction.delete(path, None))
                made: list[Operation] = [Create(path, node.value), *[Set(path, node.value, None)] * node.version]
                self.store.write(session, lambda transaction: transaction.run(made))
        return Fate()


@pytest.mark.rule("M6", "M9")
@pytest.mark.parametrize("read, changed", [(2, False), (4, True)])
def test_a_ledger_that_was_made_anew_in_the_same_version_is_not_deleted(read: int, changed: bool) -> None:
    """After the first read; and after a deletion that met other metadata, before these are read."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(ledger_id=7)
            await ledger.close()
            path = bk.metadata_store.ledgers.path(ledger.id)
            cluster.store.interference = hand = MadeAnewAt(cluster, path, read, changed=changed)
            await bk.delete_ledger(7)
            assert hand.left <= 0 and not hand.changed and await bk.exists(7)

    ScriptedCluster().run(story)


@pytest.mark.rule("G8", "Z6")
def test_a_deleted_ledger_is_gone_at_once_also_for_who_asks_a_server_that_is_behind() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger(ledger_id=7)
            await ledger.close()
            await other.exists(7)
            other.metadata_store.store.lag()  # type: ignore[attr-defined]
            await bk.delete_ledger(7, grace_s=100)
            await other.delete_ledger(7, grace_s=0)
            assert not await bk.metadata_store.ledgers.restorable.has(ledger.id, fresh=True)

    ScriptedCluster().run(story)
