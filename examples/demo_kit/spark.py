"""Spark's part of a demo: drivers and comparisons, each in an empty working directory, as on another machine."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bookkeeper.launchers.java import find_java
from examples.demo_kit.cluster import ROOT, DemoError
from examples.demo_kit.slow_machine import environment
from examples.demo_kit.worker_python import worker_python
from examples.processes import Child, Children


class SparkDriver:
    """One Spark driver with its JVMs. It prints a line of JSON for each batch."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.failed = ""
        """Spark's own reason."""
        self.finished = False
        """Whether its query has ended well."""
        self.ended = asyncio.Event()

    async def listen(self, on_batch: Callable[[Mapping[str, Any]], None]) -> None:
        """Read what it prints until it has ended."""
        async for line in _documents(self.child):
            if "batch" in line:
                on_batch(line)
            self.failed = line.get("failed", self.failed)
            self.finished = self.finished or line.get("finished", False)
        await self.child.wait()
        self.ended.set()

    def error(self, what: str) -> DemoError:
        """Why the demo cannot go on with this driver."""
        return DemoError(f"the driver {what}: {self.failed or 'no reason given'}; {_log(self.child)}")

    def require_running(self) -> None:
        """Raises: DemoError."""
        if self.ended.is_set():
            raise self.error("has ended too early")

    async def until_finished(self) -> None:
        """Wait for its end. Raises: DemoError: it has failed."""
        await self.ended.wait()
        if not self.finished:
            raise self.error("has failed")


async def start_spark(children: Children, home: Path, module: str, *arguments: str) -> Child:
    """Start a program that uses PySpark, in the empty directory ``home``. Its name is the directory's."""
    await asyncio.to_thread(home.mkdir)
    its = {
        "PYTHONPATH": str(ROOT),
        "JAVA_HOME": str(find_java().home),
        "SPARK_LOCAL_DIRS": str(home / "local"),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(home / "work"),
        "PYSPARK_PYTHON": await asyncio.to_thread(worker_python, sys.executable, home),
        **environment(),
    }
    command = [sys.executable, "-m", module, *arguments]
    return await children.start(home.name, command, directory=home, environment=its, pipe_output=True)


async def compared(children: Children, directory: Path, module: str, *arguments: str) -> dict[str, Any]:
    """What another Spark, which computes the same result in batch, prints of the comparison. Raises: DemoError."""
    child = await start_spark(children, directory / "verdict", module, *arguments)
    documents = [line async for line in _documents(child)]
    await child.wait()
    if not documents:
        raise DemoError(f"the comparison has failed; {_log(child)}")
    found: dict[str, Any] = documents[-1]
    return found


async def _documents(child: Child) -> Any:
    """The objects that it prints; Spark itself may print between them."""
    async for raw in child.stdout:
        if raw.startswith(b"{"):
            try:
                yield json.loads(raw)
            except ValueError:
                continue


def _log(child: Child) -> str:
    return f"{child.log}:\n{child.last_words()}"
