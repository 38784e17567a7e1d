"""The table of docs/spark.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tests.spark_table.scene import Mode
from tests.spark_table.trial import Outcome

TITLE: Final = "Modes that were compared with file://"

_HEAD: Final = (
    "`make spark-table` runs each mode of this table twice on unmodified PySpark 4.3 "
    "(Delta 4.4 on 4.2, Iceberg 1.12 on 4.1, the newest for which they are published): "
    "with all its directories behind a gateway on three bookies, and with `file://`.",
    "The driver is killed while it reads the third file of four, and goes on in a new process; "
    "then the last commit is removed, as if the driver had died just before it, "
    "and a third process repeats that batch.",
    "A mode is equal if both places have the same rows in each batch, the same results, "
    "the same offsets, commits and logs of sources and sinks for each batch, "
    "and the same files of state (unique names, times and addresses aside).",
    "`make test` draws four modes at times, with a namespace in a directory: "
    "the left outer join of streams, applyInPandasWithState, the file sink, and another one each time.",
)


def text(outcomes: Sequence[tuple[Mode, Outcome]], not_run: Sequence[str]) -> str:
    """Its section, in Markdown."""
    lines, equal, refused, every = list[str](), 0, 0, 0
    for mode, outcome in outcomes:
        every += 1
        equal += is_as_it_should_be(mode, outcome) and not outcome.error
        refused += is_as_it_should_be(mode, outcome) and bool(outcome.error)
        lines.append(f"| {mode.name} | {_batches(outcome)} | {said(mode, outcome)} |")
    count = f"Of {every} modes {equal} are equal, and {refused} are refused by Spark at both places."
    rest = [f"Not run: {'; '.join(not_run)}."] if not_run else []
    return "\n".join(
        [*_HEAD, count, *rest, "", "| mode | batches; crash in | at the gateway |", "|---|---|---|", *lines]
    )


def is_as_it_should_be(mode: Mode, outcome: Outcome) -> bool:
    """Whether the places are equal, and whoever is refused is refused for a reason that is known."""
    return outcome.is_equal and (not outcome.error or bool(mode.reason))


def said(mode: Mode, outcome: Outcome) -> str:
    """What came of a mode, in words."""
    if not outcome.is_equal:
        found = f"**differs**: {outcome.differences[0]}"
    elif not outcome.error:
        found = "equal"
    elif mode.reason:
        found = f"refused as with `file://`: `{outcome.error}`"
    else:
        found = f"**fails at both places**: `{outcome.error}`"
    return f"{found}. {mode.reason}" if mode.reason else found


def _batches(outcome: Outcome) -> str:
    return f"{outcome.batches}; {'-' if outcome.crashed_in is None else outcome.crashed_in}"
