"""What a stream has of the batches: lost, or twice (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby


@dataclass
class Verdict:
    """What was found."""

    batches: int = 0
    rows: int = 0
    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return not self.lost and not self.twice


def judge(values: Iterable[bytes], last: int, tasks: int) -> Verdict:
    """Compare the values of a stream, in order, with batches 0 to ``last``: each is there once, whole, by one run."""
    found = Verdict()
    seen: set[int] = set()
    lines = (value.split(b" ", 3)[:3] for value in values)
    for (batch, run), own in groupby(
        ((int(line[0]), line[1].decode(), line[2]) for line in lines), lambda each: each[:2]
    ):
        rows = [each[2].decode() for each in own]
        if batch in seen:
            found.twice.append(f"batch {batch} again, by run {run}")
        elif batch != found.batches:
            found.lost.append(f"batch {batch} comes where batch {found.batches} should")
        seen.add(batch)
        count = int(rows[0].partition("/")[2])
        wanted = [f"{task}.{row}/{count}" for task in range(tasks) for row in range(count)]
        if rows != wanted:
            kind = found.twice if len(rows) > len(set(rows)) else found.lost
            kind.append(f"batch {batch} of run {run} has {len(rows)} rows of {len(wanted)}, or in another order")
        found.batches, found.rows = batch + 1, found.rows + len(rows)
    found.lost += [f"batch {batch} is missing" for batch in range(last + 1) if batch not in seen]
    return found
