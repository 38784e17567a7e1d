"""The same result in batch, compared row by row.

    python -m examples.flights.verdict --data DIR --sink FILE

Spark reads all files once, without a stream, without state and without a checkpoint. What the stream
has left in the sink must be exactly that.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from examples.flights.sink import DailyDelays, Sink


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the comparison found."""

    rows: int
    """Flights in the batch result."""
    groups: int
    batches: int
    replayed: int
    """Batches that were begun more than once."""
    differences: tuple[str, ...]
    """One line a group that differs; at most 20 are kept."""
    differing: int
    """Groups that differ, and batches that contradicted themselves."""
    missed: tuple[str, ...] = ()
    """What the story wanted to do, and did not."""

    @property
    def exactly_once(self) -> bool:
        return self.differing == 0

    @property
    def good(self) -> bool:
        return self.exactly_once and not self.missed

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong, as lines for people."""
        return (*self.missed, *self.differences)


def compare(
    expected: dict[tuple[str, str, str], DailyDelays], found: dict[tuple[str, str, str], DailyDelays]
) -> list[str]:
    """One line for every group that is missing, too much, or has other numbers."""
    lines = []
    for key in sorted(expected.keys() | found.keys()):
        want, have = expected.get(key), found.get(key)
        if want != have:
            lines.append(f"{' '.join(key)}: batch {_numbers(want)}, stream {_numbers(have)}")
    return lines


def _numbers(row: DailyDelays | None) -> str:
    if row is None:
        return "nothing"
    return f"{row.flights} flights, {row.delays} delays of {row.delay_sum} minutes, worst {row.worst}"


def judge(data: str, sink: Sink) -> Verdict:
    """Run the batch query and compare."""
    from examples.flights.job import SCHEMA, by_day, session

    spark = session("flights-verdict", {})
    rows = [DailyDelays(*row) for row in by_day(spark.read.schema(SCHEMA).parquet(data)).collect()]
    spark.stop()
    expected = {(row.day, row.carrier, row.origin): row for row in rows}
    lines = [f"batch {batch} came again with other rows" for batch in sink.contradictions()]
    lines += compare(expected, sink.latest())
    return Verdict(
        rows=sum(row.flights for row in rows),
        groups=len(expected),
        batches=sink.batches(),
        replayed=sink.replayed(),
        differences=tuple(lines[:20]),
        differing=len(lines),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the stream's result with the same query in batch.")
    parser.add_argument("--data", required=True)
    parser.add_argument("--sink", required=True, type=Path)
    arguments = parser.parse_args()
    verdict = judge(arguments.data, Sink(arguments.sink))
    print(json.dumps(asdict(verdict)))
    return 0 if verdict.exactly_once else 1


if __name__ == "__main__":
    sys.exit(main())
