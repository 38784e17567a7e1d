"""Flips bits in the entry logs of a bookie, as a rotten disk would."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Final

_HEADER: Final = 4096
"""The first block of an entry log is its header, which holds no entries."""


@dataclass(frozen=True, slots=True)
class FlippedBit:
    """One bit that was flipped."""

    log: str
    offset: int
    bit: int


def flip_bits(directory: Path, count: int, rng: Random) -> list[FlippedBit]:
    """Flip ``count`` bits behind the headers of the logs in ``directory``, larger logs more often.

    Raises: ValueError: there are no logs with entries.
    """
    logs = {path: path.stat().st_size - _HEADER for path in sorted(directory.glob("*.log"))}
    logs = {path: size for path, size in logs.items() if size > 0}
    if not logs:
        raise ValueError(f"{directory} has no entry logs with entries")
    flipped = []
    for path in rng.choices(list(logs), weights=list(logs.values()), k=count):
        offset, bit = _HEADER + rng.randrange(logs[path]), rng.randrange(8)
        with path.open("r+b") as file:
            file.seek(offset)
            (byte,) = file.read(1)
            file.seek(offset)
            file.write(bytes([byte ^ 1 << bit]))
        flipped.append(FlippedBit(path.name, offset, bit))
    return flipped
