"""``python -m tests.clients``: every client with up to 64 MB, again and again, while the cores are busy; a table."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.clients.busy import busy_cores
from tests.clients.drive import MB, SIZES, Outcome
from tests.clients.session import python_outcomes, spark_outcomes
from tests.spark_wal.processes import GatewayProcess


def table(outcomes: Iterable[Outcome]) -> str:
    """A line for each client and size, and what went wrong."""
    groups: dict[tuple[str, int], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.way, outcome.size].append(outcome)
    lines = [f"{'client':<48} {'bytes':>10} {'done':>5} {'failed':>7} {'median ms':>10} {'longest ms':>11}"]
    for (way, size), found in groups.items():
        failed = [outcome.error for outcome in found if outcome.error is not None]
        times = [outcome.seconds * 1000 for outcome in found]
        size_text = f"{size:,}" if size else ""
        lines.append(
            f"{way:<48} {size_text:>10} {len(found):>5} {len(failed):>7} "
            f"{statistics.median(times):>10.0f} {max(times):>11.0f}"
        )
        lines += [f"    {error}" for error in sorted(set(failed))]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="files of each size and client")
    parser.add_argument("--largest-mb", type=int, default=64)
    parser.add_argument("--busy", type=int, default=2, help="cores that are kept busy meanwhile")
    parser.add_argument("--keys", type=int, default=60_000, help="new ones in each batch of a query")
    parser.add_argument("--batches", type=int, default=5)
    parser.add_argument("--no-spark", action="store_true", help="only the Python clients")
    given = parser.parse_args()
    sizes = sorted({size for size in (*SIZES, 64 * MB, given.largest_mb * MB) if size <= given.largest_mb * MB})
    with tempfile.TemporaryDirectory(prefix="clients-", ignore_cleanup_errors=True) as directory:
        gateway = GatewayProcess(Path(directory) / "namespace")
        gateway.start()
        outcomes: list[Outcome] = []
        try:
            with busy_cores(given.busy):
                for outcome in python_outcomes(gateway, sizes, given.rounds):
                    outcomes.append(outcome)
                    show(outcome)
                if not given.no_spark:
                    log = Path(directory) / "spark.log"
                    for outcome in spark_outcomes(gateway, log, sizes, given.rounds, given.keys, given.batches):
                        outcomes.append(outcome)
                        show(outcome)
        finally:
            gateway.kill()
        said = (Path(directory) / "gateway.log").read_text()
    failed = sum(outcome.error is not None for outcome in outcomes)
    print(table(outcomes))
    print(f"\n{len(outcomes)} done, {failed} failed; tracebacks in the gateway's log: {said.count('Traceback')}")
    return 1 if failed or "Traceback" in said else 0


def show(outcome: Outcome) -> None:
    """That something goes on."""
    sys.stderr.write("." if outcome.error is None else f"\n{outcome.way}, {outcome.size}: {outcome.error}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
