"""A stream that was exported and imported is the same stream: positions, numbers, beginning, settings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from bookkeeper import BookKeeper, WriteHandle
from bookkeeper.errors import MetadataUnavailableError, SessionExpiredError
from bookkeeper.meta.store import Create, Operation, Version
from segments.chain import StreamHead
from segments.config import StreamConfig
from segments.directory.directory import stream_names
from segments.directory.settings import StreamSettings
from segments.entries.stored_entry import decode_entry
from segments.errors import (
    StreamConfigError,
    StreamCorruptError,
    StreamExistsError,
    StreamMetadataError,
    StreamNotFoundError,
)
from segments.names import streams_path
from segments.position import Position
from segments.record import StoredRecord
from segments.retention.chain_steps import change_chain
from segments.retention.deletion import LeakedLedgers, delete_stream
from segments.retention.hold_node import HoldNode
from segments.retention.retention_pass import RetentionPass
from segments.retention.truncation import truncate
from segments.transfer import transfer
from segments.transfer.bundle import ENTRY, HEADER, SEGMENT, BundleWriter, read_bundle
from segments.transfer.transfer import StreamExport, import_stream
from tests.segments.chain.pages import fold, make_pages_small
from tests.segments.retention.chains import at
from tests.segments.retention.streams import ledgers_of, make_stream, run


async def exported(client: BookKeeper, record: StreamHead, **options: Position) -> bytes:
    export = StreamExport(client, record, StreamConfig(compression="lz4"), **options)
    data = b"".join([chunk async for chunk in export.chunks()])
    assert export.result is not None
    return data


async def in_chunks(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    for begin in range(0, len(data), size):
        yield data[begin : begin + size]


async def records_of(client: BookKeeper, record: StreamHead) -> list[StoredRecord]:
    """Every record that is in the ledgers."""
    found: list[StoredRecord] = []
    for segment in (await record.read())[0].segments:
        async with await client.open_ledger(segment.ledger_id, None, recovery=False) as ledger:
            async for first, entries in ledger.read_batches(0, ledger.last_add_confirmed):
                for entry_id, data in enumerate(entries, first):
                    found += decode_entry(data, segment.number, entry_id).records()
    return found


async def contents_of(client: BookKeeper, record: StreamHead) -> list[bytes]:
    """Every entry that is in the ledgers, as it is stored."""
    found: list[bytes] = []
    for segment in (await record.read())[0].segments:
        async with await client.open_ledger(segment.ledger_id, None, recovery=False) as ledger:
            async for _, entries in ledger.read_batches(0, ledger.last_add_confirmed):
                found += map(bytes, entries)
    return found


async def copy_of(client: BookKeeper, data: bytes, name: str = "copy", **options: object) -> StreamHead:
    made = await import_stream(client, in_chunks(data), name=name, **options)  # type: ignore[arg-type]
    return StreamHead(client.metadata_store, made.stream_id, name)


@pytest.mark.rule("X18")
def test_the_copy_has_a_password_of_its_own() -> None:
    async def story(client: BookKeeper) -> None:
        data = await exported(client, await make_stream(client))
        passwords = set()
        for name in ("one", "two"):
            chain, _ = await (await copy_of(client, data, name)).read()
            assert len(chain.password) == 32 and chain.segments
            assert {(await client.metadata(each.ledger_id)).password for each in chain.segments} == {chain.password}
            passwords.add(chain.password)
        assert len(passwords) == 2

    run(story)


def test_the_copy_has_every_record_at_its_position() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, opened=True)
        copy = await copy_of(client, await exported(client, record))
        assert await records_of(client, copy) == await records_of(client, record)
        chain, original = (await copy.read())[0], (await record.read())[0]
        assert chain.open_segment is None and chain.records == 24 and chain.next_number == 5
        assert [s.contents for s in chain.segments[:3]] == [s.contents for s in original.segments[:3]]
        assert set(chain.ledgers).isdisjoint(original.ledgers) and chain.stream_id != original.stream_id
        settings = StreamSettings(client.metadata_store, copy.stream_id, "copy")
        assert await settings.read() == StreamConfig(compression="lz4")
        assert len((await HoldNode(client.metadata_store, record).read())[0]) == 0

    run(story)


def test_an_import_appends_in_runs_and_keeps_no_more_than_a_limit_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[list[int]] = []
    append_many = WriteHandle.append_many

    async def seen(self: WriteHandle, payloads: Sequence[bytes]) -> object:
        runs.append([len(payload) for payload in payloads])
        return await append_many(self, payloads)

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        data = await exported(client, record)
        size = max(len(entry) for entry in await contents_of(client, record))
        monkeypatch.setattr(transfer, "IN_FLIGHT_BYTES", 2 * size)
        monkeypatch.setattr(WriteHandle, "append_many", seen)
        copy = await copy_of(client, data)
        monkeypatch.undo()
        assert await records_of(client, copy) == await records_of(client, record)
        assert all(sum(run[:-1]) < 2 * size for run in runs), "no more is kept than the limit and one entry"
        assert max(map(len, runs)) > 1 and len(runs) > (await copy.read())[0].count

    run(story)


def test_a_truncated_stream_begins_at_the_same_record_in_the_copy() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        await truncate(client, record, at(2, 1, 1))
        chain = (await (await copy_of(client, await exported(client, record))).read())[0]
        assert (chain.first_position, chain.start_seq_no) == (at(2, 1, 1), 9)
        assert [segment.number for segment in chain.segments] == [2, 3]

    run(story)


def test_a_range_is_whole_segments_and_whole_entries() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        data = await exported(client, record, start=at(2, 1), stop=at(3, 1, 1))
        copy = await copy_of(client, data)
        assert [r.position for r in await records_of(client, copy)] == [
            *(at(2, entry, slot) for entry in range(3) for slot in range(2)),
            *(at(3, entry, slot) for entry in range(2) for slot in range(2)),
        ]
        assert (await copy.read())[0].first_position == at(2, 1)

    run(story)


def test_settings_of_the_copy_can_differ() -> None:
    async def story(client: BookKeeper) -> None:
        data = await exported(client, await make_stream(client))
        copy = await copy_of(client, data, changes={"ensemble": 1, "write_quorum": 1, "ack_quorum": 1})
        ledger = (await copy.read())[0].segments[0].ledger_id
        assert (await client.metadata(ledger)).spec.ensemble_size == 1
        with pytest.raises(StreamConfigError):
            await copy_of(client, data, "other", changes={"ensembles": 1})

    run(story)


def test_a_sealed_stream_stays_sealed_unless_its_end_is_left_out() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        await change_chain(record, lambda chain: chain.seal())
        assert (await (await copy_of(client, await exported(client, record))).read())[0].sealed
        part = await copy_of(client, await exported(client, record, stop=at(3)), "part")
        assert not (await part.read())[0].sealed

    run(story)


def test_a_stream_without_segments() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, segments=0)
        chain = (await (await copy_of(client, await exported(client, record))).read())[0]
        assert chain.segments == () and chain.next_number == 1

    run(story)


def test_an_export_holds_what_it_copies() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        export = StreamExport(client, record, StreamConfig())
        chunks = export.chunks()
        data = await anext(chunks)
        settings = StreamSettings(client.metadata_store, record.stream_id, "orders")
        await settings.patch({"retention.max_age_s": 0.0})

        async def no_cursors() -> list[object]:
            return []

        retention = RetentionPass(client, record, no_cursors)  # type: ignore[arg-type]
        assert (await retention.run()).deleted == ()
        data += b"".join([chunk async for chunk in chunks])
        assert len((await retention.run()).deleted) == 2
        assert len(await records_of(client, await copy_of(client, data))) == 18

    run(story)


def test_a_damaged_file_makes_no_stream() -> None:
    async def story(client: BookKeeper) -> None:
        data = await exported(client, await make_stream(client))
        before = await ledgers_of(client)
        for wrong in (data[:-1], data[: len(data) // 2], data[:100] + b"x" + data[101:], b"nothing"):
            with pytest.raises(StreamCorruptError):
                await copy_of(client, wrong)
            assert await ledgers_of(client) == before
            assert set(await stream_names(client.metadata_store)) == {"orders"}

    run(story)


def test_a_name_that_is_taken_is_refused_early_and_late() -> None:
    async def story(client: BookKeeper) -> None:
        data = await exported(client, await make_stream(client))
        before = await ledgers_of(client)
        with pytest.raises(StreamExistsError):
            await copy_of(client, data, "orders")
        outcomes = await asyncio.gather(copy_of(client, data), copy_of(client, data), return_exceptions=True)
        assert sum(isinstance(each, StreamExistsError) for each in outcomes) == 1
        assert len(await ledgers_of(client)) == 2 * len(before)

    run(story)


@pytest.mark.rule("M8", "P4")
@pytest.mark.parametrize("error", [asyncio.CancelledError(), MetadataUnavailableError("away"), SessionExpiredError("")])
def test_a_stream_that_may_have_been_made_keeps_its_ledgers(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write that makes the stream is done, and whoever imports does not hear of it."""

    async def story(client: BookKeeper) -> None:
        data = await exported(client, record := await make_stream(client))
        store, away = client.metadata_store.store, [False]
        multi, sync = store.multi, store.sync

        async def made_unheard(operations: Sequence[Operation]) -> list[Version | None]:
            done = await multi(operations)
            if any(each.path.endswith("/chain") and isinstance(each, Create) for each in operations):
                away[0] = True
                raise error
            return done

        async def not_answering(path: str) -> None:
            if away[0]:
                raise MetadataUnavailableError("no answer")
            await sync(path)

        monkeypatch.setattr(store, "multi", made_unheard)
        if isinstance(error, MetadataUnavailableError):
            monkeypatch.setattr(store, "sync", not_answering)
        if isinstance(error, SessionExpiredError):
            await copy_of(client, data)
        else:
            with pytest.raises((asyncio.CancelledError, StreamMetadataError)):
                await copy_of(client, data)
        monkeypatch.undo()
        copy = StreamHead(client.metadata_store, (await stream_names(client.metadata_store))["copy"], "copy")
        assert await records_of(client, copy) == await records_of(client, record)

    run(story)


