"""Kills the gateway under a query, and watches: one that is started again, or the active one of a pair."""

from __future__ import annotations

import importlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Any, Final, Self

from bookkeeper.launchers.machine_speed import stretch
from examples.demo_kit.worker_python import worker_python
from spark_wal.service import spark_conf
from spark_wal.webhdfs.contents.upload_log import CutUpload, cut
from tests.integration.processes import Bookies, Process, bookies, end_with_parent, free_port, until
from tests.kills.prober import Prober
from tests.kills.verdict import Cause, Kill, Verdict, cause_of, read_kills, written_kills
from tests.spark_wal.processes import ROOT, conf

SPREAD_S: Final = 1.5
"""A kill comes so long, at most, after the query was seen to go on."""

PATIENCE_S: Final = 120.0


class GatewayUnderFire:
    """A gateway process that notes its uploads down."""

    def __init__(self, home: Path, cluster: Bookies, name: str = "gateway") -> None:
        self.port = free_port()
        self._record = home / f"{name}.uploads"
        words = ["gateway", "webhdfs", "--metadata", cluster.uri, "--listen", f"127.0.0.1:{self.port}"]
        self.process = Process(name, home, *words, "--upload-log", str(self._record))

    def start(self) -> None:
        self.process.start()

    def kill(self) -> tuple[CutUpload, ...]:
        """kill -9; what it had not answered by its own record."""
        self.process.kill()
        return tuple(cut(self._record.read_bytes().splitlines(keepends=True)))

    def owns(self) -> bool:
        """Whether it says that it serves the namespace."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=10 * stretch()) as reply:
                return bool(json.load(reply)["role"] == "owner")
        except OSError:
            return False


class Gateways:
    """All gateways of the namespace: one, or a pair."""

    def __init__(self, home: Path, cluster: Bookies, *, pair: bool) -> None:
        names = ["first", "second"] if pair else ["gateway"]
        self.each = [GatewayUnderFire(home, cluster, name) for name in names]
        self._gone: GatewayUnderFire | None = None

    def start(self) -> None:
        for gateway, said in zip(self.each, (r"serves namespace", r"stands by"), strict=False):
            gateway.start()
            gateway.process.until_said(said)

    @property
    def ports(self) -> list[int]:
        return [gateway.port for gateway in self.each]

    @property
    def host(self) -> str:
        """What stands in locations."""
        return "ckpt" if len(self.each) > 1 else f"127.0.0.1:{self.ports[0]}"

    def settings(self) -> dict[str, str]:
        """What Spark must be told of a pair."""
        if len(self.each) == 1:
            return {}
        return spark_conf("webhdfs://ckpt/", gateways=[f"127.0.0.1:{port}" for port in self.ports])

    def active(self) -> GatewayUnderFire:
        """The one that serves."""
        if len(self.each) == 1:
            return self.each[0]
        found = until(lambda: next((each for each in self.each if each.owns()), None), PATIENCE_S, "an owner")
        assert found is not None
        return found

    def kill(self, active: GatewayUnderFire) -> tuple[CutUpload, ...]:
        """A single one is started again at once; of a pair the other one takes over."""
        open_then = active.kill()
        if len(self.each) > 1:
            self._gone = active
        else:
            active.start()
        return open_then

    def complete(self) -> None:
        """The pair is one again."""
        if self._gone is not None:
            self._gone.start()
            self._gone.process.until_said(r"stands by")
            self._gone = None

    def end(self) -> None:
        for gateway in self.each:
            gateway.process.kill()


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
                "PYSPARK_PYTHON": worker_python(sys.executable, home),
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
    """So many kills, shared out over queries one after the other.

    Args:
        home: has the logs, and the kills that were done; with it a trial that was ended goes on.
        pair: two gateways, of which the active one is killed.
    """

    def __init__(
        self,
        home: Path,
        seed: int,
        settings: dict[str, str] | None = None,
        tell: Callable[[str], None] = lambda line: None,
        *,
        pair: bool = False,
    ) -> None:
        home.mkdir(parents=True, exist_ok=True)
        self._kills, former = home / "kills.json", sorted(home.glob("run-*"))
        self._home = home / f"run-{len(former):03}"
        self._home.mkdir()
        self._rng = Random(f"{seed}/{len(former)}")
        self._settings = conf() if settings is None else settings
        self._tell, self._pair = tell, pair
        self.verdict = Verdict()
        if self._kills.exists():
            self.verdict.kills = read_kills(self._kills.read_text())
        for sink in [sink for run in former for sink in sorted(run.glob("*.sink"))]:
            whole = [line for line in sink.read_text().splitlines(keepends=True) if line.endswith("\n")]
            self.verdict.take_sink(f"{sink.parent.name}/{sink.stem}", whole)

    def run(self, kills: int, masters: Sequence[str]) -> Verdict:
        kills -= len(self.verdict.kills)
        if kills <= 0:
            return self.verdict
        with bookies(self._home) as cluster:
            gateways = Gateways(self._home, cluster, pair=self._pair)
            try:
                gateways.start()
                with Prober(gateways.ports) as prober:
                    for number, master in enumerate(masters):
                        share = kills * (number + 1) // len(masters) - kills * number // len(masters)
                        self._under_query(gateways, prober, master, share)
            finally:
                gateways.end()
        return self.verdict

    def _under_query(self, gateways: Gateways, prober: Prober, master: str, kills: int) -> None:
        name = f"query-{len(self.verdict.kills)}"
        location = f"webhdfs://{gateways.host}/{name}"
        with Query(self._home, name, location, master, gateways.settings() | self._settings) as query:
            began = time.monotonic()
            self._goes_on(query, began)
            for _ in range(kills):
                kill = self._kill(gateways, prober, query, master)
                self.verdict.kills.append(kill)
                self._kills.write_text(written_kills(self.verdict.kills))
                self._tell(_line(kill))
            query.stop()
            self.verdict.take_sink(name, query.sink.read_text().splitlines())

    def _kill(self, gateways: Gateways, prober: Prober, query: Query, master: str) -> Kill:
        number = len(self.verdict.kills) + 1
        gateways.complete()
        time.sleep(self._rng.uniform(0, SPREAD_S))
        text = query.died()
        if text is not None:
            self._late_death(text)
            query.again()
            self._goes_on(query, time.monotonic())
        active, at = gateways.active(), time.monotonic()
        open_then = gateways.kill(active)
        answered = until(lambda: prober.answered_after(at), PATIENCE_S, "no gateway answers")
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
