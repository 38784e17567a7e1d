"""A gateway and a driver as processes of their own, for tests that kill them."""

from __future__ import annotations

import importlib
import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bookkeeper.launchers import waiting
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.zookeeper import free_port
from examples.demo_kit.worker_python import worker_python
from spark_wal.service import file_manager, spark_conf
from tests.spark_wal.streaming_job import expected

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


def conf(store: str = "hdfs", manager: str = "FileSystem", version: str | None = None) -> dict[str, str]:
    """``version``: of another PySpark than the installed one, with which the manager is the FileSystem's."""
    settings = {**spark_conf(spark_version=version), **STORES[store]}
    if version is None:
        settings["spark.sql.streaming.checkpointFileManagerClass"] = MANAGERS[manager]
    settings["spark.driver.extraJavaOptions"] += " -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    return settings


class GatewayProcess:
    """``bk gateway webhdfs`` on a directory; ``options`` protect it, then ``trust`` and ``headers`` let us in."""

    def __init__(
        self,
        directory: Path,
        options: Sequence[str] = (),
        trust: ssl.SSLContext | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._directory = directory
        self._options = options
        self._trust = trust
        self._headers = dict(headers or {})
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = "from spark_wal.commands import gateway; gateway()"
        arguments = ["webhdfs", "--metadata", f"file://{self._directory}", "--listen", f"127.0.0.1:{self.port}"]
        arguments += self._options
        log = (self._directory.parent / "gateway.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-c", command, *arguments], cwd=ROOT, stdout=log, stderr=log, start_new_session=True
        )
        log.close()
        until(lambda: self.get("/health") is not None, 60)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def signal(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def get(self, path: str) -> bytes | None:
        try:
            with self.opened(path, 10) as reply:
                data: bytes = reply.read()
                return data
        except OSError:
            return None

    @property
    def url(self) -> str:
        return f"{'http' if self._trust is None else 'https'}://127.0.0.1:{self.port}"

    def opened(self, path: str, timeout_s: float) -> Any:
        request = urllib.request.Request(self.url + path, headers=self._headers)
        return urllib.request.urlopen(request, timeout=timeout_s * stretch(), context=self._trust)

    def put(self, path: str, query: str) -> None:
        """A change without a body."""
        request = urllib.request.Request(f"{self.url}/webhdfs/v1{path}?{query}", headers=self._headers, method="PUT")
        urllib.request.urlopen(request, timeout=10, context=self._trust).close()

    def has(self, path: str) -> bool:
        return self.get(f"/webhdfs/v1{path}?op=GETFILESTATUS") is not None

    def wait_for(self, path: str, by: JobProcess) -> None:
        """Until the feed tells of a file of this name; at once if it is there, and no longer than its writer lives."""
        with self.opened("/events", 180) as feed:
            feed.readline()
            if self.has(path):
                return
            for line in feed:  # an empty one every few seconds
                if line.strip() and json.loads(line).get("path") == path:
                    return
                assert by.runs() or self.has(path), f"{by.out.name} ended before {path} came; see {by.out.name}.log"
        raise AssertionError(f"the feed ended before {path} came")

    def location(self, name: str) -> str:
        return f"{'webhdfs' if self._trust is None else 'swebhdfs'}://127.0.0.1:{self.port}/{name}"


class JobProcess:
    """A script of ours and its JVM, which get what they are to do as JSON, and print lines of JSON."""

    def __init__(
        self,
        script: Path,
        fields: Mapping[str, Any],
        out: Path,
        *,
        python: str = sys.executable,
        extra: Mapping[str, str] | None = None,
    ) -> None:
        """``extra``: variables of its environment."""
        out.mkdir(exist_ok=True)
        java = importlib.import_module("bookkeeper.launchers.java")
        self.out = out
        environment = {
            **os.environ,
            "JAVA_HOME": str(java.find_java().home),
            "PYSPARK_PYTHON": worker_python(python, out),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # it lives for some seconds
            **(extra or {}),
        }
        self._log = (out.parent / f"{out.name}.log").open("ab")
        self._process = subprocess.Popen(
            [python, str(script), json.dumps(fields)],
            cwd=out,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )

    def signal(self, number: int) -> None:
        os.killpg(self._process.pid, number)

    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def kill(self) -> None:
        if self.runs():
            self.signal(signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()

    def line(self) -> Any:
        """The next line of JSON that it prints."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith((b"{", b"[")):
                return json.loads(line)
        raise AssertionError(f"the process ended; see {self.out.name}.log")

    def result(self, timeout_s: float = 180) -> dict[str, Any]:
        told, _ = self._process.communicate(timeout=timeout_s * stretch())
        lines = [line for line in told.decode().splitlines() if line.startswith('{"')]
        assert lines, f"the driver said nothing; see {self.out.name}.log"
        fields: dict[str, Any] = json.loads(lines[-1])
        return fields


class Driver(JobProcess):
    """The driver of the streaming query."""

    def __init__(self, location: str, out: Path, *, python: str = sys.executable, **job: Any) -> None:
        super().__init__(JOB, {"location": location, "out": str(out), **job}, out, python=python)

    def attempts(self) -> list[int]:
        return self.attempts_in(self.out)

    @staticmethod
    def attempts_in(out: Path) -> list[int]:
        """The batches that the sink was given, in order, by all drivers."""
        path = out / "attempts"
        return [int(line) for line in path.read_text().split()] if path.exists() else []


def until(condition: Callable[[], bool], timeout_s: float = 120) -> None:
    waiting.until(condition, "what must come", quiet_s=timeout_s)


def assert_exactly_once(out: Path, last: int) -> None:
    for batch in range(last + 1):
        assert json.loads((out / str(batch)).read_text()) == expected(batch), f"batch {batch}"
