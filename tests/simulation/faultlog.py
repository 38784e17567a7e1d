"""``docs/faultlog.md``: which planted bugs the simulator finds, at which seed, and how.

::

    python -m tests.simulation.faultlog docs/faultlog.md [--jobs 2]
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.simulation.bugs.bugs import BUGS
from tests.simulation.sim import Result, format_counts, run_seed

SEEDS_WITHOUT_A_BUG = 150

HEAD = """# Fault log

Made by `python -m tests.simulation.faultlog docs/faultlog.md`, up to the sections that name another command.
How the simulator works: [tests/simulation/sim.py](../tests/simulation/sim.py).

## Planted bugs

Each is a switch that exists only in the simulator (`tests/simulation/bugs/bugs.py`). *Within* says in how many
seeds it must be found. Seeds are tried from 0 on: younger kinds of faults begin at 100, repairers at 200, damaged files
and metadata at 300, metadata that are put back to an older state at 2000 (every second world is one of these),
autorecovery at 4000, compaction at 6000, rot that a scrub finds at 8000, a log per ledger at 10000, garbage passes
at short intervals at 12000, several ledger directories at 14000, ledgers that are brought back at 15000, encrypted
ledgers at 16000, racks at 18000, sessions that end with a write that was done at 20000. Replay one with
`python -m tests.simulation --seed SEED --bug NAME`.

| Bug | What it does | Breaks | Within | Found at seed | Seen as |
|---|---|---|---|---|---|
"""


def find(name: str) -> Result | None:
    """The first seed at which a planted bug shows; None if it does not within its number."""
    first = BUGS[name].first
    for seed in range(first, first + BUGS[name].within):
        result = run_seed(seed, name)
        if result.problems:
            return result
    return None


def row(name: str, result: Result | None) -> str:
    """One line of the table."""
    bug = BUGS[name]
    seed = "not found" if result is None else str(result.seed)
    seen = "" if result is None else result.problems[0].split("\n")[0].replace("|", "/")[:90]
    return f"| `{name}` | {bug.what} | {bug.breaks} | {bug.within} | {seed} | {seen} |"


def document(rows: Iterable[str], healthy: Sequence[Result]) -> str:
    """The whole page."""
    counts: Counter[str] = Counter()
    for result in healthy:
        counts.update(result.counts)
    failed = [result.seed for result in healthy if result.problems]
    hours = sum(result.virtual_s for result in healthy) / 3600
    text = HEAD + "\n".join(rows) + "\n\n## Without a planted bug\n\n"
    text += f"{len(healthy)} seeds, {hours:.1f} virtual hours, failed: {failed or 'none'}.\n"
    return f"{text}\n```text\n{format_counts(counts)}\n```\n"


def rows_of(page: str) -> dict[str, str]:
    """The rows of a page, by bug."""
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    return {line.split("`")[1]: line for line in lines}


def with_rows(page: str, rows: Sequence[str]) -> str:
    """The page with other rows; what it says of worlds without a bug stays."""
    _, _, rest = page.partition("\n\n## Without a planted bug")
    return HEAD + "\n".join(rows) + "\n\n## Without a planted bug" + rest


def sections_of_others(page: str) -> str:
    """What other commands have put behind this one's sections."""
    _, _, rest = page.partition("\n## Without a planted bug\n")
    begin = rest.find("\n## ")
    return rest[begin:] if begin >= 0 else ""


def main(argv: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.faultlog")
    parser.add_argument("path", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--only", nargs="+", choices=sorted(BUGS), help="look for these; the page keeps what else it says"
    )
    parser.add_argument("--healthy", type=int, default=SEEDS_WITHOUT_A_BUG)
    options = parser.parse_args(argv)
    before = options.path.read_text() if options.path.exists() else ""
    rows = rows_of(before) if options.only else {}
    wanted = options.only or list(BUGS)
    with ProcessPoolExecutor(options.jobs) as pool:
        for name, result in zip(wanted, pool.map(find, wanted), strict=True):
            rows[name] = row(name, result)
            sys.stdout.write(rows[name] + "\n")
            sys.stdout.flush()
        if options.only:
            options.path.write_text(with_rows(before, [rows[name] for name in BUGS if name in rows]))
            return 0
        healthy = list(pool.map(run_seed, range(options.healthy), chunksize=8))
    options.path.write_text(document(rows.values(), healthy) + sections_of_others(before))
    return 0


if __name__ == "__main__":
    sys.exit(main())
