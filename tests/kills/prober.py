"""Asks the gateway for a status all the time, each time on a connection of its own."""

from __future__ import annotations

import threading
import time
import urllib.request
from types import TracebackType
from typing import Final, Self

from bookkeeper.launchers.machine_speed import stretch

PAUSE_S: Final = 0.02
TIMEOUT_S: Final = 60.0


class Prober:
    """``with Prober(port) as prober``; every answer is an interval of the machine's monotonic time."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/webhdfs/v1/?op=GETFILESTATUS"
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
                urllib.request.urlopen(self._url, timeout=TIMEOUT_S * stretch()).close()
            except OSError:
                continue
            self._answers.append((began, time.monotonic()))
