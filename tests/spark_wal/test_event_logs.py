"""Spark's event logs on a gateway, and the history server of Spark that reads them."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bookkeeper.launchers.zookeeper import free_port
from spark_wal.service import spark_conf
from tests.spark_wal.processes import GatewayProcess, JobProcess, until

pytest.importorskip("pyspark")
java = pytest.importorskip("bookkeeper.launchers.java")

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(600)]

JOB = Path(__file__).with_name("event_log_job.py")
FLAGS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]


class HistoryServer:
    """``org.apache.spark.deploy.history.HistoryServer`` from PySpark's jars."""

    def __init__(self, logs: str, log: Path) -> None:
        pyspark = importlib.util.find_spec("pyspark")
        assert pyspark is not None and pyspark.origin is not None
        jars = Path(pyspark.origin).parent / "jars"
        self._port = free_port()
        settings = {name: value for name, value in spark_conf().items() if name.startswith("spark.hadoop.")}
        settings |= {
            "spark.history.fs.logDirectory": logs,
            "spark.history.fs.update.interval": "1s",
            "spark.history.ui.port": str(self._port),
        }
        given = [f"-D{name}={value}" for name, value in settings.items()]
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [java.find_java().executable, *FLAGS, "-Xmx512m", *given, "-cp", f"{jars}/*",
                 "org.apache.spark.deploy.history.HistoryServer"],
                stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip

    def ask(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/api/v1/{path}", timeout=20) as reply:
                return json.load(reply)
        except OSError:
            return None

    def applications(self) -> dict[str, bool]:
        """Each application, and whether it is complete."""
        found = self.ask("applications") or []
        return {each["id"]: each["attempts"][0]["completed"] for each in found}

    def jobs(self, application: str) -> list[str]:
        """What became of the jobs of an application."""
        return [each["status"] for each in self.ask(f"applications/{application}/jobs") or []]

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def ended(*processes: Any) -> Iterator[None]:
    try:
        yield
    finally:
        for process in processes:
            process.kill()


@pytest.mark.rule("S13")
def test_the_history_server_lists_running_finished_and_killed_applications(tmp_path: Path) -> None:
    """The cause: a file had no attributes until its last byte, and both writers set a log's permission as soon as they
    have opened it: SparkContext ended at its start. And what an upload had brought was kept nowhere."""
    gateway = GatewayProcess(tmp_path / "namespace")
    gateway.start()
    with ended(gateway):
        logs = gateway.location("logs")
        gateway.put("/logs", "op=MKDIRS")
        conf = spark_conf()
        conf["spark.driver.extraJavaOptions"] += " " + " ".join(FLAGS)

        def run(name: str, *apps: str) -> JobProcess:
            return JobProcess(JOB, {"logs": logs, "apps": apps, "conf": conf}, tmp_path / name)

        first = run("first", "single", "rolling", "single + stays")
        second = run("second", "rolling + stays")
        history = HistoryServer(logs, tmp_path / "history.log")
        with ended(first, second, history):
            finished = [first.line()["id"] for _ in range(2)]
            running = [process.line()["id"] for process in (first, second)]
            everyone = {each: each in finished for each in finished + running}
            until(lambda: history.applications() == everyone, 240)
            until(lambda: [history.jobs(each) for each in running] == [["SUCCEEDED"]] * 2, 240)
            first.kill()
            second.kill()
            gateway.kill()  # what they have logged is in no process any more
            gateway.start()
            history.kill()
            again = HistoryServer(logs, tmp_path / "history.log")
            with ended(again):
                until(lambda: again.applications() == everyone, 240)
                assert [again.jobs(each) for each in everyone] == [["SUCCEEDED"]] * 4
