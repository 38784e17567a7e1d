"""What a process tells systemd, or another supervisor that listens at the socket of ``NOTIFY_SOCKET``: that it serves,
that it stops, and that its loop still turns (``Type=notify`` and ``WatchdogSec=`` of a unit; sd_notify(3) has the
protocol). Without that variable nothing is told.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import MutableMapping
from typing import Final

log = logging.getLogger(__name__)

SEND_S: Final = 1.0
"""How long a supervisor that does not read may hold up a message that counts."""
_TURNS: Final = 3
"""Signs of life within the time after which the supervisor gives the process up."""


class NotifySocket:
    """Tells the supervisor of this process. One that is gone ends nothing: a line is logged."""

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        """
        Args:
            address: path of its socket, or ``@NAME`` of an abstract one; None: there is no supervisor.
            watchdog_s: seconds without a sign of life after which it ends the process; None: it does not.
        """
        self._address = f"\0{address[1:]}" if address is not None and address.startswith("@") else address
        self._watchdog_s = watchdog_s

    @classmethod
    def of_this_process(cls, environment: MutableMapping[str, str] | None = None) -> NotifySocket:
        """The supervisor that the environment names. Its variables are removed, so that children do not speak for this
        process."""
        environment = os.environ if environment is None else environment
        address = environment.pop("NOTIFY_SOCKET", None)
        watchdog, owner = environment.pop("WATCHDOG_USEC", None), environment.pop("WATCHDOG_PID", None)
        if address is not None and not address.startswith(("/", "@")):
            log.warning("NOTIFY_SOCKET %r is neither a path nor an abstract name: nobody is told anything", address)
            address = None
        mine = owner is None or owner == str(os.getpid())
        try:
            watchdog_s = int(watchdog) / 1e6 if watchdog is not None and mine else None
        except ValueError:
            log.warning("WATCHDOG_USEC %r is no number: no sign of life is given", watchdog)
            watchdog_s = None
        return cls(address, watchdog_s if watchdog_s else None)

    def starting(self, stage: str) -> None:
        """The process has come to a stage of its start."""
        self._send(f"STATUS=starting: {stage}")

    def ready(self, text: str) -> None:
        """The process serves: ``text`` says where."""
        self._send(f"READY=1\nSTATUS={text}")

    def stopping(self) -> None:
        """The process was told to end, and does."""
        self._send("STOPPING=1\nSTATUS=stopping")

    def alive(self) -> None:
        """The process lives. Never waits: a sign that is lost is followed by another."""
        self._send("WATCHDOG=1", wait_s=0.0)

    @property
    def alive_every_s(self) -> float | None:
        """Seconds between two signs of life; None: nobody waits for them."""
        return self._watchdog_s / _TURNS if self._address is not None and self._watchdog_s is not None else None

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give signs of life as long as ``loop`` turns. Does nothing where nobody waits for them."""
        if (every_s := self.alive_every_s) is not None:
            self.alive()
            loop.call_later(every_s, self.watch, loop)

    def _send(self, message: str, *, wait_s: float = SEND_S) -> None:
        if self._address is None:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(wait_s)
                sender.sendto(message.encode(), self._address)
        except BlockingIOError:
            pass  # only a sign of life does not wait
        except OSError as error:
            log.warning("the supervisor is not told %r: %s", message.partition("\n")[0], error.strerror or error)
