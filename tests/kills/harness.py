"""Kills the gateway under a query, and watches."""

from __future__ import annotations

import importlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Final, Self

from bookkeeper.launchers.machine_speed import stretch
from spark_wal.webhdfs.contents.upload_log import CutUpload, cut
from tests.integration.processes import Bookies, Process, bookies, end_with_parent, free_port, until
from tests.kills.prober import Prober
from tests.kills.verdict import Cause, Kill, Verdict, cause_of
from tests.spark_wal.processes import ROOT, conf

SPREAD_S: Final = 1.5
"""A kill comes so long, at most, after the query was seen to go on."""

PATIENCE_S: Final = 120.0


class GatewayUnderFire:
    """A gateway process that notes its uploads down."""

    def __init__(self, home: Path, cluster: Bookies) -> None:
        self.port = free_port()
        self._record = home / "uploads"
        words = ["gateway", "webhdfs", "--metadata", cluster.uri, "--listen", f"127.0.0.1:{self.port}"]
        self.process = Process("gateway", home, *words, "--upload-log", str(self._record))

    def start(self) -> None:
        self.process.start()

    def kill(self) -> tuple[CutUpload, ...]:
        """kill -9; what it had not answered by its own record."""
        self.process.kill()
        return tuple(cut(self._record.read_bytes().splitlines(keepends=True)))


class Query:
    """A driver and its query."""

    def __init__(self, home: Path, name: str, location: str, master: str, settings: dict[str, str]) -> None:
        self.sink = home / f"{name}.sink"
        self.sink.touch()
        self._log = (home / f"{name}.log").open("ab")
        java = importlib.import_module("bookkeeper.launchers.java")
        job = {"location": location, "master": master, "out": str(self.sink), "conf": settings}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.kills.query", json.dumps(job)],
            cwd=ROOT,
            env={
                **os.environ,
                "JAVA_HOME": str(java.find_java().home),
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_LOCAL_IP": "127.0.0.1",
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
            preexec_fn=end_with_parent,
        )
        self._said: queue.Queue[dict[str, Any]] = queue.Queue()
        self._listening = threading.Thread(target=self._listen, name="driver")
        self._listening.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, 9)
        self._process.wait()
        self._listening.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._log.close()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(b'{"'):
                self._said.put(json.loads(line))
        self._said.put({"gone": None})

    def batches(self) -> list[float]:
        """When the sink was given something."""
        whole = self.sink.read_text().splitlines(keepends=True)
        return [json.loads(line)["at"] for line in whole if line.endswith("\n")]

    def died(self) -> str | None:
        """The error by which it died meanwhile, if it did."""
        try:
            said = self._said.get_nowait()
        except queue.Empty:
            return None
        assert "died" in said, f"the driver said {said}; see {self._log.name}"
        text: str = said["died"]
        return text

    def again(self) -> None:
        self._order("again")

    def stop(self) -> None:
        """No batch begins any more."""
        self._order("stop")
        said = self._said.get(timeout=PATIENCE_S * stretch())
        assert "stopped" in said, said

    def _order(self, word: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())
        self._process.stdin.flush()


class Trial:
    """So many kills, shared out over queries one after the other."""

    def __init__(
        self,
        home: Path,
        seed: int,
        settings: dict[str, str] | None = None,
        tell: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._home = home
        self._rng = Random(seed)
        self._settings = conf() if settings is None else settings
        self._tell = tell
        self.verdict = Verdict()

    def run(self, kills: int, masters: Sequence[str]) -> Verdict:
        with bookies(self._home) as cluster:
            gateway = GatewayUnderFire(self._home, cluster)
            gateway.start()
            try:
                gateway.process.until_said(r"serves namespace")
                with Prober(gateway.port) as prober:
                    for number, master in enumerate(masters):
                        share = kills * (number + 1) // len(masters) - kills * number // len(masters)
                        self._under_query(gateway, prober, master, share)
            finally:
                gateway.process.kill()
        return self.verdict

    def _under_query(self, gateway: GatewayUnderFire, prober: Prober, master: str, kills: int) -> None:
        name = f"query-{len(self.verdict.kills)}"
        location = f"webhdfs://127.0.0.1:{gateway.port}/{name}"
        with Query(self._home, name, location, master, self._settings) as query:
            began = time.monotonic()
            self._goes_on(query, began)
            for _ in range(kills):
                kill = self._kill(gateway, prober, query, master)
                self.verdict.kills.append(kill)
                self._tell(_line(kill))
            query.stop()
            self.verdict.take_sink(name, query.sink.read_text().splitlines())

    def _kill(self, gateway: GatewayUnderFire, prober: Prober, query: Query, master: str) -> Kill:
        number = len(self.verdict.kills) + 1
        time.sleep(self._rng.uniform(0, SPREAD_S))
        text = query.died()
        if text is not None:
            self._late_death(text)
            query.again()
            self._goes_on(query, time.monotonic())
        at = time.monotonic()
        open_then = gateway.kill()
        gateway.start()
        answered = until(lambda: prober.answered_after(at), PATIENCE_S, "the gateway does not come back")
        assert answered is not None
        next_batch, text = self._next(query, answered)
        if text is None:
            assert next_batch is not None
            return Kill(number, master, at, open_then, answered - at, next_batch - at)
        query.again()
        self._goes_on(query, time.monotonic())
        return Kill(number, master, at, open_then, answered - at, None, cause_of(text, open_then), text)

    def _late_death(self, text: str) -> None:
        """It went on after the kill, and died then: of what the kill had left open, or of something else."""
        last = self.verdict.kills[-1] if self.verdict.kills else None
        cause = Cause.OTHER if last is None or last.cause is not None else cause_of(text, last.cut)
        number, master, at = (last.number, last.master, last.at) if last else (0, "", 0.0)
        self.verdict.kills[-1:] = [
            Kill(number, master, at, last.cut if last else (), last.away_s if last else 0.0, None, cause, text)
        ]

    def _goes_on(self, query: Query, since: float) -> None:
        _, text = self._next(query, since)
        assert text is None, f"the query cannot be started: {text}"

    def _next(self, query: Query, since: float) -> tuple[float | None, str | None]:
        """The next batch of the sink after a moment, or the error by which the query died."""

        def seen() -> tuple[float | None, str | None] | None:
            text = query.died()
            if text is not None:
                return None, text
            return next(((at, None) for at in reversed(query.batches()) if at > since), None)

        found = until(seen, PATIENCE_S, "the query does not go on")
        assert found is not None
        return found


def _line(kill: Kill) -> str:
    told = f"kill {kill.number:3} {kill.master}: {len(kill.cut)} uploads open, away for {kill.away_s:.2f} s, "
    return told + (f"query went on after {kill.query_s:.2f} s" if kill.cause is None else f"died by {kill.cause.value}")
