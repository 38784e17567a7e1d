"""Commands with the address of a gateway, which is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.segments.commands.helpers import Streams
from tests.segments.gateway.processes import ROOT, GatewayProcess


class ProcessStreams(Streams):
    """Each command is a process: gRPC's client does not outlive the loop that it began with."""

    def run(self, *arguments: str, data: str | bytes | None = None, status: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-c", "from segments.commands import stream; stream()", *arguments],
            input=data.encode() if isinstance(data, str) else data or b"",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "BK_METADATA": self.uri},
            cwd=ROOT,
            check=False,
        )
        assert done.returncode == status, done.stdout.decode()
        return done.stdout.decode()


@contextmanager
def behind_a_gateway(directory: Path) -> Iterator[Streams]:
    """The commands, with the address of a gateway on a cluster with one bookie."""
    cluster = Streams(directory)
    cluster.create("first")  # makes the cluster
    gateway = GatewayProcess(cluster.uri, directory / "log")
    try:
        streams = ProcessStreams(directory)
        streams.uri = f"grpc://{gateway.address}"
        yield streams
    finally:
        gateway.close()
