"""``python -m tests.sink_kills 200``: see the package."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.segments.gateway.processes import standalone
from tests.sink_kills.harness import Trial


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sink_kills", description=__doc__)
    parser.add_argument("kills", type=int, nargs="?", default=200)
    parser.add_argument("--home", type=Path, help="go on with what is there [default: a new one, removed at the end]")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bk-sink-kills-") as fresh:
        home = arguments.home or Path(fresh)
        home.mkdir(parents=True, exist_ok=True)
        with standalone(home / "cluster") as metadata:
            trial = Trial(metadata, home / "trial", arguments.seed)
            found = trial.run(arguments.kills)
            kills = trial.kills
    before_log = sum(each["after_ms"] is None for each in kills)
    print(f"{len(kills)} kills, {before_log} between publication and commit log")
    print(f"{found.batches} batches, {found.rows} rows")
    print("\n".join([*found.lost, *found.twice]))
    print(f"lost: {len(found.lost)}, twice: {len(found.twice)}")
    return 0 if found.is_good else 1


if __name__ == "__main__":
    sys.exit(main())
