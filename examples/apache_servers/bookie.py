"""A bookie of Apache's as a child process on 127.0.0.1."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bookkeeper.ids import Address
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.zookeeper import free_port
from examples.apache_servers.process import QUICK_START, JavaProcess, java_command
from examples.apache_servers.settings import SMALL, Settings, bookie_settings, write_settings

_HOST: Final = "127.0.0.1"
_MAIN: Final = "org.apache.bookkeeper.server.Main"
_READ_NOTHING: Final = struct.pack(">iBBhqq", 20, 2, 2, 0, 0x7FFFFFFFFFFFFFFE, 0)
"""A read over protocol v2 from a ledger that does not exist: any answer shows that the bookie serves requests."""


class ApacheBookie:
    """One of Apache's bookies. All methods block.

    Args:
        directory: configuration, log, journal and ledgers; kept between runs.
        uri: the cluster's address (``zk://...``); the cluster must exist.
        port: where it listens on 127.0.0.1; 0 takes a free one, and keeps it.
        settings: of ``bk_server.conf``; they win over what is chosen here. ``QUICK_ADDS`` tunes it for latency.
        small: begin with ``SMALL``; without it everything else is as Apache ships it.
        heap_mb: heap, and as much again of direct memory.
        options: arguments of the JVM: ``QUICK_START`` for tests, ``RELEASE`` for benchmarks, and any others.
        level: of its log.

    Raises:
        ConfigError: no Java, or Apache's jars cannot be had.
    """

    def __init__(
        self,
        directory: Path,
        uri: str,
        *,
        port: int = 0,
        settings: Settings | None = None,
        small: bool = True,
        heap_mb: int = 256,
        options: Sequence[str] = QUICK_START,
        level: str = "INFO",
    ) -> None:
        directory = directory.absolute()
        self.directory = directory
        self.address = Address(_HOST, port or free_port())
        chosen = {**(SMALL if small else {}), **(settings or {})}
        self.settings = bookie_settings(directory, uri, self.address.port, chosen)
        self.configuration = write_settings(directory / "bk_server.conf", self.settings)
        arguments = ("--conf", str(self.configuration))
        command = java_command(directory, _MAIN, *arguments, heap_mb=heap_mb, options=options, level=level)
        self.command = tuple(command)
        """The command that starts it, for callers that look after their children themselves."""
        self.process = JavaProcess("bookie", directory, command)

    @property
    def bookie_id(self) -> str:
        """The id under which it registers: ``host:port`` unless the setting ``bookieId`` says otherwise."""
        return str(self.settings.get("bookieId", self.address))

    @property
    def pid(self) -> int | None:
        """The process id; None while it does not run."""
        return self.process.pid

    @property
    def running(self) -> bool:
        """Whether its process is there."""
        return self.process.running

    @property
    def log(self) -> Path:
        """The file that holds its output."""
        return self.process.log

    def launch(self) -> ApacheBookie:
        """Start it and do not wait, so that several can start at once. It ends with the thread that calls this."""
        self.process.launch()
        return self

    def await_serving(self) -> ApacheBookie:
        """Wait until it answers requests: registered is not enough, it closes connections until it is ready.

        Raises:
            BookieUnavailableError: it ended, or makes no progress; says what it said last.
        """
        self.process.wait_until(self.serves, "serving")
        return self

    def start(self) -> ApacheBookie:
        """Start it, the first time or again on the same data, and wait until it serves.

        Raises:
            BookieUnavailableError: see :meth:`await_serving`.
        """
        return self.launch().await_serving()

    def stop(self) -> None:
        """Ask it to stop, and wait until it has. Idempotent."""
        self.process.stop()

    def kill(self) -> None:
        """kill -9, and wait until it is gone; its registration stays until its session's time is over."""
        self.process.kill()

    def restart(self, *, kill: bool = False) -> ApacheBookie:
        """End it and start it again.

        Raises:
            BookieUnavailableError: see :meth:`await_serving`.
        """
        if kill:
            self.kill()
        else:
            self.stop()
        return self.start()

    def serves(self) -> bool:
        """Whether it answers a request now."""
        try:
            with socket.create_connection(self.address, timeout=2.0 * stretch()) as connection:
                connection.sendall(_READ_NOTHING)
                return len(connection.recv(4)) == 4
        except OSError:
            return False

    def __enter__(self) -> ApacheBookie:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()
