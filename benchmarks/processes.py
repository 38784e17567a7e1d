"""A cluster of real processes for a benchmark: metadata in SQLite, bookies, each ended at the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[1]
_UP_S = 30.0


def bk(*arguments: str, environment: Mapping[str, str] | None = None) -> Any:
    """Run a ``bk`` command to its end; its JSON output, or None if it prints none."""
    done = subprocess.run(
        [sys.executable, "-m", "bookkeeper.admin", *arguments],
        env={**os.environ, **(environment or {})},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    lines = done.stdout.decode().strip().splitlines()
    return json.loads(lines[-1]) if lines and lines[-1][:1] in "[{" else None


class BookieProcesses:
    """Bookies, by default on SQLite metadata. A context manager; leaving it ends every process."""

    def __init__(
        self,
        directory: Path,
        bookies: int = 3,
        environment: Mapping[str, str] | None = None,
        metadata: str | None = None,
    ) -> None:
        self.directory = directory
        self.metadata = metadata or f"sqlite://{directory}/metadata.db"
        self._count = bookies
        self._environment = dict(environment or {})
        self._processes: list[subprocess.Popen[bytes]] = []

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes[: self._count]]

    def start(self, *arguments: str, inside: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start another ``bk`` process of this cluster, by a command that runs commands if ``inside`` is one."""
        with (self.directory / f"{arguments[0]}-{len(self._processes)}.log").open("ab") as log:
            process = subprocess.Popen(
                [*inside, sys.executable, "-m", "bookkeeper.admin", *arguments],
                env={**os.environ, "BK_METADATA": self.metadata, **self._environment},
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)
        return process

    def bk(self, *arguments: str) -> Any:
        return bk(*arguments, environment={"BK_METADATA": self.metadata, **self._environment})

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.bk("init")
        for number in range(1, self._count + 1):
            self.start(
                "bookie",
                "--dir",
                str(self.directory / f"b{number}"),
                "--bookie-id",
                f"b{number}",
                "--listen",
                "127.0.0.1:0",
            )
        deadline = time.monotonic() + _UP_S
        while sum(row["state"] == "writable" for row in self.bk("bookies", "--json")) < self._count:
            if time.monotonic() > deadline or any(process.poll() is not None for process in self._processes):
                self.__exit__(None, None, None)
                raise RuntimeError(f"the bookies are not up; see the logs in {self.directory}")
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._processes):
            process.terminate()
        for process in reversed(self._processes):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def resident_mb(pids: Sequence[int]) -> float:
    """The largest resident set of some processes, in MB."""
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids]
    return max(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6
