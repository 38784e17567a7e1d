"""What users live through, on production bookies in a simulated world."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.write.write_handle import WriteHandle
from bookkeeper.errors import (
    AddTimeoutError,
    BookKeeperError,
    ClientClosedError,
    IllegalOperationError,
    LedgerClosedError,
    LedgerExistsError,
    LedgerFencedError,
    MetadataRolledBackError,
    MetadataUnavailableError,
    NoSuchEntryError,
    NoSuchLedgerError,
    NotEnoughBookiesError,
    Outcome,
    UnauthorizedError,
)
from bookkeeper.meta.stores.memory import MemoryStore
from bookkeeper.testing.cluster import CLIENT, SimCluster

Story = Callable[[SimCluster], Coroutine[Any, Any, None]]
SEEDS = range(3)


async def append(cluster: SimCluster, ledger: WriteHandle, count: int, pause_s: float = 0.0) -> None:
    """Append one after the other; every one is acknowledged."""
    for _ in range(count):
        payload = b"entry after %d" % ledger.last_add_confirmed
        cluster.acked(ledger.id, await ledger.append(payload), payload)
        if pause_s:
            await asyncio.sleep(pause_s)


async def append_until_it_ends(cluster: SimCluster, ledger: WriteHandle) -> BookKeeperError:
    """Append windows until the handle says why not any more."""
    number = 0
    while True:
        window = [(b"%d" % (number + i), ledger.append_nowait(b"%d" % (number + i))) for i in range(8)]
        number += 8
        error: BookKeeperError | None = None
        for payload, future in window:
            try:
                cluster.acked(ledger.id, await future, payload)
            except BookKeeperError as failure:
                error = error or failure
        if error is not None:
            return error


@pytest.mark.parametrize("seed", SEEDS)
def test_write_close_read(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger(password=b"pw", custom_metadata={"app": b"x"}) as ledger:
                for i in range(20):
                    cluster.acked(ledger.id, await ledger.append(b"%d" % i), b"%d" % i, b"pw")
                assert await ledger.append_many([b"many"] * 300) == range(20, 320)
            async with await bk.open_ledger(ledger.id, b"pw") as reader:
                assert reader.closed and reader.last_add_confirmed == 319
                assert [e.payload async for e in reader.read(18, 21)] == [b"18", b"19", b"many", b"many"]
                assert reader.metadata.custom == {"app": b"x"}
                with pytest.raises(IllegalOperationError, match="entries from 0 to 319, the last add confirmed, can"):
                    await reader.read_entry(320)
                with pytest.raises(NoSuchEntryError):
                    await reader.read_unconfirmed(320)
            assert [i async for i in bk.list_ledgers()] == [ledger.id]
        await cluster.check_acked()

    SimCluster(seed).run(story)


@pytest.mark.rule("W1", "W5")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_bookie_killed_during_appends_is_replaced_and_the_caller_sees_nothing(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await append(cluster, ledger, 10)
            victim = ledger.metadata.last_fragment.ensemble[seed % 3]
            cluster.world.loop.call_later(0.005, cluster.node(victim).crash)
            await append(cluster, ledger, 80, pause_s=0.02)  # a silent death is noticed by its silence
            assert victim not in ledger.metadata.last_fragment.ensemble
            assert len(ledger.failed_bookies) == 0
        await cluster.check_acked()

    SimCluster(seed, bookies=4).run(story)


@pytest.mark.rule("W13", "W14")
@pytest.mark.parametrize("seed", SEEDS)
def test_with_no_spare_appends_go_on_and_a_returning_bookie_with_its_data_gets_entries_again(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await append(cluster, ledger, 10)
            cluster.node("b2").crash()
            await append(cluster, ledger, 50, pause_s=0.02)
            assert list(ledger.failed_bookies) == ["b2"]
            cluster.node("b2").restart()
            await cluster.wait_until_up("b2")
            await append(cluster, ledger, 50, pause_s=0.1)
            assert len(ledger.failed_bookies) == 0
            cluster.node("b1").crash()  # b2 counts again: with b3 it makes the ack quorum
            await append(cluster, ledger, 20)
            cluster.node("b1").restart()
        await cluster.wait_until_up()
        await cluster.check_acked()

    SimCluster(seed).run(story)


@pytest.mark.rule("W15")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_frozen_bookie_neither_blocks_the_appender_nor_fails_the_ledger(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await append(cluster, ledger, 10)
            cluster.node("b1").freeze()
            loop = asyncio.get_running_loop()
            for _ in range(60):
                began = loop.time()
                await append(cluster, ledger, 1)
                assert loop.time() - began < 0.3
                await asyncio.sleep(0.05)
            assert list(ledger.failed_bookies) == ["b1"]
            cluster.node("b1").thaw()
            await append(cluster, ledger, 60, pause_s=0.1)
            assert len(ledger.failed_bookies) == 0
        await cluster.check_acked()

    SimCluster(seed).run(story)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_bookie_that_lost_its_disk_does_not_start_under_its_name_and_a_new_one_takes_its_place(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await append(cluster, ledger, 10)
            cluster.node("b3").crash()
            cluster.lose_disk("b3")
            task = cluster.node("b3").restart()
            await append(cluster, ledger, 50, pause_s=0.02)
            with pytest.raises(BookKeeperError):  # the cookie says that there should be data
                await task
            await cluster.add_bookie("b4")
            await append(cluster, ledger, 30, pause_s=0.1)
            assert set(ledger.metadata.last_fragment.ensemble) == {"b1", "b2", "b4"}
        await cluster.check_acked()

    SimCluster(seed).run(story)


@pytest.mark.rule("W9", "R2", "R11")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_second_opener_fences_the_first_writer_whose_pending_appends_are_unknown(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            writing = asyncio.ensure_future(append_until_it_ends(cluster, ledger))
            await asyncio.sleep(0.05)
            async with await other.open_ledger(ledger.id) as reader:
                assert reader.closed
            error = await writing
            assert isinstance(error, LedgerFencedError | LedgerClosedError)
            assert isinstance(error, LedgerClosedError) or error.outcome is Outcome.UNKNOWN
            assert ledger.last_add_confirmed <= reader.last_add_confirmed
            with pytest.raises(BookKeeperError):
                await ledger.append(b"never")
        await cluster.check_acked()

    SimCluster(seed).run(story)


@pytest.mark.rule("R11", "R15")
@pytest.mark.parametrize("seed", range(6))
def test_a_writer_that_dies_leaves_a_ledger_that_two_recoveries_close_at_the_same_end(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        writer = cluster.world.node("writer")

        async def write() -> None:
            bk = await cluster.new_client(node=writer)
            await append_until_it_ends(cluster, await bk.create_ledger())

        writer.run(write())
        await asyncio.sleep(0.05 + seed * 0.003)
        writer.crash(power=False)
        if seed % 2:
            cluster.node("b1").crash()
        async with cluster.connect() as bk, cluster.connect() as other:
            ids = [i async for i in bk.list_ledgers()]
            opened = await asyncio.gather(bk.open_ledger(ids[0]), other.open_ledger(ids[0]))
            assert opened[0].closed and opened[1].closed
            assert opened[0].last_add_confirmed == opened[1].last_add_confirmed >= 0
            assert opened[0].length == opened[1].length
        await cluster.check_acked()

    SimCluster(seed).run(story)


@pytest.mark.rule("L3", "V7")
@pytest.mark.parametrize("seed", SEEDS)
def test_a_tailing_reader_sees_every_entry_once_in_order_and_ends_with_the_ledger(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                seen: list[int] = []
                lags: list[float] = []
                loop = asyncio.get_running_loop()

                async def tail() -> None:
                    async for entry in reader.tail():
                        seen.append(entry.entry_id)
                        lags.append(loop.time() - float(entry.payload))

                tailing = asyncio.ensure_future(tail())
                for i in range(40):
                    await ledger.append(b"%f" % loop.time())
                    await asyncio.sleep(0.3 if i % 10 == 0 else 0.0)
                await ledger.close()
                await tailing
                assert seen == list(range(40))
                assert sorted(lags)[20] < 0.2
                assert reader.closed

    SimCluster(seed).run(story)


@pytest.mark.rule("L8")
def test_a_tailing_reader_goes_on_when_its_whole_ensemble_was_replaced() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            async with await other.open_ledger(ledger.id, recovery=False) as reader:

                async def tail() -> list[int]:
                    return [entry.entry_id async for entry in reader.tail()]

                tailing = asyncio.ensure_future(tail())
                await append(cluster, ledger, 5)
                await asyncio.sleep(1)
                for victim in ledger.metadata.last_fragment.ensemble:
                    cluster.node(victim).crash(power=False)
                    await append(cluster, ledger, 20, pause_s=0.1)
                    cluster.node(victim).restart()
                await cluster.wait_until_up()
                await ledger.close()
                assert await tailing == list(range(65))

    SimCluster(5, bookies=6).run(story)


@pytest.mark.rule("V1")
@pytest.mark.parametrize("seed", SEEDS)
def test_all_bookies_gone_ends_appends_within_their_time_and_the_entries_are_there_when_they_return(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await append(cluster, ledger, 10)
            for name in cluster.names:
                cluster.node(name).crash()
            loop = asyncio.get_running_loop()
            began = loop.time()
            with pytest.raises(AddTimeoutError, match="was not acknowledged by an ack quorum"):
                await ledger.append(b"lost or not")
            assert loop.time() - began < CLIENT.add_timeout_ms / 1000 + 1
            await ledger.abandon()
            for name in cluster.names:
                cluster.node(name).restart()
            await cluster.wait_until_up()
        await cluster.check_acked()

    SimCluster(seed).run(story)


def test_wrong_password_unknown_ledger_and_taken_id_are_told_apart() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"right", ledger_id=77)
            await ledger.append(b"x")
            for recovery in (True, False):
                with pytest.raises(UnauthorizedError, match="the password given is not the password of ledger 77"):
                    await bk.open_ledger(77, b"wrong", recovery=recovery)
            await ledger.append(b"a refused opener fences nothing")
            with pytest.raises(LedgerExistsError):
                await bk.create_ledger(ledger_id=77)
            with pytest.raises(NoSuchLedgerError):
                await bk.open_ledger(78)
            await ledger.close()
            await bk.delete_ledger(77)
            for call in (bk.open_ledger(77, b"right"), bk.delete_ledger(77), bk.metadata(77)):
                with pytest.raises(NoSuchLedgerError):
                    await call

    SimCluster().run(story)


def test_too_few_bookies_is_an_error_that_names_them_unless_an_absent_one_may_be_named() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            cluster.node("b2").crash()
            await asyncio.sleep(4)  # its session ends
            with pytest.raises(NotEnoughBookiesError, match=r"needs 3 bookies, but 2 can be used: b[13], b[13]"):
                await bk.create_ledger()
            async with await bk.create_ledger(when_short="name_absent") as ledger:
                assert set(ledger.metadata.last_fragment.ensemble) == {"b1", "b2", "b3"}
                await append(cluster, ledger, 5)
            cluster.node("b1").crash()
            await asyncio.sleep(4)
            with pytest.raises(NotEnoughBookiesError):  # one up is less than an ack quorum
                await bk.create_ledger(when_short="name_absent")
            cluster.node("b1").restart()
            await cluster.wait_until_up("b1")
        await cluster.check_acked()

    SimCluster().run(story)


@pytest.mark.rule("Z12", "M8")
@pytest.mark.parametrize("seed", SEEDS)
def test_while_the_metadata_store_is_away_appends_go_on_and_a_close_ends_in_a_clear_error(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await append(cluster, ledger, 5)
            cluster.store.begin_outage()
            await append(cluster, ledger, 50, pause_s=0.1)
            with pytest.raises(MetadataUnavailableError, match="metadata store does not answer"):
                await ledger.close()
            cluster.store.end_outage()
            await asyncio.sleep(3)
            await ledger.close()  # it may be tried again
            assert (await bk.metadata(ledger.id)).last_entry == 54
        await cluster.check_acked()

    SimCluster(seed).run(story)


@pytest.mark.rule("M10", "W6", "W7")
@pytest.mark.parametrize("hidden", [False, True])
def test_metadata_that_were_put_back_end_writers_and_readers_by_name_and_nothing_is_acknowledged_after(
    hidden: bool,
) -> None:
    """Appends ask nothing of the metadata store, so a writer went on into a ledger that was in no metadata any more.
    ``hidden``: transactions since have come past what was seen, as ZooKeeper's do with a new leader. The look after the
    session's doubt found no ledger and told of a deletion, where the generator of ids shows what happened."""

    async def story(cluster: SimCluster) -> None:
        loop = asyncio.get_running_loop()
        async with cluster.connect() as bk:
            old = await bk.create_ledger()
            cluster.acked(old.id, await old.append(b"old"), b"old")
            reader = await bk.open_ledger(old.id, recovery=False)
            tail = asyncio.ensure_future(anext(reader.tail(1000)))
            backup = cluster.store.snapshot()
            ledger = await bk.create_ledger()
            await ledger.append(b"new")
            cluster.store.restore(backup)
            store = bk.metadata_store.store
            assert isinstance(store, MemoryStore)
            if hidden:
                cluster.store.transaction += 1000
                cluster.store.suspend(store)
                cluster.store.resume(store)
            error, until = await end_of(ledger), loop.time() + 10
            with pytest.raises(type(error)):
                await ledger.append(b"after the alarm")
            assert isinstance(error, MetadataRolledBackError)
            assert isinstance(await end_of(old), MetadataRolledBackError)
            with pytest.raises(MetadataRolledBackError):
                await tail
            with pytest.raises(MetadataRolledBackError):
                await reader.read_entry(0)
            with pytest.raises(MetadataRolledBackError):
                await bk.create_ledger()
            assert loop.time() < until

    SimCluster().run(story)


