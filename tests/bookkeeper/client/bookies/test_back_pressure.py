"""A bookie without room for adds: asked again, and replaced only if it makes no progress."""

from __future__ import annotations

import asyncio
import random

import pytest

from bookkeeper.client.bookies.back_pressure import BackPressure
from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.errors import NoSuchKeyError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import HEADER
from bookkeeper.meta.records.under_replication import decode_mark, mark_path
from bookkeeper.testing import World
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import ScriptedBookie, ScriptedCluster

B1 = BookieId("b1")


class Crowded(ScriptedBookie):
    """Has room for every third try of an entry only."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.tries: dict[int, int] = {}

    def add_status(self, ledger_id: int, key: bytes, entry_id: int) -> Status:
        self.tries[entry_id] = self.tries.get(entry_id, 0) + 1
        return Status.TOO_MANY_REQUESTS if self.tries[entry_id] % 3 else super().add_status(ledger_id, key, entry_id)


async def marked(bk: BookKeeper, ledger_id: LedgerId) -> list[BookieId]:
    """The bookies that the mark of a ledger names as lacking copies."""
    metadata = bk.metadata_store
    try:
        found = await metadata.store.get(mark_path(metadata.paths.root, ledger_id))
        return [BookieId(each) for each in decode_mark("a mark", found.value).replica]
    except NoSuchKeyError:
        return []


@pytest.mark.rule("W15", "W8")
@pytest.mark.parametrize("shape", [(3, 3, 2), (4, 3, 2)], ids=str)
@pytest.mark.parametrize("crowded", [1, 4])
def test_bookies_without_room_for_a_moment_get_everything_and_keep_their_places(
    shape: tuple[int, int, int], crowded: int
) -> None:
    ensemble, write_quorum, ack_quorum = shape
    cluster = ScriptedCluster(bookies=5)
    cluster.bookies[:crowded] = [Crowded(bookie.id) for bookie in cluster.bookies[:crowded]]

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(ensemble=ensemble, write_quorum=write_quorum, ack_quorum=ack_quorum)
            for run in range(20):
                await ledger.append_many([b"%d" % i for i in range(run % 5 + 1)])
                await asyncio.sleep(0.02)
            await asyncio.sleep(2)
            metadata = await bk.metadata(ledger.id)
            assert len(metadata.fragments) == 1 and ledger.failed_bookies == ()
            short = 0
            for entry in range(60):
                held = [
                    bookie.entries[ledger.id][entry]
                    for bookie in cluster.bookies
                    if entry in bookie.entries.get(ledger.id, {})
                ]
                short += len(held) < write_quorum
                assert len(held) >= ack_quorum
                assert len(set(held)) == 1 and HEADER.unpack_from(held[0])[1] == entry
            assert short < 10, "refused after it was confirmed by others"
            await ledger.close()
            assert await marked(bk, ledger.id) == [B1] * bool(short)

    cluster.run(story)


@pytest.mark.rule("W15")
def test_one_that_never_has_room_while_others_progress_has_failed_after_the_stall_time() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            refusing = ledger.metadata.last_fragment.ensemble[0]
            cluster[refusing].refuse_adds = Status.TOO_MANY_REQUESTS
            loop = asyncio.get_running_loop()
            began = loop.time()
            while refusing in ledger.metadata.last_fragment.ensemble:
                await ledger.append(b"y")
                await asyncio.sleep(0.02)
                assert loop.time() - began < 2
            assert loop.time() - began > 0.4
            await ledger.close()

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("W14", "W15")
def test_what_was_refused_and_not_sent_again_by_the_close_is_noted_as_missing() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            cluster["b1"].refuse_adds = Status.TOO_MANY_REQUESTS
            await ledger.append_many([b"a", b"b"])
            await ledger.close()
            assert await marked(bk, ledger.id) == [B1]

    ScriptedCluster().run(story)


class LateRefusal(ScriptedBookie):
    """Refuses one entry, once, when the others have confirmed it long ago."""

    def add_status(self, ledger_id: int, key: bytes, entry_id: int) -> Status:
        if entry_id >= 5 and not self.refusal_delay_s:
            self.refusal_delay_s = 0.05
            return Status.TOO_MANY_REQUESTS
        return super().add_status(ledger_id, key, entry_id)


@pytest.mark.rule("W12", "W14")
@pytest.mark.parametrize("shape", [(3, 3, 2), (3, 2, 1)], ids=str)
def test_a_refusal_that_comes_after_the_confirm_holds_no_packets(shape: tuple[int, int, int]) -> None:
    ensemble, write_quorum, ack_quorum = shape
    cluster = ScriptedCluster()
    cluster.bookies[:1] = [LateRefusal(cluster.bookies[0].id)]

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(ensemble=ensemble, write_quorum=write_quorum, ack_quorum=ack_quorum)
            for _ in range(100):
                await ledger.append(bytes(1000))
                await asyncio.sleep(0.01)
            await asyncio.sleep(1)
            assert ledger._shell._packets.size == 0, "kept for an answer that cannot come"
            await ledger.close()
            assert await marked(bk, ledger.id) == [B1]

    cluster.run(story)


def test_what_is_needed_again_and_when() -> None:
    async def story() -> None:
        sent: list[tuple[str, int, int]] = []
        back_pressure = BackPressure(asyncio.get_running_loop(), random.Random(1), lambda *what: sent.append(what))
        assert list(back_pressure.pending()) == []
        back_pressure.on_accepted(B1, 0, 9)
        back_pressure.on_refused(B1, 5, 2)
        back_pressure.on_refused(B1, 7, 1)
        back_pressure.on_refused(B1, 3, 1)
        assert back_pressure.lowest == 3 and list(back_pressure.pending()) == [(B1, 5, 7), (B1, 3, 3)]
        await asyncio.sleep(0.02)
        assert sent == [(B1, 3, 1), (B1, 5, 3)]
        assert back_pressure.lowest == 3, "sent, and not answered"
        back_pressure.on_accepted(B1, 3, 1)
        back_pressure.on_refused(B1, 5, 3)
        assert list(back_pressure.pending()) == [(B1, 5, 7)]
        await asyncio.sleep(0.05)
        assert sent[2:] == [(B1, 5, 3)]
        back_pressure.on_accepted(B1, 5, 3)
        assert list(back_pressure.pending()) == []
        back_pressure.on_refused(B1, 8, 1)
        back_pressure.forget(B1)
        await asyncio.sleep(1)
        assert len(sent) == 3

    world = World(1)
    with world:
        world.run(story(), within_s=60)


@pytest.mark.rule("W12")
def test_nothing_is_held_for_an_answer_that_cannot_come() -> None:
    async def story() -> None:
        sent: list[tuple[str, int, int]] = []

        def resend(bookie: BookieId, first: int, count: int) -> bool:
            sent.append((bookie, first, count))
            return first >= 5  # the packets of those below are gone: others have confirmed them

        back_pressure = BackPressure(asyncio.get_running_loop(), random.Random(1), resend)
        back_pressure.on_refused(B1, 3, 1)
        assert list(back_pressure.pending()) == [(B1, 3, 3)]
        await asyncio.sleep(0.02)
        assert sent == [(B1, 3, 1)] and list(back_pressure.pending()) == []
        back_pressure.on_refused(B1, 4, 1)
        back_pressure.on_refused(B1, 6, 2)
        await asyncio.sleep(0.02)
        assert sent[1:] == [(B1, 4, 1), (B1, 6, 2)]
        assert list(back_pressure.pending()) == [(B1, 6, 7)]
        back_pressure.on_accepted(B1, 6, 2)
        assert list(back_pressure.pending()) == []

    world = World(1)
    with world:
        world.run(story(), within_s=60)
