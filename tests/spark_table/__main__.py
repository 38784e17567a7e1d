"""``python -m tests.spark_table``: see the package."""

from __future__ import annotations

import argparse
import importlib.metadata
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faultlog import put_section
from tests.integration.processes import bookies
from tests.kills.harness import GatewayUnderFire
from tests.spark_table.modes import MODES
from tests.spark_table.page import TITLE, said, text
from tests.spark_table.trial import Trial
from tests.spark_wal.processes import ROOT

PAGE = ROOT / "docs" / "spark.md"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.spark_table", description=__doc__)
    parser.add_argument("--home", type=Path, help="go on with what is there [default: a new one, removed at the end]")
    parser.add_argument("--part", default="1/1", metavar="N/M", help="only this part of the modes, such as 1/4")
    parser.add_argument("--only", default="", help="modes whose names have these words")
    parser.add_argument("--at-once", type=int, default=12, help="modes that share a driver")
    parser.add_argument("--write", action="store_true", help=f"put the table into {PAGE.relative_to(ROOT)}")
    arguments = parser.parse_args()
    number, _, parts = arguments.part.partition("/")
    names = [name for name in MODES if arguments.only in name]
    chosen = names[int(number) - 1 :: int(parts)]
    with tempfile.TemporaryDirectory(prefix="bk-spark-table-") as fresh:
        home = arguments.home or Path(fresh)
        home.mkdir(parents=True, exist_ok=True)
        with gateway(home) as address:
            trial = Trial(home, address)
            for first in range(0, len(chosen), arguments.at_once):
                trial.run(chosen[first : first + arguments.at_once])
        outcomes = {name: found for name in MODES if (found := trial.outcome(name)) is not None}
    for name in chosen:
        print(f"{name}: {said(MODES[name], outcomes[name])}")
    if arguments.write:
        if missing := [name for name in MODES if name not in outcomes]:
            parser.error(f"--write is for a home in which all modes are done; there is no {', '.join(missing)}")
        put_section(PAGE, TITLE, text([(MODES[name], found) for name, found in outcomes.items()], sparks()))
    return 0 if all(outcomes[name].is_equal for name in chosen) else 1


def sparks() -> list[str]:
    """What it was tried with."""
    return [f"PySpark {importlib.metadata.version('pyspark')}"]


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
