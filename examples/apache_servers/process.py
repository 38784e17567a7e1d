"""One Java program of Apache's as a child process. What it prints and logs goes to one file in its directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bookkeeper.errors import BookieUnavailableError
from bookkeeper.launchers.java import find_java
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.patience import QUIET_S
from bookkeeper.launchers.waiting import ProgressSource, StalledError, until
from bookkeeper.launchers.zookeeper import tied_to_parent
from examples.apache_servers.jars import jars

QUICK_START: Final = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-XX:-UsePerfData")
"""For tests: up in a second, small, and not fast."""
RELEASE: Final = (
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=10",
    "-XX:+ParallelRefProcEnabled",
    "-XX:+DisableExplicitGC",
    "-XX:-UsePerfData",
)
"""For benchmarks: what the release's scripts choose, without what depends on the number of cores."""
_NETTY: Final = (
    "-Dio.netty.leakDetectionLevel=disabled",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.util.zip=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.misc=ALL-UNNAMED",
)

_LOGGING: Final = """<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="WARN">
  <Appenders><Console name="out" target="SYSTEM_OUT">
    <PatternLayout pattern="%d{{ISO8601}} %-5p %c{{1}} %t %m%n"/>
  </Console></Appenders>
  <Loggers>
    <Logger name="org.apache.zookeeper" level="WARN"/>
    <Root level="{level}"><AppenderRef ref="out"/></Root>
  </Loggers>
</Configuration>
"""


def java_command(
    directory: Path,
    main: str,
    *arguments: str,
    heap_mb: int = 256,
    options: Sequence[str] = QUICK_START,
    more_jars: Sequence[str] = (),
    level: str = "INFO",
) -> list[str]:
    """The command that runs one of Apache's classes.

    Args:
        directory: where its logging configuration is written.
        main: the class, with its package.
        heap_mb: heap, and as much again for Netty's direct memory.
        options: arguments of the JVM.
        more_jars: added to the class path.
        level: of its log.

    Raises:
        ConfigError: no Java, or Apache's jars cannot be had; see :func:`~examples.apache_servers.jars.jars`.
    """
    class_path = os.pathsep.join([jars(), *more_jars])
    directory.mkdir(parents=True, exist_ok=True)
    logging = directory / f"log4j2-{level}.xml"
    logging.write_text(_LOGGING.format(level=level))
    memory = (f"-Xmx{heap_mb}m", f"-XX:MaxDirectMemorySize={heap_mb}m", f"-Djava.io.tmpdir={directory}")
    java = [find_java().executable, *memory, *options, *_NETTY, f"-Dlog4j2.configurationFile={logging}"]
    return [*java, "-cp", class_path, main, *arguments]


class JavaProcess:
    """A child that can be started again after it has ended. All methods block."""

    def __init__(self, name: str, directory: Path, command: Sequence[str]) -> None:
        self.name = name
        self.directory = directory
        self._command = tuple(command)
        self._process: subprocess.Popen[bytes] | None = None
        self._said_from = 0

    @property
    def log(self) -> Path:
        """The file that holds its output since it was first started."""
        return self.directory / f"{self.name}.log"

    @property
    def said(self) -> str:
        """Return its output since it was last started."""
        return self.log.read_bytes()[self._said_from :].decode(errors="replace") if self.log.exists() else ""

    @property
    def running(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The process id; None while it does not run."""
        return self._process.pid if self._process is not None and self.running else None

    def launch(self) -> None:
        """Start it and do not wait. It ends with the thread that calls this."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._said_from = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                tied_to_parent(self._command), stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory
            )

    def wait_until(self, ready: Callable[[], bool], what: str, quiet_s: float = QUIET_S) -> None:
        """Poll until it is ready, as long as it makes progress.

        Args:
            quiet_s: seconds without progress, on a machine of the reference's speed.

        Raises:
            BookieUnavailableError: it ended first, or makes no progress; says what it said last. It is killed.
        """
        watched = ProgressSource(logs=[self.log], files=[self.directory], pids=[self.pid], runs=lambda: self.running)
        try:
            until(ready, f"Apache's {self.name}", watched, quiet_s=quiet_s)
        except StalledError as error:
            how = f"makes no progress, and is not {what}" if self.running else f"ended before it was {what}"
            said = self.said[-3000:]
            self.kill()
            raise BookieUnavailableError(f"Apache's {self.name} {how} ({self.log}): {said}") from error

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it runs. SIGSTOP suspends it, SIGCONT lets it go on."""
        if self._process is not None and self.running:
            self._process.send_signal(number)

    def stop(self, timeout_s: float = 20.0) -> None:
        """Ask it to end, and wait; kill it if it does not. Idempotent."""
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            self.wait(timeout_s * stretch())
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """kill -9, and wait until it is gone. Idempotent."""
        self.send(signal.SIGKILL)
        self.wait(None)

    def wait(self, timeout_s: float | None) -> int | None:
        """Wait for its end, and return its exit status; None if it was never started."""
        return None if self._process is None else self._process.wait(timeout_s)


def run_to_end(command: Sequence[str], timeout_s: float) -> tuple[int, str]:
    """Run a command to its end; return its exit status and its output.

    Raises:
        subprocess.TimeoutExpired: it took too long, and was killed.
    """
    done = subprocess.run(
        tied_to_parent(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout_s * stretch(),
        check=False,
    )
    return done.returncode, done.stdout.decode(sys.stdout.encoding or "utf-8", errors="replace")
