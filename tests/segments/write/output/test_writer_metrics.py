"""What the writers of a client count."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import AddTimeoutError, BookKeeperError, MetadataUnavailableError
from bookkeeper.metrics import Counter, Histogram, Metrics
from segments.config import RollPolicy, StreamConfig
from segments.errors import OwnershipLostError, StreamNotReadyError
from segments.namespace import StreamNamespace
from tests.segments.fake import AT_ONCE, Cluster, stream_on
from tests.spark_wal.webhdfs.virtual import in_virtual_time


def number(metrics: Metrics, name: str, **labels: str) -> int:
    counter = metrics.counter(name, **labels)
    assert isinstance(counter, Counter)
    return counter.value


def times(metrics: Metrics, name: str) -> Histogram:
    return metrics.histogram(name)


@in_virtual_time
async def test_records_bytes_and_groups_of_all_streams_of_a_client_are_counted_together() -> None:
    cluster = Cluster()
    first = await stream_on(cluster)
    metrics = first.client.metrics
    second = await StreamNamespace(first.client).create("second")
    async with first.writer() as writer, second.writer() as other:
        await writer.append_batch([b"abc", b"de"])
        await other.append(b"f")
    assert number(metrics, "stream_appended_records_total") == 3
    assert number(metrics, "stream_appended_bytes_total") == 6
    assert number(metrics, "stream_appended_groups_total") == 2
    assert number(metrics, "stream_take_overs_total") == 2
    assert times(metrics, "stream_take_over_duration_seconds").count == 2


@in_virtual_time
async def test_of_the_groups_under_way_one_is_timed() -> None:
    cluster = Cluster()
    cluster.delay_s = 0.5
    stream = await stream_on(cluster)
    async with stream.writer() as writer:
        began = writer.now_ms()
        futures = [writer.append_batch_nowait([b"x"]) for _ in range(5)]
        await writer.flush()
        assert all(future.done() for future in futures)
        seconds = (writer.now_ms() - began) / 1000
    timed = times(stream.client.metrics, "stream_append_duration_seconds")
    assert 1 <= timed.count < 5
    assert 0.5 <= timed.total <= seconds


@in_virtual_time
async def test_segments_that_end_are_counted_by_reason_and_those_that_fail_apart() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster, config=StreamConfig(roll=RollPolicy(min_age_s=0, max_records=3)))
    metrics = stream.client.metrics
    async with stream.writer() as writer:
        await writer.append(b"1")
        await writer.roll()
        await writer.append_batch([b"2", b"3", b"4"])
        await asyncio.sleep(1)  # virtual: the segment is full, and another one begins
        assert number(metrics, "stream_rolls_total", reason="asked") == 1
        assert number(metrics, "stream_rolls_total", reason="records") == 1
        assert number(metrics, "stream_segments_failed_total") == 0
        broken: list[BookKeeperError] = [AddTimeoutError("gone")]
        cluster.breaks = lambda fake, payload: broken.pop() if broken else None
        await writer.append(b"6")
        assert number(metrics, "stream_segments_failed_total") == 1
        assert number(metrics, "stream_rolls_total", reason="asked") == 1


@in_virtual_time
async def test_a_roll_that_is_put_off_is_counted() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster, config=AT_ONCE)
    metrics = stream.client.metrics
    async with stream.writer() as writer:
        await writer.append(b"1")
        cluster.fail_at = ("create_ledger", MetadataUnavailableError("away"))
        with pytest.raises(StreamNotReadyError):
            await writer.roll()
        assert number(metrics, "stream_rolls_put_off_total") == 1
        assert number(metrics, "stream_rolls_total", reason="asked") == 0


@in_virtual_time
async def test_a_duplicate_is_counted_and_its_records_are_not_counted_again() -> None:
    stream = await stream_on(Cluster())
    metrics = stream.client.metrics
    async with await stream.producer("p") as producer:
        await producer.append(b"once", seq=0)
        assert (await producer.append(b"once", seq=0)).duplicate
    assert number(metrics, "stream_duplicate_appends_total") == 1
    assert number(metrics, "stream_appended_records_total") == 1


@in_virtual_time
async def test_a_writer_that_loses_its_stream_is_counted_and_one_that_is_closed_is_not() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    metrics = stream.client.metrics
    async with stream.writer() as writer:
        await writer.append(b"1")
    assert number(metrics, "stream_writers_lost_total") == 0
    lost = await stream.writer()
    await lost.append(b"2")
    async with stream.writer():
        with pytest.raises(OwnershipLostError):
            await lost.append(b"3")
    assert number(metrics, "stream_writers_lost_total") == 1
