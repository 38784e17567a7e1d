"""A cluster, drivers one after the other, and the judgement."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from segments import sync
from segments.record import Gap
from tests.segments.gateway.processes import ROOT
from tests.sink_kills.driver import TASKS, last_of
from tests.sink_kills.verdict import Verdict, judge


class Trial:
    """Kills of one stream's drivers. ``home`` has the logs, and goes on where it was stopped."""

    def __init__(
        self,
        metadata: str,
        home: Path,
        seed: int,
        say: Callable[[str], None] = print,
        *,
        stream: str = "killed",
        **life: Any,
    ) -> None:
        self._metadata, self._home, self._seed, self._say, self._life = metadata, home, seed, say, life
        self._stream = stream
        self._kills = home / "kills.jsonl"
        home.mkdir(parents=True, exist_ok=True)

    @property
    def kills(self) -> list[dict[str, Any]]:
        """Those that were done."""
        return [json.loads(line) for line in self._kills.read_text().splitlines()] if self._kills.exists() else []

    def run(self, count: int) -> Verdict:
        """Kill until there were so many, run one more driver in good order, and judge."""
        with sync.connect(self._metadata) as namespace:
            namespace.open(self._stream, create=True)
        for number in range(len(self.kills), count):
            self._one(number)
        last = last_of(self._home / "offsets") + 1
        assert self._driver(f"end{count}", until=last) == 0
        with sync.connect(self._metadata) as namespace, namespace.open(self._stream).read() as reader:
            return judge([each.value for each in reader if not isinstance(each, Gap)], last, TASKS)

    def _one(self, number: int) -> None:
        rng = Random(f"{self._seed}/{number}")
        moment = {"after_batches": rng.randrange(3), "after_ms": None if number % 3 == 0 else rng.randrange(150)}
        status = self._driver(f"r{number}", **moment)
        if status != -signal.SIGKILL:
            raise AssertionError(f"driver {number} ended by itself, with status {status}")
        with self._kills.open("a") as file:
            file.write(json.dumps({"kill": number, **moment}) + "\n")
        self._say(f"kill {number + 1}: {'before the commit log' if moment['after_ms'] is None else moment}")

    def _driver(self, run: str, **life: Any) -> int:
        told = {
            "metadata": self._metadata,
            "stream": self._stream,
            "home": str(self._home),
            "run": run,
            **self._life,
            **life,
        }
        return subprocess.run([sys.executable, "-m", "tests.sink_kills.driver", json.dumps(told)], cwd=ROOT).returncode
