"""The life of a stream that a real writer writes: everything through the names that applications use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from bookkeeper import BookKeeper
from segments.checks.checker import CheckOptions
from segments.config import RollPolicy, StreamConfig
from segments.directory.directory import NameChange
from segments.errors import (
    OwnershipLostError,
    PositionTruncatedError,
    SequenceTooOldError,
    StreamClosedError,
    StreamError,
    StreamExistsError,
    StreamHeldError,
    StreamNotFoundError,
    StreamSealedError,
)
from segments.names import stream_path
from segments.namespace import StreamNamespace, connect
from segments.position import EARLIEST, LATEST, Position
from segments.record import Gap, StoredRecord, from_ms
from segments.retention.chain_steps import change_chain
from segments.retention.retention import ReasonKind
from segments.seek import AtTime
from segments.stream import Stream
from segments.write import Producer
from segments.write.segment.segment_change import begin_segment
from tests.segments.retention.streams import ledgers_of, run

AT_ONCE = StreamConfig(roll=RollPolicy(min_age_s=0))


async def written(
    namespace: StreamNamespace, name: str = "orders", *, segments: int = 3
) -> tuple[Stream, list[Position]]:
    """A stream of completed segments with ten records each, and the positions of all."""
    stream = await namespace.create(name, config=AT_ONCE)
    positions: list[Position] = []
    async with stream.writer() as writer:
        for number in range(segments):
            appended = [writer.append_nowait(b"%d" % (10 * number + n), txid=number) for n in range(10)]
            positions += [(await each).position for each in appended]
            if number < segments - 1:
                await writer.roll()
    return stream, positions


def test_a_checker_finds_nothing_in_what_a_writer_wrote() -> None:
    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, _ = await written(namespace)
            writer = await stream.writer()
            await writer.append_batch([b"x" * 3_000_000, b"y"], atomic=False)
            await writer.flush()
            await asyncio.sleep(1)
            assert await namespace.verify() == ()
            await writer.close()
            assert await namespace.verify("orders") == ()
            with pytest.raises(StreamNotFoundError):
                await namespace.verify("others")
            assert await namespace.verify(options=CheckOptions(repair=True)) == ()

    run(story)


def test_truncation_and_removal_under_a_running_writer() -> None:
    """SEG-98 records are hidden exactly while a writer appends; the writer goes on."""

    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, positions = await written(namespace)
            async with stream.writer() as writer:
                await writer.append(b"30")
                await stream.truncate(positions[15])
                assert (await stream.chain()).first_position == positions[15]
                assert [segment.number for segment in (await stream.apply_retention()).report.going] == [1]
                await writer.roll()
                last = await writer.append(b"31")
                await stream.truncate(LATEST)
                await writer.append(b"32")
            chain = await stream.chain()
            assert chain.first_position >= last.position.next and chain.records == 33
            assert len((await stream.apply_retention()).report.going) >= 2
            assert await namespace.verify() == ()

    run(story)


def test_a_truncated_stream_can_be_written_again() -> None:
    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, _ = await written(namespace)
            await stream.truncate(LATEST)
            await stream.apply_retention()
            async with stream.writer() as writer:
                result = await writer.append(b"30")
                assert result.seq_no == 30
            assert (await stream.chain()).records == 31 and await namespace.verify() == ()

    run(story)


def test_retention_by_policy_and_its_explanation() -> None:
    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, _ = await written(namespace)
            assert [each.reasons[0].why for each in (await stream.explain_retention()).segments] == [
                ReasonKind.NO_LIMIT,
                ReasonKind.NO_LIMIT,
                ReasonKind.NEWEST,
            ]
            await stream.configure({"retention.max_records": 10})
            await stream.hold("audit", until=datetime.fromtimestamp(0, UTC) + timedelta(days=365 * 300), note="case 7")
            report = (await stream.apply_retention()).report
            assert report.segments[0].text.startswith("hold audit until") and report.going == ()
            await stream.release_hold("audit")
            assert [segment.number for segment in (await stream.apply_retention()).report.going] == [1, 2]
            assert await namespace.verify() == ()

    run(story)


def test_a_hold_that_expires_frees_what_it_kept() -> None:
    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, positions = await written(namespace)
            now = datetime.fromtimestamp(client.services.seams.clock.wall_ms() / 1000, UTC)
            hold = await stream.hold("query", positions[5], positions[25], until=now + timedelta(seconds=100))
            assert (await stream.holds())[0] == hold
            with pytest.raises(StreamHeldError):
                await stream.truncate(positions[20])
            assert (await stream.truncate(positions[20], up_to_holds=True)).start == positions[5]
            await asyncio.sleep(101)
            assert (await stream.truncate(positions[20])).start == positions[20]

    run(story)


def test_sealing_ends_the_writer_and_sealing_again_is_no_change() -> None:
    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, _ = await written(namespace)
            writer = await stream.writer()
            last = (await writer.append(b"30")).position
            assert await stream.seal() == last == await stream.seal()
            with pytest.raises(OwnershipLostError):
                await writer.append(b"31")
            await writer.abort()
            with pytest.raises(StreamSealedError):
                await stream.writer()
            assert (await stream.chain()).open_segment is None and await namespace.verify() == ()
            empty = await namespace.create("empty")
            assert await empty.seal() is None and (await empty.chain()).sealed

    run(story)


def test_rolling_from_outside_takes_over() -> None:
    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, _ = await written(namespace, segments=1)
            writer = await stream.writer()
            await writer.append(b"10")
            ended = await stream.roll()
            assert ended is not None and (ended.number, ended.records) == (2, 1)
            with pytest.raises(StreamError):
                await writer.append(b"11")
            await writer.abort()

    run(story)


def test_delete_rename_and_listing() -> None:
    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, _ = await written(namespace, "eu/orders")
            await written(namespace, "us/orders", segments=1)
            await namespace.rename("eu/orders", "eu/all orders".replace(" ", "-"))
            assert [info.name async for info in namespace.infos("eu/")] == ["eu/all-orders"]
            with pytest.raises(StreamExistsError):
                await namespace.rename("us/orders", "eu/all-orders")
            async with (await namespace.open("eu/all-orders")).writer() as writer:
                await writer.append(b"30")
            writer = await (await namespace.open("us/orders")).writer()
            await namespace.delete("us/orders")
            with pytest.raises(StreamError):
                await writer.roll()
            await writer.abort()
            await namespace.delete("us/orders", missing_ok=True)
            assert await ledgers_of(client) == set((await stream.chain()).ledgers)
            assert await namespace.finish_deletions() == ()
            events = namespace.watch()
            assert (await anext(events)).change is NameChange.CREATED
            await events.aclose()  # type: ignore[attr-defined]

    run(story)


def test_a_copy_can_be_written_on_from_where_it_ends() -> None:
    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, _ = await written(namespace)
            async with stream.producer("p") as producer:
                first = await producer.append(b"30")
            data = b"".join([chunk async for chunk in stream.export().chunks()])

            async def chunks() -> AsyncIterator[bytes]:
                yield data

            assert (await namespace.import_stream(chunks(), name="copy")).records == 31
            copy = await namespace.open("copy")
            assert copy.config == AT_ONCE and (await copy.chain()).last_position == first.position
            async with copy.producer("p") as producer:
                again = await producer.append(b"30", seq=0)
                assert again.duplicate and again.position == first.position
                assert (await producer.append(b"31")).seq_no == 31
            assert await namespace.verify() == ()

    run(story)


def test_a_namespace_that_is_closed_does_nothing() -> None:
    """SEG-28 every use of a closed namespace fails at once."""

    async def story(client: BookKeeper) -> None:
        namespace = await connect("", client=client)
        await namespace.close()
        calls = [
            namespace.create("a"),
            namespace.open("a"),
            namespace.exists("a"),
            namespace.delete("a"),
            namespace.rename("a", "b"),
            namespace.verify(),
            namespace.finish_deletions(),
            anext(namespace.list()),
            anext(namespace.infos()),
            anext(namespace.watch()),
        ]
        for call in calls:
            with pytest.raises(StreamClosedError):
                await call

    run(story)


def test_a_stream_keeps_its_id_and_reads_its_settings_anew() -> None:
    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace, await namespace.create("orders") as stream:
            other = await namespace.open("orders")
            assert other.id == stream.id and repr(stream) == f"<Stream orders ({stream.id})>"
            await other.configure({"compression": "lz4"})
            assert stream.config.compression == "none"
            assert (await stream.read_config()).compression == stream.config.compression == "lz4"
            await namespace.delete("orders")
            for call in (stream.chain(), stream.segments(), stream.read_config(), stream.explain_retention()):
                with pytest.raises(StreamNotFoundError):
                    await call

    run(story)


def test_a_running_writer_follows_the_settings_and_ignores_what_it_cannot_read() -> None:
    """SEG-114 changed settings hold from a running writer's next segment on; settings that cannot be read are ignored,
    with a warning, and the next good ones are taken."""

    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream = await namespace.create("orders", config=AT_ONCE)
            path = stream_path(client.metadata_store, stream.id, "config")
            async with stream.writer() as writer:
                await writer.append(b"0")
                await stream.configure({"compression": "zstd"})
                good = (await client.metadata_store.store.get(path)).value
                for bad in (b"rubbish", good.replace(b"zstd", b"zest"), good.replace(b'"format":1', b'"format":99')):
                    assert bad != good
                    await client.metadata_store.store.set(path, bad, None)
                    await writer.roll()
                    await writer.append(b"x" * 1000)
                await client.metadata_store.store.set(path, good, None)
                await writer.roll()
                await writer.append(b"x" * 1000)
            sizes = [segment.bytes for segment in await stream.segments()]
            assert len(sizes) == 5 and sizes[4] < 700 < min(sizes[1:4])

    run(story)


def test_a_writer_applies_the_retention_while_it_is_open() -> None:
    """SEG-102 what is too old goes without anybody asking, also while nothing is appended."""

    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, _ = await written(namespace)
            await stream.configure({"retention.max_age_s": 30})
            async with stream.writer():
                await asyncio.sleep(200)
                assert (await stream.chain()).first_position.segment >= 4
            assert await namespace.verify() == ()

    run(story)


@pytest.mark.parametrize("end", ["close", "abort"])
def test_producers_are_remembered_though_all_that_they_wrote_is_gone(end: str) -> None:
    """A segment without records was dropped when its writer was closed, also when it was the only one that was left:
    then every producer was forgotten, and what it sent again was appended twice."""

    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream = await namespace.create("orders", config=AT_ONCE)
            writer = await stream.writer()
            await Producer.open(writer, "loader", epoch=6)
            producer = await Producer.open(writer, "loader")
            await producer.append_batch([b"0", b"1"])
            await writer.roll()
            await stream.truncate(LATEST)
            for _ in range(3):  # a pass may wait until the open segment's snapshot is known to be confirmed
                await stream.apply_retention()
                await asyncio.sleep(1)
            assert [segment.number for segment in await stream.segments()] == [2]
            await (writer.close() if end == "close" else writer.abort())
            async with (await namespace.open("orders")).writer() as following:
                again = await Producer.open(following, "loader")
                assert (again.epoch, again.last_seq, again.maybe_forgotten) == (8, 1, False)
                with pytest.raises(SequenceTooOldError):
                    await again.append(b"1", seq=1)
                assert (await again.append(b"2")).seq_no == 2
            assert await namespace.verify() == ()

    run(story)


def test_retention_keeps_what_tells_of_producers_until_the_next_segment_does() -> None:
    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            for name, producers in (("with", True), ("without", False)):
                stream = await namespace.create(name, config=AT_ONCE)
                async with stream.writer() as writer:
                    await (await Producer.open(writer, "p")).append(b"0") if producers else await writer.append(b"0")
                await change_chain(stream.node, lambda chain: chain.claim("another", "n"))
                ledger = await client.create_ledger()  # of a writer that has no bookies for its first entry
                await change_chain(stream.node, partial(begin_segment, segment=None, ledger_id=ledger.id, now_ms=0))
                await stream.truncate(LATEST)
                await stream.apply_retention()
                assert [each.number for each in await stream.segments()] == ([1, 2] if producers else [2])
                await ledger.abandon()
                async with stream.writer() as writer:
                    assert (writer.state.producers.get("p") is not None) == producers

    run(story)


def test_a_copy_has_no_segment_for_one_that_had_no_entry_yet() -> None:
    """It was listed as completed, and the next writer, and retention, took it for the one that tells of producers."""

    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream = await namespace.create("orders", config=AT_ONCE)
            async with stream.writer() as writer:
                await (await Producer.open(writer, "loader")).append(b"0")
            ledger = await client.create_ledger()
            await change_chain(stream.node, partial(begin_segment, segment=None, ledger_id=ledger.id, now_ms=0))
            data = b"".join([chunk async for chunk in stream.export().chunks()])
            before = await ledgers_of(client)

            async def file() -> AsyncIterator[bytes]:
                yield data

            for dry_run in (True, False):
                made = await namespace.import_stream(file(), name="copy", dry_run=dry_run)
                assert (made.segments, made.records) == (1, 1)
            copy = await namespace.open("copy")
            assert await ledgers_of(client) - before == {each.ledger_id for each in await copy.segments()}
            await copy.truncate(LATEST)
            await copy.apply_retention()
            async with copy.writer() as writer:
                producer = await Producer.open(writer, "loader")
                assert (producer.epoch, producer.last_seq, producer.maybe_forgotten) == (2, 0, False)
            assert await namespace.verify("copy") == ()
            await ledger.abandon()

    run(story)


@pytest.mark.parametrize("rolled", [False, True])
def test_a_clock_that_is_put_back_hides_no_record_from_a_search_by_time(
    rolled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entries of a segment are searched by halving: with times that fall the search ended behind records that it
    was to find, and a reader from there on left them out."""
    times = [1000, 1100, 1200, 500, 510, 520, 530, 540, 1150, 1300]

    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream = await namespace.create("orders", config=AT_ONCE)
            clock = client.services.seams.clock
            async with stream.writer() as writer:
                for number, time_ms in enumerate(times):
                    monkeypatch.setattr(clock, "wall_ms", lambda time_ms=time_ms: time_ms)
                    await writer.append(b"%d" % number)
                if rolled:
                    await writer.roll()
                monkeypatch.undo()
                for time_ms in sorted({*times, 1, 1050, 1180}):
                    expected = next(number for number, each in enumerate(times) if each >= time_ms)
                    found = await stream.find(AtTime(from_ms(time_ms)))
                    assert await stream.count(EARLIEST, found) == expected, time_ms
                assert await stream.find(AtTime(from_ms(1301))) == await stream.tail_position()
                async with stream.read() as reader:
                    told = [each.append_time async for each in reader if isinstance(each, StoredRecord)]
                assert told == sorted(told)

    run(story)


