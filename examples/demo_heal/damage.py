"""Flips bits in the entry logs of a bookie, as a rotten disk would: somewhere, or in certain entries."""

from __future__ import annotations

from collections.abc import Iterable
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
        flipped.append(_flip(path, _HEADER + rng.randrange(logs[path]), rng.randrange(8)))
    return flipped


def damage_entries(directory: Path, payloads: Iterable[bytes], rng: Random) -> int:
    """Flip a bit in every copy of these entries that is in the logs in ``directory``. Returns how many are there."""
    logs = {path: path.read_bytes() for path in sorted(directory.glob("*.log"))}
    damaged = 0
    for payload in payloads:
        places = [(path, place) for path, data in logs.items() if (place := data.find(payload)) >= 0]
        for path, place in places:
            _flip(path, place + rng.randrange(len(payload)), rng.randrange(8))
        damaged += bool(places)
    return damaged


def _flip(path: Path, offset: int, bit: int) -> FlippedBit:
    with path.open("r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 1 << bit]))
    return FlippedBit(path.name, offset, bit)
