"""A client of Spark Connect uses ``format("bookkeeper")`` in every way, through a local server."""

from __future__ import annotations

from pathlib import Path

import pytest

from segments import sync
from tests.integration.processes import bookies
from tests.spark_wal.processes import ROOT, JobProcess
from tests.spark_wal.short_job import ROWS

pytest.importorskip("pyspark")
pytest.importorskip("grpc_status")
pytest.importorskip("bookkeeper.launchers.java")

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(400)]


def test_a_client_of_spark_connect_reads_writes_and_runs_queries(tmp_path: Path) -> None:
    with bookies(tmp_path) as cluster:
        with sync.connect(cluster.uri) as namespace, namespace.create("given").writer() as writer:
            writer.append_batch([b"%d" % number for number in range(ROWS)])
        fields = {"metadata": cluster.uri, "home": str(tmp_path), "remote": "local[2]"}
        # as an installed package is found; the finder of an editable installation hides it from Spark's search
        extra = {"PYTHONPATH": str(ROOT)}
        job = JobProcess(Path(__file__).with_name("short_job.py"), fields, tmp_path / "job", extra=extra)
        try:
            told = job.result()
        finally:
            job.kill()
    assert told == {"read": ROWS, "write": ROWS, "source": ROWS, "foreachBatch": ROWS, "query": ROWS}
