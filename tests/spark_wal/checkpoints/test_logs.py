from __future__ import annotations

import pytest

from spark_wal.checkpoints.layout import StatePartition
from spark_wal.checkpoints.logs import LogFormatError, read_commit, read_offsets, read_operator, read_query_id
from tests.spark_wal.checkpoints.samples import SampleStore


def test_offsets_say_where_each_source_ends() -> None:
    planned = read_offsets(SampleStore("hdfs").files["offsets/8"])
    assert planned.sources == {"0": '{"logOffset":8}'}
    assert planned.conf["spark.sql.shuffle.partitions"] == "2"


def test_the_second_version_of_offsets_names_its_sources() -> None:
    planned = read_offsets(SampleStore("column-families-ids").files["offsets/2"])
    assert planned.version == 2 and planned.watermark_ms == 29000
    assert planned.sources == {"0": '{"logOffset":2}', "1": '{"logOffset":2}'}


def test_a_source_without_an_offset_is_a_dash() -> None:
    assert read_offsets(b'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1}\n-').sources == {"0": None}


def test_a_commit_names_the_ids_of_the_state() -> None:
    ids = read_commit(SampleStore("rocksdb-changelog-ids").files["commits/8"]).state_ids
    assert ids[0][0] == ("281957e6-69b8-4254-af39-7d5e71acd87d",) and len(ids[0]) == 2
    assert read_commit(b'v1\n{"nextBatchWatermarkMs":7}').next_watermark_ms == 7
    assert read_commit(b"v1\n{}").state_ids == {}


def test_an_operator_says_its_stores_and_partitions() -> None:
    operator = read_operator(SampleStore("column-families-ids").files["state/1/_metadata/v2/0"])
    assert operator.name == "symmetricHashJoin"
    assert operator.partitions() == [StatePartition(1, 0, "default"), StatePartition(1, 1, "default")]


@pytest.mark.parametrize("data", [b"", b"v9\n{}", b"{}", b"v1", b"v1\n", b'v1\n{"batchWa', b"v1\n[]", b"v1\n{}\n"])
def test_what_is_short_or_damaged_is_an_error(data: bytes) -> None:
    for read in (read_offsets, read_operator):
        with pytest.raises(LogFormatError):
            read(data)
    if data not in (b"v1\n{}\n",):
        with pytest.raises(LogFormatError):
            read_commit(data)


@pytest.mark.parametrize("data", [b"", b"{}", b'{"id":', b"7"])
def test_metadata_without_an_id_is_an_error(data: bytes) -> None:
    with pytest.raises(LogFormatError):
        read_query_id(data)


def test_a_cut_of_real_offsets_is_an_error_wherever_it_is() -> None:
    data = SampleStore("hdfs").files["offsets/8"]
    for end in range(len(data)):
        with pytest.raises(LogFormatError):
            read_offsets(data[:end])
