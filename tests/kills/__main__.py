"""``python -m tests.kills 100``: see the package."""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from pathlib import Path

from tests.kills.harness import Trial
from tests.spark_wal.processes import MANAGERS, STORES, conf


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=100)
    parser.add_argument("--seed", type=int, default=None, help="of the moments [default: a new one, printed]")
    parser.add_argument("--masters", default="local[2];local[4]", help="separated by ;")
    parser.add_argument("--store", choices=STORES, default="hdfs")
    parser.add_argument("--manager", choices=MANAGERS, default="FileSystem")
    parser.add_argument("--pair", action="store_true", help="kill the active one of two gateways")
    parser.add_argument("--home", type=Path, help="go on with what is there [default: a new one, removed at the end]")
    arguments = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if arguments.seed is None else arguments.seed
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="bk-kills-") as fresh:
        settings, home = conf(arguments.store, arguments.manager), arguments.home or Path(fresh)
        trial = Trial(home, seed, settings, lambda line: print(line, flush=True), pair=arguments.pair)
        verdict = trial.run(arguments.kills, arguments.masters.split(";"))
    print("\n".join(verdict.lines()))
    return 0 if verdict.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
