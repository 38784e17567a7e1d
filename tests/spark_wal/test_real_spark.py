"""Unmodified PySpark with its checkpoint on a gateway: both state stores, both file managers, and what kills.

The gateway is a process with a namespace in a directory; the driver (Python and its JVM) is a process
group. Moments are found by the gateway's feed of events, never by waiting.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from spark_wal.service import file_manager, spark_conf
from tests.spark_wal.streaming_job import expected

pytest.importorskip("pyspark")
java = pytest.importorskip("bookkeeper.admin.java")

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(400)]

JOB = Path(__file__).with_name("streaming_job.py")
ROOT = Path(__file__).parents[2]
STATE = "org.apache.spark.sql.execution.streaming.state"
STORES = {
    "hdfs": {"spark.sql.streaming.stateStore.providerClass": f"{STATE}.HDFSBackedStateStoreProvider"},
    "rocksdb": {
        "spark.sql.streaming.stateStore.providerClass": f"{STATE}.RocksDBStateStoreProvider",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    },
}
MANAGERS = {
    "FileContext": file_manager().replace("FileSystemBased", "FileContextBased"),
    "FileSystem": file_manager(),
}


def conf(store: str = "hdfs", manager: str = "FileSystem") -> dict[str, str]:
    settings = {**spark_conf(), **STORES[store]}
    settings["spark.sql.streaming.checkpointFileManagerClass"] = MANAGERS[manager]
    settings["spark.driver.extraJavaOptions"] += " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    return settings


class GatewayProcess:
    """``bk gateway webhdfs`` on a directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = "from spark_wal.commands import gateway; gateway()"
        arguments = ["webhdfs", "--metadata", f"file://{self._directory}", "--listen", f"127.0.0.1:{self.port}"]
        log = (self._directory.parent / "gateway.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-c", command, *arguments], cwd=ROOT, stdout=log, stderr=log, start_new_session=True
        )
        log.close()
        until(lambda: self.get("/health") is not None, 20)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def get(self, path: str) -> bytes | None:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as reply:
                data: bytes = reply.read()
                return data
        except OSError:
            return None

    def has(self, path: str) -> bool:
        return self.get(f"/webhdfs/v1{path}?op=GETFILESTATUS") is not None

    def wait_for(self, path: str) -> None:
        """Until the feed tells of a file of this name; at once if it is there."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/events", timeout=180) as feed:
            feed.readline()
            if self.has(path):
                return
            for line in feed:
                if line.strip() and json.loads(line).get("path") == path:
                    return
        raise AssertionError(f"the feed ended before {path} came")

    def location(self, name: str) -> str:
        return f"webhdfs://127.0.0.1:{self.port}/{name}"


class Driver:
    """A driver and its JVM."""

    def __init__(self, gateway: GatewayProcess, out: Path, **job: Any) -> None:
        out.mkdir(exist_ok=True)
        self.out = out
        environment = {
            **os.environ,
            "JAVA_HOME": str(java.find_java().home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        fields = {"location": gateway.location("ckpt"), "out": str(out), **job}
        self._log = (out.parent / f"{out.name}.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, str(JOB), json.dumps(fields)],
            cwd=out,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )

    def signal(self, number: int) -> None:
        os.killpg(self._process.pid, number)

    def kill(self) -> None:
        if self._process.poll() is None:
            self.signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()

    def result(self, timeout_s: float = 180) -> dict[str, Any]:
        told, _ = self._process.communicate(timeout=timeout_s)
        lines = [line for line in told.decode().splitlines() if line.startswith('{"')]
        assert lines, f"the driver said nothing; see {self.out.name}.log"
        fields: dict[str, Any] = json.loads(lines[-1])
        return fields

    def attempts(self) -> list[int]:
        path = self.out / "attempts"
        return [int(line) for line in path.read_text().split()] if path.exists() else []


def until(condition: Callable[[], bool], timeout_s: float = 120) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.02)


def assert_exactly_once(out: Path, last: int) -> None:
    for batch in range(last + 1):
        assert json.loads((out / str(batch)).read_text()) == expected(batch), f"batch {batch}"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[GatewayProcess]:
    process = GatewayProcess(tmp_path / "namespace")
    process.start()
    yield process
    process.kill()


@pytest.fixture
def drive(gateway: GatewayProcess, tmp_path: Path) -> Iterator[Callable[..., Driver]]:
    drivers: list[Driver] = []

    def start(out: str = "out", **job: Any) -> Driver:
        drivers.append(Driver(gateway, tmp_path / out, **job))
        return drivers[-1]

    yield start
    for driver in drivers:
        driver.kill()


@pytest.mark.rule("S1", "S2", "S3", "S4")
@pytest.mark.parametrize(("store", "manager"), [("hdfs", "FileContext"), ("rocksdb", "FileSystem")])
def test_a_driver_killed_between_planning_and_committing_a_batch_repeats_exactly_that_batch(
    gateway: GatewayProcess, drive: Callable[..., Driver], store: str, manager: str
) -> None:
    first = drive(conf=conf(store, manager), hold=2)
    gateway.wait_for("/ckpt/offsets/2")
    until(lambda: 2 in first.attempts())
    first.kill()
    assert gateway.has("/ckpt/commits/1")
    assert not gateway.has("/ckpt/commits/2")
    second = drive(conf=conf(store, manager), until=4)
    last = second.result()["finished"]
    assert_exactly_once(second.out, last)
    assert second.attempts() == [0, 1, 2, *range(2, last + 1)]


@pytest.mark.rule("S1")
def test_a_second_driver_takes_over_and_the_first_ends_with_sparks_own_error(
    gateway: GatewayProcess, drive: Callable[..., Driver]
) -> None:
    first = drive("first", conf=conf(), until=10_000, pause_s=0.2)
    gateway.wait_for("/ckpt/commits/1")
    first.signal(signal.SIGSTOP)
    second = drive("second", conf=conf(), until=6)
    assert second.result()["finished"] >= 6
    first.signal(signal.SIGCONT)
    failed = first.result()["failed"]
    assert "CONCURRENT_STREAM_LOG_UPDATE" in failed or "multiple streaming queries" in failed.lower()
    for batch in second.attempts():
        assert json.loads((second.out / str(batch)).read_text()) == expected(batch)


@pytest.mark.rule("S3", "S4")
def test_a_gateway_that_is_killed_and_comes_back_does_not_end_the_query(
    gateway: GatewayProcess, drive: Callable[..., Driver]
) -> None:
    driver = drive(conf=conf(), until=4, hold=2, hold_s=1.0)
    until(lambda: 2 in driver.attempts())
    gateway.kill()
    time.sleep(3)  # the driver wants to commit long before this ends
    gateway.start()
    last = driver.result()["finished"]
    assert_exactly_once(driver.out, last)
    assert driver.attempts() == list(range(last + 1))
