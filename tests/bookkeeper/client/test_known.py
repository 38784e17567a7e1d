"""What one client knew lets another one read without a session with the metadata store."""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.known import KnownCluster, KnownLedger
from bookkeeper.errors import IllegalOperationError, NoClusterError
from bookkeeper.ids import Address, BookieId
from bookkeeper.meta import Metadata
from bookkeeper.meta.stores.late import LateStore
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import CONFIG, Opened, ScriptedCluster, written


@asynccontextmanager
async def reader_of(cluster: ScriptedCluster, known: KnownCluster) -> AsyncIterator[tuple[BookKeeper, LateStore]]:
    """A client that knows ``known``, and its store."""
    seams = cluster.client.seams
    metadata = Metadata.late(lambda: cluster.metadata(seams), seams, known.layout, known.instance_id)
    client = await BookKeeper.over(Opened(metadata), config=CONFIG, seams=seams, known=known)
    try:
        assert isinstance(metadata.store, LateStore)
        yield client, metadata.store
    finally:
        await client.close()


async def payloads(bk: BookKeeper, ledger: KnownLedger, password: bytes = b"") -> list[bytes]:
    async with await bk.open_known(ledger, password) as reader:
        return [entry.payload async for entry in reader.read(0, reader.last_add_confirmed)]


def test_a_closed_and_an_open_ledger_are_read_without_a_question_to_the_store() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger(password=b"words", digest="hmac") as ledger:
            for payload in (b"zero", b"one", b"two"):
                await ledger.append(payload)
            known = []
            closed = await written(bk, 2)
            for ledger_id, password in ((ledger.id, b"words"), (closed, b"")):
                async with await bk.open_ledger(ledger_id, password, recovery=False) as reader:
                    known.append(reader.known)
            travelled = pickle.dumps((known, await bk.known_cluster(known)))
            await ledger.append(b"three")
        assert b"words" not in travelled
        [growing, done], told = pickle.loads(travelled)
        assert (growing.last, done.last) == (2, 1)
        async with reader_of(cluster, told) as (bk, store):
            assert await payloads(bk, growing, b"words") == [b"zero", b"one", b"two"], (
                "what the first reader might read"
            )
            assert len(await payloads(bk, done)) == 2
            assert not store.is_open
            async with await bk.open_known(growing, b"words") as reader:
                await reader.read_last_add_confirmed()
            assert store.is_open, "it asks to learn of more"

    ScriptedCluster().run(story)


@pytest.mark.parametrize("why", ["it is down", "its address is another one", "it has nothing"])
def test_a_bookie_that_does_not_give_an_entry_is_passed_over_and_the_store_asked_where_nobody_does(why: str) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 3)
            async with await bk.open_ledger(ledger_id) as reader:
                ledger = reader.known
            told = await bk.known_cluster([ledger])
        assert told.addresses == {bookie.id: Address(bookie.id, 3181) for bookie in cluster.bookies}
        if why == "it is down":
            cluster.world.node("b1").crash()
        elif why == "it has nothing":
            cluster["b1"].entries.clear()
            cluster["b1"].refuse_reads = Status.NO_ENTRY
        else:
            wrong = {BookieId("b1"): Address("b1", 1)}
            told = KnownCluster(told.layout, told.instance_id, {**told.addresses, **wrong})
        async with reader_of(cluster, told) as (bk, _):
            for _ in range(3):  # whoever is asked first
                assert len(await payloads(bk, ledger)) == 3
        nowhere = {BookieId(name): Address(name, 1) for name in ledger.bookies}
        async with reader_of(cluster, KnownCluster(told.layout, told.instance_id, nowhere)) as (bk, store):
            assert len(await payloads(bk, ledger)) == 3
            assert store.is_open, "nobody was where he was said to be"

    ScriptedCluster().run(story)


def test_such_a_client_only_reads() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id, told = await written(bk, 1), await bk.known_cluster([])
        async with reader_of(cluster, told) as (bk, _):
            for refused in (bk.create_ledger(), bk.open_ledger(ledger_id), bk.delete_ledger(ledger_id)):
                with pytest.raises(IllegalOperationError, match="only reads what others knew"):
                    await refused
            assert await bk.exists(ledger_id)
            async with await bk.open_ledger(ledger_id, recovery=False) as reader:
                assert reader.closed
        async with reader_of(cluster, KnownCluster(told.layout, "another", {})) as (bk, _):
            with pytest.raises(NoClusterError, match="and not another: it was made anew"):
                await bk.exists(ledger_id)

    ScriptedCluster().run(story)
