"""Batches become visible whole, in order and once, whatever fails in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from bookkeeper.errors import MetadataUnavailableError, SessionExpiredError
from bookkeeper.meta.store import Operation
from segments import (
    AppendOutcomeUnknownError,
    AtSeqNo,
    BatchKey,
    BatchRefusedError,
    Record,
    StoredRecord,
)
from segments.chain import SegmentContents, stream_chain
from segments.entries.columns import RecordColumns
from segments.errors import OwnershipLostError, StreamCorruptError, StreamMetadataError
from segments.namespace import connect
from segments.publish import PublishedBatch, StagedLedger, StagedRows, StreamPublisher
from segments.publish import publisher as publisher_module
from segments.publish.staged_writer import StagedWriter
from segments.stream import Stream
from tests.segments.publish.cluster import CONFIG, NAME, Programs, story, values_of

QUERY = "q-1"
INLINE = 1 << 20
NEVER = -1


async def staged(
    stream: Stream, staging: str, *tasks: list[bytes], app: str = "a", inline: int = NEVER
) -> list[StagedRows]:
    """The messages of tasks, each with these values, in two entries."""
    messages = []
    for values in tasks:
        writer = StagedWriter(stream.client, (stream.name, stream.id), stream.config, staging, app, inline=inline)
        half = len(values) // 2
        for part in (values[:half], values[half:]):
            await writer.add(RecordColumns.of_values(part))
        messages.append(await writer.finish())
    return messages


async def publish(
    publisher: StreamPublisher, stream: Stream, batch: int, *tasks: list[bytes], inline: int = NEVER
) -> PublishedBatch:
    """As an attempt of its own, whose staging has a name of its own."""
    rows = await staged(stream, f"s{batch}-{stream.client.services.seams.rng.getrandbits(64):x}", *tasks, inline=inline)
    return await publisher.publish(BatchKey("a", QUERY, batch), rows)


@pytest.mark.parametrize(("inline", "segments"), [(INLINE, 2), (NEVER, 3)])
def test_what_tasks_have_written_is_read_in_order_with_dense_numbers(inline: int, segments: int) -> None:
    @story
    async def told(programs: Programs) -> None:
        async with programs.stream() as stream:
            async with stream.writer() as writer:
                await writer.append_batch([b"w0", b"w1"])
            publisher = await stream.publisher()
            first = await publish(publisher, stream, 0, [b"a", b"b", b"c"], [], [b"d", b"e"], inline=inline)
            assert (first.first_seq_no, first.records, first.already_there) == (2, 5, False)
            second = await publish(publisher, stream, 1, [b"f"], inline=inline)
            assert (second.first_seq_no, second.number) == (7, 1)
            assert await values_of(stream) == [b"w0", b"w1", b"a", b"b", b"c", b"d", b"e", b"f"]
            async with stream.read(AtSeqNo(4)) as reader:
                found = await reader.next()
            assert isinstance(found, StoredRecord)
            assert found.value == b"c"
            assert await stream.count(AtSeqNo(1), AtSeqNo(6)) == 5
            published = [segment for segment in await stream.segments() if segment.is_published]
            assert len(published) == segments
        await programs.check()

    told()


@story
async def test_a_batch_that_comes_again_with_other_rows_is_there_once(programs: Programs) -> None:
    async with programs.stream() as stream, programs.stream() as other:
        publisher = await stream.publisher()
        await publish(publisher, stream, 0, [b"first"])
        again = await other.publisher()
        done = await publish(again, other, 0, [b"other", b"rows"])
        assert (done.already_there, done.first_seq_no, done.records) == (True, 0, 1)
        assert await values_of(stream) == [b"first"]
        await publish(again, other, 1, [b"second"])
        with pytest.raises(OwnershipLostError):
            await publish(publisher, stream, 2, [b"of the former owner"])
        assert await values_of(stream) == [b"first", b"second"]
    await programs.check()


@pytest.mark.rule("S14", "X36")
@story
async def test_a_message_that_says_more_than_its_ledger_is_refused(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        [good] = await staged(stream, "s", [b"a", b"b"])
        [other] = await staged(stream, "t", [b"c", b"d"])
        assert good.ledger is not None and other.ledger is not None
        writer = StagedWriter(stream.client, (stream.name, stream.id), stream.config, "s", "a", inline=NEVER)
        await writer.begin()
        assert writer._ledger is not None
        empty = SegmentContents(bytes=0, last_entry=-1)
        contents = good.ledger.contents
        longer = replace(contents, last_entry=contents.last_entry + 1)
        for ledger, said in (
            (other.ledger, "was not written for this batch"),
            (StagedLedger(writer._ledger.id, empty), "does not end at entry -1"),
            (replace(good.ledger, contents=longer), "does not end at entry"),
            (replace(good.ledger, contents=replace(contents, records=1 << 62)), "it has 2 records, and not 4611"),
            (replace(good.ledger, contents=replace(contents, bytes=1 << 62)), "bytes, and not 4611"),
            (replace(good.ledger, contents=replace(contents, footer_entry=0)), "its last entry is no footer"),
            (replace(good.ledger, contents=replace(contents, last=(7, 0))), "its last record is not in it"),
            (replace(good.ledger, contents=replace(contents, last=None)), "its last record is not in it"),
        ):
            with pytest.raises((BatchRefusedError, StreamCorruptError), match=said):
                await publisher.publish(BatchKey("a", QUERY, 0), [replace(good, ledger=ledger)])
        await writer.abandon()
        [small] = await staged(stream, "small", [b"x"], inline=1 << 16)
        for rows in ([replace(good, records=3)], [replace(small, records=1 << 62)], [replace(small, records=0)]):
            with pytest.raises(BatchRefusedError, match="have said that they wrote"):
                await publisher.publish(BatchKey("a", QUERY, 0), rows)
        [good] = await staged(stream, "again", [b"a", b"b"])
        await publisher.publish(BatchKey("a", QUERY, 0), [good])
        assert await values_of(stream) == [b"a", b"b"]


@story
async def test_another_query_of_an_application_is_refused_until_it_says_where_it_goes_on(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        for batch in (0, 1):
            await publish(publisher, stream, batch, [b"%d" % batch])
        rows = await staged(stream, "new", [b"lost checkpoint"])
        with pytest.raises(BatchRefusedError, match=r'option\("txnStart", "2"\)'):
            await publisher.publish(BatchKey("a", "q-2", 0), rows)
        done = await publisher.publish(BatchKey("a", "q-2", 0, start=2), rows)
        assert (done.number, done.already_there) == (2, False)
        rows = await staged(stream, "next", [b"next"])
        assert (await publisher.publish(BatchKey("a", "q-2", 1), rows)).number == 3
        with pytest.raises(BatchRefusedError, match="as query q-2, and query q-1"):
            await publisher.publish(BatchKey("a", QUERY, 2), await staged(stream, "old", [b"x"]))
        assert await values_of(stream) == [b"0", b"1", b"lost checkpoint", b"next"]


@story
async def test_a_run_writes_a_number_once_and_another_run_s_repetition_is_already_there(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        await publisher.publish(BatchKey("a", "", 7, run="r1"), await staged(stream, "1", [b"x"]))
        with pytest.raises(BatchRefusedError, match="has written number 7"):
            await publisher.publish(BatchKey("a", "", 7, run="r1"), await staged(stream, "2", [b"y"]))
        done = await publisher.publish(BatchKey("a", "", 7, run="r2"), await staged(stream, "3", [b"x"]))
        assert done.already_there
        assert await values_of(stream) == [b"x"]


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("lost", [MetadataUnavailableError, SessionExpiredError])
def test_a_lost_reply_is_settled_by_the_record_and_nothing_is_there_twice(
    written: bool, keyed: bool, lost: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    @story
    async def told(programs: Programs) -> None:
        async with programs.stream() as stream:
            publisher = await stream.publisher()
            store: Any = stream.client.metadata_store.store
            write, replies = store.multi, [False]

            async def multi(operations: Sequence[Operation]) -> object:
                if not replies:
                    return await write(operations)
                replies.pop()
                if written:
                    await write(operations)
                raise lost("the reply was lost")

            monkeypatch.setattr(store, "multi", multi)
            rows = await staged(stream, "s", [b"a", b"b"])
            found = await publisher.publish(BatchKey("a", QUERY, 0) if keyed else None, rows)
            assert not replies, "a reply was lost"
            assert (found.already_there, found.records, found.first_seq_no) == (False, 2, 0)
            assert await values_of(stream) == [b"a", b"b"]
        await programs.check()

    told()


@story
async def test_a_batch_that_was_given_up_is_not_published_and_its_ledgers_are_gone(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        rows = await staged(stream, "late", [b"a"], [b"b"], app="other")
        assert await publisher.clean("a") == []
        gone = await publisher.clean("other")
        assert sorted(gone) == sorted(each.ledger.ledger_id for each in rows if each.ledger is not None)
        with pytest.raises(BatchRefusedError, match="was given up"):
            await publisher.publish(BatchKey("other", QUERY, 0), rows)
        assert await values_of(stream) == []
        await publish(publisher, stream, 0, [b"x"])
        assert await values_of(stream) == [b"x"]


@story
async def test_a_batch_that_is_given_up_between_its_look_and_its_write_is_not_published(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        rows = await staged(stream, "late", [b"a"], app="a")
        look = publisher._check_written

        async def looked(written: Any) -> None:
            await look(written)
            await publisher._stagings.clean(publisher._named, 0, app="a")

        publisher._check_written = looked  # type: ignore[method-assign]
        with pytest.raises(BatchRefusedError, match="was given up"):
            await publisher.publish(BatchKey("a", QUERY, 0), rows)
        assert await values_of(stream) == []
        assert await stream.apps() == []


@story
async def test_what_was_published_is_never_cleaned_although_its_staging_still_lists_it(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        rows = await staged(stream, "s", [b"a"])
        await publisher.publish(BatchKey("a", QUERY, 0), rows)
        assert rows[0].ledger is not None
        await publisher._stagings.note_ledger("s", rows[0].ledger.ledger_id)  # as if cleaning had failed
        assert await publisher.clean("a") == []
        assert await values_of(stream) == [b"a"]


@story
async def test_a_take_over_recovers_what_a_dead_writer_left_and_producers_are_remembered(programs: Programs) -> None:
    async with programs.stream() as stream, programs.stream() as other:
        producer = await stream.producer("p")
        await producer.append(b"p0", seq=0)
        publisher = await other.publisher(take_over=True)
        before, publisher_module.TELL_EVERY = publisher_module.TELL_EVERY, 3  # type: ignore[misc]
        try:
            for batch in range(8):
                await publish(publisher, other, batch, [b"%d" % batch])
        finally:
            publisher_module.TELL_EVERY = before  # type: ignore[misc]
        telling = [segment.number for segment in await other.segments() if not segment.is_published]
        assert len(telling) == 3, "the producer's own, and one after three published ones, twice"
        chain, _ = await other.node.read()
        assert {(await other.client.metadata(ledger)).password for ledger in chain.ledgers} == {chain.password}
        async with other.producer("p") as again:
            assert (again.last_seq, again.epoch) == (0, producer.epoch + 1)
            assert (await again.append(b"p1", seq=1)).seq_no == 9
            assert (await again.append(b"p0", seq=0)).duplicate
        assert await values_of(other) == [b"p0", *(b"%d" % batch for batch in range(8)), b"p1"]
    await programs.check()


@story
async def test_a_batch_for_a_stream_that_was_deleted_and_made_anew_is_refused(programs: Programs) -> None:
    async with programs.stream() as stream, programs.stream("another") as another:
        rows = await staged(another, "s", [b"x"])
        with pytest.raises(BatchRefusedError, match="deleted, and made again"):
            await (await stream.publisher()).publish(BatchKey("a", QUERY, 0), rows)


@story
async def test_records_with_keys_times_and_headers_come_as_they_were(programs: Programs) -> None:
    time = datetime(2026, 1, 2, tzinfo=UTC)
    record = Record(b"v", key=b"k", event_time=time, headers={"h": b"x"})
    async with programs.stream() as stream:
        writer = stream.stage("s", "a")
        await writer.add(RecordColumns.of_records([record, Record(b"w")]))
        await (await stream.publisher()).publish(BatchKey("a", QUERY, 0), [await writer.finish()])
        async with stream.read() as reader:
            found = [each async for each in reader if isinstance(each, StoredRecord)]
    assert [(each.value, each.key, each.event_time, dict(each.headers)) for each in found] == [
        (b"v", b"k", time, {"h": b"x"}),
        (b"w", None, None, {}),
    ]


@story
async def test_an_export_of_a_stream_with_batches_is_imported_with_its_producers(programs: Programs) -> None:
    async with programs.cluster.connect() as client:
        from segments.namespace import connect

        async with connect("", client=client) as namespace:
            stream = await namespace.create("totals")
            async with stream.producer("p") as producer:
                await producer.append(b"p0", seq=0)
            publisher = await stream.publisher()
            await publish(publisher, stream, 0, [b"a", b"b"], [b"c"])
            await publisher.close()
            await namespace.import_stream(stream.export().chunks(), name="copy")
            copy = await namespace.open("copy")
            assert await values_of(copy) == [b"p0", b"a", b"b", b"c"]
            assert await namespace.verify("copy") == ()
            async with copy.producer("p") as again:
                assert again.last_seq == 0


@story
async def test_without_a_key_an_unknown_outcome_is_told_and_never_tried_again(programs: Programs) -> None:
    async with programs.stream() as stream, programs.stream() as other:
        publisher = await stream.publisher()
        store: Any = stream.client.metadata_store.store
        write = store.multi

        async def multi(operations: Sequence[Operation]) -> object:
            await write(operations)
            store.multi = write
            await other.publisher()  # another owner comes before anybody can look
            raise MetadataUnavailableError("the reply was lost")

        rows = await staged(stream, "s", [b"a"])
        store.multi = multi
        with pytest.raises(AppendOutcomeUnknownError, match="it is not known whether a batch of 1 record was"):
            await publisher.publish(None, rows)
        assert await values_of(stream) == [b"a"]


@pytest.mark.rule("S14")
@story
async def test_a_call_for_the_same_rows_that_got_no_answer_is_repeated_by_the_same_run(programs: Programs) -> None:
    """The cause: a run may write a number once, and the metadata store was away when its only write was to be told of;
    the next call was refused as a second write."""
    async with programs.stream() as stream, programs.stream() as other:
        publisher = await stream.publisher()
        store: Any = stream.client.metadata_store.store
        write, read = store.multi, store.get

        async def away(*_: object) -> object:
            raise MetadataUnavailableError("the store is away")

        async def multi(operations: Sequence[Operation]) -> object:
            await write(operations)
            store.get = away
            raise MetadataUnavailableError("the reply was lost")

        rows = await staged(stream, "s", [b"a"])
        key = BatchKey("a", QUERY, 0, run="r")
        store.multi = multi
        with pytest.raises(StreamMetadataError):
            await publisher.publish(key, rows)
        store.multi, store.get = write, read
        again = await (await other.publisher()).publish(key, rows)
        assert (again.already_there, again.records, again.first_seq_no) == (False, 1, 0)
        assert await values_of(other) == [b"a"]
        with pytest.raises(BatchRefusedError, match="already in this run"):
            await (await other.publisher()).publish(key, await staged(other, "second", [b"b"]))


@pytest.mark.rule("S14")
@story
async def test_few_and_many_rows_of_one_batch_stay_in_the_order_of_its_tasks(programs: Programs) -> None:
    async with programs.stream() as stream:
        rows = []
        for at, inline in enumerate((INLINE, INLINE, NEVER, INLINE, NEVER, INLINE)):
            rows += await staged(stream, "s", [b"%da" % at, b"%db" % at], inline=inline)
        publisher = await stream.publisher()
        await publisher.publish(BatchKey("a", QUERY, 0), rows)
        assert await values_of(stream) == [b"%d%s" % (at, part) for at in range(6) for part in (b"a", b"b")]
    await programs.check()


@pytest.mark.rule("S14")
@story
async def test_a_batch_without_rows_is_remembered(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher()
        done = await publish(publisher, stream, 0, [], [])
        assert (done.records, done.already_there) == (0, False)
        assert (await publish(publisher, stream, 0, [b"other rows"])).already_there
        assert await values_of(stream) == []


@story
async def test_a_record_in_pieces_that_is_small_when_packed_goes_along_in_a_message(programs: Programs) -> None:
    async with programs.cluster.connect() as client, connect("", client=client) as namespace:
        config = replace(CONFIG, compression="lz4")
        stream = await namespace.open(NAME, create=True, config=config)
        large = [b"before", bytes(3_000_000), b"behind"]
        writer = stream.stage("s", "a")
        for value in large:
            await writer.add(RecordColumns.of_values([value]))
        rows = await writer.finish()
        assert rows.ledger is None
        assert len(rows.entries) > len(large)
        await (await stream.publisher()).publish(None, [rows])
        assert await values_of(stream) == large
    await programs.check()


@story
async def test_a_publisher_that_is_closed_owns_nothing(programs: Programs) -> None:
    async with programs.stream() as stream:
        publisher = await stream.publisher(owner="a driver")
        await publish(publisher, stream, 0, [b"a"])
        owned, _ = await stream.node.read()
        assert owned.owner == "a driver"
        await publisher.close()
        closed, _ = await stream.node.read()
        assert (closed.owner, closed.epoch) == ("", owned.epoch)


@story
async def test_a_batch_whose_first_segments_move_to_a_page_is_found_again_when_its_reply_was_lost(
    programs: Programs,
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream_chain, "FOLD_AT", 2)
        patch.setattr(stream_chain, "PAGE_SEGMENTS", 1)
        async with programs.stream() as stream:
            publisher = await stream.publisher()
            store: Any = stream.client.metadata_store.store
            write = store.multi

            async def multi(operations: Sequence[Operation]) -> object:
                await write(operations)
                store.multi = write
                raise MetadataUnavailableError("the reply was lost")

            rows = await staged(stream, "s", [b"a"], [b"b"], [b"c"])
            store.multi = multi
            done = await publisher.publish(None, rows)
            assert (done.records, done.first_seq_no, done.already_there) == (3, 0, False)
            assert await values_of(stream) == [b"a", b"b", b"c"]
    await programs.check()
