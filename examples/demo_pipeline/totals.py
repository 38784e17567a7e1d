"""What the second stream says of each group, and whether it says it once.

A record is the state of one group after a batch. A batch changes a group only by flights that it adds, so the count of
flights in the records of one group must grow from record to record: a batch that is there twice repeats a count, one
that came late falls behind it, and one that is missing is missing in the last record.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

from examples.flights.sink import DailyDelays

FLIGHTS: Final = "pipeline/flights"
"""The stream of flights."""
TOTALS: Final = "pipeline/totals"
"""The stream of results."""

Group = tuple[str, str, str]
"""Day, carrier, origin."""


@dataclass(slots=True)
class PipelineTotals:
    """The last state of each group, and what contradicts it."""

    latest: dict[Group, DailyDelays] = field(default_factory=dict)
    records: int = 0
    repeated: list[str] = field(default_factory=list)
    """One line for each record that does not go beyond the one before it."""

    def take(self, value: bytes) -> None:
        """Take the next record of the stream."""
        found = json.loads(value)
        row = DailyDelays(*(found.get(name) for name in DailyDelays._fields))
        group = (row.day, row.carrier, row.origin)
        before = self.latest.get(group)
        if before is not None and row.flights <= before.flights:
            self.repeated.append(f"{' '.join(group)}: {row.flights} flights come after {before.flights}")
        self.latest[group] = row
        self.records += 1
