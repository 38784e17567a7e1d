"""Run the tours of :mod:`tests.upgrades.tour` and print what came of each. Exit status 0: nothing was lost."""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.upgrades.tour import Tour

ROOT: Final = Path(__file__).parents[2]
SAMPLES: Final = "tests/samples/0.1.0"


def main(arguments: Sequence[str] | None = None) -> int:
    """Go from each of the earlier versions to this one, and back."""
    parser = argparse.ArgumentParser(prog="python -m tests.upgrades", description=__doc__)
    parser.add_argument(
        "--from",
        dest="revisions",
        metavar="REVISION",
        action="append",
        help="an earlier version; by default the one with the oldest samples, and the one of a day before this one",
    )
    parser.add_argument("--keep", metavar="DIR", type=Path, help="logs and data go there, and stay")
    options = parser.parse_args(arguments)
    good = True
    with tempfile.TemporaryDirectory(prefix="bk-upgrades-") as made:
        home = options.keep or Path(made)
        for revision in options.revisions or [oldest(), yesterday()]:
            good &= _tour(revision, home / revision)
    return 0 if good else 1


def _tour(revision: str, home: Path) -> bool:
    home.mkdir(parents=True)
    tree = home / "tree"
    git("worktree", "add", "--quiet", "--detach", str(tree), revision)
    try:
        tour = Tour(home, tree)
        tour.run()
    finally:
        git("worktree", "remove", "--force", str(tree))
    sys.stdout.write(f"{revision} and this version\n")
    for line in tour.report:
        sys.stdout.write(f"  {line}\n")
    sys.stdout.write(f"  nothing lost: {'yes' if tour.whole else 'NO'}\n")
    return tour.whole


def oldest() -> str:
    """The version that made the oldest samples of stored formats."""
    return git("log", "--diff-filter=A", "--format=%h", "--", SAMPLES).split()[-1]


def yesterday() -> str:
    """The last version that is a day older than this one."""
    seconds = int(git("log", "-1", "--format=%ct"))
    return git("log", "-1", f"--before=@{seconds - 86400}", "--format=%h").strip()


def git(*words: str) -> str:
    """What git prints."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
