"""``python -m tests.spark_table``: see the package."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.faultlog import put_section
from tests.integration.processes import bookies
from tests.kills.harness import GatewayUnderFire
from tests.spark_table.modes import MODES
from tests.spark_table.modes.lakes import LAKES
from tests.spark_table.page import TITLE, is_as_it_should_be, said, text
from tests.spark_table.trial import Trial, outcome_in
from tests.spark_wal.processes import ROOT, conf

PAGE = ROOT / "docs" / "spark.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark_table", description=__doc__)
    parser.add_argument("--home", type=Path, help="go on with what is there [default: a new one, removed at the end]")
    parser.add_argument("--part", default="1/1", metavar="N/M", help="only this part of the modes, such as 1/4")
    parser.add_argument("--only", default="", help="modes whose names have these words")
    wanted = ", ".join(f"{lake.spark} for {name}" for name, lake in LAKES.items())
    lakes = f"one that has another PySpark: {wanted}; may be repeated"
    parser.add_argument("--lakes", metavar="PYTHON", action="append", default=[], help=lakes)
    parser.add_argument("--at-once", type=int, default=12, help="modes that share a driver")
    parser.add_argument("--write", action="store_true", help=f"put what --home has into {PAGE.relative_to(ROOT)}")
    arguments = parser.parse_args()
    number, _, parts = arguments.part.partition("/")
    pythons = of_lakes(arguments.lakes)
    names = [name for name, mode in MODES.items() if arguments.only in name and (not mode.lake or mode.lake in pythons)]
    chosen = names[int(number) - 1 :: int(parts)]
    with tempfile.TemporaryDirectory(prefix="bk-spark-table-") as fresh:
        home = arguments.home or Path(fresh) / "home"
        if missing := [name for name in chosen if outcome_in(home, name) is None]:
            run(home, Path(fresh), missing, pythons, arguments.at_once)
        outcomes = {name: found for name in MODES if (found := outcome_in(home, name)) is not None}
    for name in chosen:
        print(f"{name}: {said(MODES[name], outcomes[name])}")
    if arguments.write:
        done = [(MODES[name], found) for name, found in outcomes.items()]
        put_section(PAGE, TITLE, text(done, [name for name in MODES if name not in outcomes]))
    return 0 if all(is_as_it_should_be(MODES[name], outcomes[name]) for name in chosen) else 1


def of_lakes(pythons: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Lake -> the Python that has its Spark, and that Spark's version."""
    found: dict[str, tuple[str, str]] = {}
    for python in pythons:
        command = [python, "-c", "import pyspark; print(pyspark.__version__)"]
        version = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        fits = [name for name, lake in LAKES.items() if version.startswith(f"{lake.spark}.")]
        assert fits, f"{python} has PySpark {version}, for which there is no lake"
        found |= dict.fromkeys(fits, (python, version))
    return found


def run(home: Path, fresh: Path, modes: list[str], pythons: Mapping[str, tuple[str, str]], at_once: int) -> None:
    """Run modes on a new cluster, those of each Spark together."""
    with gateway(fresh) as address:
        trials = {"": Trial(home, address)}
        for lake, (python, version) in pythons.items():
            settings = conf(version=version) | LAKES[lake].conf
            trials[lake] = Trial(home, address, python=python, settings=settings)
        for lake, trial in trials.items():
            kind = [name for name in modes if MODES[name].lake == lake]
            for first in range(0, len(kind), at_once):
                trial.run(kind[first : first + at_once])


@contextmanager
def gateway(home: Path) -> Iterator[str]:
    """A gateway of three bookies, as processes; its address."""
    with bookies(home) as cluster:
        served = GatewayUnderFire(home, cluster)
        served.start()
        try:
            served.process.until_said(r"serves namespace")
            yield f"webhdfs://127.0.0.1:{served.port}"
        finally:
            served.process.kill()


if __name__ == "__main__":
    sys.exit(main())
