"""Results by batch id, in one SQLite file: a batch that comes twice leaves what it left once.

The sink is idempotent by batch id and by nothing else: it does not know keys it has seen and drops no
duplicates. The first time a batch id comes, its rows are taken in one transaction. When it comes again
the rows are *compared*: a replay must bring the very same ones. One that does not is noted as a
contradiction, and the first rows stay.

What a batch brings are the running counts of Spark's state. Were a batch's rows counted twice there,
or not at all, the numbers here would be wrong and the verdict would say so.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from bookkeeper.launchers.machine_speed import stretch

_SCHEMA = """
CREATE TABLE IF NOT EXISTS begun (batch INTEGER, driver TEXT);
CREATE TABLE IF NOT EXISTS taken (batch INTEGER PRIMARY KEY, content TEXT);
CREATE TABLE IF NOT EXISTS contradiction (batch INTEGER, content TEXT);
CREATE TABLE IF NOT EXISTS result (
    batch INTEGER, day TEXT, carrier TEXT, origin TEXT,
    flights INTEGER, delays INTEGER, delay_sum INTEGER, worst INTEGER
);
"""


class DailyDelays(NamedTuple):
    """The state of one group after a batch. Delays in minutes; ``worst`` is None where no flight left."""

    day: str
    carrier: str
    origin: str
    flights: int
    delays: int
    delay_sum: int | None
    worst: int | None


class Sink:
    """The results of one query. Opened anew by every driver; drivers may be several."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=30 * stretch(), isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.executescript(_SCHEMA)

    def begin(self, batch: int, driver: str) -> None:
        """Note that ``driver`` has begun to run ``batch``."""
        self._db.execute("INSERT INTO begun VALUES (?, ?)", (batch, driver))

    def take(self, batch: int, rows: Iterable[DailyDelays]) -> None:
        """Take what ``batch`` brings; if it came before, compare instead."""
        ordered = sorted(tuple(row) for row in rows)
        content = hashlib.sha256(json.dumps(ordered).encode()).hexdigest()
        self._db.execute("BEGIN IMMEDIATE")
        try:
            before = self._db.execute("SELECT content FROM taken WHERE batch = ?", (batch,)).fetchone()
            if before is None:
                self._db.execute("INSERT INTO taken VALUES (?, ?)", (batch, content))
                self._db.executemany(
                    "INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [(batch, *row) for row in ordered]
                )
            elif before[0] != content:
                self._db.execute("INSERT INTO contradiction VALUES (?, ?)", (batch, content))
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def latest(self) -> dict[tuple[str, str, str], DailyDelays]:
        """The last state of every group, by (day, carrier, origin)."""
        rows = self._db.execute(
            "SELECT day, carrier, origin, flights, delays, delay_sum, worst FROM result ORDER BY batch"
        )
        return {(row[0], row[1], row[2]): DailyDelays(*row) for row in rows}

    def batches(self) -> int:
        """How many batches were taken."""
        return self._count("SELECT count(*) FROM taken")

    def replayed(self) -> int:
        """How many batches were begun more than once."""
        return self._count("SELECT count(*) FROM (SELECT batch FROM begun GROUP BY batch HAVING count(*) > 1)")

    def contradictions(self) -> list[int]:
        """Batches that came again with other rows."""
        return [int(batch) for (batch,) in self._db.execute("SELECT DISTINCT batch FROM contradiction ORDER BY batch")]

    def _count(self, query: str) -> int:
        return int(self._db.execute(query).fetchone()[0])

    def close(self) -> None:
        self._db.close()
