from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from segments.config import DEFAULTS, RollPolicy, StreamConfig
from segments.errors import SeekFormatError, StreamConfigError
from segments.position import EARLIEST, LATEST, Position
from segments.protocol import segments_pb2 as pb
from segments.protocol.messages import (
    get_activity,
    get_gap,
    get_patch,
    get_record,
    get_result,
    get_seek,
    get_settings,
    get_stored,
    put_activity,
    put_batch,
    put_gap,
    put_patch,
    put_record,
    put_result,
    put_seek,
    put_settings,
)
from segments.read import Activity
from segments.record import AppendResult, Gap, GapKind, ProducerRef, Record, StoredRecord
from segments.seek import Ago, AtCursor, AtSeqNo, AtTime, AtTxId, Seek

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
HERE = Position(3, 2, 1)


@pytest.mark.parametrize(
    "seek",
    [
        HERE,
        EARLIEST,
        LATEST,
        AtTxId(0),
        AtTime(NOON),
        AtTime(NOON, event=True),
        AtSeqNo(0),
        Ago(timedelta(seconds=3)),
        AtCursor("c"),
    ],
)
def test_a_place_comes_back(seek: Seek) -> None:
    assert get_seek(pb.Seek.FromString(put_seek(seek).SerializeToString())) == seek


def test_a_place_that_is_not_given_has_a_default_or_is_refused() -> None:
    assert get_seek(pb.Seek(), EARLIEST) == EARLIEST
    with pytest.raises(SeekFormatError, match="names no position"):
        get_seek(pb.Seek())
    with pytest.raises(SeekFormatError, match="cannot be"):
        get_seek(pb.Seek(time_ms=2**62))


@pytest.mark.parametrize("record", [Record(b"v"), Record(b"", 0, b"", {"h": b"1", "g": b""}, NOON)])
def test_a_record_comes_back(record: Record) -> None:
    assert get_record(put_record(record)) == record


def test_an_event_time_that_cannot_be_is_refused() -> None:
    with pytest.raises(SeekFormatError, match="event time"):
        get_record(pb.Record(event_time_ms=2**62))


def test_records_that_were_read_come_back() -> None:
    plain = StoredRecord(HERE, 7, b"v", None, None, {}, None, 1000, None)
    full = StoredRecord(HERE.next, 8, b"w", 0, b"", {"h": b"1"}, 5, 1001, ProducerRef("p", 2, 0))
    batch = pb.RecordBatch.FromString(put_batch([plain, full]).SerializeToString())
    assert [get_stored(each) for each in batch.records] == [plain, full]


@pytest.mark.parametrize("kind", GapKind)
def test_a_gap_comes_back(kind: GapKind) -> None:
    for gap in (Gap(HERE, HERE.next, kind), Gap(HERE, HERE, kind, 0, "why")):
        assert get_gap(put_gap(gap)) == gap


def test_a_result_comes_back() -> None:
    for result in (
        AppendResult(HERE, HERE, 0, None),
        AppendResult(HERE, HERE.next, 4, 9, True),
        AppendResult(HERE, HERE, None, None, True),
    ):
        assert get_result(put_result(result)) == result


def test_settings_come_back_and_a_patch_names_what_changes() -> None:
    config = replace(DEFAULTS, compression="lz4", roll=RollPolicy(max_age_s=60.0))
    assert get_settings(put_settings(config)) == config
    assert get_settings(pb.Settings()) == StreamConfig()
    patch = get_patch(put_patch({"roll": {"max_age_s": 5}, "compression": "zstd"}))
    assert config.patched(patch) == replace(config, compression="zstd", roll=RollPolicy(max_age_s=5.0))
    with pytest.raises(StreamConfigError, match="must be JSON"):
        get_patch(pb.Settings(values={"compression": "zstd"}))
    with pytest.raises(StreamConfigError, match="colour"):
        get_settings(pb.Settings(values={"colour": "1"}))


def test_what_a_reader_does_survives_and_what_later_versions_know_is_reading() -> None:
    for activity in (Activity.READING, Activity.IDLE, Activity.STUCK):
        assert get_activity(put_activity(activity)) is activity
    assert get_activity(99) is Activity.READING
