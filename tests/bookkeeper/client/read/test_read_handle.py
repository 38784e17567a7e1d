"""Reading through a read handle, against bookies that do as they are told."""

from __future__ import annotations

import asyncio
import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper import wire
from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import (
    BookieUnavailableError,
    ClientClosedError,
    IllegalOperationError,
    NoSuchEntryError,
)
from bookkeeper.wire import Status
from tests.bookkeeper.client.scripted import ScriptedCluster, written


def test_a_closed_ledger_is_read_in_batches() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(ClientConfig(batch_read_bytes=4096)) as bk:
            ledger_id = await written(bk, 300, 20)
            async with await bk.open_ledger(ledger_id) as reader:
                assert [e async for e in reader.read(0, 299)] == [(i, b"%d" % i * 20) for i in range(300)]
                assert [e async for e in reader.read(0, -1)] == []
                assert [e.entry_id async for e in reader.read(299, 299)] == [299]
                assert await reader.read_entry(7) == b"7" * 20
        asked = [r for b in cluster.bookies for r in b.requests if isinstance(r, wire.BatchRead)]
        assert 4 < len(asked) < 60

    ScriptedCluster().run(story)


def test_what_was_not_confirmed_is_refused_by_read_and_available_under_its_own_name() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger = await bk.create_ledger()
            await ledger.append(b"confirmed")
            for bookie in cluster.bookies[:2]:
                bookie.refuse_adds = Status.IO_ERROR
            pending = ledger.append_nowait(b"unconfirmed")
            await asyncio.sleep(0.5)
            async with await bk.open_ledger(ledger.id, recovery=False) as reader:
                assert reader.last_add_confirmed == 0 and not reader.closed
                with pytest.raises(IllegalOperationError, match="entries from 0 to 0, the last add confirmed, can"):
                    await reader.read_entry(1)
                for bookie in cluster.bookies:
                    bookie.refuse_adds = None
                assert await reader.read_unconfirmed(1) == b"unconfirmed"
                with pytest.raises(NoSuchEntryError):
                    await reader.read_unconfirmed(2)
            await ledger.abandon()
            pending.exception()

    ScriptedCluster().run(story)


def test_a_striped_ledger_is_read_entry_by_entry_from_those_who_hold_it() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 200, ensemble=4, write_quorum=2, ack_quorum=2)
            async with await bk.open_ledger(ledger_id) as reader:
                assert [int(e.payload) async for e in reader.read(0, 199)] == list(range(200))
        assert not [r for b in cluster.bookies for r in b.requests if isinstance(r, wire.BatchRead)]

    ScriptedCluster(bookies=4).run(story)


def test_reading_goes_across_fragments() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            async with await bk.create_ledger() as ledger:
                for _ in range(3):
                    await ledger.append_many([b"x"] * 7)
                    victim = cluster[ledger.metadata.last_fragment.ensemble[0]]
                    victim.refuse_adds = Status.READ_ONLY
                    await ledger.append(b"y")
                    await asyncio.sleep(0.2)
                    victim.refuse_adds = None
            assert len(ledger.metadata.fragments) >= 3
            async with await bk.open_ledger(ledger.id) as reader:
                assert b"".join([e.payload async for e in reader.read(0, 23)]) == (b"x" * 7 + b"y") * 3

    ScriptedCluster(bookies=5).run(story)


def test_leaving_a_read_early_forgets_what_was_read_ahead() -> None:
    """Runs that were asked for and that nobody will take are given up: their answers are thrown away."""

    async def story(cluster: ScriptedCluster) -> None:
        config = ClientConfig(batch_read_bytes=4096, batch_reads_ahead=4)
        async with cluster.connect(config) as bk, await bk.open_ledger(await written(bk, 300, 20)) as reader:
            asked: list[asyncio.Future[list[bytes]]] = []
            read = reader._source.read

            def noted(*args: Any, **named: Any) -> asyncio.Future[list[bytes]]:
                asked.append(read(*args, **named))
                return asked[-1]

            reader._source.read = noted  # type: ignore[method-assign]
            batches = reader.read_batches(0, 299)
            async for first, payloads in batches:
                assert (first, payloads[0]) == (0, b"0" * 20)
                break
            ahead = [future for future in asked if not future.done()]
            assert ahead, "nothing was read ahead: this test shows nothing"
            await batches.aclose()
            assert all(future.cancelled() for future in ahead)
            await asyncio.sleep(1)
            assert [e.entry_id async for e in reader.read(0, 299)] == list(range(300)), "and the reader goes on"

    ScriptedCluster().run(story)


