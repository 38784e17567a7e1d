"""Appending through a write handle, against bookies that do as they are told."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import (
    AddTimeoutError,
    ClientClosedError,
    EntryTooLargeError,
    LedgerClosedError,
    LedgerFencedError,
    PartialAppendError,
    TooManyRequestsError,
    UnauthorizedError,
)
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import CONFIG, ScriptedBookie, ScriptedCluster, payload_of


def test_appends_are_numbered_from_zero_and_stored_on_every_bookie() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger(password=b"pw") as ledger:
            assert await ledger.append(b"one") == 0
            assert await ledger.append(bytearray(b"two")) == 1
            assert await ledger.append_many([b"three", b"four"]) == range(2, 4)
            assert ledger.last_add_confirmed == 3
            assert ledger.length == 15
        await asyncio.sleep(1)
        for bookie in cluster.bookies:
            stored = bookie.entries[ledger.id]
            assert [payload_of(stored[e], password=b"pw") for e in range(4)] == [b"one", b"two", b"three", b"four"]
        assert (await cluster.metadata(cluster.client.seams)) is not None
        assert ledger.metadata.is_closed and ledger.metadata.last_entry == 3 and ledger.metadata.length == 15

    ScriptedCluster().run(story)


def test_what_is_not_bytes_or_too_large_is_refused_before_anything_is_sent() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            with pytest.raises(TypeError, match="a payload is bytes, not int"):
                await ledger.append(5)  # type: ignore[arg-type]
            with pytest.raises(EntryTooLargeError, match="entry_size_max"):
                await ledger.append(b"x" * (CONFIG.entry_size_max + 1))
            assert await ledger.append(b"fine") == 0

    ScriptedCluster().run(story)


@pytest.mark.rule("W2")
def test_futures_resolve_in_entry_order_from_one_place() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            seen: list[int] = []
            futures = [ledger.append_nowait(b"x" * size) for size in range(500)]
            for future in futures:
                future.add_done_callback(lambda done: seen.append(done.result()))
            await ledger.flush()
            await asyncio.sleep(0)
            assert seen == list(range(500))

    ScriptedCluster().run(story)


@pytest.mark.rule("W7")
def test_a_cancelled_append_is_sent_all_the_same_and_the_next_one_gets_the_next_id() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            append = asyncio.ensure_future(ledger.append(b"cancelled"))
            await asyncio.sleep(0)
            append.cancel()
            assert await ledger.append(b"next") == 1
        assert payload_of(cluster["b1"].entries[ledger.id][0]) == b"cancelled"

    ScriptedCluster().run(story)


@pytest.mark.rule("W8")
def test_a_payload_that_its_caller_changes_afterwards_is_stored_as_it_was() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            payload = bytearray(b"before")
            future = ledger.append_nowait(payload)
            payload[:] = b"after!"
            await future
        assert payload_of(cluster["b1"].entries[ledger.id][0]) == b"before"

    ScriptedCluster().run(story)


@pytest.mark.rule("W12")
def test_appends_wait_while_too_much_is_pending_and_go_on_when_there_is_room() -> None:
    config = CONFIG.__class__(pending_bytes_max=1000, add_timeout_ms=4_000)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"")
            appends = [asyncio.ensure_future(ledger.append(b"x" * 600)) for _ in range(8)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert ledger.pending_bytes <= 1200 + 8 * 600  # one turn's appends are one run
            await asyncio.gather(*appends)
            for bookie in cluster.bookies:
                bookie.silent = True
            first = [ledger.append_nowait(b"x" * 600), ledger.append_nowait(b"x" * 600)]
            await asyncio.sleep(0)
            waits = [asyncio.ensure_future(ledger.append(b"y")), asyncio.ensure_future(ledger.append_many([b"z"]))]
            await asyncio.sleep(0.01)
            assert ledger.pending_bytes == 1200
            with pytest.raises(TooManyRequestsError, match="await room"):
                ledger.append_nowait(b"no")
            await ledger.abandon()
            results = await asyncio.gather(*first, *waits, return_exceptions=True)
            assert [type(result) for result in results] == [ClientClosedError] * 4

    ScriptedCluster().run(story)


@pytest.mark.rule("W12")
def test_those_who_waited_for_room_are_sent_in_their_order() -> None:
    config = CONFIG.__class__(pending_bytes_max=1000)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk, await bk.create_ledger() as ledger:
            ledger.append_nowait(b"x" * 5000)
            await asyncio.sleep(0)
            appends = [asyncio.ensure_future(ledger.append(b"%d" % i * 300)) for i in range(10)]
            await ledger.room()
            assert await asyncio.gather(*appends) == list(range(1, 11))
            assert ledger.append_nowait(b"room again")

    ScriptedCluster().run(story)


@pytest.mark.rule("W9", "W6")
def test_one_fenced_reply_ends_the_writer_and_its_pending_appends_are_unknown() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"kept")
            fenced, *others = ledger.metadata.last_fragment.ensemble
            cluster[fenced].fenced.add(ledger.id)
            for name in others:
                cluster[name].silent = True
            with pytest.raises(LedgerFencedError):
                await ledger.append(b"unknown")
            with pytest.raises(LedgerFencedError):
                ledger.append_nowait(b"refused")
            with pytest.raises(LedgerFencedError):
                await ledger.close()
            assert ledger.closed and ledger.last_add_confirmed == 0
            assert len((await bk.metadata(ledger.id)).fragments) == 1  # never an ensemble change

    ScriptedCluster(bookies=4).run(story)


def test_another_password_than_the_bookies_hold_is_told_as_such() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(password=b"right")
            for bookie in cluster.bookies:
                bookie.keys[ledger.id] = b"k" * 20
            with pytest.raises(UnauthorizedError):
                await ledger.append(b"x")

    ScriptedCluster().run(story)


@pytest.mark.rule("W5", "W1")
def test_a_bookie_that_dies_is_replaced_and_the_caller_sees_nothing() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            ids = [await ledger.append(b"a") for _ in range(10)]
            victim = ledger.metadata.last_fragment.ensemble[1]
            cluster.world.node(victim).crash()
            ids += [await ledger.append(b"b") for _ in range(10)]
            assert ids == list(range(20))
            last = ledger.metadata.last_fragment
            assert victim not in last.ensemble and 10 <= last.first_entry <= 20
        assert ledger.metadata.is_closed and ledger.metadata.last_entry == 19
        for entry in range(last.first_entry, 20):
            assert sum(entry in b.entries.get(ledger.id, {}) for b in cluster.bookies) >= 2

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("D11")
def test_without_a_spare_appends_go_on_with_the_ack_quorum_and_the_absent_copy_is_marked_at_close() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"three copies")
            cluster.world.node("b3").crash()
            for _ in range(5):
                await ledger.append(b"two copies")
            assert ledger.failed_bookies == ("b3",)
            store, root = bk.metadata_store.store, bk.metadata_store.paths.root
            await ledger.close()
            from bookkeeper.client.underreplicated import mark_path, marked_bookies

            assert marked_bookies((await store.get(mark_path(root, ledger.id))).value) == ["b3"]
            assert (await bk.metadata(ledger.id)).last_entry == 5

    ScriptedCluster().run(story)


@pytest.mark.rule("D11")
def test_a_spare_that_appears_later_takes_the_place() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"a")
            cluster.world.node("b3").crash()
            await ledger.append(b"b")
            await cluster.add(ScriptedBookie("b4"))
            await asyncio.sleep(5)
            await ledger.append(b"c")
            assert set(ledger.metadata.last_fragment.ensemble) == {"b1", "b2", "b4"}
            await asyncio.sleep(1)
            assert 2 in cluster["b4"].entries[ledger.id]

    ScriptedCluster().run(story)


@pytest.mark.rule("V1", "W6")
def test_with_all_bookies_gone_appends_end_within_the_time_limit_and_say_why() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"kept")
            for name in ("b1", "b2", "b3"):
                cluster.world.node(name).crash(power=False)
            began = asyncio.get_running_loop().time()
            with pytest.raises(AddTimeoutError, match=r"no ack quorum of 2 within 4000 ms; failed bookies: "):
                await ledger.append(b"lost")
            assert asyncio.get_running_loop().time() - began < 4.5
            await ledger.close()  # nobody else decided: the writer may still close it at what was confirmed
            assert (await bk.metadata(ledger.id)).last_entry == 0

    ScriptedCluster().run(story)


@pytest.mark.rule("D16")
def test_a_run_that_ends_partly_done_tells_which_part_is() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"first")
            for bookie in cluster.bookies:
                bookie.fence_at, bookie.refusal_delay_s = 4, 0.1
            with pytest.raises(PartialAppendError) as partial:
                await ledger.append_many([b"x" * 90_000] * 6)
            assert partial.value.confirmed == (1, 2, 3)
            assert partial.value.first_unknown == 4
            assert isinstance(partial.value.__cause__, LedgerFencedError)

    ScriptedCluster().run(story)


@pytest.mark.rule("D13")
def test_a_bookie_that_hangs_neither_blocks_the_appender_nor_fails_the_ledger() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"x")
            cluster["b1"].silent = True
            loop = asyncio.get_running_loop()
            for _ in range(100):
                began = loop.time()
                await ledger.append(b"y")
                assert loop.time() - began < 0.1
                await asyncio.sleep(0.02)
            assert ledger.failed_bookies == ("b1",)

    ScriptedCluster().run(story)


@pytest.mark.rule("W10b", "D12")
def test_a_bookie_that_comes_back_gets_entries_from_then_on_after_its_life_was_checked() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"zero")
            cluster.world.node("b3").crash(power=False)
            await ledger.append(b"one")
            cluster.world.node("b3").restart()
            await asyncio.sleep(5)
            assert ledger.failed_bookies == ()
            await ledger.append(b"two")
            await asyncio.sleep(1)
            assert 2 in cluster["b3"].entries[ledger.id]

    ScriptedCluster().run(story)


@pytest.mark.rule("W10b")
def test_a_bookie_that_comes_back_after_a_recovery_ends_the_writer() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"zero")
            cluster.world.node("b3").crash(power=False)
            await ledger.append(b"one")
            stored = await bk.metadata_store.ledgers.read(ledger.id)
            await bk.metadata_store.ledgers.write(ledger.id, stored.value.begin_recovery(), stored.version)
            cluster.world.node("b3").restart()
            await asyncio.sleep(5)
            assert ledger.closed
            with pytest.raises(LedgerFencedError):
                await ledger.append(b"two")

    ScriptedCluster().run(story)


@pytest.mark.rule("Z12")
def test_appends_go_on_while_the_metadata_store_is_away_and_a_change_waits_for_it() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:
            await ledger.append(b"a")
            cluster.store.begin_outage()
            for _ in range(5):
                await ledger.append(b"b")
            victim = ledger.metadata.last_fragment.ensemble[0]
            cluster[victim].refuse_adds = Status.IO_ERROR
            for _ in range(5):
                await ledger.append(b"c")
            assert ledger.failed_bookies == (victim,)
            cluster.store.end_outage()
            for _ in range(20):
                await ledger.append(b"d")
                await asyncio.sleep(0.5)
            assert victim not in ledger.metadata.last_fragment.ensemble

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("R13")
def test_close_fails_what_is_pending_first_and_is_one_shared_future() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"kept")
            for bookie in cluster.bookies:
                bookie.silent = True
            pending = ledger.append_nowait(b"pending")
            closes = [asyncio.ensure_future(ledger.close()) for _ in range(3)]
            await asyncio.gather(*closes)
            with pytest.raises(LedgerClosedError):
                await pending
            assert (await bk.metadata(ledger.id)).last_entry == 0
            with pytest.raises(LedgerClosedError):
                await ledger.append(b"late")
            await ledger.close()

    ScriptedCluster().run(story)


@pytest.mark.rule("R13")
def test_an_owner_that_finds_its_ledger_in_recovery_does_not_close_it() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"kept")
            stored = await bk.metadata_store.ledgers.read(ledger.id)
            await bk.metadata_store.ledgers.write(ledger.id, stored.value.begin_recovery(), stored.version)
            with pytest.raises(LedgerFencedError):
                await ledger.close()
            assert not (await bk.metadata(ledger.id)).is_closed

    ScriptedCluster().run(story)


def test_an_empty_ledger_closes_empty_and_an_error_in_the_block_is_not_hidden() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger() as ledger:
                pass
            assert (await bk.metadata(ledger.id)).last_entry == -1
            with pytest.raises(ZeroDivisionError):
                async with await bk.create_ledger() as ledger:
                    pending = ledger.append_nowait(b"x")
                    raise ZeroDivisionError
            assert isinstance(pending.exception(), LedgerClosedError)
            assert (await bk.metadata(ledger.id)).is_closed

    ScriptedCluster().run(story)


@pytest.mark.parametrize("shape", [(4, 3, 2), (4, 2, 2), (3, 2, 1), (1, 1, 1)], ids=str)
def test_every_bookie_gets_its_stripe_and_only_that(shape: tuple[int, int, int]) -> None:
    ensemble, write_quorum, ack_quorum = shape

    async def story(cluster: ScriptedCluster) -> None:
        async with (
            cluster.connect() as bk,
            await bk.create_ledger(ensemble=ensemble, write_quorum=write_quorum, ack_quorum=ack_quorum) as ledger,
        ):
            futures = [ledger.append_nowait(b"%d" % i) for i in range(100)]
            assert [await f for f in futures] == list(range(100))
            assert await ledger.append_many([b"x"] * 50) == range(100, 150)
            await asyncio.sleep(1)
            for entry in range(150):
                holders = [b.id for b in cluster.bookies if entry in b.entries.get(ledger.id, {})]
                assert sorted(holders) == sorted(ledger.metadata.write_set(entry))

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.parametrize("digest", ["crc32", "hmac", "dummy"])
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_every_digest_and_both_protocols(digest: str, protocol: str) -> None:
    config = CONFIG.__class__(protocol=protocol)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk:
            async with await bk.create_ledger(password=b"pw", digest=digest) as ledger:
                await ledger.append_many([b"a", b"bc"])
            assert payload_of(cluster["b1"].entries[ledger.id][1], digest, b"pw") == b"bc"
            async with await bk.open_ledger(ledger.id, b"pw") as reader:
                assert [tuple(e) async for e in reader.read(0, 1)] == [(0, b"a"), (1, b"bc")]

    ScriptedCluster().run(story)


@pytest.mark.rule("D14")
@pytest.mark.parametrize("protocol", ["v2", "v3"])
def test_an_idle_writer_tells_the_last_add_confirmed_without_another_add(protocol: str) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(CONFIG.__class__(protocol=protocol)) as bk:
            ledger = await bk.create_ledger()
            await asyncio.gather(*[ledger.append(b"x") for _ in range(10)])
            await asyncio.sleep(1)
            assert [bookie.explicit[ledger.id][0] for bookie in cluster.bookies] == [9, 9, 9]

    ScriptedCluster().run(story)
