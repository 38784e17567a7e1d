"""Results by batch id, in one SQLite file: a batch that comes twice leaves what it left once.

Each batch replaces its own rows in one transaction, so the sink is idempotent by batch id and by
nothing else: it does not know keys it has seen, and drops no duplicates. What a batch brings are the
running counts of Spark's state; were a batch's rows counted twice there, the numbers here would be
too high and the verdict would say so.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_SCHEMA = """
CREATE TABLE IF NOT EXISTS begun (batch INTEGER, driver TEXT);
CREATE TABLE IF NOT EXISTS result (
    batch INTEGER, day TEXT, carrier TEXT, origin TEXT,
    flights INTEGER, delays INTEGER, delay_sum INTEGER, worst INTEGER
);
CREATE INDEX IF NOT EXISTS result_batch ON result (batch);
"""


class Row(NamedTuple):
    """The state of one group after a batch. Delays in minutes; ``worst`` is None where no flight left."""

    day: str
    carrier: str
    origin: str
    flights: int
    delays: int
    delay_sum: int | None
    worst: int | None


class Sink:
    """The results of one query. Opened anew by every driver."""

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.executescript(_SCHEMA)

    def begin(self, batch: int, driver: str) -> None:
        """Note that ``driver`` has begun to run ``batch``."""
        self._db.execute("INSERT INTO begun VALUES (?, ?)", (batch, driver))

    def replace(self, batch: int, rows: Iterable[Row]) -> None:
        """Make ``rows`` what ``batch`` has brought, whatever it brought before."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            self._db.execute("DELETE FROM result WHERE batch = ?", (batch,))
            self._db.executemany("INSERT INTO result VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [(batch, *row) for row in rows])
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def latest(self) -> dict[tuple[str, str, str], Row]:
        """The last state of every group, by (day, carrier, origin)."""
        rows = self._db.execute(
            "SELECT day, carrier, origin, flights, delays, delay_sum, worst FROM result ORDER BY batch"
        )
        return {(row[0], row[1], row[2]): Row(*row) for row in rows}

    def batches(self) -> int:
        """How many batches have left results."""
        return int(self._db.execute("SELECT count(DISTINCT batch) FROM result").fetchone()[0])

    def replayed(self) -> int:
        """How many batches were begun more than once."""
        return int(
            self._db.execute(
                "SELECT count(*) FROM (SELECT batch FROM begun GROUP BY batch HAVING count(*) > 1)"
            ).fetchone()[0]
        )

    def close(self) -> None:
        self._db.close()