def test_a_read_ahead_that_failed_and_that_nobody_takes_is_no_error_in_the_log() -> None:
    """asyncio logs a failed future that nobody has asked: "Future exception was never retrieved"."""
    unasked: list[dict[str, Any]] = []

    async def story(cluster: ScriptedCluster) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: unasked.append(context))
        config = ClientConfig(batch_read_bytes=4096, batch_reads_ahead=4)
        async with cluster.connect(config) as bk, await bk.open_ledger(await written(bk, 300, 20)) as reader:
            read, asked = reader._source.read, 0

            def failing(*args: Any, **named: Any) -> asyncio.Future[list[bytes]]:
                nonlocal asked
                asked += 1
                if asked == 1:
                    return read(*args, **named)
                failed = asyncio.get_running_loop().create_future()
                failed.set_exception(BookieUnavailableError("it was read ahead"))
                return failed

            reader._source.read = failing  # type: ignore[method-assign]
            batches = reader.read_batches(0, 299)
            await anext(batches)
            assert asked > 1, "nothing was read ahead: this test shows nothing"
            await batches.aclose()
            reader._source.read = read  # type: ignore[method-assign]
            gc.collect()

    ScriptedCluster().run(story)
    assert unasked == []


def test_one_batch_keeps_its_limits_and_the_first_entry_comes_whatever_its_size() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.open_ledger(await written(bk, 300, 20)) as reader:
            some = await reader.read_batch(10, count_max=5)
            assert [(e.entry_id, e.payload) for e in some] == [(i, b"%d" % i * 20) for i in range(10, 15)]
            assert [e.entry_id for e in await reader.read_batch(100, bytes_max=150)] == [100, 101]
            assert [e.entry_id for e in await reader.read_batch(100, bytes_max=1)] == [100]
            assert [e.entry_id for e in await reader.read_batch(298)] == [298, 299]
            assert len(await reader.read_batch(0)) > 100, "without limits it is about one batch"
            with pytest.raises(IllegalOperationError, match="entries from 0 to 299, the last add confirmed, can"):
                await reader.read_batch(300)
            with pytest.raises(IllegalOperationError, match="or more, not -1 and 0"):
                await reader.read_batch(0, count_max=-1)

    ScriptedCluster().run(story)


def test_a_batch_of_a_striped_ledger_is_single_reads_sent_together() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 60, 20, ensemble=4, write_quorum=2, ack_quorum=2)
            async with await bk.open_ledger(ledger_id) as reader:
                loop = asyncio.get_running_loop()
                began = loop.time()
                assert [e.payload for e in await reader.read_batch(0, count_max=50)] == [
                    b"%d" % i * 20 for i in range(50)
                ]
                assert loop.time() - began < 0.05, "one after the other takes a round trip each"

    ScriptedCluster(bookies=4).run(story)


def test_where_nobody_knows_batch_reads_single_ones_are_in_flight_together() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            ledger_id = await written(bk, 300, 20)
            for bookie in cluster.bookies:
                bookie.batches = False
            async with await bk.open_ledger(ledger_id) as reader:
                loop = asyncio.get_running_loop()
                for _ in cluster.bookies:  # each of them has said so
                    assert len([e async for e in reader.read(0, 99)]) == 100
                began = loop.time()
                assert len([e async for e in reader.read(100, 299)]) == 200
                assert loop.time() - began < 0.05, "one after the other takes a round trip each"

    ScriptedCluster().run(story)


@pytest.mark.parametrize("shape", [{}, {"ensemble": 4, "write_quorum": 2, "ack_quorum": 2}])
@pytest.mark.rule("L9")
def test_a_long_poll_for_an_entry_returns_it_with_the_last_add_confirmed(shape: dict[str, Any]) -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger(**shape)
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                loop = asyncio.get_running_loop()
                for i in range(8):
                    waiting = asyncio.ensure_future(reader.read_last_add_confirmed_and_entry(i, timeout_ms=10_000))
                    await asyncio.sleep(1.3)
                    assert not waiting.done()
                    await ledger.append(b"%d" % i)
                    began = loop.time()
                    lac, entry = await waiting
                    assert (lac, entry) == (i, (i, b"%d" % i))
                    assert loop.time() - began < 1.1, "a round of polls may go by bookies that do not hold it"
                assert await reader.read_last_add_confirmed_and_entry(3, timeout_ms=1) == (7, (3, b"3"))
                began = loop.time()
                assert await reader.read_last_add_confirmed_and_entry(8, timeout_ms=2_500) == (7, None)
                assert 2.4 < loop.time() - began < 3.5
                ending = asyncio.ensure_future(reader.read_last_add_confirmed_and_entry(8, timeout_ms=60_000))
                await asyncio.sleep(1)
                await ledger.close()
                began = loop.time()
                assert await ending == (7, None), "the ledger ends before it"
                assert loop.time() - began < 3
                with pytest.raises(IllegalOperationError, match="numbered from 0"):
                    await reader.read_last_add_confirmed_and_entry(-1, timeout_ms=1)

    ScriptedCluster(bookies=4).run(story)


@pytest.mark.rule("L9")
def test_a_long_poll_for_the_last_add_confirmed_ends_with_news_or_in_time() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                waiting = asyncio.ensure_future(reader.wait_last_add_confirmed(-1, timeout_ms=20_000))
                await asyncio.sleep(4)
                await ledger.append_many([b"a", b"b"])
                assert await waiting >= 0
                await asyncio.sleep(1)
                assert await reader.wait_last_add_confirmed(0, timeout_ms=1) == 1
                for bookie in cluster.bookies:
                    bookie.silent = True
                began = asyncio.get_running_loop().time()
                assert await reader.wait_last_add_confirmed(1, timeout_ms=3_000) == 1
                assert asyncio.get_running_loop().time() - began < 10
                for bookie in cluster.bookies:
                    bookie.silent = False

    ScriptedCluster().run(story)


