"""Feeds the compiled codecs of edits and of lone entries with damaged bytes, and compares them with those in Python.

    python hostile_readers.py DIRECTORY ROUNDS

The directory has ``edits/native.so`` and ``lone/native.so``. A process of its own, because the sanitizers end it.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from journal_manager.codec import pure as pure_edits
from journal_manager.edits import Op
from journal_manager.edits.ops import encode_op
from journal_manager.hdfs import NEWEST_LAYOUT, encode_hdfs_op
from segments.codec import pure as pure_lone
from tests.journal_manager.codec.test_bodies import BUSY, fields_of, kind_of, outcome
from tests.journal_manager.hdfs import decoded, vector
from tests.segments.codec.test_lone import UNUSUAL, calls, lone, sealed, told

_BYTES = (b"\0", b"\1", b"\x7f", b"\x80", b"\x8f", b"\x90", b"\xff")
_LENGTHS = (b"\x80\0\0\0", b"\0\0\0\x80", b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff")


def load(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def damaged(data: bytes, rng: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(made) + 1)
        match rng.randrange(4):
            case 0:
                made[at : at + 1] = rng.choice(_BYTES)
            case 1:
                del made[at : at + rng.randint(1, 9)]
            case 2:
                made[at:at] = b"".join(rng.choices(_BYTES, k=rng.randint(1, 5)))
            case _:
                made[at : at + 4] = rng.choice(_LENGTHS)
    return bytes(made)


def same(ours: Any, theirs: Any, what: object) -> None:
    if ours != theirs:
        raise AssertionError(f"{what} gave {ours}, not {theirs}")


def check_edits(native: ModuleType, rng: random.Random) -> None:
    frames = b"".join(encode_op(n % 100, n + 1, bytes(rng.randrange(40))) for n in range(4))
    lengths = [frames[:1] + length + frames[5:] for length in (*_LENGTHS, len(frames).to_bytes(4, "big"))]
    for data in (*lengths, *(damaged(frames, rng) for _ in range(60))):
        at, end = rng.choice((0, 0, 0, rng.randint(-2, 30))), rng.choice((len(data), rng.randint(0, len(data) + 9)))
        txid, most = rng.choice((1, 1, 1, 0, 2, 2**63 - 1)), rng.choice((20, 1000, 2**32))
        asked = (Op, data, at, end, txid, most, rng.randint(0, 5))
        same(native.read_frames(*asked), pure_edits.read_frames(*asked), asked)
    for _, op in [*decoded(vector("every_op.bin")), (0, BUSY)]:
        opcode, body = encode_hdfs_op(op)
        body = damaged(body, rng)
        asked_body = (kind_of(opcode), fields_of(opcode, NEWEST_LAYOUT))
        ours, theirs = native.body_decoder(*asked_body), pure_edits.body_decoder(*asked_body)
        same(outcome(ours, body), outcome(theirs, body), (opcode, body))


def check_lone(native: ModuleType, rng: random.Random) -> None:
    for _ in range(40):
        payloads = [
            rng.choice((lone(n), damaged(lone(n), rng), sealed(lone(n), rng.randrange(88), rng.choice(_LENGTHS))))
            for n in range(4)
        ] + [rng.choice(list(UNUSUAL.values()))]
        at, seq_no = rng.randint(-1, 5), rng.randint(-1, 3)
        same(native.count_lone(payloads, at, seq_no), pure_lone.count_lone(payloads, at, seq_no), (payloads, at))
        a, b = rng.randint(-1, 6), rng.randint(-1, 6)
        for ours, theirs in zip(calls(native), calls(pure_lone), strict=True):
            same(told(ours, payloads, a, b), told(theirs, payloads, a, b), (payloads, a, b))


def main(directory: Path, rounds: int) -> None:
    edits = load("journal_manager.codec.native", directory / "edits" / "native.so")
    entries = load("segments.codec.native", directory / "lone" / "native.so")
    rng = random.Random(20)
    for _ in range(rounds):
        check_edits(edits, rng)
        check_lone(entries, rng)
    print("nothing read or written out of bounds")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
