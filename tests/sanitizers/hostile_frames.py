"""Feeds the compiled codec frames that nobody sends; run under AddressSanitizer by test_sanitizers.py.

    python hostile_frames.py DIRECTORY ROUNDS     (DIRECTORY: adds.so, reads.so, records.so)

Every buffer has its own allocation (PYTHONMALLOC=malloc), so one byte read past its end is seen. Deterministic: the
same frames in every run.
"""

from __future__ import annotations

import importlib.util
import itertools
import random
import sys
from array import array
from types import ModuleType
from typing import Any

from bookkeeper.codec import pure

EDGES = (0, 1, 2, 3, 4, 7, 8, 0x0A, 0x10, 0x14, 0x18, 0x1A, 0x22, 0x7F, 0x80, 0xAA, 0xFE, 0xFF)
CALLS = ("split_adds", "split_add_replies", "split_reads", "scan_records", "find_record", "chain_crcs")


def load(directory: str) -> ModuleType:
    """The functions of all three extensions."""
    native = ModuleType("native")
    for part in ("adds", "reads", "records"):
        spec = importlib.util.spec_from_file_location(f"bookkeeper.codec.native.{part}", f"{directory}/{part}.so")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for name, function in vars(module).items():
            if callable(function) and not name.startswith("_"):
                setattr(native, name, function)
    return native


def seeds(native: ModuleType) -> list[bytes]:
    """Good streams of every kind."""
    made = []
    for dialect, digest, ledger_id in itertools.product((2, 3), (1, 3, 4), (5, 2**63 - 1)):
        bodies = [b"", b"x", b"y" * 33, memoryview(bytearray(b"z" * 200))]
        adds, ends = native.encode_adds(dialect, ledger_id, 3, bodies, 2, 0, bytes(20), digest, b"", 3 << 40)
        split = native.split_adds(adds, 0, len(adds))
        offsets = native.record_places(split.record_ends, 0, 4, 0, 0)
        packed = native.pack_entries(split.records, offsets, ledger_id, 3, 1 << 20)
        assert packed.n == 4 and native.gather(adds, ends, range(4)) == adds
        made += [adds, split.acks, split.records, packed.body]
        asked = native.encode_reads(dialect, ledger_id, [3, 4, 5, 6], 2**40)
        begins = [*offsets, len(split.records)]
        step = max(b - a for a, b in itertools.pairwise(begins))
        records = b"".join(bytes(split.records[a:b]).ljust(step) for a, b in itertools.pairwise(begins))
        reads = native.split_reads(asked, 0, len(asked))
        answers = native.answer_reads(reads, 0, 4, records, step, 2)
        assert answers.n == 4
        made += [asked, answers.frames]
        if dialect == 3:
            made.append(native.encode_adds(3, ledger_id, 3, bodies, 2, 0, bytes(20), digest, b"", 3 << 40, True)[0])
    return made


def shortened() -> list[bytes]:
    """One frame each, cut at every byte, with every length around the cut made to fit: the last byte is the end."""
    header = b"\x08\x03\x10\x02\x18\x80\x80\x80\x80\x80\x60"
    add = (
        b"\x08\x05\x10\x03\x1a\x14"
        + bytes(20)
        + b"\x22\x20"
        + (5).to_bytes(8, "big")
        + (3).to_bytes(8, "big")
        + bytes(16)
    )
    deferred = add + b"\x28\x01"
    reply = b"\x08\x00\x10\x05\x18\x03"
    v2 = b"\x02\x01\x00\x00" + bytes(20 + 33)
    made = [v2[:n] for n in range(1, len(v2))]
    for middle, inner in ((b"\xaa\x06", add), (b"\xaa\x06", deferred), (b"\x10\x00\xaa\x06", reply)):
        whole = bytes((0x0A, len(header))) + header + middle
        made += [whole[:n] for n in range(1, len(whole))]
        made += [whole + bytes((n,)) + inner[:n] for n in range(len(inner) + 1)]
        made += [whole + bytes((n,)) + inner[: n - 1] + b"\xff" for n in range(1, len(inner) + 1)]
    header = b"\x08\x03\x10\x01\x18\x05"
    read = b"\x08\x05\x10\x03"
    found = b"\x08\x00\x10\x05\x18\x03\x22\x02ab\x28\x07"
    for middle, inner in ((b"\xa2\x06", read), (b"\x10\x00\xa2\x06", found)):
        whole = bytes((0x0A, len(header))) + header + middle
        made += [whole[:n] for n in range(1, len(whole))]
        made += [whole + bytes((n,)) + inner[:n] for n in range(len(inner) + 1)]
        made += [whole + bytes((n,)) + inner[: n - 1] + b"\xff" for n in range(1, len(inner) + 1)]
    made += [(b"\x02\x02\x00\x00" + bytes(30))[:n] for n in range(1, 30)]
    return [len(body).to_bytes(4, "big") + body for body in made]


def check(native: ModuleType, data: bytes) -> None:
    """Everything on one buffer: no crash, and the Python codec's result."""
    for name in CALLS:
        for start in (0, min(1, len(data))):
            same(native, name, data, start, len(data))
    for v2 in (False, True):
        same(native, "split_read_replies", data, 0, len(data), 5 << 20, v2)
        replies = native.split_read_replies(data, 0, len(data), 5 << 20, v2)
        for digest in (1, 3, 4):
            count = len(replies.ends)
            same(native, "unseal_replies", data, replies, range(count), 5, range(3, 3 + count), digest)
    asked = native.encode_reads(2, 5, [3, 4, 5, 6], 0)
    reads = native.split_reads(asked, 0, len(asked))
    for step in (8, 40, 77):
        same(native, "answer_reads", reads, 0, min(4, len(data) // step), data, step, 7)
    for digest in (1, 3, 4):
        same(native, "split_entries", data, 0, len(data), 5, 3, digest)
    offsets = array("q", [0, 1, len(data) - 8, len(data), -1, 2**62, -(2**63)])
    for first in range(len(offsets)):
        same(native, "pack_entries", data, offsets[first:], 5, 3, 1 << 20)
        same(native, "read_record", data, offsets[first], 5, 3)
    for room in (0, 7, 60, 400):
        out = bytearray(room)
        native.split_adds(data, 0, len(data), 5 << 20, False, out, room // 2)


def same(native: ModuleType, name: str, *args: Any) -> None:
    ours, theirs = getattr(native, name)(*args), getattr(pure, name)(*args)
    if repr(ours) != repr(theirs):
        raise AssertionError(f"{name}{args} gave {ours}, not {theirs}")


def main(path: str, rounds: int) -> None:
    native, rng = load(path), random.Random(20)
    good = seeds(native)
    for whole in (*good, *shortened()):
        check(native, whole)
    for _ in range(rounds):
        data = bytearray(rng.choice(good))
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            match rng.randrange(4):
                case 0:
                    data[at] = rng.choice(EDGES)
                case 1:
                    del data[at : at + rng.randrange(1, 9)]
                case 2:
                    data[at:at] = bytes(rng.choice(EDGES) for _ in range(rng.randrange(1, 9)))
                case 3:
                    data[at : at + 4] = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, len(data))).to_bytes(4, "big")
            if not data:
                data = bytearray(b"\0")
        check(native, bytes(data[: rng.randrange(len(data) + 1)] if rng.randrange(2) else data))
    print(f"{rounds} hostile buffers: nothing read or written out of bounds")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
