"""The owner of a cursor's node: gathered writes, lost stores, taken over."""

from __future__ import annotations

import asyncio
import gc

import pytest

from bookkeeper.errors import MetadataUnavailableError
from segments.cursors.acked_ranges import Mark
from segments.cursors.cursor_node import CursorNode
from segments.cursors.cursor_owner import CursorOwner
from segments.cursors.cursor_state import Acknowledgement, CursorState
from segments.errors import (
    CursorConflictError,
    CursorFullError,
    CursorNotFoundError,
    StreamClosedError,
    StreamMetadataError,
)
from segments.position import EARLIEST, Position
from tests.segments.read.built_stream import BuiltStream, simulated


def up_to(seq_no: int) -> Acknowledgement:
    return Acknowledgement(Mark(seq_no, Position(1, seq_no, 0)))


async def owner_of(stream: BuiltStream) -> CursorOwner:
    record = CursorNode(stream.client.metadata_store, "built", "built", "c")
    await record.create(CursorState.create(Mark(0, EARLIEST), 1))
    owned = await CursorOwner.claim(record, "me", f"{stream.client.services.seams.rng.random()}")
    return CursorOwner(record, owned, stream.source.now_ms, save_every_s=1.0)


def test_a_store_that_is_away_is_told_to_who_waits_and_tried_again_for_who_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SEG-92, SEG-93: while the metadata store is away nothing is lost, and nothing is called stored."""

    async def story(stream: BuiltStream) -> None:
        owner = await owner_of(stream)

        async def away(*args: object, **options: object) -> None:
            raise MetadataUnavailableError("away")

        monkeypatch.setattr(CursorNode, "write", away)
        owner.acknowledge_later([up_to(3)])
        with pytest.raises(StreamMetadataError):
            await owner.acknowledge([up_to(2)])
        await asyncio.sleep(5)
        monkeypatch.undo()
        await asyncio.sleep(2)
        assert owner.state.mark.seq_no == 3
        with pytest.raises(StreamMetadataError):
            await owner.flush()
        await owner.flush()
        await owner.close()

    simulated(story)


def test_an_owner_that_was_overtaken_can_do_nothing_more() -> None:
    async def story(stream: BuiltStream) -> None:
        first, second = await owner_of(stream), await owner_of(stream)
        assert second.state.epoch == first.state.epoch + 1
        for _ in range(2):
            with pytest.raises(CursorConflictError):
                await first.acknowledge([up_to(1)])
        await second.acknowledge([up_to(2)])
        await second.close()
        await second.close()
        with pytest.raises(StreamClosedError):
            await second.acknowledge([up_to(3)])
        await first.abandon()
        third = await owner_of(stream)
        assert third.state.mark.seq_no == 2 and third.state.epoch == 3
        await third.abandon()

    simulated(story)


def test_who_waits_when_the_owner_is_abandoned_is_told() -> None:
    async def story(stream: BuiltStream) -> None:
        owner = await owner_of(stream)
        waiting = asyncio.create_task(owner.acknowledge([up_to(1)]))
        await asyncio.sleep(0)
        await owner.abandon()
        with pytest.raises(StreamClosedError):
            await waiting

    simulated(story)


def test_a_failure_of_many_acknowledgements_is_told_once() -> None:
    async def story(stream: BuiltStream) -> None:
        loop = asyncio.get_running_loop()
        complaints: list[object] = []
        loop.set_exception_handler(lambda _, context: complaints.append(context))
        first, second = await owner_of(stream), await owner_of(stream)
        with pytest.raises(CursorConflictError):
            await first.acknowledge([up_to(1), up_to(2), up_to(3)])
        left = asyncio.create_task(second.acknowledge([up_to(4)]))
        await asyncio.sleep(0)
        left.cancel()  # whoever waited went away
        await second.abandon()
        await first.abandon()
        gc.collect()
        await asyncio.sleep(0)
        assert complaints == []

    simulated(story)


def test_several_may_act_for_one_owner_until_another_one_claims() -> None:
    """What one of them writes between the look and the write of another is no reason to refuse that one."""

    async def story(stream: BuiltStream) -> None:
        owner = await owner_of(stream)
        record, now_ms = CursorNode(stream.client.metadata_store, "built", "built", "c"), stream.source.now_ms
        epoch, nonce = owner.state.epoch, owner.state.nonce

        async def resumed(nonce: str) -> CursorOwner:
            return await CursorOwner.resume(record, epoch, nonce, now_ms, ranges_max=10, save_every_s=1.0)

        one, two = await resumed(nonce), await resumed(nonce)
        await one.acknowledge([Acknowledgement(Mark(3, Position(1, 3, 0)), 2)])
        await two.acknowledge([Acknowledgement(Mark(6, Position(1, 6, 0)), 5)])
        await one.acknowledge([up_to(1)])
        assert [(each.first, each.end) for each in one.state.ranges] == [(2, 3), (5, 6)]
        with pytest.raises(CursorConflictError, match="changed by someone else"):
            await owner.acknowledge([up_to(4)])  # it was made for one who acts alone
        with pytest.raises(CursorConflictError, match="taken over by me"):
            await resumed("another claim of the same epoch")
        await (await owner_of(stream)).close()
        for late in (one, two):
            with pytest.raises(CursorConflictError, match="taken over"):
                await late.acknowledge([up_to(9)])
            await late.abandon()
        await owner.abandon()

    simulated(story)


def test_who_acts_for_an_owner_changes_no_cursor_that_was_made_anew_under_the_name() -> None:
    """Its versions begin again, and reach the one that was read."""

    async def story(stream: BuiltStream) -> None:
        owner = await owner_of(stream)
        record, now_ms = CursorNode(stream.client.metadata_store, "built", "built", "c"), stream.source.now_ms
        late = await CursorOwner.resume(
            record, owner.state.epoch, owner.state.nonce, now_ms, ranges_max=10, save_every_s=1.0
        )
        assert await record.delete()
        await (await owner_of(stream)).abandon()
        before = await record.read()
        with pytest.raises(CursorNotFoundError, match="was deleted"):
            await late.acknowledge([up_to(9)])
        assert await record.read() == before
        await late.abandon()
        await owner.abandon()

    simulated(story)


def test_what_is_refused_after_a_failure_is_told_to_who_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What failed, and nobody waits for, is tried again before it."""

    async def story(stream: BuiltStream) -> None:
        record = CursorNode(stream.client.metadata_store, "built", "built", "c")
        await record.create(CursorState.create(Mark(0, EARLIEST), 1))
        owned = await CursorOwner.claim(record, "me", "n")
        owner = CursorOwner(record, owned, stream.source.now_ms, ranges_max=1, save_every_s=1.0)
        begun, gate = asyncio.Event(), asyncio.Event()

        async def away(*args: object, **options: object) -> None:
            begun.set()
            await gate.wait()
            raise MetadataUnavailableError("away")

        monkeypatch.setattr(CursorNode, "write", away)
        owner.acknowledge_later([Acknowledgement(Mark(3, Position(1, 3, 0)), 2)])
        await begun.wait()
        waiting = asyncio.ensure_future(owner.acknowledge([Acknowledgement(Mark(6, Position(1, 6, 0)), 5)]))
        await asyncio.sleep(0)
        monkeypatch.undo()
        gate.set()
        with pytest.raises(CursorFullError):
            await waiting
        assert [(each.first, each.end) for each in owner.state.ranges] == [(2, 3)]
        await owner.abandon()

    simulated(story)
