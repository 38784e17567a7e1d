"""Truncation to an exact record: what it hides, what it refuses, and what it does under a hold."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper import BookKeeper
from bookkeeper.errors import MetadataConflictError
from bookkeeper.meta.store import Version, settled_set_if
from segments.chain import StreamChain
from segments.errors import PositionFormatError, StreamHeldError, StreamNotFoundError
from segments.position import EARLIEST, LATEST, Position
from segments.record import GapKind, StoredRecord
from segments.retention import chain_steps, truncation
from segments.retention.hold_node import HoldNode
from segments.retention.holds import Hold
from segments.retention.truncation import end_of_stream, sequence_at, truncate
from tests.segments.read.built_stream import BuiltStream, simulated
from tests.segments.retention.chains import at
from tests.segments.retention.streams import ledgers_of, make_stream, run


def test_each_step_hides_exactly_the_records_before_it() -> None:
    """SEG-98 each truncation hides exactly the earlier records, inside of a segment too, and in the open one; a place
    that is not in the stream is refused and changes nothing."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, opened=True)
        steps = [(at(1, 1, 1), 3), (at(2), 6), (at(2, 2, 1), 11), (at(4, 1, 1), 21), (at(4, 3), 24)]
        for position, seq_no in steps:
            result = await truncate(client, record, position)
            begins = position if position < at(4, 3) else at(4, 2, 2)  # directly behind the last record
            assert result.start == begins and result.is_change
            chain, _ = await record.read()
            assert (chain.first_position, chain.start_seq_no) == (begins, seq_no)
            assert [s.number for s in result.removable] == list(range(1, position.segment))
            for wrong in (at(4, 3, 1), at(5), at(4, 9), Position(4, 2, -1)):
                with pytest.raises(PositionFormatError, match="no position in stream orders"):
                    await truncate(client, record, wrong)
            assert (await record.read())[0] == chain

    run(story)


def test_backwards_is_no_change() -> None:
    """SEG-98 a lower position has no effect, and the answer is the present beginning; SEG-101 what is wholly truncated
    never becomes readable in part."""

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        await truncate(client, record, at(3))
        before = await record.read()
        for lower in (EARLIEST, at(1), at(2, 1), at(3), Position.BEFORE_FIRST):
            result = await truncate(client, record, lower)
            assert result.start == result.was == at(3) and not result.is_change
        assert await record.read() == before

    run(story)


def test_to_the_end() -> None:
    async def story(client: BookKeeper) -> None:
        completed = await make_stream(client)
        assert await end_of_stream(client, (await completed.read())[0]) == at(4)
        assert (await truncate(client, completed, LATEST)).start == at(4)
        live = await make_stream(client, "live", opened=True)
        assert (await truncate(client, live, LATEST)).start == at(4, 2, 2), "directly behind the last record"
        assert (await live.read())[0].start_seq_no == 24

    run(story)


def test_a_dry_run_changes_nothing() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        before = await record.read()
        result = await truncate(client, record, at(3), dry_run=True)
        assert result.start == at(3) and len(result.removable) == 2
        assert await record.read() == before

    run(story)


def test_truncation_removes_no_ledger() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        before = await ledgers_of(client)
        await truncate(client, record, LATEST)
        assert await ledgers_of(client) == before

    run(story)


def test_a_hold_refuses_or_limits() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        holds = HoldNode(client.metadata_store, record)
        now_ms = client.services.seams.clock.wall_ms()
        await holds.put(Hold("audit", at(2, 1), at(3), until_ms=now_ms + 60_000), now_ms)
        with pytest.raises(StreamHeldError, match=r"hold audit until .* from 2:1:0 on") as caught:
            await truncate(client, record, at(3))
        assert caught.value.position == at(2, 1)
        assert (await record.read())[0].start == EARLIEST
        assert (await truncate(client, record, at(2))).held_by is None
        limited = await truncate(client, record, at(3), up_to_holds=True)
        assert limited.start == at(2, 1) and limited.held_by is not None and limited.held_by.name == "audit"
        await asyncio.sleep(61)
        assert (await truncate(client, record, at(3))).start == at(3)

    run(story)


def test_a_hold_that_comes_at_the_same_time_is_seen_or_refused() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        holds = HoldNode(client.metadata_store, record)
        hold = Hold("late", at(2), at(3))
        outcomes = await asyncio.gather(truncate(client, record, at(3)), holds.put(hold, 0), return_exceptions=True)
        assert sum(isinstance(each, Exception) for each in outcomes) == 1
        held = len((await holds.read())[0]) == 1
        assert (await record.read())[0].first_position == (at(1) if held else at(3))

    run(story)


def test_sequence_numbers_at_any_place() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, opened=True)
        chain, _ = await record.read()
        places = {
            at(1): 0,
            at(1, 0, 1): 1,
            at(1, 1): 2,
            at(1, 2, 7): 6,
            at(2): 6,
            at(3, 5): 18,
            at(4, 2): 22,
            at(9): 18,
        }
        for position, seq_no in places.items():
            assert await sequence_at(client, chain, position) == seq_no, position
        await client.delete_ledger(chain.segments[0].ledger_id, grace_s=0)
        assert await sequence_at(client, chain, at(1, 1)) is None

    run(story)


def test_a_stream_that_is_not_there() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        await record.store.delete(record.path, None)
        with pytest.raises(StreamNotFoundError):
            await truncate(client, record, at(2))

    run(story)


def test_a_stream_can_begin_at_an_entry_that_is_damaged() -> None:
    """What is broken can be truncated up to, and away: only the number of the first record is not known then."""

    async def story(stream: BuiltStream) -> None:
        await stream.start()
        await stream.add(2)
        await stream.raw(b"no entry of a stream")
        await stream.add(2)
        await stream.complete()
        result = await truncate(stream.client, stream.node, at(1, 1))
        assert result.start == at(1, 1)
        assert (await stream.chain()).start_seq_no is None
        async with stream.reader(on_gap="yield") as reader:
            found = [each.seq_no if isinstance(each, StoredRecord) else each.kind async for each in reader]
        assert found == [GapKind.CORRUPT, 2, 3]
        assert (await truncate(stream.client, stream.node, at(1, 2))).start == at(1, 2)
        assert (await stream.chain()).start_seq_no == 2

    simulated(story)


@pytest.mark.rule("M9")
def test_the_end_is_that_of_the_call_also_when_it_is_decided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records that came between two attempts were hidden."""

    async def story(client: BookKeeper) -> None:
        node = await make_stream(client, "live", opened=True)
        ends = [at(4, 1), at(4, 2)]

        async def growing(_: BookKeeper, chain: StreamChain) -> Position:
            return ends.pop(0) if len(ends) > 1 else ends[0]

        async def overtaken(*args: Any) -> Version:
            monkeypatch.setattr(chain_steps, "settled_set_if", settled_set_if)
            raise MetadataConflictError("somebody else has written")

        monkeypatch.setattr(truncation, "end_of_stream", growing)
        monkeypatch.setattr(chain_steps, "settled_set_if", overtaken)
        result = await truncate(client, node, LATEST)
        assert result.start <= at(4, 1) and result.is_change

    run(story)
