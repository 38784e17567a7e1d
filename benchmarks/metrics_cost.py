"""What the numbers of a bookie cost: adds with histograms and summaries that observe, and with those that do not.

    python -m benchmarks.metrics_cost [PAIRS]

Instructions of the three bookies and the client for each add are counted as by :mod:`benchmarks.instructions`, in pairs
whose order changes, so that other load on the machine does not matter. What stays in both halves is counters that are
added to in place. Then the processor time of one page of ``/metrics`` is measured.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

from benchmarks.access import processor_s
from benchmarks.instructions import ROWS, Counts, Instructions, count, missing
from benchmarks.processes import ROOT

WORK: Final = [row for row in ROWS if row.name in ("add-1-v3", "add-1000-v3")]
PAGES: Final = 400
SILENCED: Final = """\
from bookkeeper import metrics

metrics.Histogram.observe = metrics.Summary.observe = lambda self, value, times=1: None
"""
"""What Python runs at the start of a bookie that observes nothing."""


def counted(directory: Path, *, observes: bool) -> list[Counts]:
    """The instructions of each row."""
    (directory / "profiles").mkdir(parents=True)
    (directory / "sitecustomize.py").write_text("" if observes else SILENCED)
    paths = {"PYTHONPATH": f"{directory}:{ROOT}", "PYTHONHASHSEED": "0"}
    return count(WORK, Instructions(directory / "profiles"), directory / "cluster", environment=paths)


def page_ms(directory: Path) -> float:
    """Milliseconds of the processor for one page of an idle bookie."""
    from benchmarks.processes import BookieProcesses

    with BookieProcesses(directory, 1) as cluster:
        log = next(directory.glob("bookie-*.log")).read_text()
        address = f"http://{log.rpartition('http://')[2].split()[0].rstrip(',')}/metrics"
        urllib.request.urlopen(address).read()  # the first one loads the library
        before = processor_s(cluster.pids)
        for _ in range(PAGES):
            urllib.request.urlopen(address).read()
        return (processor_s(cluster.pids) - before) / PAGES * 1000


def main(arguments: Sequence[str]) -> None:
    """Print the table."""
    if lacking := missing("valgrind", "vgdb"):
        sys.exit(f"instructions cannot be counted here: {lacking}")
    pairs = int(arguments[0]) if arguments else 3
    found: dict[bool, list[list[Counts]]] = {True: [], False: []}
    with tempfile.TemporaryDirectory() as directory:
        for pair in range(pairs):
            for observes in (True, False)[:: 1 if pair % 2 else -1]:
                found[observes].append(counted(Path(directory) / f"{pair}-{observes}", observes=observes))
        for index, row in enumerate(WORK):
            for what in ("bookies", "client", "both"):
                on, off = ([_of(each[index], what) for each in found[observes]] for observes in (True, False))
                more = median(one / other for one, other in zip(on, off, strict=True))
                print(f"{row.name:<12} {what:<8} {median(off):12,.0f} {median(on):12,.0f} {100 * (more - 1):+.2f} %")
        print(f"a page of /metrics: {page_ms(Path(directory) / 'page'):.1f} ms of the processor")


def _of(counts: Counts, what: str) -> float:
    return counts.bookies + counts.client if what == "both" else float(getattr(counts, what))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.cmd}: {error.stderr}")
