"""The table of docs/spark.md."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tests.spark_table.scene import Mode
from tests.spark_table.trial import Outcome

TITLE: Final = "Modes that were compared with file://"

_HEAD: Final = (
    "`make spark-table` runs each mode of this table twice on unmodified PySpark: "
    "with all its directories behind a gateway on three bookies, and with `file://`.",
    "The driver is killed while it reads the third file of five, and goes on in a new process; "
    "then the last commit is removed, as if the driver had died just before it, "
    "and a third process repeats that batch.",
    "A mode is equal if both places have the same rows in each batch, the same results, "
    "the same offsets, commits and logs of sources and sinks for each batch, "
    "and the same files of state (unique names, times and addresses aside).",
)


def text(outcomes: Iterable[tuple[Mode, Outcome]], sparks: Iterable[str]) -> str:
    """Its section, in Markdown."""
    lines, equal, every = list[str](), 0, 0
    for mode, outcome in outcomes:
        every += 1
        equal += outcome.is_equal
        lines.append(f"| {mode.name} | {_batches(outcome)} | {said(mode, outcome)} |")
    head = [*_HEAD, f"{equal} of {every} modes are equal ({', '.join(sparks)}).", ""]
    return "\n".join([*head, "| mode | batches; crash in | at the gateway |", "|---|---|---|", *lines])


def said(mode: Mode, outcome: Outcome) -> str:
    """What came of a mode, in words."""
    if not outcome.is_equal:
        return f"**differs**: {outcome.differences[0]}" + (f" {mode.reason}" if mode.reason else "")
    if outcome.error:
        return f"as `file://`, refused: `{outcome.error}`. {mode.reason}".rstrip()
    return f"equal. {mode.reason}".rstrip(". ") if mode.reason else "equal"


def _batches(outcome: Outcome) -> str:
    return f"{outcome.batches}; {'-' if outcome.crashed_in is None else outcome.crashed_in}"
