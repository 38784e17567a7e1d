"""A supervisor of tests: it listens at a real socket, as systemd does, and hears what processes tell it."""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping

from bookkeeper.launchers.machine_speed import stretch


class Supervised:
    """What was heard."""

    def __init__(self, listener: socket.socket, path: str) -> None:
        self._listener = listener
        self.path = path

    def environment(self, watchdog_s: float | None = None) -> Mapping[str, str]:
        """For a process that is to be supervised."""
        watchdog = {"WATCHDOG_USEC": f"{watchdog_s * 1e6:.0f}"} if watchdog_s else {}
        return {**os.environ, "NOTIFY_SOCKET": self.path, **watchdog}

    def until(self, wanted: str) -> list[str]:
        """Listen until a message has this line. Returns the first lines of all messages up to it."""
        heard: list[str] = []
        while wanted not in (lines := self._listener.recv(4096).decode().split("\n")):
            heard.append(lines[0])
        return [*heard, lines[0]]


@contextlib.contextmanager
def supervisor() -> Iterator[Supervised]:
    """Listen meanwhile. The path is short, because a socket's path must be."""
    with (
        tempfile.TemporaryDirectory(prefix="bk-") as place,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener,
    ):
        listener.bind(f"{place}/notify")
        listener.settimeout(60 * stretch())
        yield Supervised(listener, f"{place}/notify")