async def drained(client: BookKeeper, namespace: StreamNamespace) -> tuple[Stream, Position]:
    """A stream of which the second of three segments was read to its end, by a cursor and by a place that was kept,
    when the first two went."""
    stream, positions = await written(namespace)
    async with stream.cursor("billing") as cursor:
        await cursor.advance(positions[19])
    await stream.configure({"retention.consumed": True})
    assert len((await stream.apply_retention()).deleted) == 2
    return stream, positions[19].next


@pytest.mark.rule("C4")
def test_who_has_read_all_of_a_segment_has_missed_nothing_when_it_goes(caplog: pytest.LogCaptureFixture) -> None:
    """A place behind the last record of a removed segment counted as a place in it: the next opening of a cursor whose
    backlog is 0 told of records that are gone, and so did every pass; a place that was kept was refused."""

    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, kept = await drained(client, namespace)
            chain = await stream.chain()
            assert chain.first_position == Position(3, 0, 0) and chain.start == kept == Position(2, 0, 10)
            async with stream.cursor("billing") as cursor, cursor.read() as reader:
                assert [record.value async for record in reader] == [b"%d" % n for n in range(20, 30)]  # type: ignore[union-attr]
            for _ in range(2):
                assert (await stream.apply_retention()).report.expired_cursors == ()
            assert not [line for line in caplog.messages if "cursors needed" in line]
            assert await namespace.verify("orders") == ()
            async with stream.read(kept) as reader:
                assert [record.seq_no async for record in reader] == list(range(20, 30))  # type: ignore[union-attr]
            assert await stream.count(kept) == 10 and await stream.count(EARLIEST, kept) == 0
            assert await stream.find(kept) == Position(3, 0, 0)
            assert (await stream.reading.lag(kept)).records == 10
            ranges = await stream.splits(kept, target=3)
            assert sum([await stream.count(each.start, each.stop) for each in ranges]) == 10
            assert (await stream.hold("audit", kept)).start == Position(3, 0, 0)
            assert not (await stream.truncate(kept)).is_change
            async with stream.cursor("later", start=kept) as late:
                assert (await late.backlog()).records == 10 and await late.advance(kept)
            for lost in (Position(2, 0, 9), Position(2, 0, 1), Position(1, 0, 10), Position(1, 0, 1)):
                with pytest.raises(PositionTruncatedError):
                    await stream.find(lost)
                with pytest.raises(PositionTruncatedError):
                    async with stream.read(lost) as reader:
                        await reader.next()

    run(story)


