"""``python -m tests.corruption 2000``: see the package."""

from __future__ import annotations

import argparse
import logging
import secrets
import sys
from pathlib import Path

from tests.corruption.campaign import campaign
from tests.faultlog import put_section

TITLE = "Damaged files"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.corruption", description=__doc__)
    parser.add_argument("damages", type=int, nargs="?", default=2000)
    parser.add_argument("--seed", type=int, default=None, help="of the damages [default: a new one, printed]")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    arguments = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if arguments.seed is None else arguments.seed
    logging.lastResort = None  # what the damaged bookies say is counted
    tally = campaign(arguments.damages, seed)
    table = tally.table()
    print(f"seed {seed}\n{table}")
    print("\n".join(tally.problems) or "every damage was noticed or did not matter")
    if arguments.write is not None:
        put_section(arguments.write, TITLE, _section(arguments.damages, seed, table, len(tally.problems)))
    return 1 if tally.problems else 0


def _section(damages: int, seed: int, table: str, problems: int) -> str:
    return f"""Made by `make corruption N={damages}` (seed {seed}).
One file of a bookie is damaged, after a clean stop or a kill.
A bit is flipped, a sector is zeroed, exchanged or older, the file is cut, extended, older or gone.
Then the bookie is started twice, and everything that it has acknowledged is read.
*Needed* are bytes on which an answer depends.
Damage to them has to be noticed, by a refused start, a sentence in the log or an error of a read.
The others are free space, padding, what a checkpoint covers, and notes that are older or gone.
Problems: {problems or "none"}.

{table}
"""


if __name__ == "__main__":
    sys.exit(main())
