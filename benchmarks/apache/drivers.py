"""The load generators as children: one JSON line to them, one from them."""

from __future__ import annotations

import hashlib
import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from benchmarks.processes import ROOT
from bookkeeper.errors import BookKeeperError, ConfigError
from bookkeeper.launchers.zookeeper import tied_to_parent
from examples.apache_servers.jars import jars, release
from examples.apache_servers.process import RELEASE, java_command

SOURCE: Final = Path(__file__).with_name("Load.java")


class DriverError(BookKeeperError):
    """A load generator ended, did not answer in time, or could not do what it was told."""


class LoadDriver:
    """A long-lived child that obeys commands. Ends with this process."""

    def __init__(self, name: str, command: list[str], log: Path) -> None:
        self.name = name
        self._log = log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                tied_to_parent(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT
            )
        self._received = b""
        self.pid: int = self.tell("hello", 60.0)["pid"]

    def tell(self, op: str, timeout_s: float, /, **arguments: Any) -> dict[str, Any]:
        """Give it a command and wait for the answer.

        Raises:
            DriverError: what it said instead; or nothing in time, or its end.
        """
        assert self._process.stdin is not None
        line = json.dumps({"op": op, **arguments, "ticks": os.sysconf("SC_CLK_TCK")})
        try:
            self._process.stdin.write(line.encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise DriverError(f"{self.name} is gone, see {self._log}") from error
        answer: dict[str, Any] = json.loads(self._line(timeout_s))
        if "error" in answer:
            raise DriverError(f"{self.name}, {op}: {answer['error']}")
        return answer

    @property
    def running(self) -> bool:
        """It has not ended."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End it. Idempotent."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(5)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                try:
                    pipe.close()
                except OSError:  # what was not sent any more
                    pass

    def _line(self, timeout_s: float) -> bytes:
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._received:
            ready, _, _ = select.select([descriptor], [], [], timeout_s)
            if not ready:
                raise DriverError(f"{self.name} said nothing for {timeout_s:.0f} s, see {self._log}")
            part = os.read(descriptor, 65536)
            if not part:
                raise DriverError(f"{self.name} ended, see {self._log}")
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return line


def python_driver(directory: Path) -> LoadDriver:
    """On our client."""
    return LoadDriver("our client", [sys.executable, "-m", "benchmarks.apache.load"], directory / "load-python.log")


def java_driver(directory: Path, cache: Path, heap_mb: int) -> LoadDriver:
    """On Apache's client; its source is compiled into ``cache`` when it is new."""
    command = java_command(
        directory,
        "Load",
        heap_mb=heap_mb,
        options=(*RELEASE, f"-Xms{heap_mb}m", f"-XX:MaxDirectMemorySize={2 * heap_mb}m"),
        more_jars=(str(_classes(cache)),),
        level="ERROR",
    )
    return LoadDriver("Java's client", command, directory / "load-java.log")


def _classes(cache: Path) -> Path:
    target = cache / f"classes-{release()}-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}"
    if target.is_dir():
        return target
    compiler = shutil.which("javac")
    if compiler is None:
        raise ConfigError("no javac on PATH: the load generator on Apache's client has to be compiled; install a JDK")
    fresh = target.with_name(f"{target.name}.{os.getpid()}")
    fresh.mkdir(parents=True)
    try:
        subprocess.run([compiler, "-cp", jars(), "-d", str(fresh), str(SOURCE)], check=True)
        fresh.rename(target)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target
