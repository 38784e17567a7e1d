"""Unmodified PySpark reads streams and ledgers with ``format("bookkeeper")``: one session for all of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.sync import BookKeeper
from segments import Record, sync
from tests.integration.processes import bookies
from tests.spark_wal.processes import JobProcess

pytest.importorskip("pyspark")
pytest.importorskip("bookkeeper.launchers.java")

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(400)]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[JobProcess]:
    with bookies(tmp_path) as cluster:
        with sync.connect(cluster.uri) as namespace:
            with namespace.create("orders").writer() as writer:
                for first in (0, 5):
                    records = [Record(b"order %d" % n, key=b"k%d" % (n % 2)) for n in range(first, first + 5)]
                    writer.append_batch(records)
                    writer.roll()
                writer.append_batch([b"order %d" % n for n in range(10, 13)])
            with namespace.create("values").writer() as writer:
                writer.append_batch([b'{"a": 1, "b": 2}', b"no JSON", b"{}"])
        with BookKeeper.connect(cluster.uri) as client, client.create_ledger() as ledger:
            for payload in (b"zero", b"one"):
                ledger.append(payload)
        fields: dict[str, Any] = {"metadata": cluster.uri, "stream": "orders", "values": "values"}
        fields |= {"ledger": ledger.id, "checkpoint": str(tmp_path / "checkpoint")}
        # as an installed package is found; the finder of an editable installation hides it from Spark's search
        extra = {"PYTHONPATH": str(Path(__file__).parents[2])}
        process = JobProcess(Path(__file__).with_name("data_job.py"), fields, tmp_path / "job", extra=extra)
        yield process
        process.kill()


def test_streams_ledgers_and_queries_are_read_by_an_unmodified_spark(job: JobProcess) -> None:
    place = {"segment": 2, "entry": 0, "slot": 0}
    assert job.line() == {"count": 13, "joined": 13, "one": ["k1", "order 5", place, True]}
    assert job.line() == {"ledger": [[0, "zero"], [1, "one"]]}
    assert job.line() == {"values": [[1, None, 0], [None, "no JSON", 1], [None, None, 2]]}
    assert job.line() == {"nothing": 0}
    refused = job.line()
    assert "did you mean startingPosition?" in refused["option"] and "there is no path" in refused["path"]
    assert job.line() == {"batches": [[3, 4, 5, 6], [7, 8, 9, 10], [11, 12]], "ends": [13, 13, 13]}
    assert job.line() == {"repeated": [[11, 12]]}, "the batch that was not committed, the same as before"
