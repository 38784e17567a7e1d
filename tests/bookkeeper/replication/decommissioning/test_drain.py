"""Every ledger off some bookies, on production bookies in a simulated world."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.errors import (
    ConfigError,
    IllegalOperationError,
    LedgerClosedError,
    LedgerFencedError,
    NoSuchLedgerError,
)
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerState
from bookkeeper.replication import DrainConfig, DrainProgress, cannot_move, drain, shares_of
from bookkeeper.replication.config import CopyConfig
from bookkeeper.replication.copying import RepairContext
from bookkeeper.replication.copying.fragment import CopyOutcome
from bookkeeper.replication.copying.repair import RepairResult, copy_fragment
from bookkeeper.replication.copying.repair_lock import lock_path
from bookkeeper.testing.cluster import SimCluster
from tests.bookkeeper.replication.clusters import (
    Story,
    append,
    copy_on,
    holds,
    record_of,
    set_read_only,
    until,
    written,
)
from tests.bookkeeper.replication.copying.test_replace import damage

OLD = ["b1", "b2", "b3"]


def run(story: Story, bookies: int = 3, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


async def some_closed(cluster: SimCluster, bk: BookKeeper, count: int) -> list[LedgerId]:
    return [await written(cluster, bk, 30) for _ in range(count)]


async def three_more(cluster: SimCluster) -> None:
    for name in ("b4", "b5", "b6"):
        await cluster.add_bookie(name)


async def keep_writing(cluster: SimCluster, ledger: WriteHandle, stop: asyncio.Event) -> None:
    while not stop.is_set():
        await append(cluster, ledger, 3)
        await asyncio.sleep(0.02)


def copied_to(cluster: SimCluster, bookie: str, ledger: WriteHandle, count: int) -> bool:
    """A bookie refuses an add that reaches it after it turned read-only, and the writer moves by itself."""
    try:
        return len(holds(cluster, bookie, ledger.id)) == count
    except NoSuchLedgerError:
        return False


@pytest.mark.rule("A1", "A3", "A5", "V3")
@pytest.mark.parametrize("seed", range(3))
def test_three_bookies_join_under_load_the_first_three_are_drained_and_stopped_and_nothing_is_missing(
    seed: int,
) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as operator:
            closed = await some_closed(cluster, bk, 12)
            writers = [await bk.create_ledger(password=b"pw") for _ in range(3)]
            stop = asyncio.Event()
            load = [asyncio.ensure_future(keep_writing(cluster, w, stop)) for w in writers]
            await asyncio.sleep(0.5)
            await three_more(cluster)
            for name in OLD:
                await set_read_only(cluster, name)
            await until(lambda: all(not set(w.metadata.last_fragment.ensemble) & set(OLD) for w in writers))
            last: list[tuple[int, int]] = []
            config = DrainConfig(owner="me")
            report = await drain(operator, OLD, config, lambda p: last.append((p.ledgers_done, p.entries_done)))
            assert report.is_complete and not report.recovered, report.stuck
            assert {m.old for m in report.moved} == set(OLD) and {m.new for m in report.moved} <= {"b4", "b5", "b6"}
            assert {m.ledger_id for m in report.moved} >= set(closed)
            assert max(entries for _, entries in last) >= 12 * 90
            assert await shares_of(operator, OLD) == ([], [])
            stop.set()
            await asyncio.gather(*load)
            for name in OLD:
                cluster.node(name).crash()
            for writer in writers:
                await append(cluster, writer, 5)
                await writer.close()
            await cluster.check_acked()

    run(story, seed=seed)


@pytest.mark.rule("A1", "V3")
def test_a_bookie_that_is_gone_for_good_is_drained_from_the_others() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await some_closed(cluster, bk, 8)
            cluster.node("b2").crash()
            await until(lambda: "b2" not in bk.services.watcher.writable)
            report = await drain(bk, ["b2"])
            assert report.is_complete and report.moved and report.passes >= 2
            cluster.node("b1").crash()
            await cluster.check_acked()

    run(story, bookies=5)


@pytest.mark.rule("A3", "A8")
def test_an_open_ledger_whose_writer_is_idle_is_reported_and_recovered_only_when_told_to_after_its_grace() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as operator:
            idle = await bk.create_ledger(password=b"pw")
            await append(cluster, idle, 10)
            closed = await some_closed(cluster, bk, 2)
            await three_more(cluster)
            await set_read_only(cluster, "b1")
            report = await drain(operator, ["b1"])
            assert [str(stuck) for stuck in report.stuck] == [
                f"ledger {idle.id}, entries 0..? on b1: it is open: its writer moves it with the next "
                "append; without a writer it has to be recovered"
            ]
            assert not report.is_complete and {m.ledger_id for m in report.moved} == set(closed)
            assert (await bk.metadata(idle.id)).state is LedgerState.OPEN
            await append(cluster, idle, 1)  # nobody has touched it
            assert (await drain(operator, ["b1"])).is_complete, "now its writer has moved, and what it left is closed"

            await idle.close()
            late = await bk.create_ledger(password=b"pw")
            await append(cluster, late, 3)
            old = late.metadata.last_fragment.ensemble[0]
            await until(lambda: copied_to(cluster, old, late, 3))
            await set_read_only(cluster, old)
            began = asyncio.get_running_loop().time()
            report = await drain(operator, [old], DrainConfig(recover_open=True, grace_ms=20_000))
            assert report.is_complete and report.recovered == [late.id]
            assert asyncio.get_running_loop().time() - began >= 20
            with pytest.raises((LedgerFencedError, LedgerClosedError)):
                await late.append(b"too late")
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A8")
def test_one_ledger_that_cannot_be_moved_does_not_hold_up_the_others() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledgers = await some_closed(cluster, bk, 6)
            for name in OLD:
                damage(cluster, name, ledgers[2], {7})
            store, path = bk.metadata_store.store, bk.metadata_store.ledgers.path(ledgers[4])
            whole = (await store.get(path)).value
            await store.set(path, b"nonsense", None)
            await store.create(
                lock_path("/ledgers", ledgers[5]), b'bookieId: "somebody"\n', ephemeral=True, parents=True
            )
            await three_more(cluster)
            await set_read_only(cluster, "b1")
            async with cluster.connect() as operator:
                told: list[int] = []
                report = await drain(
                    operator, ["b1"], DrainConfig(parallel=2), lambda progress: told.append(progress.stuck)
                )
            assert {1, 2, 3} <= set(told), "while it works, and not only between two looks at everything"
            reasons = {stuck.ledger_id: str(stuck) for stuck in report.stuck}
            assert set(reasons) == {ledgers[2], ledgers[4], ledgers[5]}
            assert "entries 0..29 on b1" in reasons[ledgers[2]]
            assert "its metadata cannot be read" in reasons[ledgers[4]]
            assert "somebody repairs it now" in reasons[ledgers[5]]
            assert {m.ledger_id for m in report.moved} == {ledgers[i] for i in (0, 1, 3)}
            await store.set(path, whole, None)

    run(story)


@pytest.mark.rule("A2", "A9")
def test_another_repairer_that_chose_a_drained_bookie_is_seen_in_the_next_pass() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await written(cluster, bk, 100)
            before = (await bk.metadata(ledger)).last_fragment.ensemble
            [first, *_] = sorted({"b1", "b2", "b3", "b4", "b5"} - set(before))
            second = before[0]
            copy = copy_on(await bk.metadata(ledger), second)
            overtaken: list[asyncio.Future[RepairResult]] = []

            def overtake(progress: DrainProgress) -> None:
                if not overtaken:
                    work = copy_fragment(RepairContext(services=other.services), theirs, copy, BookieId(first))
                    overtaken.append(asyncio.ensure_future(work))

            theirs = await record_of(other, ledger)
            config = DrainConfig(while_writable=True, bytes_per_s=5_000, copy=CopyConfig(run_entries_max=8))
            report = await drain(bk, [first, second], config, overtake)
            assert (await overtaken[0]).outcome is CopyOutcome.SWAPPED
            assert report.is_complete
            assert await shares_of(bk, [first, second]) == ([], [])
            await cluster.check_acked()

    run(story, bookies=5)


@pytest.mark.rule("A7", "W14")
def test_a_mark_goes_when_the_ledger_is_whole_and_stays_with_a_reason_when_it_is_not() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            lacking = await bk.create_ledger(password=b"pw")
            await append(cluster, lacking, 10)
            cluster.node("b2").crash()
            await append(cluster, lacking, 10)
            await lacking.close()  # leaves a mark: b2 lacks entries
            cluster.node("b2").restart()
            await cluster.wait_until_up()
            metadata = bk.metadata_store
            assert await metadata.under_replication.read(lacking.id) is not None
            open_one = await bk.create_ledger(password=b"pw")
            await append(cluster, open_one, 3)
            deleted = await written(cluster, bk, 3)
            await bk.delete_ledger(deleted)
            cluster._passwords.pop(deleted)
            elsewhere = await written(cluster, bk, 3)
            for ledger, bookie in ((open_one.id, "b1"), (deleted, "b1"), (elsewhere, "b9")):
                await metadata.under_replication.mark(LedgerId(ledger), [BookieId(bookie)], 1)
            await three_more(cluster)
            await set_read_only(cluster, "b1")
            report = await drain(bk, ["b1"])
            tidied = {each.ledger_id: each for each in report.marks}
            assert tidied[lacking.id].removed and tidied[lacking.id].reason == "every copy is whole"
            assert holds(cluster, "b2", lacking.id) == set(range(20)), "it was completed where it is"
            assert tidied[deleted].removed and tidied[deleted].reason == "the ledger was deleted"
            assert tidied[open_one.id].removed, "what is confirmed of it is on all its bookies"
            marks = metadata.under_replication
            assert await marks.read(lacking.id) is None and await marks.read(open_one.id) is None
            assert (await metadata.under_replication.read(elsewhere) is None) == (elsewhere in tidied)
            assert not await metadata.store.children("/ledgers/underreplication/locks")
            await open_one.close()
            await cluster.check_acked()

    run(story)


def test_what_makes_no_sense_is_refused_before_anything_is_done() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await some_closed(cluster, bk, 1)
            for names, config, words in [
                (["b9"], None, "there is no bookie b9; known are b1, b2, b3, b4"),
                (["b1"], None, "b1 is writable: .* Make it read-only with `bk bookies read-only b1`"),
                ([], None, "no bookie was named"),
                (["b1"], DrainConfig(while_writable=True, targets=("b1",)), "b1 cannot take .* is itself drained"),
                (["b1"], DrainConfig(while_writable=True, targets=("b8",)), "b8 cannot take .* is not writable"),
            ]:
                with pytest.raises(IllegalOperationError, match=words):
                    await drain(bk, names, config)
            with pytest.raises(ConfigError, match="parallel must be at least 1, not 0"):
                DrainConfig(parallel=0)
            with pytest.raises(ConfigError, match="grace_ms must be at least 0, not -1"):
                DrainConfig(grace_ms=-1)
            assert DrainConfig(grace_ms=0).grace_ms == 0, "recover at once"

    run(story, bookies=4)


@pytest.mark.rule("A9")
def test_a_writable_bookie_is_drained_when_told_to_and_what_appears_meanwhile_is_reported() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as operator:
            await some_closed(cluster, bk, 3)
            await three_more(cluster)
            stop = asyncio.Event()

            async def create() -> None:
                while not stop.is_set():
                    await written(cluster, bk, 30, ensemble=5)  # five of six: nearly always b1 too

            creating = [asyncio.ensure_future(create()) for _ in range(4)]
            targets = ("b4", "b5", "b6")
            report = await drain(operator, ["b1"], DrainConfig(while_writable=True, targets=targets))
            stop.set()
            await asyncio.gather(*creating)
            assert report.passes == 3 and len(report.moved) >= 3
            assert report.stuck and all(
                "writable; new fragments may name it again" in each.reason for each in report.stuck
            )
            assert {m.new for m in report.moved} <= set(targets)
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A8")
def test_a_drain_that_is_cut_short_is_begun_again_and_moves_the_rest() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            await some_closed(cluster, bk, 10)
            await three_more(cluster)
            await set_read_only(cluster, "b1")
            task: asyncio.Task[Any]

            def enough(progress: DrainProgress) -> None:
                if progress.ledgers_done >= 4:
                    task.cancel()

            task = asyncio.ensure_future(drain(bk, ["b1"], DrainConfig(parallel=1), enough))
            with pytest.raises(asyncio.CancelledError):
                await task
            left = len((await shares_of(bk, ["b1"]))[0])
            assert 0 < left < 10
            sent: list[int] = []
            report = await drain(bk, ["b1"], on_progress=lambda progress: sent.append(progress.bytes_sent))
            assert report.is_complete and len(report.moved) == left
            assert sent == sorted(sent) and sent[-1] == sum(moved.size for moved in report.moved) > 0
            await cluster.check_acked()

    run(story)


def test_what_there_is_to_move_is_told_without_moving_it() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 30)
            open_one = await bk.create_ledger(password=b"pw")
            shares, unreadable = await shares_of(bk, ["b1", "b2"])
            assert unreadable == [] and [s.ledger_id for s in shares] == [ledger, open_one.id]
            assert [(s.entries, len(s.copies)) for s in shares] == [(60, 2), (0, 2)]
            assert shares[0].size_guess == 2 * shares[0].metadata.length and shares[1].size_guess == 0
            await open_one.close()

    run(story)


def test_one_free_bookie_takes_the_place_of_one_copy_of_a_fragment_and_not_of_two() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 30)
            one, two, other = (await bk.metadata(ledger)).last_fragment.ensemble
            [free] = set(cluster.names) - {one, two, other}
            [alone], _ = await shares_of(bk, [one])
            assert await cannot_move(bk, [one], [alone], DrainConfig()) == []
            [both], _ = await shares_of(bk, [one, two])
            [stuck] = await cannot_move(bk, [one, two], [both], DrainConfig())
            assert (stuck.ledger_id, stuck.copy) == (ledger, both.copies[1])
            assert f"writable and allowed are {', '.join(sorted([free, other]))}, and the fragment has " in stuck.reason

    run(story, bookies=4)
