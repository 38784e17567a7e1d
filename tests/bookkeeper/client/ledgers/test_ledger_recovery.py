"""Closing someone else's ledger, against bookies that do as they are told."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.ledgers.ledger_recovery import AGAIN_S, recover
from bookkeeper.errors import BookKeeperError, RecoveryInconclusiveError, RequestTimedOutError, UnauthorizedError
from bookkeeper.ids import LedgerId
from bookkeeper.ledger import HEADER, DigestScheme, DigestType, LedgerState
from bookkeeper.ledger.recovery import LedgerRecovery
from bookkeeper.meta.stores.memory import Fate
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import ScriptedBookie, ScriptedCluster, payload_of


async def left_open(cluster: ScriptedCluster, count: int = 5) -> LedgerId:
    """A ledger whose writer is gone, with ``count`` entries on every bookie."""
    async with cluster.connect() as bk:
        ledger = await bk.create_ledger()
        for i in range(count):
            await ledger.append(b"%d" % i)
        await asyncio.sleep(1)
        return ledger.id


@pytest.mark.rule("R3", "R2")
def test_every_bookie_is_fenced_and_every_recovery_read_fences_too() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        ledger_id = await left_open(cluster)
        for bookie in cluster.bookies:
            bookie.requests.clear()
        async with cluster.connect() as bk, await bk.open_ledger(ledger_id) as reader:
            assert reader.closed and reader.last_add_confirmed == 4 and reader.length == 5
        assert all(ledger_id in bookie.fenced for bookie in cluster.bookies)
        reads = [r for b in cluster.bookies for r in b.requests if isinstance(r, wire.ReadEntry)]
        assert reads and all(r.fence and r.master_key for r in reads)

    ScriptedCluster().run(story)


@pytest.mark.rule("R7", "W1")
def test_adds_of_a_recovery_do_not_meet_those_of_a_writer_whose_replies_look_the_same() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(ClientConfig(protocol="v2")) as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"x")
            async with await bk.open_ledger(ledger.id) as reader:
                assert reader.last_add_confirmed == 0
            pool = bk.services.pool
            both = [
                (pool.ready(b.id, ConnectionPurpose.MAIN), pool.ready(b.id, ConnectionPurpose.RECOVERY))
                for b in cluster.bookies
            ]
            assert sum(recovery is not None for _, recovery in both) >= 2
            assert all(main is not recovery for main, recovery in both)

    ScriptedCluster().run(story)


@pytest.mark.rule("R6", "R7", "R8")
def test_one_good_copy_is_enough_and_is_written_back_with_the_frozen_last_add_confirmed() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        ledger_id = await left_open(cluster)
        for bookie in cluster.bookies:
            bookie.explicit.clear()
        for bookie in cluster.bookies[1:]:
            del bookie.entries[ledger_id][4]
        lac = cluster["b1"].lac(ledger_id)
        async with cluster.connect() as bk, await bk.open_ledger(ledger_id) as reader:
            assert reader.last_add_confirmed == 4
        await asyncio.sleep(1)
        holders = [b for b in cluster.bookies if 4 in b.entries[ledger_id]]
        assert len(holders) >= 2
        for bookie in holders:
            packet = bookie.entries[ledger_id][4]
            assert payload_of(packet) == b"4" and HEADER.unpack_from(packet)[2] <= lac

    ScriptedCluster().run(story)


@pytest.mark.rule("W14")
@pytest.mark.parametrize("lags", [True, False])
def test_a_ledger_is_marked_if_a_bookie_does_not_take_what_is_written_back_and_only_then(lags: bool) -> None:
    """The recovery closed on the ack quorum, and nobody knew that the third copy was missing."""

    async def story(cluster: ScriptedCluster) -> None:
        ledger_id = await left_open(cluster)
        handle = cluster["b3"].handle

        def drops(request: wire.Request, reply: Callable[[wire.Reply], None]) -> None:
            if not (lags and isinstance(request, wire.AddEntry)):
                handle(request, reply)

        cluster["b3"].handle = drops  # type: ignore[method-assign]
        async with cluster.connect() as bk, await bk.open_ledger(ledger_id) as reader:
            assert reader.last_add_confirmed == 4
            marked = await bk.metadata_store.under_replication.read(ledger_id)
            assert marked is None if not lags else marked is not None and list(marked.bookies) == ["b3"]

    ScriptedCluster().run(story)


@pytest.mark.rule("R6")
def test_too_few_answers_leave_the_ledger_in_recovery_and_a_later_attempt_closes_it() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        ledger_id = await left_open(cluster)
        for bookie in cluster.bookies[:2]:
            bookie.refuse_reads = Status.IO_ERROR
        async with cluster.connect() as bk:
            with pytest.raises(RecoveryInconclusiveError):
                await bk.open_ledger(ledger_id)
            assert (await bk.metadata(ledger_id)).state is LedgerState.IN_RECOVERY
            cluster["b1"].refuse_reads = None
            async with await bk.open_ledger(ledger_id) as reader:
                assert reader.closed and reader.last_add_confirmed == 4

    ScriptedCluster().run(story)


@pytest.mark.rule("V2")
def test_a_bookie_that_hangs_does_not_hold_up_a_recovery_for_long() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        ledger_id = await left_open(cluster)
        cluster["b2"].silent = True
        began = asyncio.get_running_loop().time()
        async with cluster.connect() as bk, await bk.open_ledger(ledger_id) as reader:
            assert reader.last_add_confirmed == 4
        assert asyncio.get_running_loop().time() - began < 3

    ScriptedCluster().run(story)


def test_bookies_that_hold_another_password_refuse_the_fence() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        ledger_id = await left_open(cluster)
        for bookie in cluster.bookies:
            bookie.keys[ledger_id] = b"k" * 20
        async with cluster.connect() as bk:
            with pytest.raises(UnauthorizedError):
                await bk.open_ledger(ledger_id)

    ScriptedCluster().run(story)


class LosesReplies:
    """The first writes of one kind are done, and nobody hears of it."""

    def __init__(self, times: int) -> None:
        self.times = times

    def fate(self, session: int, kind: str, path: str) -> Fate:
        if kind == "set" and self.times:
            self.times -= 1
            return Fate(reply_lost=True)
        return Fate()


@pytest.mark.rule("M8", "R10")
def test_a_lost_reply_to_beginning_or_closing_is_looked_up_not_guessed() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        ledger_id = await left_open(cluster)
        cluster.store.interference = LosesReplies(2)
        async with cluster.connect() as bk, await bk.open_ledger(ledger_id) as reader:
            assert reader.closed and reader.last_add_confirmed == 4
            found = await bk.metadata_store.ledgers.read(ledger_id)
            assert found.version == 2  # begun once, closed once

    ScriptedCluster().run(story)


@pytest.mark.rule("M8", "W5")
def test_a_lost_reply_to_an_ensemble_change_makes_one_change() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"a")
            cluster.store.interference = LosesReplies(1)
            cluster[ledger.metadata.last_fragment.ensemble[0]].refuse_adds = Status.IO_ERROR
            await ledger.append(b"b")
            await asyncio.sleep(1)
            await ledger.append(b"c")
            assert len(ledger.metadata.fragments) == 2 and not ledger.failed_bookies

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("V2")
def test_a_recovery_that_was_given_up_asks_nothing_and_closes_nothing_any_more() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        ledger_id = await left_open(cluster)
        for bookie in cluster.bookies[:2]:
            bookie.silent = True
        async with cluster.connect(ClientConfig(open_timeout_ms=300)) as bk:
            with pytest.raises(RequestTimedOutError, match="another open_ledger goes on"):
                await bk.open_ledger(ledger_id)
            for bookie in cluster.bookies:
                bookie.silent = False
                bookie.requests.clear()
            await asyncio.sleep(20)  # what was asked has ended without an answer by then, and nobody asks again
            assert not [request for bookie in cluster.bookies for request in bookie.requests]
            assert (await bk.metadata(ledger_id)).state is LedgerState.IN_RECOVERY

    ScriptedCluster().run(story)


@pytest.mark.rule("R15", "R10")
@pytest.mark.parametrize("attempts", [1, 5])
def test_a_ledger_that_another_closes_while_we_reach_too_few_bookies_is_adopted(attempts: int) -> None:
    """Every attempt began with the metadata of the first: a ledger that somebody with better connections had closed
    after three seconds failed here as inconclusive after a minute, and its entries were out of reach."""

    async def story(cluster: ScriptedCluster) -> None:
        ledger_id = await left_open(cluster)
        for bookie in cluster.bookies[:2]:
            bookie.refuse_reads = Status.IO_ERROR
        config = ClientConfig(recovery_attempts=attempts)
        async with cluster.connect(config) as bk:
            opening = asyncio.ensure_future(bk.open_ledger(ledger_id))
            await asyncio.sleep(0.5)
            assert not opening.done(), "the first attempt is under way"
            ledgers = bk.services.metadata.ledgers
            stored = await ledgers.read(ledger_id, fresh=True)
            assert stored.value.state is LedgerState.IN_RECOVERY
            await ledgers.write(ledger_id, stored.value.close_recovered(4, 5), stored.version)
            async with await opening as reader:
                assert reader.closed and (reader.last_add_confirmed, reader.length) == (4, 5)

    ScriptedCluster().run(story)


@pytest.mark.rule("R10")
def test_closing_names_the_version_that_the_recovery_began_with() -> None:
    """Repair may replace a dead bookie of an earlier fragment while a recovery reads. One that closed at whatever
    version is the newest would put the dead bookie back, with fragments that nobody has any more."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"0")
            dead = ledger.metadata.last_fragment.ensemble[0]
            cluster[dead].refuse_adds = Status.IO_ERROR
            await ledger.append(b"1")
            await asyncio.sleep(1)
            await ledger.append(b"2")
            await asyncio.sleep(1)
            assert len(ledger.metadata.fragments) == 2
            for bookie in cluster.bookies:
                bookie.refuse_reads = Status.IO_ERROR
            opening = asyncio.ensure_future(bk.open_ledger(ledger.id))
            await asyncio.sleep(0.5)
            ledgers = bk.services.metadata.ledgers
            stored = await ledgers.read(ledger.id, fresh=True)
            stand_in = next(b.id for b in cluster.bookies if b.id not in stored.value.fragments[0].ensemble)
            await ledgers.write(ledger.id, stored.value.swap_bookie(0, dead, stand_in), stored.version)
            for bookie in cluster.bookies:
                bookie.refuse_reads = None
            async with await opening as reader:
                assert reader.last_add_confirmed == 2
                assert dead not in reader.metadata.fragments[0].ensemble

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("R10", "M1")
def test_a_recovery_closes_the_version_it_began_with_and_no_newer_one() -> None:
    """What it found, it found among the bookies of the version that it had read. Closed at the newest version instead,
    the ledger would lose what was written in between: here a copy's new place, after which the old one may be gone."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(ensemble=3)
            await ledger.append(b"zero")
            first = ledger.metadata.last_fragment.ensemble
            cluster.world.node(first[0]).crash(power=False)
            await ledger.append(b"one")
            await asyncio.sleep(3)
            await ledger.append(b"two")
            assert len(ledger.metadata.fragments) == 2
            await asyncio.sleep(1)
        spare = next(bookie.id for bookie in cluster.bookies if bookie.id not in ledger.metadata.bookies)
        for bookie in cluster.bookies:
            bookie.silent = True
        async with cluster.connect() as bk:
            ledgers = bk.metadata_store.ledgers
            record = LedgerView(ledgers, ledger.id, await ledgers.read(ledger.id))
            recovery = asyncio.create_task(recover(bk.services, record, DigestScheme(DigestType.CRC32C, b"")))
            while (stored := await ledgers.read(ledger.id)).value.state is not LedgerState.IN_RECOVERY:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await ledgers.write(ledger.id, stored.value.swap_bookie(0, first[0], spare), stored.version)
            await record.refresh()  # who shares the record may look at any time
            for bookie in cluster.bookies:
                bookie.silent = False
            closed = await recovery
            assert closed.is_closed and closed.last_entry == 2
            assert closed.fragments[0].ensemble == (spare, *first[1:])
            assert (await ledgers.read(ledger.id)).value == closed

    ScriptedCluster(bookies=5).run(story)


@pytest.mark.rule("L5", "R6", "R7")
def test_a_copy_that_is_another_entry_is_not_written_back_in_its_place() -> None:
    """A bookie that answers a recovery read with a good copy of another entry has not answered it: what is written back
    is sealed anew under the id that was asked for, and would be as good as acknowledged."""

    async def story(cluster: ScriptedCluster) -> None:
        ledger_id = await left_open(cluster)
        for bookie in cluster.bookies:
            bookie.explicit.clear()
        async with cluster.connect() as bk:
            first = (await bk.metadata(ledger_id)).write_set(4)[0]
            cluster[first].entries[ledger_id][4] = cluster[first].entries[ledger_id][3]
            async with await bk.open_ledger(ledger_id) as reader:
                assert (reader.last_add_confirmed, reader.length) == (4, 5)
            await asyncio.sleep(1)
        assert [payload_of(b.entries[ledger_id][4]) for b in cluster.bookies] == [b"4"] * 3

    ScriptedCluster().run(story)


@pytest.mark.rule("F11", "R7")
@pytest.mark.parametrize("refusals", [3, len(AGAIN_S) + 1])
def test_a_bookie_that_has_no_room_is_asked_again_before_it_is_replaced(refusals: int) -> None:
    """Cause: a quota that is used up is so on every bookie, and to replace them all ends the recovery."""

    async def story(cluster: ScriptedCluster) -> None:
        ledger_id = await left_open(cluster)
        ensemble = [bookie for bookie in cluster.bookies if ledger_id in bookie.entries]
        refused = dict.fromkeys((bookie.id for bookie in ensemble), refusals)

        def full(bookie: ScriptedBookie) -> None:
            handle = bookie.handle

            def answer(request: wire.Request, reply: Callable[[wire.Reply], None]) -> None:
                if isinstance(request, wire.AddEntry) and refused[bookie.id]:
                    refused[bookie.id] -= 1
                    reply(wire.AddReply(Status.TOO_MANY_REQUESTS, request.ledger_id, request.entry_id))
                else:
                    handle(request, reply)

            bookie.handle = answer  # type: ignore[method-assign]

        for bookie in ensemble:
            full(bookie)
        began = asyncio.get_running_loop().time()
        async with cluster.connect() as bk, await bk.open_ledger(ledger_id) as reader:
            assert reader.last_add_confirmed == 4 and reader.length == 5
            assert set(reader.metadata.bookies) == {bookie.id for bookie in ensemble}
        assert asyncio.get_running_loop().time() - began >= sum(AGAIN_S[: min(refusals, len(AGAIN_S))])

    ScriptedCluster().run(story)


def test_what_a_bookie_does_not_have_is_no_raised_error_with_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause: the machine kept each error, and with its frames the buffers of connections: five thousand objects of one
    recovery for the collector."""
    errors: list[BookKeeperError] = []
    on_read_answer = LedgerRecovery.on_read_answer

    def noted(self: LedgerRecovery, *answer: Any, **rest: Any) -> Any:
        if "error" in rest:
            errors.append(rest["error"])
        return on_read_answer(self, *answer, **rest)

    monkeypatch.setattr(LedgerRecovery, "on_read_answer", noted)

    async def story(cluster: ScriptedCluster) -> None:
        ledger_id = await left_open(cluster)
        async with cluster.connect() as bk, await bk.open_ledger(ledger_id) as reader:
            assert reader.last_add_confirmed == 4

    ScriptedCluster().run(story)
    assert len(errors) > 1 and all(error.__traceback__ is None for error in errors)
