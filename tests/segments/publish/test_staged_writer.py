"""What a task tells: few rows in its message, many in a closed ledger that says what it holds."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from bookkeeper import EntryId, WriteHandle
from segments import Record
from segments.entries.columns import RecordColumns
from segments.entries.compression import Compression
from segments.entries.footer import SegmentFooter
from segments.entries.layout import EntryKind
from segments.entries.stored_entry import decode_entry
from segments.errors import StreamConfigError, StreamMetadataError, StreamUnavailableError
from segments.publish import staged_writer
from segments.publish.staged_writer import INLINE_BYTES, StagedWriter
from segments.retention.stagings import Stagings
from tests.segments.publish.cluster import Programs, story, values_of


@story
async def test_few_rows_go_along_and_make_no_ledger(programs: Programs) -> None:
    async with programs.stream() as stream:
        writer = stream.stage("s", "a")
        await writer.add(RecordColumns.of_values([b"a", b"b"]))
        await writer.add(RecordColumns.of_values([]))
        rows = await writer.finish(RecordColumns.of_values([b"c"]), RecordColumns.of_values([b"d"]))
        assert (rows.records, rows.ledger, rows.stream_id) == (4, None, stream.id)
        assert [decode_entry(entry).values() for entry in rows.entries] == [[b"a", b"b"], [b"c"], [b"d"]]
        assert [ledger async for ledger in stream.client.list_ledgers()] == []


@story
async def test_many_rows_are_in_a_closed_ledger_with_a_footer_and_nobody_sees_them(programs: Programs) -> None:
    async with programs.stream() as stream:
        writer = stream.stage("s", "a")
        large = b"x" * (INLINE_BYTES // 2)
        for _ in range(3):
            await writer.add(RecordColumns.of_values([large]))
        rows = await writer.finish(RecordColumns.of_values([large]))
        assert rows.entries == ()
        assert rows.ledger is not None
        contents = rows.ledger.contents
        assert (contents.records, contents.last, contents.footer_entry, contents.last_entry) == (4, (3, 0), 4, 4)
        async with await stream.client.open_ledger(rows.ledger.ledger_id, None, recovery=False) as ledger:
            assert (ledger.closed, ledger.last_add_confirmed) == (True, 4)
            entries = [decode_entry(await ledger.read_entry(entry), 0, entry) for entry in range(5)]
        assert [entry.first_seq_no for entry in entries] == [0, 1, 2, 3, 4]
        assert entries[-1].kind is EntryKind.FOOTER
        assert contents.bytes == sum(entry.size for entry in entries)
        assert await stream.segments() == ()


@story
async def test_the_footer_says_how_many_records_have_keys(programs: Programs) -> None:
    async with programs.stream() as stream:
        writer = StagedWriter(stream.client, (stream.name, stream.id), stream.config, "s", "a", inline=-1)
        await writer.add(RecordColumns.of_records([Record(b"v", key=b"k"), Record(b"w", key=b"l")]))
        await writer.add(RecordColumns.of_values([b"without a key"]))
        rows = await writer.finish()
        assert rows.ledger is not None
        async with await stream.client.open_ledger(rows.ledger.ledger_id, None, recovery=False) as ledger:
            footer = decode_entry(await ledger.read_entry(rows.ledger.contents.last_entry))
        assert SegmentFooter.decode(footer.payload).keyed == 2


@story
async def test_a_ledger_is_compressed_as_is_asked_for_and_what_goes_along_in_a_message_as_the_stream_says(
    programs: Programs,
) -> None:
    """A publisher may be a gateway that has no library for what it was not told."""
    async with programs.stream() as stream:
        writer = stream.stage("s", "a", compression="lz4")
        await writer.add(RecordColumns.of_values([b"few"]))
        few = await writer.finish(RecordColumns.of_values([bytes(INLINE_BYTES - 1_000)]))
        assert few.ledger is None and few.records == 2
        assert [decode_entry(entry).codec for entry in few.entries] == [Compression.NONE] * 2
        many = stream.stage("s", "a", compression="lz4")
        await many.add(RecordColumns.of_values([b"first"]))
        done = await many.finish(RecordColumns.of_values([bytes(INLINE_BYTES)] * 4))  # a few hundred bytes
        assert done.ledger is not None and done.ledger.contents.bytes < INLINE_BYTES
        async with await stream.client.open_ledger(done.ledger.ledger_id, None, recovery=False) as ledger:
            entries = [decode_entry(await ledger.read_entry(entry), 0, entry) for entry in range(2)]
        assert [entry.codec for entry in entries] == [Compression.NONE, Compression.LZ4]
        publisher = await stream.publisher()
        await publisher.publish(None, [few, done])
        assert len(await values_of(stream)) == 7
        with pytest.raises(StreamConfigError, match="compression must be none, lz4 or zstd"):
            stream.stage("s", "a", compression="gzip")
    await programs.check()


@story
async def test_a_record_larger_than_an_entry_is_staged_in_pieces(programs: Programs) -> None:
    async with programs.stream() as stream:
        writer = stream.stage("s", "a")
        large = bytes(3_000_000)
        await writer.add(RecordColumns.of_values([b"first", large]))
        publisher = await stream.publisher()
        await publisher.publish(None, [await writer.finish()])
        async with stream.read() as reader:
            found = await reader.next_batch()
        assert found.values() == [b"first", large]
    await programs.check()


@story
async def test_a_task_waits_while_too_many_bytes_are_under_way_and_goes_on_as_they_arrive(programs: Programs) -> None:
    sent: list[tuple[asyncio.Future[EntryId], int]] = []
    under_way: list[int] = []
    append = WriteHandle.append_nowait

    def counted(handle: WriteHandle, payload: Any) -> asyncio.Future[EntryId]:
        sent.append((append(handle, payload), len(payload)))
        under_way.append(sum(size for future, size in sent if not future.done()))
        return sent[-1][0]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WriteHandle, "append_nowait", counted)
        patch.setattr(staged_writer, "IN_FLIGHT_BYTES", 5_000)
        async with programs.stream() as stream:
            writer = StagedWriter(stream.client, (stream.name, stream.id), stream.config, "s", "a", inline=-1)
            for _ in range(40):
                await writer.add(RecordColumns.of_values([bytes(1_000)]))
            assert (await writer.finish()).records == 40
    assert 4_000 < max(under_way) <= 5_000
    assert max(under_way[20:]) > 4_000, "what has arrived makes room"


@pytest.mark.parametrize("ack_quorum", [1, 2])
def test_a_bookie_that_is_away_stops_a_task_only_where_one_acknowledges(ack_quorum: int) -> None:
    @story
    async def told(programs: Programs) -> None:
        async with programs.stream() as stream:
            cluster = programs.cluster
            cluster.node("b3").crash()
            cluster.store.expire(cluster.sessions["b3"])
            await asyncio.sleep(1)  # of virtual time: the client hears of it
            config = replace(stream.config, ack_quorum=ack_quorum)
            writer = StagedWriter(stream.client, (stream.name, stream.id), config, "s", "a", inline=-1)
            rows = RecordColumns.of_values([b"a"])
            if ack_quorum == 1:
                with pytest.raises(StreamUnavailableError, match=r"2 can be used: (b1, b2|b2, b1)"):
                    await writer.add(rows)
            else:
                await writer.add(rows)
                assert (await writer.finish()).records == 1

    told()


@story
async def test_while_metadata_are_away_rows_that_were_taken_wait(programs: Programs) -> None:
    """The cause: a task can neither begin nor end its ledger then, and Spark gives it no row a second time; in
    ``local[N]`` the query ended."""
    metadata, large = programs.cluster.store, bytes(2 * INLINE_BYTES)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staged_writer, "IN_FLIGHT_BYTES", INLINE_BYTES)
        async with programs.stream() as stream:
            hasty, patient = stream.stage("s", "a"), stream.stage("t", "a", patience_s=120)
            metadata.begin_outage()
            with pytest.raises(StreamMetadataError, match="making a ledger for a batch of stream totals"):
                await hasty.add(RecordColumns.of_values([large]))
            asyncio.get_running_loop().call_later(60, metadata.end_outage)
            for _ in range(2):  # when the second is taken bookies have the first
                await patient.add(RecordColumns.of_values([large]))
            metadata.begin_outage()
            await patient.add(RecordColumns.of_values([large]))  # its ledger takes rows meanwhile
            asyncio.get_running_loop().call_later(60, metadata.end_outage)
            rows = await patient.finish()
            publisher = await stream.publisher()
            assert (await publisher.publish(None, [rows])).records == 3
    await programs.check()


@pytest.mark.rule("Z12")
@pytest.mark.parametrize("idle_s", [0, 50])
def test_metadata_that_vanish_before_the_first_row_of_a_ledger_fail_no_task(idle_s: int) -> None:
    """The cause: the client read the addresses of a ledger's bookies with its first append."""

    @story
    async def told(programs: Programs) -> None:
        metadata, large = programs.cluster.store, bytes(2 * INLINE_BYTES)
        note = Stagings.note_ledger

        async def noted(stagings: Stagings, staging: str, ledger: int) -> None:
            await note(stagings, staging, ledger)
            metadata.begin_outage()
            asyncio.get_running_loop().call_later(60, metadata.end_outage)
            await asyncio.sleep(idle_s)

        async with programs.stream() as stream:
            writer = stream.stage("s", "a", patience_s=120)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Stagings, "note_ledger", noted)
                await writer.add(RecordColumns.of_values([large]))
            assert (await writer.finish()).records == 1

    told()