@pytest.mark.rule("L9")
@pytest.mark.parametrize("timeout_ms", [1, 3, 7, 250])
def test_a_wait_ends_where_time_passes_only_while_everybody_waits(timeout_ms: int) -> None:
    """The rest of the time was counted in whole milliseconds, rounded down in one place and compared in another: at
    the limit the same question was asked for ever, at a moment that never passed."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger = await bk.create_ledger()
            async with await other.open_ledger(ledger.id, recovery=False) as reader:
                for bookie in cluster.bookies:
                    bookie.silent = True
                loop = asyncio.get_running_loop()
                for i in range(30):
                    await asyncio.sleep(0.1 + i / 7)
                    began = loop.time()
                    assert await reader.wait_last_add_confirmed(5, timeout_ms=timeout_ms) == -1
                    assert timeout_ms / 1000 - 1e-5 <= loop.time() - began < timeout_ms / 1000 + 1e-5

    ScriptedCluster().run(story)


@pytest.mark.rule("R12")
@pytest.mark.parametrize("read", ["batch", "single", "together"])
def test_a_length_that_is_not_that_of_the_last_entry_is_told_once(read: str, caplog: pytest.LogCaptureFixture) -> None:
    """Apache's recovery may close a ledger with the length of another entry: it was read without a word, and whoever
    trusts the length reads too little or waits for more."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            right, wrong = await written(bk, 8, 3), await written(bk, 8, 3)
            ledgers = bk.services.metadata.ledgers
            stored = await ledgers.read(wrong, fresh=True)
            await ledgers.write(wrong, replace(stored.value, length=21), stored.version)
            for ledger in (right, wrong):
                async with await bk.open_ledger(ledger) as reader:
                    if read == "single":
                        cluster["b1"].batches = cluster["b2"].batches = cluster["b3"].batches = False
                    for _ in range(2):
                        if read == "together":
                            await asyncio.gather(*[reader.read_entry(i) for i in (1, 3, 5, 7)])
                        else:
                            assert len([e async for e in reader.read(0, 7)]) == 8
            told = [r.getMessage() for r in caplog.records if "by its last entry" in r.getMessage()]
            assert len(told) == 1
            assert f"ledger {wrong} has 21 bytes by its metadata, but 24 by its last entry" in told[0]

    with caplog.at_level("WARNING"):
        ScriptedCluster().run(story)


def test_a_reader_that_was_closed_says_so() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk:
            reader = await bk.open_ledger(await written(bk, 5))
            await reader.close()
            for call in (reader.read_entry(0), reader.read_batch(0), reader.read_last_add_confirmed()):
                with pytest.raises(ClientClosedError, match="this reader of ledger 0 is closed"):
                    await call

    ScriptedCluster().run(story)


def test_a_range_that_ends_before_it_begins_is_refused_but_for_the_empty_one() -> None:
    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, await bk.open_ledger(await written(bk, 5)) as reader:
            assert [e async for e in reader.read(3, 2)] == []
            with pytest.raises(IllegalOperationError, match=r"entries 3\.\.1 of ledger 0"):
                assert [e async for e in reader.read(3, 1)]

    ScriptedCluster().run(story)


@pytest.mark.rule("P12", "L1")
def test_entries_that_are_larger_than_was_thought_make_shorter_runs() -> None:
    payloads = [b"small"] * 900 + [b"large" * 400] * 60 + [b"small"] * 100

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect(ClientConfig(batch_read_bytes=4096)) as bk:
            async with await bk.create_ledger() as ledger:
                await ledger.append_many(payloads)
            async with await bk.open_ledger(ledger.id) as reader:
                found: list[bytes] = []
                async for first, run in reader.read_batches(0, len(payloads) - 1):
                    assert first == len(found)
                    assert sum(map(len, run)) < 2 * 4096 + 4096
                    found += run
                assert found == payloads

    ScriptedCluster().run(story)


@pytest.mark.parametrize("follows", [False, True])
def test_a_reader_that_was_closed_is_freed_with_its_last_reference(*, follows: bool) -> None:
    """Cause: a reader and what collects its single reads knew each other; each open ledger left thirty objects to the
    collector."""

    async def story(cluster: ScriptedCluster) -> None:
        async with cluster.connect() as bk, cluster.connect() as other:
            ledger_id = await written(bk, 5, 20)
            if follows:
                writer = await bk.create_ledger()
                await writer.append(b"x")
                ledger_id = writer.id
            gc.disable()
            try:
                reader = await other.open_ledger(ledger_id, recovery=False)
                assert await reader.read_entry(0)
                gone = weakref.ref(reader)
                await reader.close()
                del reader
                await asyncio.sleep(1)
                assert gone() is None
            finally:
                gc.enable()

    ScriptedCluster().run(story)
