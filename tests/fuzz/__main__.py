"""``python -m tests.fuzz [MINUTES] [--seed N] [--only NAME]``: until the time is over, or a decoder fails."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from random import Random

from tests.fuzz.campaign import campaign
from tests.fuzz.decoders import DECODERS

ROUND = 200
"""Inputs for each decoder between two looks at the clock."""


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    asked.add_argument("minutes", type=float, nargs="?", default=60.0)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--only", action="append", default=[], choices=[decoder.name for decoder in DECODERS])
    given = asked.parse_args()
    ends: Counter[tuple[str, str]] = Counter()
    end, seed = time.monotonic() + 60 * given.minutes, given.seed
    while time.monotonic() < end:
        print(f"seed {seed}", flush=True)
        ends += campaign(Random(seed), ROUND, tuple(given.only))
        seed += 1
    for (name, how), count in sorted(ends.items()):
        print(f"{name:24} {how:28} {count}")


if __name__ == "__main__":
    main()
