"""The write-ahead logs of DStreams, Spark's own classes, on a gateway."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_wal.service import spark_conf
from tests.spark_wal.processes import GatewayProcess, JobProcess

pytest.importorskip("pyspark")
pytest.importorskip("bookkeeper.launchers.java")

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(400)]

JOB = Path(__file__).with_name("write_ahead_job.py")
RECORDS = ["first", "second", "third"]


@pytest.mark.rule("S4")
def test_what_the_logs_have_acknowledged_outlives_the_killed_driver(tmp_path: Path) -> None:
    """The cause: by Spark's default ``write()`` returns while its record lies in an upload that goes on for a minute.
    The gateway keeps nothing of an upload that is cut, so a second instance found no record at all."""
    ours = spark_conf()
    confs = {"ours": ours, "default": {k: v for k, v in ours.items() if "closeFileAfterWrite" not in k}}
    gateway = GatewayProcess(tmp_path / "namespace")
    gateway.start()
    processes: list[JobProcess] = []

    def run(**job: Any) -> JobProcess:
        out = tmp_path / f"{len(processes)}"
        processes.append(JobProcess(JOB, {"location": gateway.location("wal"), "confs": confs, **job}, out))
        return processes[-1]

    try:
        writer = run(do="write", records=RECORDS)
        assert writer.line() == {"ours": len(RECORDS), "default": len(RECORDS)}, "every write() has returned"
        writer.kill()
        found = run(do="read").line()
    finally:
        for process in processes:
            process.kill()
        gateway.kill()
    assert found["ours"] == {"Driver": RECORDS, "Receiver": RECORDS}
    assert found["default"] == {"Driver": [], "Receiver": []}, "then the settings would not be needed any more"
