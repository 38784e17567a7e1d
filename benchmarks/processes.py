"""A cluster of real processes for a benchmark: metadata in SQLite, bookies, each ended at the end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bookkeeper.launchers.waiting import ProgressSource, until

ROOT = Path(__file__).resolve().parents[1]


def bk(*arguments: str, environment: Mapping[str, str] | None = None, module: str = "bookkeeper.admin") -> Any:
    """Run a ``bk`` command (or another program of ours) to its end; its JSON output, or None if it prints none."""
    done = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env={**os.environ, **(environment or {})},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        check=True,
    )
    lines = done.stdout.decode().strip().splitlines()
    return json.loads(lines[-1]) if lines and lines[-1][:1] in "[{" else None


class BookieProcesses:
    """Bookies, by default on SQLite metadata, by a command that runs commands if ``inside`` is one. A context manager;
    leaving it ends every process."""

    def __init__(
        self,
        directory: Path,
        bookies: int = 3,
        environment: Mapping[str, str] | None = None,
        metadata: str | None = None,
        inside: Sequence[str] = (),
        options: Sequence[str] = (),
    ) -> None:
        """``options``: more options of each bookie."""
        self._options = options
        self.directory = directory
        self._inside = inside
        self.metadata = metadata or f"sqlite://{directory}/metadata.db"
        self._count = bookies
        self._environment = dict(environment or {})
        self._processes: list[subprocess.Popen[bytes]] = []
        self._logs: dict[int, Path] = {}

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self._processes[: self._count]]

    def start(self, *arguments: str, inside: Sequence[str] = ()) -> subprocess.Popen[bytes]:
        """Start another ``bk`` process of this cluster, by a command that runs commands if ``inside`` is one."""
        path = self.directory / f"{arguments[0]}-{len(self._processes)}.log"
        with path.open("ab") as log:
            process = subprocess.Popen(
                [*inside, sys.executable, "-m", "bookkeeper.admin", *arguments],
                env={**os.environ, "BK_METADATA": self.metadata, **self._environment},
                cwd=ROOT,
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)
        self._logs[process.pid] = path
        return process

    def bk(self, *arguments: str, module: str = "bookkeeper.admin") -> Any:
        return bk(*arguments, environment={"BK_METADATA": self.metadata, **self._environment}, module=module)

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
                *self._options,
                inside=self._inside,
            )
        try:
            for number, process in enumerate(self._processes, 1):
                self.until_serving(process, [self.directory / f"b{number}"])
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def until_serving(self, process: subprocess.Popen[bytes], files: Sequence[Path]) -> None:
        """Wait until a bookie's process serves, as long as it makes progress. Raises: StalledError."""
        log = self._logs[process.pid]
        watched = ProgressSource(logs=[log], files=files, pids=[process.pid], runs=lambda: process.poll() is None)
        until(lambda: b" serves at " in log.read_bytes(), "the bookie", watched)

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
