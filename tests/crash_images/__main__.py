"""``python -m tests.crash_images 10000``: so many images, of all lives in turn."""

from __future__ import annotations

import argparse
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, islice
from pathlib import Path
from random import Random

from tests.bookkeeper.storage.recording_disk import RecordingDisk
from tests.bookkeeper.storage.test_crashes import enumerate_crashes
from tests.bookkeeper.storage.workload import (
    Truth,
    compacting_life,
    ledger_logs_life,
    random_life,
    random_loop_life,
    standard_life,
)
from tests.bookkeeper.volumes.test_crashes import enumerate_crashes as crashes_of_volumes
from tests.crash_images.repair import repaired_life
from tests.crash_images.traced import wrong_images
from tests.crash_images.undelete import undeleting_life
from tests.faultlog import put_section

TITLE = "Crash images"
LIVES: dict[str, tuple[Callable[[RecordingDisk, Random], Truth], int]] = {
    "a log per ledger": (ledger_logs_life, 4),
    "adds, fences, checkpoints, a collection": (random_life, 4),
    "the same with groups on the loop, and passing faults": (random_loop_life, 4),
    "compactions": (compacting_life, 4),
}
SHARE = 500
"""Images of one life before the next one has its turn."""


def images(seed: int) -> Iterator[tuple[str, str, list[str]]]:
    """(life, image, what is wrong with it)."""
    for where, bad in islice(enumerate_crashes(seed, 10, bool(seed % 2), standard_life), SHARE):
        yield "one of everything", where, bad
    for name, (life, per_point) in LIVES.items():

        def lived(disk: RecordingDisk, life: Callable[[RecordingDisk, Random], Truth] = life) -> Truth:
            return life(disk, Random(seed))

        for where, bad in islice(enumerate_crashes(seed, per_point, bool(seed % 2), lived), SHARE):
            yield name, where, bad
    for where, bad in islice(crashes_of_volumes(seed, 4, bool(seed % 2)), SHARE):
        yield "several ledger directories: one is emptied, one is lost", where, bad
    for where, bad in wrong_images(undeleting_life(seed), seed, 4, every=4):
        yield "deletions, undeletions, compactions of a bookie", where, bad
    repaired, begin = repaired_life(seed)
    for where, bad in wrong_images(repaired, seed, 6, begin):
        yield "repair: a bookie takes the place of one that is gone", where, bad


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash_images", description=__doc__)
    parser.add_argument("images", type=int, nargs="?", default=10_000)
    parser.add_argument("--seed", type=int, default=100, help="of the first lives [default: 100]")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    done, wrong = Counter[str](), list[str]()
    for seed in count(arguments.seed):
        for life, where, bad in images(seed):
            done[life] += 1
            if bad:
                wrong.append(f"seed {seed}, {life}, {where}: {bad[:3]}")
        print(f"seed {seed}: {done.total():,} images, {len(wrong)} of them wrong", flush=True)
        if done.total() >= arguments.images:
            break
    text = document(done, len(wrong), arguments.seed)
    print(text)
    print("\n".join(wrong))
    if arguments.write is not None:
        put_section(arguments.write, TITLE, text)
    return 1 if wrong else 0


def document(done: Counter[str], wrong: int, seed: int) -> str:
    """The section of the page."""
    lines = [
        f"Made by `make crash-images`, from seed {seed} on.",
        "An image is what a crash may leave after an operation: of what was not synced any part, with torn writes.",
        "The real start runs on it, and what was acknowledged is compared.",
        f"Wrong: {wrong or 'none'}.",
        "",
        "| Life | Images |",
        "|---|---|",
        *(f"| {life} | {number:,} |" for life, number in done.items()),
        f"| all | {done.total():,} |",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
