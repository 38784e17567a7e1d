"""Which buckets a run draws. The buckets are a machine; the number comes from the commit."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.suite.costs import DRAWN, DRAWN_OUTSIDE, Cost, Costs
from tests.suite.selection import PACKAGES

BUCKETS: Final = 20
DRAW_S: Final = 240.0
"""Processor time of the draw on a machine that is quick enough; one bucket is drawn also if it costs more."""
TOO_SLOW: Final = 0.25
"""Below this share of the reference's speed nothing is drawn: the core alone takes long enough there."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """Some units of the draw."""

    number: int
    units: tuple[str, ...]
    seconds: float


def buckets(costs: Costs, count: int = BUCKETS) -> tuple[Bucket, ...]:
    """All units in so many buckets that cost about the same. The same costs, the same buckets."""
    units: Mapping[str, Cost] = costs.of[DRAWN] | costs.of[DRAWN_OUTSIDE]
    parts: list[list[str]] = [[] for _ in range(count)]
    sums = [0.0] * count
    for unit in sorted(units, key=lambda unit: (-units[unit].seconds, unit)):
        least = sums.index(min(sums))
        parts[least].append(unit)
        sums[least] += units[unit].seconds
    return tuple(Bucket(number, tuple(sorted(part)), sums[number]) for number, part in enumerate(parts))


def drawn(every: Sequence[Bucket], number: int, speed: float) -> tuple[Bucket, ...]:
    """What a run takes: the bucket of its number, and the next ones as long as there is time for them."""
    if speed < TOO_SLOW:
        return ()
    first = number % len(every)
    taken: list[Bucket] = []
    for step in range(len(every)):
        bucket = every[(first + step) % len(every)]
        if taken and (sum(one.seconds for one in taken) + bucket.seconds) / speed > DRAW_S:
            break
        taken.append(bucket)
    return tuple(taken)


def number_of(root: Path) -> int:
    """The number that this checkout draws with: how many commits its first-parent history has, and one more while the
    tree is dirty, so that the run before a commit draws what the commit draws. Without a whole history: from what the
    files hold."""
    if _git(root, "rev-parse", "--is-shallow-repository") == "false":
        count = _git(root, "rev-list", "--first-parent", "--count", "HEAD")
        if count is not None:
            return int(count) + bool(_git(root, "status", "--porcelain"))
    digest = hashlib.sha256()
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.read_bytes())
    return int.from_bytes(digest.digest()[:4], "big")


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
