"""What can become of one file while nobody looks. Pure: bytes in, bytes out."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from bookkeeper.testing.world import SECTOR

Harm = Callable[[Random, bytes, bytes], bytes | None]
"""(chance, the file, the file as it was some time ago) -> what it is now; None: it is gone."""


def flip(rng: Random, data: bytes, _old: bytes) -> bytes:
    """One bit is another one. Every second time in the first block, where the headers are."""
    if not data:
        return data
    at = rng.randrange(min(len(data), 4096) if rng.random() < 0.5 else len(data))
    return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]


def zeros(rng: Random, data: bytes, _old: bytes) -> bytes:
    """A sector holds zeros."""
    at = _sector(rng, data)
    return data[:at] + bytes(len(data[at : at + SECTOR])) + data[at + SECTOR :]


def older(rng: Random, data: bytes, old: bytes) -> bytes:
    """A sector is as it was some time ago; zeros, if the file was shorter then."""
    at = _sector(rng, data)
    size = len(data[at : at + SECTOR])
    return data[:at] + old[at : at + size].ljust(size, b"\0") + data[at + SECTOR :]


def exchange(rng: Random, data: bytes, _old: bytes) -> bytes:
    """Two sectors have changed places."""
    one, other = sorted((_sector(rng, data), _sector(rng, data)))
    if one == other or other + SECTOR > len(data):
        return data
    first, second = data[one : one + SECTOR], data[other : other + SECTOR]
    return data[:one] + second + data[one + SECTOR : other] + first + data[other + SECTOR :]


def cut(rng: Random, data: bytes, _old: bytes) -> bytes:
    """The end is missing."""
    return data[: rng.randrange(len(data))] if data else data


def extend(rng: Random, data: bytes, _old: bytes) -> bytes:
    """Something is behind the end."""
    size = rng.randrange(1, 5000)
    return data + (bytes(size) if rng.random() < 0.5 else rng.randbytes(size))


def put_back(_rng: Random, _data: bytes, old: bytes) -> bytes | None:
    """The whole file is as it was some time ago; gone, if there was none."""
    return old or None


def gone(_rng: Random, _data: bytes, _old: bytes) -> None:
    """There is no such file."""


HARMS: Final[dict[str, Harm]] = {
    "bit flipped": flip,
    "sector zeroed": zeros,
    "sector older": older,
    "sectors exchanged": exchange,
    "cut short": cut,
    "extended": extend,
    "older file": put_back,
    "gone": gone,
}


def _sector(rng: Random, data: bytes) -> int:
    return rng.randrange(max(len(data), 1)) // SECTOR * SECTOR


def changed(before: bytes, after: bytes | None) -> list[int]:
    """Which bytes of ``before`` are not what they were."""
    after = after or b""
    whole = min(len(before), len(after))
    same = [at for at in range(0, whole, SECTOR) if before[at : at + SECTOR] == after[at : at + SECTOR]]
    blocks = sorted({*range(0, len(before), SECTOR)}.difference(same))
    return [
        at
        for block in blocks
        for at in range(block, min(block + SECTOR, len(before)))
        if at >= len(after) or before[at] != after[at]
    ]
