"""All clients, one after the other, against one gateway."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from bookkeeper.launchers.java import find_java
from tests.clients.clients import python_clients
from tests.clients.drive import Outcome, drive
from tests.spark_wal.processes import GatewayProcess, conf

ROOT = Path(__file__).parents[2]


def python_outcomes(gateway: GatewayProcess, sizes: Sequence[int], rounds: int) -> Iterator[Outcome]:
    """Of the clients that are Python."""
    with python_clients(f"127.0.0.1:{gateway.port}") as clients:
        for client in clients:
            yield from drive(client, sizes, rounds)


def spark_outcomes(
    gateway: GatewayProcess, log: Path, sizes: Sequence[int], rounds: int, keys: int, batches: int
) -> Iterator[Outcome]:
    """Of those that live in a JVM. Its standard error goes into ``log``."""
    job = {
        "location": gateway.location("jvm"),
        "conf": conf("hdfs", "FileSystem"),
        "sizes": list(sizes),
        "rounds": rounds,
        "keys": keys,
        "batches": batches,
    }
    environment = {**os.environ, "JAVA_HOME": find_java().home, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "tests.clients.in_spark", json.dumps(job)]
    with (
        log.open("ab") as errors,
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        try:
            assert process.stdout is not None
            for line in process.stdout:
                yield Outcome(**json.loads(line))
            status = process.wait()
        finally:
            process.kill()
    if status:
        yield Outcome("Spark", 0, 0.0, f"the process ended with status {status}: see {log}")
