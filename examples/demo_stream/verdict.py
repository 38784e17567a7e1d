"""Whether every record that was acknowledged is there exactly once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from examples.demo_stream.readers import ReadCheck


@dataclass(slots=True)
class StreamVerdict:
    """What the comparison found."""

    appended: int = 0
    """Records that were acknowledged, each counted once."""
    read: int = 0
    """Records that the tails have read."""
    refused: int = 0
    """Records that were sent again, and answered with the place where they are."""
    gaps: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        return not self.problems


def judge(
    acknowledged: dict[str, int], refused: int, tails: Sequence[tuple[ReadCheck, Sequence[str]]], others: Sequence[str]
) -> StreamVerdict:
    """Compare what was acknowledged with what was read.

    Args:
        acknowledged: how many records of each producer, from the first on.
        tails: each reader that has read its stream from the beginning, and the producers of that stream.
        others: what else is wrong.
    """
    verdict = StreamVerdict(sum(acknowledged.values()), refused=refused, problems=list(others))
    for check, producers in tails:
        verdict.problems += check.problems({producer: acknowledged[producer] for producer in producers})
        verdict.gaps += len(check.gaps)
    by_name = {check.name: check for check, _ in tails}
    verdict.read = sum(check.read for name, check in by_name.items() if name.startswith("tail"))
    return verdict
