"""What the numbers of a bookie cost: adds with histograms and summaries that observe, and with those that do not.

    python -m benchmarks.metrics_cost

Instructions of one add are counted in a simulated cluster, whose every run is the same, once with a bookie's production
code as it is and once with observations that do nothing: the difference is what they cost, whatever else the machine
does. It is set beside what an add takes in real processes (:mod:`benchmarks.instructions`). In both halves there are
counters that are added to in place. Then the processor time of one page of ``/metrics`` is measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Final

from benchmarks.access import processor_s
from benchmarks.instructions import ROWS, CountedWork, count_simulated, missing
from benchmarks.processes import ROOT, BookieProcesses

WORK: Final = (
    (CountedWork("simulated-1", {"kind": "adds", "window": 1}, 200), "add-1-v3"),
    (CountedWork("simulated-1000", {"kind": "adds", "window": 1000}, 20_000), "add-1000-v3"),
)
"""What is counted, and the row of real processes that it stands for."""
PAGES: Final = 400
SILENCED: Final = """\
from bookkeeper import metrics

metrics.Histogram.observe = metrics.Summary.observe = lambda self, value, times=1: None
"""
"""What Python runs at the start of a process that observes nothing."""
_HEADROOM: Final = 1.1
"""A row's budget is what it takes, and so much more."""


def counted(directory: Path, *, observes: bool) -> list[float]:
    """The instructions of one add of each row, client and three bookies together."""
    directory.mkdir(parents=True)
    (directory / "sitecustomize.py").write_text("" if observes else SILENCED)
    os.environ["PYTHONPATH"] = f"{directory}:{ROOT}"
    return count_simulated([row for row, _ in WORK], directory)


def page_ms(directory: Path) -> float:
    """Milliseconds of the processor for one page of an idle bookie."""
    with BookieProcesses(directory, 1) as cluster:
        log = next(directory.glob("bookie-*.log")).read_text()
        address = f"http://{log.rpartition('http://')[2].split()[0].rstrip(',')}/metrics"
        urllib.request.urlopen(address).read()  # the first one loads the library
        before = processor_s(cluster.pids)
        for _ in range(PAGES):
            urllib.request.urlopen(address).read()
        return (processor_s(cluster.pids) - before) / PAGES * 1000


def main() -> None:
    """Print the table."""
    if lacking := missing("valgrind", "vgdb"):
        sys.exit(f"instructions cannot be counted here: {lacking}")
    budgets = {row.name: (row.client + row.bookies) / _HEADROOM for row in ROWS}
    with tempfile.TemporaryDirectory() as directory:
        on, off = (counted(Path(directory) / str(observes), observes=observes) for observes in (True, False))
        print("| add | observing, instructions | of an add in real processes | share |")
        print("|---|---|---|---|")
        for (_, real), more, less in zip(WORK, on, off, strict=True):
            whole = budgets[real]
            print(f"| {real} | {more - less:,.0f} | {whole:,.0f} | {100 * (more - less) / whole:.2f} % |")
        os.environ.pop("PYTHONPATH")
        print(f"a page of /metrics: {page_ms(Path(directory) / 'page'):.1f} ms of the processor")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd}: {error.stderr}")
