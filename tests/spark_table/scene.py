"""What a mode works with, in the driver's process."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.spark_table.input_files import HELD, SCHEMA

_LOOK_S: Final = 0.02


class Scene:
    """One mode at one place in one life of its driver."""

    def __init__(self, spark: Any, life: int, base: str, inputs: Path, out: Path) -> None:
        """``base``: the mode's directory at the place, as Spark names it. ``out``: where it tells what it has seen."""
        self.spark = spark
        self.life = life
        self.base = base
        self.out = out
        self._inputs = inputs
        out.mkdir(parents=True, exist_ok=True)

    @property
    def location(self) -> str:
        """Of the checkpoint."""
        return self.at("checkpoint")

    def at(self, name: str) -> str:
        """A directory beside the checkpoint."""
        return f"{self.base}/{name}"

    def rows(self, side: str = "left", **options: Any) -> Any:
        """The input as a stream, a file in each batch. In the first life its third batch is not read to its end."""
        return self.held(self.files(f"file://{self._inputs / side}", **options))

    def files(self, directory: str, **options: Any) -> Any:
        """Files of a directory as a stream."""
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).options(**options)
        return reader.json(directory)

    def table(self, side: str) -> Any:
        """The whole input as a table."""
        return self.spark.read.schema(SCHEMA).json(f"file://{self._inputs / side}")

    def input_text(self, side: str, batch: int) -> str:
        """A file of the input."""
        return (self._inputs / side / f"{batch}.json").read_text()

    def held(self, rows: Any) -> Any:
        """The same rows; in the first life the third batch never ends."""
        from pyspark.sql import functions as f

        mark = str(self._mark) if self.life == 0 else None

        @f.udf("boolean")  # type: ignore[untyped-decorator]
        def goes_on(batch: int) -> bool:
            if mark is not None and batch == HELD:
                Path(mark).touch()
                daemon = os.getppid()
                while os.getppid() == daemon:
                    time.sleep(_LOOK_S)
            return True

        return rows.where(goes_on("batch"))

    @property
    def _mark(self) -> Path:
        return self.out / "held"

    def to_batches(self, rows: Any, mode: str = "append", **options: Any) -> Any:
        """Run a query whose sink notes the rows of each batch."""
        return self.run(rows.writeStream.outputMode(mode).foreachBatch(self.take).options(**options))

    def run(self, writer: Any) -> Any:
        """Start a query on the mode's checkpoint; until its end, or until the batch is held."""
        query = writer.option("checkpointLocation", self.location).start()
        self.wait(query)
        return query

    def wait(self, query: Any) -> None:
        """Until all of the input is processed; in the first life until the batch is held."""
        if self.life > 0:
            query.processAllAvailable()
            query.stop()
            return
        while not self._mark.exists():
            if not query.isActive:
                query.awaitTermination()
                raise AssertionError("the query ended before its third batch")
            time.sleep(_LOOK_S)

    def take(self, rows: Any, batch: int) -> None:
        """A sink: note the rows of a batch. A repetition with other rows is noted, too."""
        found = plain(rows)
        path = self.out / f"batch.{batch}"
        if path.exists() and json.loads(path.read_text()) != found:
            self.see(f"batch {batch} when it was repeated", found)
        put(path, found)

    def see(self, what: str, value: Any) -> None:
        """Note something that must be equal at both places. A frame counts by its rows."""
        put(self.out / f"seen.{what}", plain(value) if hasattr(value, "collect") else value)


@dataclass(frozen=True)
class Mode:
    """A row of the table."""

    name: str
    run: Callable[[Scene], None]
    conf: Mapping[str, str]
    """Settings of the session while it runs."""
    lake: bool = False
    """It needs jars, and the Spark for which they are published."""
    commits_again: bool = True
    """Whether the last commit is removed after the second life."""
    reason: str = ""
    """What is said of it in the table."""


MODES: dict[str, Mode] = {}
"""All of them, in the table's order."""


def mode(
    name: str, *, conf: Mapping[str, str] | None = None, lake: bool = False, again: bool = True, reason: str = ""
) -> Callable[[Callable[[Scene], None]], Callable[[Scene], None]]:
    """Make a mode of a function."""

    def add(run: Callable[[Scene], None]) -> Callable[[Scene], None]:
        assert name not in MODES, name
        MODES[name] = Mode(name, run, conf or {}, lake, again, reason)
        return run

    return add


def plain(rows: Any) -> list[Any]:
    """The rows of a frame, sorted, as JSON has them."""
    found = json.loads(json.dumps([row.asDict(recursive=True) for row in rows.collect()], default=str))
    return sorted(found, key=lambda row: json.dumps(row, sort_keys=True))


def put(path: Path, value: Any) -> None:
    """Write a file at once."""
    part = path.with_name(f".{path.name}")
    part.write_text(json.dumps(value, default=str))
    part.rename(path)
