"""What a mode works with, in the driver's process."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.spark_table.input_files import HELD, SCHEMA

_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
ROCKSDB: Final = {"spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider"}
CHANGELOG: Final = {**ROCKSDB, "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}
FILE_CONTEXT: Final = {
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_STREAMING}.checkpointing.FileContextBasedCheckpointFileManager"
    )
}
_LOOK_S: Final = 0.05


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

    def name(self, word: str) -> str:
        """A table's or a query's name that no other scene of the session has."""
        return f"{word}_{self.base.partition(':')[0]}"

    def inputs(self, side: str) -> str:
        """Where the files of the input are."""
        return f"file://{self._inputs / side}"

    def rows(self, side: str = "left", **options: Any) -> Any:
        """The input as a stream, a file in each batch. In the first life its third file is not read to its end."""
        return self.held(self.files(self.inputs(side), **options))

    def files(self, directory: str, **options: Any) -> Any:
        """Files of a directory as a stream."""
        reader = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).options(**options)
        return reader.json(directory)

    def table(self, side: str) -> Any:
        """The whole input as a table."""
        return self.spark.read.schema(SCHEMA).json(self.inputs(side))

    def put_inputs(self, name: str) -> None:
        """Have the input at the place, too, once; in the order of its files."""
        if self.life > 0:
            return
        for path in sorted((self._inputs / "left").iterdir()):
            with self._store(name) as store:
                store.write(path.name, partial(_parts, path))
            if self.base.startswith("file:"):
                there = Path(self.at(name).removeprefix("file://")) / path.name
                os.utime(there, (path.stat().st_mtime, path.stat().st_mtime))

    def names(self, name: str) -> list[str]:
        """The files below a directory beside the checkpoint."""
        from spark_wal.checkpoint_copy.contents import belongs

        with self._store(name) as store:
            found = store.listing()
        return sorted(path for path in found if belongs(path, found))

    def _store(self, name: str) -> Any:
        # imported here: where another Spark runs, there is nothing else of ours
        from spark_wal.checkpoint_copy.open_store import open_store
        from spark_wal.spark_access import GatewayAccess

        return closing(open_store(self.at(name), GatewayAccess()))

    def held(self, rows: Any) -> Any:
        """The same rows; in the first life the third file's never come."""
        wait_ms = 3_600_000 if self.life == 0 else 0
        held = f"CAST(CASE WHEN batch = {HELD} THEN {wait_ms} ELSE 0 END AS BIGINT)"
        return rows.where(f"reflect('java.lang.Thread', 'sleep', {held}) IS NOT NULL")

    def to_batches(self, rows: Any, mode: str = "append", **options: Any) -> Any:
        """Run a query whose sink notes the rows of each batch."""
        return self.run(rows.writeStream.outputMode(mode).foreachBatch(self.take).options(**options))

    def run(self, writer: Any, *, ends: bool = False, held_in: int = HELD) -> Any:
        """Start a query on the mode's checkpoint; until it has no more to do, or until a batch is held.

        ``ends``: its trigger ends it. ``held_in``: the batch.
        """
        query = writer.option("checkpointLocation", self.location).start()
        if ends and self.life > 0:
            query.awaitTermination()
        else:
            self.wait(query, self.location, held_in)
        return query

    def run_to(self, writer: Any, table: str) -> None:
        """The same into a table."""
        self.wait(writer.option("checkpointLocation", self.location).toTable(table), self.location)

    def run_side_by_side(self, writers: list[Any], table: str | None = None) -> None:
        """Queries that run at the same time, each with a checkpoint of its own; the first has the mode's."""
        places = [self.location, *(self.at(f"checkpoint-{number}") for number in range(1, len(writers)))]
        queries = []
        for writer, place in zip(writers, places, strict=True):
            begun = writer.option("checkpointLocation", place)
            queries.append(begun.start() if table is None else begun.toTable(table))
        for query, place in zip(queries, places, strict=True):
            self.wait(query, place)

    def wait(self, query: Any, checkpoint: str, held_in: int = HELD) -> None:
        """Until all of the input is processed; in the first life until the held batch is planned."""
        if self.life > 0:
            query.processAllAvailable()
            query.stop()
            return
        while not is_there(f"{checkpoint}/offsets/{held_in}"):
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
    lake: str = ""
    """The kind of tables for which it needs a jar, and the Spark for which that is published; empty: none."""
    commits_again: bool = True
    """Whether the last commit is removed after the second life."""
    reason: str = ""
    """What is said of it in the table."""


MODES: dict[str, Mode] = {}
"""All of them, in the table's order."""


def mode(
    name: str, *, conf: Mapping[str, str] | None = None, lake: str = "", again: bool = True, reason: str = ""
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


def is_there(uri: str) -> bool:
    """Whether a file is there, in a directory or behind a gateway."""
    if uri.startswith("file://"):
        return Path(uri.removeprefix("file://")).exists()
    host, _, path = uri.removeprefix("webhdfs://").partition("/")
    try:
        urllib.request.urlopen(f"http://{host}/webhdfs/v1/{path}?op=GETFILESTATUS", timeout=60).close()
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        return False
    return True


def _parts(path: Path) -> list[bytes]:
    return [path.read_bytes()]


def put(path: Path, value: Any) -> None:
    """Write a file at once."""
    part = path.with_name(f".{path.name}")
    part.write_text(json.dumps(value, default=str))
    part.rename(path)
