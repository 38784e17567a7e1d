"""Appending under ids that the caller chooses."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import (
    ClientClosedError,
    DuplicateEntryError,
    EntryTooLargeError,
    IllegalOperationError,
    LedgerClosedError,
    LedgerFencedError,
    TooManyRequestsError,
)
from bookkeeper.ledger import HEADER
from tests.bookkeeper.client.scripted import CONFIG, ScriptedCluster, payload_of


def test_appends_without_an_id_are_refused_and_say_what_to_use() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger(advanced=True) as ledger:
            for refused in (ledger.append, ledger.append_many):
                with pytest.raises(IllegalOperationError, match="append_at"):
                    await refused([b"x"])  # type: ignore[arg-type]
            with pytest.raises(IllegalOperationError, match="append_at"):
                ledger.append_nowait(b"x")

    ScriptedCluster().run(story)


@pytest.mark.rule("W2")
def test_out_of_order_in_and_confirmed_in_order_with_lengths_in_order() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger(advanced=True, ledger_id=77) as ledger:
            told: list[int] = []
            futures = []
            for entry_id in (2, 1, 4, 0):
                future = ledger.append_at_nowait(entry_id, b"entry %d" % entry_id)
                future.add_done_callback(lambda done: told.append(done.result()))
                futures.append(future)
            await asyncio.wait_for(asyncio.gather(futures[0], futures[1], futures[3]), 5)
            await asyncio.sleep(1)
            assert told == [0, 1, 2]
            assert (ledger.last_add_confirmed, ledger.lowest_missing, ledger.pending_bytes) == (2, 3, 7)
            assert await ledger.append_at(3, b"entry 3") == 3
            assert await futures[2] == 4
            await asyncio.sleep(0)
            assert told == [0, 1, 2, 4]  # entry 3's caller has its id by another way
            assert ledger.length == 35
        await asyncio.sleep(1)
        for bookie in cluster.bookies:
            stored = bookie.entries[77]
            assert [payload_of(stored[e]) for e in range(5)] == [b"entry %d" % e for e in range(5)]
            assert [HEADER.unpack_from(stored[e])[3] for e in range(5)] == [7, 14, 21, 28, 35]
        assert (ledger.metadata.last_entry, ledger.metadata.length) == (4, 35)

    ScriptedCluster().run(story)


@pytest.mark.rule("W2")
def test_an_id_twice_is_refused_wherever_the_first_one_is() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.create_ledger(advanced=True) as ledger:
            await ledger.append_at(0, b"confirmed")
            held = ledger.append_at_nowait(2, b"held")
            pending = ledger.append_at_nowait(1, b"pending")
            for entry_id in (0, 1, 2):
                with pytest.raises(DuplicateEntryError, match=f"entry {entry_id} .*missing is 3"):
                    await ledger.append_at(entry_id, b"again")
                with pytest.raises(DuplicateEntryError):
                    ledger.append_at_nowait(entry_id, b"again")
            with pytest.raises(ValueError, match="-1"):
                await ledger.append_at(-1, b"x")
            with pytest.raises(EntryTooLargeError):
                ledger.append_at_nowait(3, bytes(CONFIG.entry_size_max + 1))
            assert list(await asyncio.gather(pending, held)) == [1, 2]
            assert payload_of(cluster["b1"].entries[ledger.id][2]) == b"held"

    ScriptedCluster().run(story)


@pytest.mark.rule("W12")
def test_the_missing_id_comes_in_last_and_nobody_is_stuck() -> None:
    config = ClientConfig(pending_bytes_max=1000, add_timeout_ms=4_000)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk, await bk.create_ledger(advanced=True) as ledger:
            appends = [asyncio.ensure_future(ledger.append_at(e, b"x" * 300)) for e in range(20, 0, -1)]
            await asyncio.sleep(1)
            assert ledger.pending_bytes == 1200  # the others wait
            with pytest.raises(TooManyRequestsError, match="append entry 0: the entries above it stay pending"):
                ledger.append_at_nowait(21, b"no room")
            room = asyncio.ensure_future(ledger.room())
            await ledger.room(0)
            assert not room.done()
            zero = ledger.append_at_nowait(0, b"x" * 300)
            assert await asyncio.wait_for(asyncio.gather(*appends), 5) == list(range(20, 0, -1))
            assert (await zero, ledger.last_add_confirmed, ledger.pending_bytes) == (0, 20, 0)
            await asyncio.wait_for(room, 1)

    ScriptedCluster().run(story)


@pytest.mark.rule("W12")
def test_appends_in_order_wait_for_the_writer_like_plain_ones() -> None:
    config = ClientConfig(pending_bytes_max=1000, add_timeout_ms=4_000)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk:
            ledger = await bk.create_ledger(advanced=True)
            await ledger.append_at(0, b"x")
            for bookie in cluster.bookies:
                bookie.silent = True
            sizes = 100_000, 600
            appends = [asyncio.ensure_future(ledger.append_at(e + 1, bytes(s))) for e, s in enumerate(sizes)]
            await asyncio.sleep(0.1)
            assert ledger.pending_bytes == 100_000
            await ledger.abandon()
            ended = await asyncio.gather(*appends, return_exceptions=True)
            assert [type(end) for end in ended] == [ClientClosedError] * 2

    ScriptedCluster().run(story)


@pytest.mark.rule("W12")
def test_leaving_waits_for_those_who_wait_for_room_and_not_for_those_above_a_gap() -> None:
    config = ClientConfig(pending_bytes_max=1000, add_timeout_ms=4_000)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk:
            appends = []
            async with await bk.create_ledger(advanced=True) as ledger:
                for entry_id in (*range(20), 21):
                    appends.append(asyncio.ensure_future(ledger.append_at(entry_id, b"x" * 300)))
                    await asyncio.sleep(0)
                    await asyncio.sleep(0)
                assert ledger.pending_bytes == 1200  # the others wait
            *ids, above = await asyncio.gather(*appends, return_exceptions=True)
            assert ids == list(range(20))
            assert isinstance(above, LedgerClosedError)
            assert ledger.metadata.last_entry == 19

    ScriptedCluster().run(story)


@pytest.mark.rule("W12")
def test_callers_of_room_who_give_up_leave_nothing_behind() -> None:
    config = ClientConfig(pending_bytes_max=100)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk, await bk.create_ledger(advanced=True) as ledger:
            ledger.append_at_nowait(1, b"x" * 100)
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(ledger.room(2), 0.01)
            assert not ledger._rooms
            room = asyncio.ensure_future(ledger.room(2))
            await ledger.append_at(0, b"zero")
            await asyncio.wait_for(room, 1)

    ScriptedCluster().run(story)


@pytest.mark.rule("W7", "W12")
def test_a_cancelled_caller_takes_its_entry_back_only_while_it_waits_for_room() -> None:
    config = ClientConfig(pending_bytes_max=100)

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(config) as bk, await bk.create_ledger(advanced=True) as ledger:
            held = asyncio.ensure_future(ledger.append_at(1, b"x" * 100))
            waiting = asyncio.ensure_future(ledger.append_at(2, b"never sent"))
            await asyncio.sleep(0.1)
            held.cancel()
            waiting.cancel()
            await asyncio.sleep(0.1)
            with pytest.raises(DuplicateEntryError):
                await ledger.append_at(1, b"another")
            assert await ledger.append_at(0, b"zero") == 0
            assert await ledger.append_at(2, b"sent") == 2
            assert payload_of(cluster["b1"].entries[ledger.id][1]) == b"x" * 100
            assert payload_of(cluster["b1"].entries[ledger.id][2]) == b"sent"

    ScriptedCluster().run(story)


@pytest.mark.rule("R13")
def test_closing_with_a_gap_ends_below_it_and_fails_what_lies_above() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger(advanced=True) as ledger:
                below = ledger.append_at_nowait(0, b"below")
                above = ledger.append_at_nowait(2, b"above")
            assert await below == 0
            with pytest.raises(LedgerClosedError):
                await above
            assert (await bk.metadata(ledger.id)).last_entry == 0
            assert all(2 not in bookie.entries[ledger.id] for bookie in cluster.bookies)
            assert ledger.pending_bytes == 0
            for late in (1, 2, 3):
                with pytest.raises(LedgerClosedError):
                    await ledger.append_at(late, b"late")
            with pytest.raises(LedgerClosedError):
                await ledger.room(5)

    ScriptedCluster().run(story)


@pytest.mark.rule("W6", "W9")
def test_a_fence_fails_everything_in_order_also_what_lies_above_a_gap() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger(advanced=True)
            await ledger.append_at(0, b"kept")
            for bookie in cluster.bookies:
                bookie.fence_at = 1
            failed: list[int] = []
            futures = {e: ledger.append_at_nowait(e, b"x") for e in (5, 3, 2, 1)}
            for entry_id, future in futures.items():
                future.add_done_callback(partial(lambda entry, done: failed.append(entry), entry_id))
            ended = await asyncio.gather(*futures.values(), return_exceptions=True)
            assert {type(end) for end in ended} == {LedgerFencedError}
            assert failed == [1, 2, 3, 5]
            with pytest.raises(LedgerFencedError):
                ledger.append_at_nowait(4, b"late")

    ScriptedCluster().run(story)
