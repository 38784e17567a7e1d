"""Changes inputs at random, by seed, and looks what a decoder makes of them."""

from __future__ import annotations

import re
import tracemalloc
from collections import Counter
from pathlib import Path
from random import Random
from typing import Final

from tests.fuzz.decoders import DECODERS, Decoder

CORPUS: Final = Path(__file__).parent / "corpus"

MEMORY_FREE: Final = 2 << 20
"""Bytes that a decoder may take whatever its input is: tables, and what its libraries make once."""

MEMORY_PER_BYTE: Final = 1000
"""Bytes that it may take for each byte of its input: a number of one byte becomes an object of a few dozen."""

INTERESTING: Final = (
    0,
    1,
    0x7F,
    0x80,
    0xFF,
    0x7FFF,
    0x7FFFFFFF,
    0x80000000,
    0xFFFFFFFF,
    0x7FFFFFFFFFFFFFFF,
    (1 << 64) - 1,
)
"""Numbers at which lengths and ids go wrong."""

ODD_JSON: Final = (b"1e999", b"-1e999", b"NaN", b"1.5", b"-1", b"9" * 30, b"true", b"null", b'"x"', b"[]", b"{}")
"""What JSON may have in the place of a number."""
_NUMBER: Final = re.compile(rb"-?\d+")


def corpus_of(decoder: Decoder) -> list[bytes]:
    """The inputs that are kept for a decoder."""
    return [path.read_bytes() for path in sorted((CORPUS / decoder.name).glob("*"))]


def changed(data: bytes, rng: Random) -> bytes:
    """``data`` with one to eight changes: bits, numbers, pieces cut, doubled or put elsewhere, and rubbish."""
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        at = rng.randrange(0, len(out) + 1)
        match rng.randrange(8):
            case 0 if out:
                out[at % len(out)] ^= 1 << rng.randrange(8)
            case 1 if out:
                out[at % len(out)] = rng.randrange(256)
            case 2:
                size, number = rng.choice((1, 2, 4, 8)), rng.choice(INTERESTING)
                out[at : at + size] = (number & ((1 << 8 * size) - 1)).to_bytes(size, rng.choice(("big", "little")))
            case 3:
                del out[at : at + rng.choice((1, 2, 4, 8, 64, 1 << 20))]
            case 4:
                out[at:at] = out[rng.randrange(0, len(out) + 1) :][: rng.choice((1, 4, 16, 256))]
            case 5:
                out[at:at] = rng.randbytes(rng.choice((1, 2, 8, 40)))
            case 6 if numbers := list(_NUMBER.finditer(out)):
                place = rng.choice(numbers)
                out[place.start() : place.end()] = rng.choice(ODD_JSON)
            case _:
                out[at:at] = rng.choice(
                    (b"\0" * 40, b"\xff" * 40, b"[" * 2000, b'{"a":' * 500, b"9" * 400, b"%", b"\n\t")
                )
    return bytes(out[: 1 << 16])


def inputs(decoder: Decoder, rng: Random, count: int) -> list[bytes]:
    """What a decoder gets: its corpus, changed, and rubbish."""
    seeds = corpus_of(decoder)
    found = list(seeds)
    for _ in range(count):
        base = rng.choice(seeds) if seeds and rng.random() < 0.9 else rng.randbytes(rng.choice((0, 1, 4, 20, 300)))
        found.append(changed(base, rng))
    return found


def judge(decoder: Decoder, data: bytes) -> str:
    """Decode twice. Returns how it ended.

    Raises:
        AssertionError: the two ends differ, or too much memory was taken. Any error that is not declared.
    """
    first = _end(decoder, data)
    tracemalloc.start()
    try:
        second = _end(decoder, data)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert first == second, f"{decoder.name} answers {first}, then {second}: {data!r}"
    limit = MEMORY_FREE + MEMORY_PER_BYTE * len(data)
    assert most <= limit, f"{decoder.name} takes {most} bytes for {len(data)}: {data!r}"
    return first


def _end(decoder: Decoder, data: bytes) -> str:
    try:
        decoder.decode(data)
    except decoder.errors as error:
        return type(error).__name__
    except Exception as error:
        error.add_note(f"{decoder.name} does not declare {type(error).__name__}; its input: {data!r}")
        raise
    return "taken"


def campaign(rng: Random, count: int, names: tuple[str, ...] = ()) -> Counter[tuple[str, str]]:
    """``count`` changed inputs for each decoder. Returns how often each ended how."""
    ends: Counter[tuple[str, str]] = Counter()
    for decoder in DECODERS:
        if names and decoder.name not in names:
            continue
        for data in inputs(decoder, rng, count):
            ends[decoder.name, judge(decoder, data)] += 1
    return ends
