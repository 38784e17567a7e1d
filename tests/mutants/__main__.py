"""``make mutants``: plant bugs, run the tests of the core that concern each, write docs/mutants.md.

A run that was stopped goes on with ``--again --reuse``: outcomes are kept as they come (build/mutants).

Exit status 0: at least 95 of 100 were noticed, and each survivor has a reason in tests/mutants/reasons.toml.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final

import pytest
from rich.console import Console

from tests.mutants.document import PAGE, page, reasons
from tests.mutants.record import Record
from tests.mutants.sample import PLACES, ROOT, sample
from tests.mutants.session import LEFT_OUT, OfTheCore, Outcome, Planting

SUITES: Final = ("bookkeeper", "contracts", "journal_manager", "scenarios", "segments", "simulation", "spark_wal")
KILLED_AT_LEAST: Final = 0.95


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", metavar="PLACE", action="append", help=f"of these alone: {', '.join(PLACES)}")
    parser.add_argument("--times", type=float, default=1.0, help="this many times the usual number of bugs")
    parser.add_argument(
        "--match", metavar="TEXT", help="of the chosen bugs only those whose name, as printed, has this"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--tests", metavar="PATH", action="append", help="only these tests, below tests/")
    parser.add_argument(
        "--reuse",
        action="store_true",
        help="take what the last run has seen of the tests' reach; new tests are run once",
    )
    parser.add_argument("--again", action="store_true", help="do not plant again what an earlier run has noticed")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    options = parser.parse_args(arguments)
    if unknown := set(options.only or ()) - set(PLACES):
        parser.error(f"not one of the places: {', '.join(sorted(unknown))}")
    if options.write and (options.only or options.tests or options.match):
        parser.error("--write is for a run of all places and all tests")
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    console = Console(file=os.fdopen(os.dup(1), "w"), width=None if sys.stdout.isatty() else 170)
    places = {place: count for place, count in PLACES.items() if not options.only or place in options.only}
    chosen = sample(places, options.times)
    if options.match:
        chosen = {place: [one for one in some if options.match in one.key] for place, some in chosen.items()}
    count = sum(map(len, chosen.values()))
    done: list[Outcome] = []
    known = reasons()

    directory = ROOT / "build" / "mutants"
    directory.mkdir(parents=True, exist_ok=True)
    record = Record(directory / "outcomes.jsonl")

    def tell(outcome: Outcome) -> None:
        done.append(outcome)
        record.add(outcome)
        if not outcome.killed_by:
            mutation = outcome.mutation
            console.print(
                f"survived: {mutation.path.relative_to(ROOT)}:{mutation.line} ({outcome.tests} tests) {mutation.key}"
                + ("" if mutation.key in known else "  (no reason known)"),
                markup=False,
            )
        if len(done) % 20 == 0:
            console.print(f"{len(done)} of {count} planted, {sum(bool(one.killed_by) for one in done)} noticed")

    every = [mutation for some in chosen.values() for mutation in some]
    if options.again:
        done += [found for mutation in every if (found := record.noticed(mutation)) is not None]
        console.print(f"{len(done)} of {count} were noticed by an earlier run")
    known_by = {id(outcome.mutation) for outcome in done}
    plugin = Planting(
        [mutation for mutation in every if id(mutation) not in known_by],
        directory,
        options.jobs,
        tell,
        console.print,
        options.reuse,
    )
    suites = [str(ROOT / "tests" / suite) for suite in options.tests or SUITES]
    quiet = ["-qq", "-s", "-m", LEFT_OUT, "-p", "no:randomly", "-p", "no:cacheprovider"]
    os.environ.setdefault("HYPOTHESIS_PROFILE", "core")
    with contextlib.redirect_stdout(io.StringIO()):
        status = pytest.main([*quiet, "--rootdir", str(ROOT), *suites], plugins=[plugin, OfTheCore()])
    if len(done) < count:
        console.print(f"mutants: the tests could not be run (pytest ended with {int(status)})")
        return 2
    text, rate, unexplained = page(chosen, done, known)
    console.print(text, markup=False)
    if options.write:
        PAGE.write_text(text)
    return 0 if rate >= KILLED_AT_LEAST and not unexplained else 1


if __name__ == "__main__":
    sys.exit(main())
