"""``python -m tests.fault_table``: every cell simulated, and a part in real processes."""

from __future__ import annotations

import argparse
import errno
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.fault_table import real, simulated
from tests.fault_table.simulated import Trial
from tests.fault_table.table import cells
from tests.faultlog import put_section

TITLE = "System calls that fail"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fault_table", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    parser.add_argument("--simulated", action="store_true", help="no real processes")
    arguments = parser.parse_args()
    began = time.monotonic()
    trials = {"simulated": [simulated.try_cell(cell) for cell in cells()]}
    skipped = "not asked for" if arguments.simulated else real.why_not()
    if skipped is None:
        place = tempfile.TemporaryDirectory(prefix="bk-faults-")
        with place, real.Processes(real.build(Path(place.name))) as processes:
            trials["in real processes"] = [real.try_cell(cell, processes) for cell in real.real_cells()]
    else:
        print(f"SKIPPED: the real processes: {skipped}")
    text = document(trials)
    print(text)
    bad = [f"{how}: {trial}" for how, rows in trials.items() for trial in rows if not trial.is_good]
    print("\n".join(bad) or f"every cell is as it has to be ({time.monotonic() - began:.0f} s)")
    if arguments.write is not None:
        put_section(arguments.write, TITLE, text)
    return 1 if bad else 0


def document(trials: dict[str, list[Trial]]) -> str:
    """The section of the page."""
    lines = [
        "Made by `make fault-table`: one call fails, once or always, with one error, and the bookie's disk goes on,",
        "refuses adds, or stops; then it is started again.",
        "Simulated lives end by a power cut, real processes by their end.",
        "Cells that no call met are left out.",
    ]
    for how, rows in trials.items():
        met = [trial for trial in rows if trial.met]
        wrong = sum(not trial.is_good for trial in met)
        lines += ["", f"**{how}**: {len(met):,} cells, not as they have to be: {wrong or 'none'}.", ""]
        lines += table(met)
    return "\n".join(lines)


def table(trials: Sequence[Trial]) -> Iterable[str]:
    """A row for each call and error in each phase: how often what came of it."""
    rows: dict[tuple[str, str, str], Counter[str]] = {}
    for trial in trials:
        cell = trial.cell
        key = "in a start" if cell.starting else "while it serves", cell.call, errno.errorcode[cell.code]
        rows.setdefault(key, Counter())[trial.result.value] += 1
    yield "| When | Call | Error | What came of it |"
    yield "|---|---|---|---|"
    for (phase, call, code), results in sorted(rows.items()):
        told = ", ".join(f"{result} ({count})" for result, count in sorted(results.items()))
        yield f"| {phase} | {call} | {code} | {told} |"


if __name__ == "__main__":
    sys.exit(main())