def test_a_copy_begins_where_a_kept_place_stood_too() -> None:
    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, kept = await drained(client, namespace)
            for start in (kept, EARLIEST):
                made = await namespace.import_stream(stream.export(start).chunks(), name="copy")
                copy = await namespace.open(made.name)
                assert await copy.count(kept) == 10 and made.start == Position(3, 0, 0)
                with pytest.raises(PositionTruncatedError):
                    await copy.find(Position(2, 0, 9))
                await namespace.delete(made.name)

    run(story)


def test_who_has_read_all_has_missed_nothing_when_all_is_truncated() -> None:
    """The beginning was noted behind the last entry, which may hold no record, and not behind the last record."""

    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, _ = await written(namespace)
            async with stream.writer() as writer:
                last = (await writer.append(b"30")).position
                await writer.commit()
                async with stream.cursor("billing") as cursor:
                    await cursor.advance(last)
                await stream.truncate(LATEST)
                await stream.apply_retention()
                await writer.append(b"31")
                await writer.roll()
                await stream.truncate((await writer.append(b"32")).position)
                assert len((await stream.apply_retention()).deleted) == 1
            with pytest.raises(PositionTruncatedError):
                await stream.find(last.next)
            async with stream.cursor("billing") as cursor, cursor.read(on_gap="yield") as reader:
                gap, record = [item async for item in reader]
            assert isinstance(gap, Gap) and gap.records == 1 and record.seq_no == 32  # type: ignore[union-attr]

    run(story)


