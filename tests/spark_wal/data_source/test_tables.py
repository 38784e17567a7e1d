"""What there is now, as a table: streams, a ledger."""

from __future__ import annotations

import pytest
from pyspark.sql import types as t

from bookkeeper.sync import BookKeeper
from segments import AtSeqNo, PositionTruncatedError, StreamNotFoundError, sync
from spark_wal.data_source import connections
from spark_wal.data_source.options import DataSourceOptionError, ReadSettings
from spark_wal.data_source.tables import LedgerRows, StreamsRows
from tests.spark_wal.data_source.clusters import NUMBERS, read_all, rows, settings, written

ENTRIES = t.StructType([t.StructField("entry_id", t.LongType()), t.StructField("payload", t.BinaryType())])


def test_a_stream_between_two_places(namespace: sync.Namespace, cluster_uri: str) -> None:
    stream = written(namespace, "batch/one", [5, 5], rest=[5])
    reader = StreamsRows(settings(stream, cluster_uri, start="seq:3", stop="seq:12", min_partitions=3), NUMBERS)
    parts = reader.partitions()
    assert isinstance(parts, list) and len(parts) == 3
    assert read_all(reader, parts) == list(range(3, 12))
    nothing = StreamsRows(settings(stream, cluster_uri, start="latest"), NUMBERS)
    assert nothing.partitions() == [] and rows(nothing) == []


def test_all_streams_whose_names_begin_so(namespace: sync.Namespace, cluster_uri: str) -> None:
    for name in ("batch/all/a", "batch/all/b", "batch/allx"):
        written(namespace, name, rest=[2])
    schema = t.StructType([t.StructField("stream", t.StringType()), t.StructField("seq_no", t.LongType())])
    reader = StreamsRows(ReadSettings(metadata=cluster_uri, streams="batch/all/*", min_partitions=1), schema)
    assert rows(reader) == [(name, n) for name in ("batch/all/a", "batch/all/b") for n in (0, 1)]


def test_a_pattern_that_matches_no_stream_is_refused_with_names_like_it(
    namespace: sync.Namespace, cluster_uri: str
) -> None:
    """A stream without records is matched, and gives no rows."""
    written(namespace, "plants/empty")
    schema = t.StructType([t.StructField("stream", t.StringType())])

    def table(pattern: str) -> StreamsRows:
        return StreamsRows(ReadSettings(metadata=cluster_uri, streams=pattern, retry_s=0.0), schema)

    assert rows(table("plants/*")) == []
    for reader in (table("plant/*"), table("plantsy*")):
        with pytest.raises(StreamNotFoundError, match=r"matches no stream; nothing was read\. .*plants/empty"):
            reader.partitions()


def test_a_matched_stream_that_is_deleted_meanwhile_is_left_out(
    namespace: sync.Namespace, cluster_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("leaving/a", "leaving/b"):
        written(namespace, name, rest=[1])
    listed = list(namespace.list("leaving/"))
    namespace.delete("leaving/a")
    schema = t.StructType([t.StructField("stream", t.StringType()), t.StructField("seq_no", t.LongType())])
    reader = StreamsRows(ReadSettings(metadata=cluster_uri, streams="leaving/*", min_partitions=1), schema)
    monkeypatch.setattr(namespace, "list", lambda prefix="": iter(listed))
    assert rows(reader) == [("leaving/b", 0)]


def test_a_truncated_start_is_an_error_or_told(
    namespace: sync.Namespace, cluster_uri: str, caplog: pytest.LogCaptureFixture
) -> None:
    stream = written(namespace, "batch/gap", [5], rest=[2])
    stream.truncate(AtSeqNo(3))
    with pytest.raises(PositionTruncatedError):
        StreamsRows(settings(stream, cluster_uri, start="1:0:1"), NUMBERS).partitions()
    lenient = StreamsRows(settings(stream, cluster_uri, start="1:0:1", count_gaps=True), NUMBERS)
    assert read_all(lenient, lenient.partitions()) == [3, 4, 5, 6] and "batch/gap is read from 1:0:3" in caplog.text


@pytest.fixture
def client(cluster_uri: str) -> BookKeeper:
    return connections.client(cluster_uri)


def test_a_ledger_closed_or_open(namespace: sync.Namespace, client: BookKeeper, cluster_uri: str) -> None:
    with client.create_ledger() as ledger:
        for n in range(5):
            ledger.append(b"%d" % n)
        found = ReadSettings(metadata=cluster_uri, ledger=ledger.id, min_partitions=2, retry_s=0.0)
        open_rows = rows(LedgerRows(found, ENTRIES))
        assert open_rows == [(n, b"%d" % n) for n in range(len(open_rows))] and len(open_rows) >= 4
        ledger.append(b"5")
    reader = LedgerRows(found, ENTRIES)
    assert len(reader.partitions()) == 2 and rows(reader) == [(n, b"%d" % n) for n in range(6)]
    some = ReadSettings(metadata=cluster_uri, ledger=found.ledger, start="2", stop="4")
    assert [number for number, _ in rows(LedgerRows(some, ENTRIES))] == [2, 3]
    assert rows(LedgerRows(ReadSettings(metadata=cluster_uri, ledger=found.ledger, start="6"), ENTRIES)) == []


def test_a_large_entry_makes_a_batch_of_its_own(
    namespace: sync.Namespace, client: BookKeeper, cluster_uri: str
) -> None:
    with client.create_ledger() as ledger:
        for _ in range(6):
            ledger.append(b"x" * 1_000_000)
    reader = LedgerRows(ReadSettings(metadata=cluster_uri, ledger=ledger.id, min_partitions=1), ENTRIES)
    (part,) = reader.partitions()
    assert [batch.num_rows for batch in reader.read(part)] == [5, 1]


def test_a_password_file_that_is_not_there_is_told_at_once(cluster_uri: str) -> None:
    reader = LedgerRows(ReadSettings(metadata=cluster_uri, ledger=1, password_file="/nowhere"), ENTRIES)
    with pytest.raises(
        DataSourceOptionError, match="option passwordFile: /nowhere cannot be read by this process: No such file"
    ):
        reader.partitions()
