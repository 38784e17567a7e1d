"""A small batch finds its ledger made, and is there once whatever has become of that ledger."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper.meta.store import Operation
from segments import BatchKey, PublishedBatch, StagedRows, StreamPublisher
from segments.entries.columns import RecordColumns
from segments.errors import OwnershipLostError
from segments.publish import prepared_ledger
from segments.publish.prepared_ledger import PreparedLedger
from segments.publish.staged_writer import StagedLedger, StagedWriter
from segments.stream import Stream
from tests.segments.publish.cluster import Programs, story, values_of

APP = "a"


async def small(stream: Stream, number: int, app: str = APP) -> list[StagedRows]:
    """The message of a task whose rows go along."""
    writer = stream.stage(f"{app}-{number}", app)
    await writer.add(RecordColumns.of_values([b"%d" % number]))
    return [await writer.finish()]


async def publish(publisher: StreamPublisher, stream: Stream, number: int, app: str = APP) -> PublishedBatch:
    return await publisher.publish(BatchKey(app, "q", number), await small(stream, number, app))


async def ledgers(stream: Stream) -> set[int]:
    return {ledger async for ledger in stream.client.list_ledgers()}


def counted(stream: Stream) -> dict[str, int]:
    """How often the store is asked from now on, by the kind of call."""
    store: Any = stream.client.metadata_store.store
    calls: dict[str, int] = {}

    def counting(name: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def each(*args: Any, **options: Any) -> Any:
            calls[name] = calls.get(name, 0) + 1
            return await call(*args, **options)

        return each

    for name in ("get", "exists", "children", "sync", "set", "create", "delete", "multi"):
        setattr(store, name, counting(name, getattr(store, name)))
    return calls


@story
async def test_a_batch_that_finds_its_ledger_waits_for_two_writes(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        await publish(publisher, stream, 0)
        await publisher.prepare(APP)
        calls = counted(stream)
        assert (await publish(publisher, stream, 1)).records == 1
        assert calls == {"get": 1, "set": 1, "multi": 1, "children": 1}, "settings; close; publish; what is left over"
        assert await values_of(stream) == [b"0", b"1"]
        await publisher.close()
    await programs.check()


@story
async def test_each_batch_takes_one_and_no_ledger_is_left_when_the_publisher_is_closed(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        for number in range(5):
            await publish(publisher, stream, number)
            await publisher.prepare(APP)
            await publisher.prepare(APP)
        segments = {segment.ledger_id for segment in await stream.segments()}
        assert len(await ledgers(stream) - segments) == 1, "the next one's"
        await publisher.close()
        await publisher.prepare(APP)
        assert await ledgers(stream) == segments
        assert await values_of(stream) == [b"%d" % number for number in range(5)]
    await programs.check()


@story
async def test_large_batches_and_those_of_no_application_get_none(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        writer = StagedWriter(stream.client, (stream.name, stream.id), stream.config, "large", APP, inline=-1)
        await writer.add(RecordColumns.of_values([b"x"]))
        await publisher.publish(BatchKey(APP, "q", 0), [await writer.finish()])
        await publisher.prepare(APP)
        assert await ledgers(stream) == {segment.ledger_id for segment in await stream.segments()}


@story
async def test_one_that_waits_while_a_large_batch_is_published_is_no_left_over(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        await publish(publisher, stream, 0)
        await publisher.prepare(APP)
        (ahead,) = await ledgers(stream) - {segment.ledger_id for segment in await stream.segments()}
        writer = StagedWriter(stream.client, (stream.name, stream.id), stream.config, "large", APP, inline=-1)
        await writer.add(RecordColumns.of_values([b"1"]))
        await publisher.publish(BatchKey(APP, "q", 1), [await writer.finish()])
        await publish(publisher, stream, 2)
        assert (await stream.segments())[-1].ledger_id == ahead
        assert await values_of(stream) == [b"0", b"1", b"2"]


@story
async def test_a_ledger_that_was_given_up_is_replaced_and_the_batch_is_there_once(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        await publish(publisher, stream, 0)
        await publisher.prepare(APP)
        assert len(await publisher.clean(APP)) == 1, "somebody takes it for left over"
        assert not (await publish(publisher, stream, 1)).already_there
        assert await values_of(stream) == [b"0", b"1"]
    await programs.check()


@story
async def test_one_that_is_given_up_between_its_rows_and_the_step_is_replaced(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        await publish(publisher, stream, 0)
        await publisher.prepare(APP)
        filled = publisher._filled
        cleaned: list[list[int]] = []

        async def filled_and_cleaned(writer: StagedWriter, small: Sequence[StagedRows]) -> tuple[StagedLedger, str]:
            done = await filled(writer, small)
            if not cleaned:
                cleaned.append(await publisher.clean(APP))
            return done

        publisher._filled = filled_and_cleaned  # type: ignore[method-assign]
        done = await publish(publisher, stream, 1)
        assert (done.already_there, done.first_seq_no, len(cleaned[0])) == (False, 1, 1)
        assert await values_of(stream) == [b"0", b"1"]
    await programs.check()


@story
async def test_the_ledger_of_another_application_or_of_other_settings_is_not_taken(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        await publish(publisher, stream, 0)
        await publisher.prepare(APP)
        await publish(publisher, stream, 0, "b")
        await publisher.prepare(APP)
        await stream.configure({"ack_quorum": 3})
        await publish(publisher, stream, 1)
        last = (await stream.segments())[-1]
        assert (await stream.client.metadata(last.ledger_id)).spec.ack_quorum == 3
        assert await ledgers(stream) == {segment.ledger_id for segment in await stream.segments()}, "both are deleted"
        assert await values_of(stream) == [b"0", b"0", b"1"]


@story
async def test_one_that_was_made_long_ago_is_not_taken(programs: Programs) -> None:
    async with programs.stream() as stream:
        writers: list[str] = []
        now = [0.0]

        def make(config: object, staging: str, app: str) -> StagedWriter:
            writers.append(staging)
            return StagedWriter(stream.client, (stream.name, stream.id), stream.config, staging, app, inline=-1)

        ahead = PreparedLedger(stream.name, lambda: now[0], make, lambda: f"s{len(writers)}")
        await ahead.prepare(stream.config, APP)
        now[0] = prepared_ledger.OLD_S - 1
        taken = await ahead.take(stream.config, APP)
        assert taken is not None
        assert (taken.staging, ahead.stagings) == ("s0", frozenset())
        await ahead.prepare(stream.config, APP)
        assert ahead.stagings == {"s1"}
        assert await ahead.take(replace(stream.config, compression="lz4"), APP) is None
        await ahead.prepare(stream.config, APP)
        now[0] += prepared_ledger.OLD_S
        assert await ahead.take(stream.config, APP) is None
        assert writers == ["s0", "s1", "s2"]


@story
async def test_while_bookies_are_away_none_is_made_and_the_next_batch_makes_its_own(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        await publish(publisher, stream, 0)
        programs.cluster.store.begin_outage()
        await publisher.prepare(APP)
        programs.cluster.store.end_outage()
        await publish(publisher, stream, 1)
        assert await values_of(stream) == [b"0", b"1"]
    await programs.check()


@story
async def test_a_ledger_that_takes_no_rows_any_more_is_replaced(programs: Programs) -> None:
    async with programs.stream() as stream, programs.stream() as other:
        publisher = await stream.publisher()
        await publish(publisher, stream, 0)
        await publisher.prepare(APP)
        (ahead,) = await ledgers(stream) - {segment.ledger_id for segment in await stream.segments()}
        password = (await stream.chain()).password
        async with await other.client.open_ledger(ahead, password):  # it is fenced, and closed
            pass
        assert (await publish(publisher, stream, 1)).first_seq_no == 1
        assert await values_of(stream) == [b"0", b"1"]


@story
async def test_what_others_have_done_to_an_application_meanwhile_is_seen(programs: Programs) -> None:
    """The publisher remembers what it has written of it: a batch that seems to be new is proven by the write, and
    anything else is read."""
    async with programs.stream() as stream, programs.stream() as other:
        publisher = await stream.publisher()
        await publish(publisher, stream, 5)
        assert await other.forget_app(APP)
        assert not (await publish(publisher, stream, 3)).already_there, "it is not known any more"
        assert await other.forget_app(APP)
        done = await publisher.publish(BatchKey(APP, "another query", 1), await small(stream, 1))
        assert not done.already_there, "it is refused only while the application is known"
        assert await other.forget_app(APP)
        assert (await publish(publisher, stream, 4)).number == 4
        assert await other.forget_app(APP)
        again = await other.publisher()
        await publish(again, other, 5)
        with pytest.raises(OwnershipLostError):
            await publish(publisher, stream, 5)
        assert await values_of(stream) == [b"5", b"3", b"1", b"4", b"5"]
    await programs.check()


@story
async def test_a_version_that_somebody_else_has_written_is_read_again(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        await publish(publisher, stream, 0)
        store: Any = stream.client.metadata_store.store
        path = f"{publisher._apps.parent}/{APP}"
        await store.set(path, (await store.get(path)).value, None)
        multi, tries = store.multi, []

        async def tried(operations: Sequence[Operation]) -> object:
            if len(operations) > 2:
                tries.append(len(operations))
            return await multi(operations)

        store.multi = tried
        done = await publish(publisher, stream, 1)
        assert (done.number, done.already_there) == (1, False)
        assert await values_of(stream) == [b"0", b"1"]
