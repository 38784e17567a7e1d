"""Asks the gateways for a status all the time, one after the other, each time on a connection of its own."""

from __future__ import annotations

import itertools
import threading
import time
import urllib.request
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self

from bookkeeper.launchers.machine_speed import stretch

PAUSE_S: Final = 0.02
TIMEOUT_S: Final = 60.0


class Prober:
    """``with Prober(ports) as prober``; every answer is an interval of the machine's monotonic time."""

    def __init__(self, ports: Sequence[int]) -> None:
        self._urls = itertools.cycle(f"http://127.0.0.1:{port}/webhdfs/v1/?op=GETFILESTATUS" for port in ports)
        self._answers: list[tuple[float, float]] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="prober")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def answered_after(self, moment: float) -> float | None:
        """When the first request was answered that was made after ``moment``; None: not yet."""
        return next((end for began, end in list(self._answers) if began >= moment), None)

    def _run(self) -> None:
        while not self._stop.wait(PAUSE_S):
            began = time.monotonic()
            try:
                urllib.request.urlopen(next(self._urls), timeout=TIMEOUT_S * stretch()).close()
            except OSError:  # it is gone, or stands by
                continue
            self._answers.append((began, time.monotonic()))