def test_a_dry_run_reads_the_file_and_makes_nothing() -> None:
    async def story(client: BookKeeper) -> None:
        data = await exported(client, await make_stream(client))
        before = await ledgers_of(client)
        made = await import_stream(client, in_chunks(data), name="copy", dry_run=True)
        assert (made.segments, made.records, made.totals.entries) == (3, 18, 9)
        assert await ledgers_of(client) == before and set(await stream_names(client.metadata_store)) == {"orders"}
        with pytest.raises(StreamCorruptError):
            await import_stream(client, in_chunks(data[:-5]), name="copy", dry_run=True)

    run(story)


def test_ledgers_of_a_running_import_are_no_leaks() -> None:
    async def story(client: BookKeeper) -> None:
        record = await make_stream(client)
        data = await exported(client, record)
        go_on = asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield data[: len(data) - 10]
            await go_on.wait()
            yield data[len(data) - 10 :]

        importing = asyncio.ensure_future(import_stream(client, slow(), name="copy"))
        await asyncio.sleep(100)
        assert len(await ledgers_of(client)) == 6
        assert await LeakedLedgers(client).find(older_than_s=60) == ()
        go_on.set()
        await importing
        await delete_stream(client, "copy")
        with pytest.raises(StreamNotFoundError):
            await delete_stream(client, "copy")
        assert await LeakedLedgers(client).find(older_than_s=60) == ()

    run(story)


