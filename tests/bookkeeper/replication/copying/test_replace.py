"""One fragment's share brought to another bookie, on production bookies in a simulated world."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper.bookie.identity.disk_identity import DiskIdentity, survey
from bookkeeper.bookie.start import bookie_start
from bookkeeper.errors import (
    BookieError,
    BookKeeperError,
    DataMissingError,
    IllegalOperationError,
    LedgerFencedError,
    MetadataConflictError,
    MetadataError,
    NoSuchKeyError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
)
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.replication.config import CopyConfig
from bookkeeper.replication.copying import copies_of
from bookkeeper.replication.copying.fragment import CopyOutcome
from bookkeeper.replication.copying.repair_lock import lock_path
from bookkeeper.replication.copying.replace import replicate_fragment, replicate_unlocked
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

SMALL = CopyConfig(run_bytes=2000, run_entries_max=8, striped_run_entries_max=8, retry_ms=50)
SHAPES = [
    {},
    {"ensemble": 4, "write_quorum": 2, "ack_quorum": 2},
    {"digest": "hmac"},
    {"digest": "dummy", "unsafe_without_digest": True},
]


def run(story: Story, bookies: int = 5, seed: int = 1) -> None:
    SimCluster(seed, bookies).run(story)


@pytest.mark.rule("A1", "A5", "L6")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("alive", [True, False])
def test_a_share_moves_from_a_bookie_that_lives_or_is_dead(shape: dict[str, Any], alive: bool) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 100, **shape)
            before = await bk.metadata(ledger)
            old = before.last_fragment.ensemble[0]
            if not alive:
                cluster.node(old).crash()
            told: list[tuple[int, int]] = []
            done = await replicate_fragment(bk, ledger, 0, old, config=SMALL, on_copied=lambda *a: told.append(a))
            assert done.outcome is CopyOutcome.SWAPPED and done.target not in before.bookies
            share = set(before.spec.stripe(0, 0, 100))
            assert holds(cluster, done.target, ledger) == share
            assert (done.entries, done.found) == (len(share), 0)
            assert (sum(n for n, _ in told), sum(b for _, b in told)) == (done.entries, done.size)
            after = await bk.metadata(ledger)
            assert after == before.swap_bookie(0, old, done.target)
            if not alive:  # whoever was not replaced may go as well: the new one serves
                await cluster.check_acked()
            for other in before.last_fragment.ensemble[1:]:
                cluster.node(other).crash()
            if before.spec.write_quorum == 3:
                await cluster.check_acked()

    run(story)


@pytest.mark.rule("A3")
def test_the_last_fragment_of_an_open_ledger_is_refused_and_the_earlier_ones_are_not() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger(password=b"pw")
            await append(cluster, ledger, 20)
            gone = ledger.metadata.last_fragment.ensemble[0]
            cluster.node(gone).crash()
            await append(cluster, ledger, 20)
            await until(lambda: len(ledger.metadata.fragments) == 2)
            await append(cluster, ledger, 5)
            second = ledger.metadata.last_fragment
            with pytest.raises(LedgerFencedError, match="recover it first"):
                await replicate_fragment(other, ledger.id, second.first_entry, second.ensemble[0])
            done = await replicate_fragment(other, ledger.id, 0, gone)
            assert done.outcome is CopyOutcome.SWAPPED
            await append(cluster, ledger, 20)
            cluster.node(second.ensemble[1]).crash()  # the writer's next change is over what repair has written
            await append(cluster, ledger, 20)
            await ledger.close()
            assert gone not in (await bk.metadata(ledger.id)).bookies
            await cluster.check_acked()

    run(story, bookies=7)


def test_what_cannot_be_done_is_said() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 5)
            metadata = await bk.metadata(ledger)
            one, two, _ = metadata.last_fragment.ensemble
            with pytest.raises(
                NotEnoughBookiesError, match=f"no bookie can take the place of {one}: .* writable and allowed are"
            ):
                await replicate_fragment(bk, ledger, 0, one)
            with pytest.raises(IllegalOperationError, match="no fragment that begins at 3"):
                await replicate_fragment(bk, ledger, 3, one)
            with pytest.raises(IllegalOperationError, match="and names b9"):
                await replicate_fragment(bk, ledger, 0, "b9")
            with pytest.raises(IllegalOperationError, match=f"{two} is in the ensemble"):
                await replicate_fragment(bk, ledger, 0, one, target=two)
            with pytest.raises(NoSuchLedgerError):
                await replicate_fragment(bk, 77, 0, one)
            with pytest.raises(BookieError):
                await replicate_fragment(bk, ledger, 0, one, target="b9", config=SMALL)
            assert await bk.metadata(ledger) == metadata

    run(story, bookies=3)


@pytest.mark.rule("A8")
def test_a_target_that_fails_is_left_for_another_and_one_that_is_excluded_is_not_asked() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 60)
            metadata = await bk.metadata(ledger)
            spares = [name for name in cluster.names if name not in metadata.bookies]
            await set_read_only(cluster, spares[0])  # the list that this client has is older
            cluster.servers[spares[1]].port.connections.bookie.read_only = False  # type: ignore[union-attr]
            for name in spares[:1]:
                cluster.world.network.cut("client", name)
            old = metadata.last_fragment.ensemble[2]
            done = await replicate_fragment(bk, ledger, 0, old, config=SMALL, exclude=[spares[2]])
            assert done.target == spares[1] and done.outcome is CopyOutcome.SWAPPED

    run(story, bookies=6)


@pytest.mark.rule("A1", "A4", "A8")
@pytest.mark.parametrize("seed", range(4))
def test_a_target_that_crashes_half_way_has_what_it_acknowledged_and_the_rest_follows(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 200)
            metadata = await bk.metadata(ledger)
            target = next(name for name in cluster.names if name not in metadata.bookies)
            old, node, crashes = metadata.last_fragment.ensemble[1], cluster.node(target), 0

            def copied(entries: int, size: int) -> None:
                nonlocal crashes
                if crashes < 2 and node.alive:
                    crashes += 1
                    node.crash(power=True)
                    cluster.world.loop.call_later(0.3, node.restart)

            config = CopyConfig(run_entries_max=20, run_bytes=100_000, runs_max=2, retry_ms=400, tries_max=20)
            done = await replicate_fragment(bk, ledger, 0, old, target=target, config=config, on_copied=copied)
            assert done.outcome is CopyOutcome.SWAPPED and crashes == 2
            await cluster.wait_until_up(target)
            assert holds(cluster, target, ledger) == set(range(200))
            for name in set(metadata.bookies) - {BookieId(target)}:
                cluster.node(name).crash()
            await cluster.check_acked()

    run(story, seed=seed)


@pytest.mark.rule("A1", "A2b")
@pytest.mark.parametrize("moment", ["before the look at it", "before the write", "while it looks who names it"])
def test_a_target_that_lost_its_disk_after_the_check_is_not_swapped_in_for_what_it_held(
    moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The swap named the version of the ledger and nothing of the target: one whose disk was lost after the last entry
    was read back, and that joined anew before the swap, was put in the place of a good copy, and denied every entry:
    when it had looked which ledgers name it, none did."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 60)
            metadata = await bk.metadata(ledger)
            target = next(name for name in cluster.names if name not in metadata.bookies)
            old, services = metadata.last_fragment.ensemble[1], bk.services.metadata
            write, life, looks = services.ledgers.write, services.bookies.incarnation, 0
            surveyed, go_on = asyncio.Event(), asyncio.Event()

            async def held(*args: Any, **named: Any) -> DiskIdentity:
                disk_identity = await survey(*args, **named)
                surveyed.set()
                await go_on.wait()
                return disk_identity

            async def joins_anew() -> None:
                monkeypatch.setattr(bookie_start, "survey", held)
                cluster.node(target).crash(power=True)
                cluster.lose_disk(target)
                await cluster.forget_cookie(target)
                cluster.node(target).restart()
                await surveyed.wait()
                if moment != "while it looks who names it":
                    go_on.set()
                    await cluster.wait_until_up(target)

            async def write_later(*args: Any, **named: Any) -> Any:
                if moment != "before the look at it" and not surveyed.is_set():
                    await joins_anew()
                try:
                    return await write(*args, **named)
                finally:
                    go_on.set()

            async def look_later(bookie: BookieId) -> Any:
                nonlocal looks
                looks += 1
                if moment == "before the look at it" and looks == 2:
                    await joins_anew()
                return await life(bookie)

            services.ledgers.write = write_later  # type: ignore[method-assign]
            services.bookies.incarnation = look_later  # type: ignore[method-assign]
            config = CopyConfig(run_entries_max=20, retry_ms=500, tries_max=20)
            done = await replicate_fragment(bk, ledger, 0, old, target=target, config=config)
            assert done.outcome is CopyOutcome.SWAPPED and surveyed.is_set()
            await cluster.wait_until_up(target)
            assert holds(cluster, target, ledger) == set(range(60))
            for name in metadata.bookies:
                cluster.node(name).crash()
            await cluster.check_acked()

    run(story)


@pytest.mark.rule("A8")
def test_an_attempt_that_was_cut_short_has_changed_nothing_and_is_made_again() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 200)
            metadata = await bk.metadata(ledger)
            old = metadata.last_fragment.ensemble[1]
            target = next(name for name in cluster.names if name not in metadata.bookies)
            config = CopyConfig(run_entries_max=10, runs_max=1)
            attempt: asyncio.Task[Any]

            def enough(entries: int, size: int) -> None:
                if len(holds(cluster, target, ledger)) >= 100:
                    attempt.cancel()

            attempt = asyncio.ensure_future(
                replicate_fragment(bk, ledger, 0, old, target=target, config=config, on_copied=enough)
            )
            with pytest.raises(asyncio.CancelledError):
                await attempt
            assert await bk.metadata(ledger) == metadata
            done = await replicate_fragment(bk, ledger, 0, old, target=target, config=config)
            assert done.entries == 200 and done.outcome is CopyOutcome.SWAPPED

    run(story)


@pytest.mark.rule("A1", "L5")
def test_a_damaged_source_is_passed_over_and_without_a_good_one_nothing_is_swapped() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 50)
            metadata = await bk.metadata(ledger)
            old, *others = metadata.last_fragment.ensemble
            damage(cluster, others[0], ledger, {3, 17})
            done = await replicate_fragment(bk, ledger, 0, old, config=SMALL)
            assert done.outcome is CopyOutcome.SWAPPED
            for name in others:
                cluster.node(name).crash()
            await cluster.check_acked()

    run(story)

    async def all_damaged(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 50)
            metadata = await bk.metadata(ledger)
            for name in metadata.bookies:
                damage(cluster, name, ledger, {17})
            with pytest.raises(BookKeeperError) as failure:
                await replicate_fragment(bk, ledger, 0, metadata.last_fragment.ensemble[0], config=SMALL)
            assert not isinstance(failure.value, DataMissingError), "damaged is not missing"
            assert await bk.metadata(ledger) == metadata

    run(all_damaged)


def damage(cluster: SimCluster, name: str, ledger: LedgerId, entries: set[int]) -> None:
    """What this bookie gives out for ``entries`` has a bit flipped, as a bad cable does."""
    engine: Any = cluster.servers[name].engine
    read, read_batch = engine.read, engine.read_batch

    def bad(ledger_id: int, entry_id: int, got: Any) -> None:
        def flipped(entry: Any) -> None:
            if ledger_id == ledger and entry_id in entries and isinstance(entry, bytes):
                entry = entry[:-1] + bytes([entry[-1] ^ 1])
            got(entry)

        read(ledger_id, entry_id, flipped)

    def bad_batch(ledger_id: int, first: int, count: int, size: int, got: Any) -> None:
        near = min((e for e in entries if e >= first), default=first + 10**6)
        if ledger_id != ledger:
            read_batch(ledger_id, first, count, size, got)
        elif near == first:
            got(OSError(5, "a bad sector"))
        else:
            read_batch(ledger_id, first, min(count or 10**6, near - first), size, got)

    engine.read, engine.read_batch = bad, bad_batch


@pytest.mark.rule("A2", "M6")
def test_a_ledger_that_is_deleted_meanwhile_needs_no_repair() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await written(cluster, bk, 100)
            old = (await bk.metadata(ledger)).last_fragment.ensemble[0]
            config = CopyConfig(run_entries_max=10, runs_max=1)
            began = asyncio.Event()
            repair = asyncio.ensure_future(
                replicate_fragment(other, ledger, 0, old, config=config, on_copied=lambda *_: began.set())
            )
            await began.wait()
            await bk.delete_ledger(ledger)
            assert (await repair).outcome is CopyOutcome.GONE
            assert not await bk.exists(ledger)

    run(story)


@pytest.mark.rule("A2", "A5")
@pytest.mark.parametrize("seed", range(4))
def test_two_repairers_at_once_leave_one_new_bookie_in_the_old_ones_place(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await written(cluster, bk, 100, ensemble=4, write_quorum=2, ack_quorum=2)
            before = await bk.metadata(ledger)
            old = before.last_fragment.ensemble[0]
            cluster.node(old).crash()
            done = await asyncio.gather(
                replicate_unlocked(bk, ledger, 0, old, config=SMALL),
                replicate_unlocked(other, ledger, 0, old, config=SMALL),
            )
            after = await bk.metadata(ledger)
            swapped = {each.target for each in done if each.outcome is CopyOutcome.SWAPPED}
            assert len(swapped) == 1 and after == before.swap_bookie(0, old, swapped.pop())
            await cluster.check_acked()

    run(story, bookies=7, seed=seed)


@pytest.mark.rule("A1")
def test_a_bookie_that_was_away_is_completed_in_its_place() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"pw")
            await append(cluster, ledger, 30)
            cluster.node("b2").crash()
            await append(cluster, ledger, 30)
            await ledger.close()
            cluster.node("b2").restart()
            await cluster.wait_until_up()
            assert len(holds(cluster, "b2", ledger.id)) < 60
            done = await replicate_fragment(bk, ledger.id, 0, "b2", target="b2", config=SMALL)
            assert (
                done.outcome is CopyOutcome.COMPLETED and done.found >= 30 - 8 and 30 <= done.entries + done.found == 60
            )
            assert holds(cluster, "b2", ledger.id) == set(range(60))
            assert copy_on((await record_of(bk, ledger.id)).metadata, "b2").end == 59
            assert len(copies_of(ledger.metadata)) == 3

    run(story, bookies=3)


def test_the_bookie_that_is_replaced_is_read_only_when_nobody_else_has_an_entry() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 20, ensemble=3, write_quorum=1, ack_quorum=1)
            metadata = await bk.metadata(ledger)
            old = metadata.last_fragment.ensemble[1]
            done = await replicate_fragment(bk, ledger, 0, old, config=SMALL)
            assert done.outcome is CopyOutcome.SWAPPED and done.entries == len(metadata.spec.stripe(1, 0, 20))
            await cluster.check_acked()

    run(story)


def test_it_takes_as_long_as_the_throttle_says() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 200)
            old = (await bk.metadata(ledger)).last_fragment.ensemble[0]
            began = asyncio.get_running_loop().time()
            done = await replicate_fragment(bk, ledger, 0, old, config=SMALL, bytes_per_s=5000)
            assert done.size / 5000 - 2 < asyncio.get_running_loop().time() - began < done.size / 5000 + 2
            assert done.size > 30_000

    run(story)


@pytest.mark.rule("A2")
def test_the_lock_is_held_meanwhile_lest_the_target_takes_for_surplus_what_is_brought() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await written(cluster, bk, 20)
            old = (await bk.metadata(ledger)).last_fragment.ensemble[0]
            store = other.metadata_store.store
            lock = lock_path("/ledgers", LedgerId(ledger))
            await store.create(lock, b'bookieId: "worker"\n', ephemeral=True, parents=True)
            with pytest.raises(MetadataConflictError, match="worker repairs ledger"):
                await replicate_fragment(bk, ledger, 0, old)
            await store.delete(lock, None)

            locked: list[asyncio.Future[int | None]] = []
            done = await replicate_fragment(
                bk, ledger, 0, old, on_copied=lambda *_: locked.append(asyncio.ensure_future(store.owner(lock)))
            )
            assert done.outcome is CopyOutcome.SWAPPED
            assert await locked[0] == bk.metadata_store.store.session_id
            with pytest.raises(NoSuchKeyError):
                await store.get(lock)

    run(story)


@pytest.mark.rule("A1", "A2")
def test_nothing_is_swapped_in_when_the_lock_was_lost_on_the_way() -> None:
    """As when the session expires: the target may have dropped again what was verified."""

    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await written(cluster, bk, 20)
            before = await bk.metadata(ledger)
            old = before.last_fragment.ensemble[0]
            store, lock = other.metadata_store.store, lock_path("/ledgers", LedgerId(ledger))
            lost: list[asyncio.Future[None]] = []

            def lose(*_: int) -> None:
                lost.append(asyncio.ensure_future(store.delete(lock, None)))

            with pytest.raises(MetadataError, match="has lost the lock of ledger"):
                await replicate_fragment(bk, ledger, 0, old, on_copied=lose)
            await lost[0]
            assert await bk.metadata(ledger) == before
            assert (await replicate_fragment(bk, ledger, 0, old)).outcome is CopyOutcome.SWAPPED

    run(story)


@pytest.mark.rule("A10")
def test_a_second_repair_of_the_ledger_in_the_same_client_is_refused_and_the_first_ends_well() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await written(cluster, bk, 100)
            one, two = (await bk.metadata(ledger)).last_fragment.ensemble[:2]
            first = asyncio.create_task(replicate_fragment(bk, ledger, 0, one, config=SMALL, owner="first"))
            await until(lambda: bool(bk.services.metadata.repairs))
            with pytest.raises(MetadataConflictError, match=r"another repair of this client \(first\) repairs ledger"):
                await replicate_fragment(bk, ledger, 0, two, config=SMALL)
            assert (await first).outcome is CopyOutcome.SWAPPED  # its swap wants the lock
            assert (await replicate_fragment(bk, ledger, 0, two, config=SMALL)).outcome is CopyOutcome.SWAPPED

    run(story)
