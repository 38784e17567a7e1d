"""Bookies in processes of their own."""

from __future__ import annotations

import contextlib
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from bookkeeper import real
from bookkeeper.ids import Address
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.meta import init_cluster


def complaints(errors: str) -> str:
    """What a server has written to stderr, without the stages of its start."""
    return "".join(line for line in errors.splitlines(keepends=True) if not line.startswith("starting: "))


class Process:
    """A bookie in a process of its own."""

    def __init__(self, directory: Path) -> None:
        self._metadata = directory / "meta.db"
        self._arguments = [
            *(sys.executable, "-m", "bookkeeper.bookie"),
            *("--metadata", f"sqlite:///{directory}/meta.db", "--directory", f"{directory}/bookie"),
        ]
        self.address = Address("", 0)
        self.process: subprocess.Popen[str] | None = None

    def start(self, *more: str, environment: Mapping[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [*self._arguments, *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert " serves at " in line, self.end(signal.SIGKILL)
        self.address = Address.parse(line.split(" serves at ")[1].split(",")[0].strip())

    def lease_end(self) -> float:
        """When its session with the metadata store ends unless it renews it, by CLOCK_MONOTONIC."""
        with contextlib.closing(sqlite3.connect(self._metadata)) as file:
            return float(file.execute("SELECT max(lease_until) FROM sessions").fetchone()[0])

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """Send a signal; the exit code and what was written to stderr."""
        assert self.process is not None
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=30 * stretch())
        return self.process.returncode, complaints(errors)


def new_process(directory: Path) -> Process:
    """A bookie, not started, of a new cluster in ``directory``."""
    real.run(_init(f"sqlite:///{directory}/meta.db"))
    return Process(directory)


async def _init(uri: str) -> None:
    await init_cluster(uri, real.system_seams())
