"""What operators ask, on production bookies in a simulated world."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper import wire
from bookkeeper.client.operators import BookieInfo, Operator
from bookkeeper.errors import (
    BookieUnavailableError,
    LedgerFencedError,
    MetadataFormatError,
    NoSuchEntryError,
    NoSuchLedgerError,
    UnauthorizedError,
)
from bookkeeper.ids import LedgerId
from bookkeeper.testing.cluster import SimCluster
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import ScriptedCluster, written


def test_who_is_there_and_who_is_not() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            operator = Operator(bk)
            assert await operator.writable_bookies() == await operator.all_bookies() == ["b1", "b2", "b3"]
            registration = cluster.servers["b2"]._registration
            assert registration is not None
            await registration.set_read_only(True)
            assert await operator.writable_bookies() == ["b1", "b3"]
            assert await operator.read_only_bookies() == ["b2"]
            cluster.node("b3").crash()
            while "b3" in await operator.writable_bookies():  # noqa: ASYNC110 - virtual time
                await asyncio.sleep(0.1)
            assert await operator.all_bookies() == ["b1", "b2", "b3"], "its cookie is there"

    SimCluster().run(story)


def test_how_full_a_bookie_is_and_what_it_holds() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            operator = Operator(bk)
            async with await bk.create_ledger(ensemble=3, write_quorum=2, ack_quorum=2, password=b"pw") as ledger:
                await ledger.append_many([b"x" * 100] * 12)
            info = await operator.bookie_info("b1")
            assert info.total is not None and info.free is not None and 0 < info.free < info.total
            ensemble = ledger.metadata.last_fragment.ensemble
            for position, bookie in enumerate(ensemble):
                held = await operator.entries_on(bookie, ledger.id)
                assert [e for e in range(12) if e in held] == list(ledger.metadata.spec.stripe(position, 0, 12))
            with pytest.raises(NoSuchLedgerError, match="entries of ledger 77 on b1"):
                await operator.entries_on("b1", 77)
            cluster.node("b2").crash()
            with pytest.raises(BookieUnavailableError):
                await operator.entries_on("b2", ledger.id)
            with pytest.raises(BookieUnavailableError):
                await operator.bookie_info("nobody")

    SimCluster().run(story)


def test_a_bookie_that_says_nothing_of_its_disk() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        bookie = cluster["b1"]
        handle = bookie.handle

        def silent(request: wire.Request, reply: object) -> None:
            if isinstance(request, wire.GetBookieInfo):
                reply(wire.InfoReply(Status.OK))  # type: ignore[operator]
            else:
                handle(request, reply)  # type: ignore[arg-type]

        bookie.handle = silent  # type: ignore[method-assign]
        async with cluster.connect() as bk:
            assert await Operator(bk).bookie_info("b1") == BookieInfo(None, None)

    ScriptedCluster().run(story)


def test_a_ledger_is_opened_without_its_password_and_its_writer_goes_on() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            operator = Operator(other)
            ledger = await bk.create_ledger(password=b"secret", digest="hmac")
            await ledger.append(b"one")
            with pytest.raises(UnauthorizedError):
                await other.open_ledger(ledger.id, recovery=False)
            async with await operator.open_ledger(ledger.id) as reader:
                assert await reader.read_entry(0) == b"one"
            await ledger.append(b"two")
            assert (await operator.metadata(ledger.id)).password == b"secret"
            closed = await operator.recover_ledger(ledger.id)
            assert (closed.is_closed, closed.last_entry, closed.length) == (True, 1, 6)
            with pytest.raises(LedgerFencedError):
                await ledger.append(b"three")
            assert await operator.recover_ledger(ledger.id) == closed
            with pytest.raises(NoSuchLedgerError):
                await operator.recover_ledger(77)

    SimCluster().run(story)


def test_ledgers_that_name_a_bookie() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            operator = Operator(bk)
            made = [await written(bk, 1, ensemble=2, write_quorum=2, ack_quorum=2) for _ in range(40)]
            for bookie in ("b1", "b2", "b3"):
                found = {ledger_id: fragments async for ledger_id, fragments in operator.ledgers_on(bookie)}
                expected = [ledger for ledger in made if bookie in (await bk.metadata(ledger)).bookies]
                assert list(found) == expected
                assert all(bookie in fragment.ensemble for some in found.values() for fragment in some)
            assert [i async for i, _ in operator.ledgers_on("b9")] == []
            path = bk.metadata_store.ledgers.path(LedgerId(made[3]))
            await bk.metadata_store.store.set(path, b"nonsense", None)
            pairs = [pair async for pair in operator.all_metadata()]
            assert [ledger_id for ledger_id, _ in pairs] == made
            assert [i for i, found_ in pairs if isinstance(found_, MetadataFormatError)] == [made[3]]
            with pytest.raises(MetadataFormatError):
                assert [i async for i, _ in operator.ledgers_on("b1")]

    ScriptedCluster().run(story)


@pytest.mark.rule("L5")
def test_one_bookies_copy_is_read_from_it_alone() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            operator = Operator(bk)
            async with await bk.create_ledger(ensemble=3, write_quorum=2, ack_quorum=2, password=b"pw") as ledger:
                await ledger.append_many([b"%d" % at for at in range(6)])
            ensemble = ledger.metadata.last_fragment.ensemble
            for entry_id in range(6):
                for bookie in ledger.metadata.write_set(entry_id):
                    assert (await operator.copy_on(bookie, ledger.id, entry_id)).payload == b"%d" % entry_id
            lacking = next(name for name in ensemble if name not in ledger.metadata.write_set(0))
            with pytest.raises(NoSuchEntryError, match=f"entry 0 of ledger {ledger.id} on {lacking}"):
                await operator.copy_on(lacking, ledger.id, 0)
            with pytest.raises(BookieUnavailableError):
                await operator.copy_on("nobody", ledger.id, 0)
            with pytest.raises(NoSuchLedgerError):
                await operator.copy_on(ensemble[0], 987, 0)

    SimCluster().run(story)
