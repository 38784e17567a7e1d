"""One driver: ``python -m tests.sink_kills.driver '{"metadata": ..., "stream": ..., "home": ..., ...}'``."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pyarrow as pa
from pyspark.sql import types as t

from spark_wal.data_source.options import WriteSettings
from spark_wal.data_source.sink import BatchSink, StreamSink

TASKS = 3
SCHEMA = t.StructType([t.StructField("value", t.BinaryType())])


@dataclass(frozen=True)
class Life:
    """What the process is told."""

    metadata: str
    stream: str
    home: str
    run: str
    after_batches: int = 0
    """Only behind so many batches the end comes."""
    after_ms: int | None = None
    """So long after that, wherever it is; None: between the publication of the next batch and its commit log."""
    until: int | None = None
    """End in good order when this batch is committed."""
    ignore_key: bool = False
    """A planted bug: the batch is published without its key."""


def rows_of(run: str, batch: int, task: int) -> list[bytes]:
    """The rows of a task; another run has others, and another number of them."""
    rng = Random(f"{run}/{batch}")
    count, size = rng.randrange(1, 40), rng.choice((0, 0, 5_000))
    return [b"%d %s %d.%d/%d " % (batch, run.encode(), task, row, count) + bytes(size) for row in range(count)]


def die() -> None:
    """As a machine's loss: nothing is said to anybody."""
    os.kill(os.getpid(), signal.SIGKILL)


def last_of(log: Path) -> int:
    """The greatest number in a log; -1 if it is empty."""
    return max((int(each.name) for each in log.iterdir() if each.name.isdigit()), default=-1)


def note(log: Path, batch: int) -> None:
    """Put a number into a log, durably."""
    part = log / f".{batch}"
    with part.open("w") as file:
        os.fsync(file.fileno())
    part.rename(log / str(batch))


def live(life: Life) -> None:
    """Run batches, as Spark does, until the end."""
    home, settings = Path(life.home), WriteSettings(metadata=life.metadata, stream=life.stream)
    offsets, commits = home / "offsets", home / "commits"
    for log in (offsets, commits):
        log.mkdir(parents=True, exist_ok=True)
    batch, done = last_of(commits) + 1, 0
    while life.until is None or batch <= life.until:
        note(offsets, batch)
        if done == life.after_batches and life.after_ms is not None:
            threading.Timer(life.after_ms / 1000, die).start()
        planned = StreamSink(settings, SCHEMA)
        told = []
        for task in range(TASKS):
            table = pa.record_batch({"value": pa.array(rows_of(life.run, batch, task), pa.binary())})
            told.append(planned.write(iter([table])))
            told[-1].partition, told[-1].query = task, "query"
        if life.ignore_key:
            BatchSink(settings, SCHEMA).commit([*told])
        else:
            StreamSink(settings, SCHEMA).commit([*told], batch)
        if done == life.after_batches and life.after_ms is None and life.until is None:
            die()
        note(commits, batch)
        batch, done = batch + 1, done + 1


if __name__ == "__main__":
    live(Life(**json.loads(sys.argv[1])))