def test_a_stream_with_pages_is_copied_with_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    make_pages_small(monkeypatch)

    async def story(client: BookKeeper) -> None:
        record = await make_stream(client, segments=7)
        sound = await fold(record)
        data = await exported(client, record)
        copy = await copy_of(client, data)
        chain, _ = await copy.read()
        assert len(chain.pages) == len(sound.pages) == 2 and chain.count == 7
        assert await records_of(client, copy) == await records_of(client, record)
        before = await ledgers_of(client)
        with pytest.raises(StreamExistsError):
            await copy_of(client, data)
        assert await ledgers_of(client) == before
        streams = streams_path(client.metadata_store)
        assert len(await client.metadata_store.store.children(streams)) == 2

    run(story)


def test_a_segment_that_begins_at_another_record_than_it_says_makes_no_stream() -> None:
    async def story(client: BookKeeper) -> None:
        data = await exported(client, await make_stream(client))
        writer, made = BundleWriter(), b""
        async for frame in read_bundle(in_chunks(data)):
            if frame.kind == HEADER:
                made += writer.header({name: value for name, value in frame.about.items() if name != "format"})
            elif frame.kind == SEGMENT:
                made += writer.segment({**frame.about, "start_seq_no": frame.about["start_seq_no"] + 1})
            elif frame.kind == ENTRY:
                made += writer.entry(frame.entry_id, frame.content)
        with pytest.raises(StreamCorruptError, match="begins at record 0, and 1 was announced"):
            await copy_of(client, made + writer.end())

    run(story)
