"""The steps between two segments: each may be made again, on its own result or on what others wrote."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper.errors import BookieUnavailableError
from segments.chain import SegmentContents, StreamChain
from segments.errors import StreamCorruptError, StreamUnavailableError
from segments.position import Position
from segments.write.segment.segment_change import (
    EndedSegment,
    begin_segment,
    end_segment,
    recovered_end,
    release_stream,
    retry_until_reached,
)
from tests.segments.fake import Cluster, stream_on
from tests.spark_wal.webhdfs.virtual import in_virtual_time

FULL = EndedSegment(1, SegmentContents(records=3, bytes=300, last_entry=2, last=(2, 0)))
EMPTY = EndedSegment(1, SegmentContents(last_entry=0, bytes=50))


def test_one_step_ends_a_segment_and_begins_the_next_and_again_it_is_no_change() -> None:
    chain = begin_segment(StreamChain("s").claim("me", "n"), None, 7, 100, "here")
    assert (chain.open_segment is not None, chain.location) == (True, "here")
    after = begin_segment(chain.allocate(8), FULL, 8, 200)
    assert [segment.is_open for segment in after.segments] == [False, True]
    assert (after.next_ledger, after.records) == (None, 3)
    assert begin_segment(after, FULL, 8, 999) == after
    assert end_segment(after, FULL, 999) == after


def test_a_segment_without_records_is_dropped_and_a_former_owners_ledger_is_discarded() -> None:
    chain = begin_segment(StreamChain("s"), None, 7, 100).allocate(9)
    after = begin_segment(chain, EMPTY, 8, 200)
    assert [segment.number for segment in after.segments] == [2]
    assert {gone.ledger_id for gone in after.removing} == {7, 9}
    kept = begin_segment(chain, replace(EMPTY, announces=True), 8, 200)
    assert [segment.number for segment in kept.segments] == [1, 2], "it says which epoch a producer has"


def test_the_only_segment_that_is_left_stays_if_it_has_entries() -> None:
    """It has the producers of those before it: retention may have removed them while it was open."""
    chain = begin_segment(begin_segment(StreamChain("s").claim("me", "n"), None, 7, 100), FULL, 8, 200)
    alone = chain.truncate(Position(2, 0, 0)).remove(1)
    snapshot = replace(EMPTY, number=2)
    assert [segment.number for segment in release_stream(alone, snapshot, 300).segments] == [2]
    assert [segment.number for segment in begin_segment(alone, snapshot, 9, 300).segments] == [2, 3]
    assert [segment.number for segment in release_stream(chain, snapshot, 300).segments] == [1], "there is another one"
    assert release_stream(alone, replace(snapshot, contents=SegmentContents()), 300).segments == (), "it has none"


def test_an_owner_that_goes_leaves_nothing_open() -> None:
    chain = begin_segment(StreamChain("s").claim("me", "n"), None, 7, 100, "here").allocate(8)
    gone = release_stream(chain, FULL, 200)
    assert (gone.open_segment, gone.next_ledger, gone.owner, gone.location) == (None, None, "", "")
    assert release_stream(chain, FULL, 200, seal=True).sealed
    assert release_stream(gone, FULL, 300) == gone


def test_a_truncation_between_two_attempts_is_kept() -> None:
    chain = begin_segment(StreamChain("s"), None, 7, 100)
    truncated = chain.truncate(Position(1, 1, 0))
    assert begin_segment(truncated, FULL, 8, 200).start == Position(1, 1, 0)


@in_virtual_time
async def test_the_end_of_a_ledger_is_found_by_recovery() -> None:
    cluster = Cluster()
    stream = await stream_on(cluster)
    ledger = cluster.new(b"", {})
    ledger.entries += [b"a", b"b"]
    assert await recovered_end(stream.client, "s", 1, ledger.id) == 1
    assert ledger.closed
    with pytest.raises(StreamCorruptError):
        await recovered_end(stream.client, "s", 1, 99)
    cluster.fail_at = ("open_ledger", BookieUnavailableError("away"))
    with pytest.raises(StreamUnavailableError):
        await recovered_end(stream.client, "s", 1, ledger.id)


@in_virtual_time
async def test_what_cannot_be_reached_is_tried_again_and_other_errors_are_not() -> None:
    left_over = [StreamUnavailableError("1"), StreamUnavailableError("2")]

    async def attempt() -> int:
        if left_over:
            raise left_over.pop()
        return 5

    assert await retry_until_reached(attempt, "it") == 5

    async def corrupt() -> int:
        raise StreamCorruptError("no")

    with pytest.raises(StreamCorruptError):
        await retry_until_reached(corrupt, "it")
