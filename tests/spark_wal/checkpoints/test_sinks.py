from __future__ import annotations

from segments.publish.batch_key import AppRecord
from spark_wal.checkpoints.sinks import last_batch_of_file_sink, later_batches


def app(name: str, query: str, last: int, base: int = 0) -> AppRecord:
    return AppRecord(name, query, base, last, "run", 0, 1, 1)


def test_the_last_batch_of_a_file_sink_is_the_newest_of_its_log() -> None:
    paths = ["part-0.parquet", "_spark_metadata/8", "_spark_metadata/9.compact", "_spark_metadata/.10.crc"]
    assert last_batch_of_file_sink(paths) == 9
    assert last_batch_of_file_sink(["part-0.parquet"]) is None


def test_applications_count_as_their_query_does() -> None:
    apps = [app("q", "q", 8), app("named", "q", 18, base=10), app("old", "q", 4), app("other", "x", 9)]
    assert later_batches(apps, "q", 5) == [("q", 8), ("named", 8)]
