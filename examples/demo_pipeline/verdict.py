"""The same result in batch, compared with the stream of results.

    python -m examples.demo_pipeline.verdict --data DIR --metadata URI

Spark reads the files of flights once, without a stream, without state and without a checkpoint. What the last record
of each group says must be exactly that, and no group may have a record twice.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass

from examples.demo_kit.slow_machine import client_config
from examples.demo_pipeline.totals import TOTALS, PipelineTotals
from examples.flights.sink import DailyDelays
from examples.flights.verdict import compare
from segments import StoredRecord, sync

_KEPT = 20


@dataclass(frozen=True, slots=True)
class PipelineVerdict:
    """What the comparison found."""

    rows: int = 0
    """Flights in the batch result."""
    groups: int = 0
    records: int = 0
    """Records of the stream of results."""
    twice: int = 0
    """Records that do not go beyond the one before them."""
    differing: int = 0
    """Groups whose last record is not what the batch says."""
    lines: tuple[str, ...] = ()
    """What is wrong, a line each; at most 20 are kept of each kind."""
    others: tuple[str, ...] = ()
    """What else went wrong."""

    @property
    def good(self) -> bool:
        return self.rows > 0 and not self.twice and not self.differing and not self.others

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that is wrong, as lines for people."""
        return (*self.others, *self.lines)


def judged(expected: dict[tuple[str, str, str], DailyDelays], totals: PipelineTotals) -> PipelineVerdict:
    """Compare the two results."""
    differences = compare(expected, totals.latest)
    return PipelineVerdict(
        rows=sum(row.flights for row in expected.values()),
        groups=len(expected),
        records=totals.records,
        twice=len(totals.repeated),
        differing=len(differences),
        lines=(*totals.repeated[:_KEPT], *differences[:_KEPT]),
    )


def read_totals(metadata: str) -> PipelineTotals:
    """Read the stream of results with the library."""
    totals = PipelineTotals()
    with sync.connect(metadata, config=client_config()) as namespace, namespace.open(TOTALS).read() as reader:
        for record in reader:
            assert isinstance(record, StoredRecord), "gaps are raised"
            totals.take(record.value)
    return totals


def in_batch(data: str) -> dict[tuple[str, str, str], DailyDelays]:
    """The result in batch."""
    from examples.flights.job import SCHEMA, by_day, session

    spark = session("pipeline-verdict", {})
    rows = [DailyDelays(*row) for row in by_day(spark.read.schema(SCHEMA).parquet(data)).collect()]
    spark.stop()
    return {(row.day, row.carrier, row.origin): row for row in rows}


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the stream of results with the same query in batch.")
    parser.add_argument("--data", required=True)
    parser.add_argument("--metadata", required=True)
    arguments = parser.parse_args()
    verdict = judged(in_batch(arguments.data), read_totals(arguments.metadata))
    print(json.dumps(asdict(verdict)))
    return 0 if verdict.good else 1


if __name__ == "__main__":
    sys.exit(main())
