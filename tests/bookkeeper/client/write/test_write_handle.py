"""Appending through a write handle, against bookies that do as they are told."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import (
    ClientClosedError,
    EntryTooLargeError,
    LedgerClosedError,
    LedgerFencedError,
    PartialAppendError,
    TooManyRequestsError,
)
from bookkeeper.ids import EntryId
from bookkeeper.ledger.write.append_runs import LONE_APPENDS
from tests.bookkeeper.client.scripted import CONFIG, ScriptedCluster, payload_of


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
            with pytest.raises(TypeError, match="a payload must be bytes, not int"):
                await ledger.append(5)  # type: ignore[arg-type]
            with pytest.raises(EntryTooLargeError, match="entry_size_max"):
                await ledger.append(b"x" * (CONFIG.entry_size_max + 1))
            assert await ledger.append(b"fine") == 0

    ScriptedCluster().run(story)


def test_whoever_appends_one_at_a_time_does_not_wait_for_the_end_of_the_turn() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger() as ledger:

            def sent_of(count: int) -> tuple[list[asyncio.Future[EntryId]], int]:
                """So many appends in one turn; how many of them were given to the machine before its end."""
                before = ledger._writer.progress.next_entry
                futures = [ledger.append_nowait(b"x") for _ in range(count)]
                return futures, ledger._writer.progress.next_entry - before

            for _ in range(LONE_APPENDS):
                futures, sent = sent_of(1)
                assert sent == 0, "nobody knows yet that no other comes"
                await asyncio.gather(*futures)
            for expected in (1, 0):
                futures, sent = sent_of(3)
                assert sent == expected, "only the first went ahead, and then none: appends come in company again"
                ids = await asyncio.gather(*futures)
                assert ids == list(range(ids[0], ids[0] + 3))
            assert await ledger.append(b"last") == LONE_APPENDS + 6

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


@pytest.mark.rule("W17")
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


@pytest.mark.rule("V1", "W6")
def test_flush_and_the_end_of_the_block_do_not_wait_on_a_handle_that_has_failed() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"kept")
            async with asyncio.timeout(30):
                with pytest.raises(LedgerFencedError):
                    async with ledger:
                        for bookie in cluster.bookies:
                            bookie.fence_at = 1
                        with pytest.raises(LedgerFencedError):
                            await ledger.append(b"unknown")
                        with pytest.raises(LedgerFencedError):
                            await ledger.flush()

    ScriptedCluster().run(story)