@pytest.mark.rule("M10", "W6", "W7")
def test_what_was_on_its_way_when_metadata_were_found_older_is_unknown_and_never_acknowledged() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            backup = cluster.store.snapshot()
            ledger = await bk.create_ledger()
            await ledger.append(b"new")
            for bookie in cluster.names:
                cluster.node(bookie).freeze()
            pending = ledger.append_nowait(b"on its way")
            await asyncio.sleep(0.1)
            cluster.store.restore(backup)
            with pytest.raises(MetadataRolledBackError) as caught:
                await pending
            assert caught.value.outcome is Outcome.UNKNOWN
            for bookie in cluster.names:
                cluster.node(bookie).thaw()
            await asyncio.sleep(3)
            assert ledger.last_add_confirmed == 0 and ledger.closed
            with pytest.raises(MetadataRolledBackError):
                await ledger.close()

    SimCluster().run(story)


async def end_of(ledger: WriteHandle) -> BookKeeperError:
    """What ends a writer that goes on appending, which must be within 10 s."""
    async with asyncio.timeout(10):
        while True:
            try:
                await ledger.append(b"and on")
            except BookKeeperError as error:
                return error
            await asyncio.sleep(0.01)


def test_a_closed_client_lets_go_of_its_ledgers_and_says_so() -> None:
    async def story(cluster: SimCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await append(cluster, ledger, 3)
            for name in cluster.names:
                cluster.node(name).freeze()
            pending = ledger.append_nowait(b"pending")
        with pytest.raises(ClientClosedError):
            await pending
        for call in (bk.create_ledger(), bk.open_ledger(0), ledger.append(b"x"), ledger.close()):
            with pytest.raises(ClientClosedError):
                await call
        for name in cluster.names:
            cluster.node(name).thaw()
        async with cluster.connect() as other:
            assert not (await other.metadata(ledger.id)).is_closed
        await cluster.check_acked()

    SimCluster().run(story)


@pytest.mark.rule("W1", "W2", "W4", "W5", "R11", "L1")
@pytest.mark.parametrize("seed", range(100, 112))
def test_nothing_acknowledged_is_lost_whatever_bookies_do(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        rng, names = cluster.world.rng, cluster.names

        async def mischief() -> None:
            while True:
                await asyncio.sleep(rng.random() * 1.5)
                node = cluster.node(rng.choice(names))
                if not node.alive:
                    node.restart()
                elif node.frozen:
                    node.thaw()
                elif all(cluster.node(n).alive and not cluster.node(n).frozen for n in names):
                    node.freeze() if rng.random() < 0.4 else node.crash()

        trouble = asyncio.ensure_future(mischief())

        async def write(bk: BookKeeper) -> None:
            ledger = await bk.create_ledger(when_short="name_absent")
            try:
                await append(cluster, ledger, 60, pause_s=0.05)
                await ledger.close()
            except BookKeeperError:
                await ledger.abandon()

        async with cluster.connect() as bk:
            for _ in range(4):
                try:
                    await write(bk)
                except NotEnoughBookiesError:
                    await asyncio.sleep(1)
        trouble.cancel()
        for name in names:
            cluster.node(name).thaw()
            if not cluster.node(name).alive:
                cluster.node(name).restart()
        await cluster.wait_until_up()
        await asyncio.sleep(3)
        await cluster.check_acked()

    SimCluster(seed, bookies=3 + seed % 3).run(story)


async def trouble(cluster: SimCluster) -> None:
    """Cuts links, takes the metadata store away, resets connections, crashes and freezes: one thing at a time."""
    rng, names, network = cluster.world.rng, cluster.names, cluster.world.network
    while True:
        await asyncio.sleep(rng.random())
        kind, name = rng.randrange(0, 4), rng.choice(names)
        length = rng.random() * 1.5
        node = cluster.node(name)
        if kind == 0:
            network.cut("client", name, both=rng.random() < 0.5)
            await asyncio.sleep(length)
            network.mend()
        elif kind == 1:
            cluster.store.begin_outage()
            await asyncio.sleep(length)
            cluster.store.end_outage()
        elif kind == 2:
            node.crash()
            await asyncio.sleep(length)
            node.restart()
        else:
            node.freeze()
            await asyncio.sleep(length)
            node.thaw()


@pytest.mark.rule("W1", "W6", "W9", "M1", "M8", "R10", "R11", "R15", "L1")
@pytest.mark.parametrize("seed", range(200, 204))
def test_nothing_acknowledged_is_lost_whatever_network_store_and_other_clients_do(seed: int) -> None:
    async def story(cluster: SimCluster) -> None:
        rng = cluster.world.rng
        troubling = asyncio.ensure_future(trouble(cluster))

        async def write(bk: BookKeeper, other: BookKeeper) -> None:
            ledger = await bk.create_ledger(when_short="name_absent")
            writing = asyncio.ensure_future(append_until_it_ends(cluster, ledger))
            await asyncio.sleep(rng.random() * 1.5)
            try:
                async with await other.open_ledger(ledger.id) as reader:
                    assert reader.closed
            except BookKeeperError:
                await ledger.abandon()
            await writing
            await ledger.abandon()

        async with cluster.connect() as bk, cluster.connect() as other:
            for _ in range(4):
                try:
                    await write(bk, other)
                except BookKeeperError:
                    await asyncio.sleep(0.5)
        troubling.cancel()
        cluster.world.network.mend()
        cluster.store.end_outage()
        for name in cluster.names:
            cluster.node(name).thaw()
            if not cluster.node(name).alive:
                cluster.node(name).restart()
        await cluster.wait_until_up()
        await asyncio.sleep(3)
        await cluster.check_acked()

    SimCluster(seed, bookies=3 + seed % 3).run(story)
