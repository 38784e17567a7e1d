"""A writer tells bookies its last add confirmed when no append is about to."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.write import lac_sender
from bookkeeper.client.write.lac_sender import LacSender
from bookkeeper.client.write.lac_turns import LAC_OTHERS_S, LAC_TURNS, LacTurns
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.ledger.write import PublishLac
from bookkeeper.wire import WriteLac
from tests.bookkeeper.client.scripted import CONFIG, ScriptedCluster


@pytest.mark.rule("W16")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_an_idle_writer_tells_the_last_add_confirmed_without_another_add(protocol: str) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(CONFIG.__class__(protocol=protocol)) as bk:
            ledger = await bk.create_ledger()
            await asyncio.gather(*[ledger.append(b"x") for _ in range(10)])
            await asyncio.sleep(1)
            assert [bookie.explicit[ledger.id][0] for bookie in cluster.bookies] == [9, 9, 9]

    ScriptedCluster().run(story)


@pytest.mark.rule("W16")
def test_a_writer_that_goes_on_at_once_sends_no_explicit_last_add_confirmed_in_between() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            for _ in range(20):
                await ledger.append(b"x")
                await asyncio.wait_for(ledger.append(b"x"), 5)
                await asyncio.gather(ledger.append(b"x"), ledger.append(b"x"))
            assert not any(isinstance(r, WriteLac) for b in cluster.bookies for r in b.requests)

    ScriptedCluster().run(story)


@pytest.mark.rule("W16")
def test_an_append_that_left_at_once_ends_the_count_of_idle_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn is a system call; a caller that appends one entry after the other would pay several for each."""
    turns: list[object] = []
    on_turn = LacTurns.on_turn

    def counted(self: LacTurns, *, idle: bool) -> object:
        turns.append(step := on_turn(self, idle=idle))
        return step

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            for _ in range(10):  # from the second on they leave at once
                await ledger.append(b"x")
            del turns[:]
            for _ in range(20):
                await ledger.append(b"x")
            during = list(turns)
            await asyncio.sleep(LAC_OTHERS_S / 2)
            assert any(isinstance(r, WriteLac) and r.lac == 29 for b in cluster.bookies for r in b.requests)
        assert during == [None] * len(during) and 1 <= len(during) <= 20

    monkeypatch.setattr(LacTurns, "on_turn", counted)
    ScriptedCluster().run(story)


@pytest.mark.rule("W16")
def test_an_ack_quorum_is_told_at_once_and_the_others_a_little_later_unless_an_add_has_told_them() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        def told() -> list[int]:
            return [sum(isinstance(r, WriteLac) for r in bookie.requests) for bookie in by_place]

        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            by_place = [cluster[name] for name in ledger.metadata.last_fragment.ensemble]
            for _ in range(10):
                await ledger.append(b"x")
                await asyncio.sleep(LAC_OTHERS_S / 2)
                assert told()[2] == 0, "the next add carries it"
            await asyncio.sleep(1)
            assert told() == [10, 10, 1]
            await ledger.append(b"x")
            await asyncio.sleep(LAC_OTHERS_S / 2)
        await asyncio.sleep(1)
        assert told() == [11, 11, 1], "a handle that ended says nothing more"

    ScriptedCluster().run(story)


@pytest.mark.rule("W16")
def test_a_writer_of_a_striped_ledger_tells_all_of_them_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lac_sender, "LAC_OTHERS_S", 100.0)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(ensemble=3, write_quorum=2, ack_quorum=2)
            await ledger.append(b"x")
            await asyncio.sleep(1)
            assert [bookie.explicit[ledger.id][0] for bookie in cluster.bookies] == [0, 0, 0]

    ScriptedCluster().run(story)


@pytest.mark.rule("W16")
def test_a_writer_that_may_wait_tells_the_last_add_confirmed_once_in_a_while() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        def told() -> list[int]:
            return [r.lac for r in cluster.bookies[0].requests if isinstance(r, WriteLac)]

        async with cluster.connect(CONFIG.__class__(explicit_lac_delay_ms=400)) as bk:
            ledger = await bk.create_ledger()
            for _ in range(9):
                await ledger.append(b"x")
                await asyncio.sleep(0.1)
            assert 1 <= len(told()) <= 3
            await asyncio.sleep(1)
            assert told()[-1] == 8
            await ledger.append(b"x")
            await ledger.close()
            count = len(told())
            await asyncio.sleep(1)
            assert len(told()) == count, "a handle that ended says nothing more"

    ScriptedCluster().run(story)


@pytest.mark.rule("W16")
@pytest.mark.parametrize(("pause_s", "told"), [(0.0, [0, 0, 0]), (LAC_OTHERS_S / 2, [1, 1, 0])])
def test_a_handle_that_is_abandoned_says_nothing_more(pause_s: float, told: list[int]) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            by_place = [cluster[name] for name in ledger.metadata.last_fragment.ensemble]
            await ledger.append(b"x")
            if pause_s:
                await asyncio.sleep(pause_s)
            await ledger.abandon()
            await asyncio.sleep(1)
            assert [sum(isinstance(r, WriteLac) for r in bookie.requests) for bookie in by_place] == told

    ScriptedCluster().run(story)


class AskedPool:
    """Connections, as far as it is asked for them."""

    def __init__(self) -> None:
        self.asked: list[BookieId] = []

    def ready(self, bookie: BookieId, purpose: ConnectionPurpose) -> None:
        self.asked.append(bookie)


def a_sender(pool: AskedPool, published: list[int]) -> LacSender:
    """The sender of a writer that has news and no append that would carry it."""
    writer = SimpleNamespace(
        spec=QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1),
        lac_to_publish=lambda: EntryId(5),
        on_lac_published=published.append,
    )
    services = SimpleNamespace(config=CONFIG, pool=pool)
    digest = SimpleNamespace(seal_lac=lambda ledger_id, lac: b"", master_key=b"")
    some: Any = cast(Any, None)
    return LacSender(cast(Any, services), LedgerId(1), cast(Any, digest), cast(Any, writer), some, lambda: True)


@pytest.mark.rule("W16")
@pytest.mark.parametrize("stopped", [False, True])
async def test_a_writer_that_ended_sends_nothing_that_was_to_leave_at_a_later_turn(stopped: bool) -> None:
    pool, published = AskedPool(), list[int]()
    sender = a_sender(pool, published)
    sender.publish_soon(PublishLac(EntryId(5), (BookieId("b1"),)))
    if stopped:
        sender.stop()
        sender.stop()
    for _ in range(LAC_TURNS + 1):
        await asyncio.sleep(0)
    assert (pool.asked, published) == (([], []) if stopped else ([BookieId("b1")], [5]))