def test_who_stands_between_two_truncated_records_is_told_of_those_that_follow_alone() -> None:
    """Also a place within a segment that is truncated in part: behind an entry's last record."""

    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream = await namespace.create("orders", config=AT_ONCE)
            async with stream.writer() as writer:
                entries = [(await writer.append_batch([b"a", b"b"])).last for _ in range(4)]
                await stream.truncate(Position(*entries[1][:2], 0))
                async with stream.read(entries[0].next) as reader:
                    assert (await reader.next()).seq_no == 2  # type: ignore[union-attr]
                assert await stream.count(entries[0].next) == 6
                async with stream.read(entries[0], on_gap="yield") as reader:
                    gap = await reader.next()
                    assert isinstance(gap, Gap) and gap.records == 1

    run(story)


def test_a_record_that_an_earlier_version_wrote_tells_cursors_by_their_numbers() -> None:
    """It begins with the next segment, and does not say where the last record before that stood."""

    async def story(client: BookKeeper) -> None:
        async with connect("", client=client) as namespace:
            stream, positions = await written(namespace)
            for name, at in (("done", 19), ("behind", 18)):
                async with stream.cursor(name) as cursor:
                    await cursor.advance(positions[at])
            await change_chain(stream.node, lambda chain: chain.truncate(Position(3, 0, 0), 20).remove(2))
            assert (await stream.explain_retention()).expired_cursors == ("behind",)
            found = await namespace.verify("orders", CheckOptions(scan=False))
            assert [each.text for each in found if "cursor" in each.text] == [
                f"cursor behind is at {positions[18].next}, and the stream begins at 3:0:0"
            ]
            async with stream.cursor("done") as cursor, cursor.read() as reader:
                assert (await reader.next()).seq_no == 20  # type: ignore[union-attr]
            async with stream.cursor("behind") as cursor, cursor.read(on_gap="yield") as reader:
                gap = await reader.next()
                assert isinstance(gap, Gap) and gap.records == 1

    run(story)
