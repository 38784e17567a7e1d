"""Both codecs for the tests, and streams of frames: good, odd, hostile and cut."""

from __future__ import annotations

from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from hypothesis import strategies as st

from bookkeeper.codec import Digest, pure
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import AddEntry, Dialect, encode_request

native: ModuleType | None
try:
    from bookkeeper.codec import native as _native

    native = _native
except ImportError:
    native = None

needs_native = pytest.mark.skipif(native is None, reason="the compiled codec is not built (python setup.py build_ext)")
CODECS = [pytest.param(pure, id="pure"), pytest.param(native, id="native", marks=needs_native)]
"""For ``@pytest.mark.parametrize("codec", CODECS)``."""

KEY = bytes(range(20))
OTHER_KEY = bytes(range(1, 21))
STREAM = 3

digests = st.sampled_from(list(Digest))
dialects = st.sampled_from([2, 3])
keys = st.sampled_from([KEY, OTHER_KEY])
ledger_ids = st.one_of(st.integers(0, 3), st.integers(0, 2**63 - 1))
entry_ids = st.one_of(st.integers(0, 5), st.integers(0, 2**63 - 100))
payloads = st.lists(st.one_of(st.binary(max_size=20), st.binary(min_size=120, max_size=400)), max_size=6)


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def adds(
    dialect: int = 2,
    ledger_id: int = 5,
    first: int = 0,
    many: list[bytes] | int = 1,
    *,
    lac: int = -1,
    key: bytes = KEY,
    digest: int = Digest.CRC32C,
    txn_base: int = STREAM << 40,
    deferred: bool = False,
) -> bytes:
    bodies = [b"payload %d" % i for i in range(many)] if isinstance(many, int) else many
    frames, _ = pure.encode_adds(dialect, ledger_id, first, bodies, lac, 0, key, digest, b"k" * 20, txn_base, deferred)
    return frames


deferred_adds = st.builds(
    adds, st.just(3), ledger_ids, entry_ids, payloads, key=keys, digest=digests, deferred=st.booleans()
)


def recovery_adds(
    dialect: int = 2,
    ledger_id: int = 5,
    first: int = 0,
    many: list[bytes] | int = 1,
    *,
    key: bytes = KEY,
    digest: int = Digest.CRC32C,
) -> bytes:
    """The entries of ``adds`` as a recovery sends them."""
    found = pure.split_adds(plain := adds(2, ledger_id, first, many, key=key, digest=digest), 0, len(plain))
    entries = [bytes(found.records[at + 8 : end]) for at, end in pairwise([0, *found.record_ends])]
    return pure.encode_recovery_adds(dialect, ledger_id, list(found.entry_ids), entries, key, STREAM << 40)


good_adds = (
    st.builds(adds, dialects, ledger_ids, entry_ids, payloads, lac=st.integers(-1, 9), key=keys, digest=digests)
    | deferred_adds
    | st.builds(recovery_adds, dialects, ledger_ids, entry_ids, payloads, key=keys, digest=digests)
)


@st.composite
def mutated(draw: st.DrawFn, source: st.SearchStrategy[bytes]) -> bytes:
    """A few bytes overwritten, removed or inserted anywhere: also in the length fields."""
    data = bytearray(draw(source))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        kind = draw(st.sampled_from(["set", "cut", "put"]))
        if kind == "set" and data:
            data[at] = draw(st.sampled_from([0, 1, 2, 0x0A, 0x10, 0x7F, 0x80, 0xFF]))
        elif kind == "cut":
            del data[at : at + draw(st.integers(1, 5))]
        else:
            data[at:at] = draw(st.binary(min_size=1, max_size=5))
    return bytes(data)


_SHORT = adds(3)[4:]
LONG_VARINT = framed(_SHORT.replace(b"\x06\x49\x08\x05\x10", b"\x06\x4a\x08\x85\x00\x10"))
"""A ledger id that takes a byte more than it needs."""


FLAGS = (b"\x28\x00", b"\x28\x02", b"\x28\x03", b"\x28\x81", b"\x20\x01", b"\x30\x01", b"\x01\x28", b"\x28\x28")
"""In the place of ``28 01``: other flags, other fields, no field at all."""

RECOVERY_FLAGS = (b"\xa0\x06\x00", b"\xa0\x06\x02", b"\xa0\x07\x01", b"\xa1\x06\x01", b"\x28\x01\x01")
"""In the place of ``a0 06 01``."""

SHORT_DEFERRED = encode_request(
    AddEntry(LedgerId(5), EntryId(0), KEY, adds(2, 5, 0, [b""], digest=Digest.DUMMY)[28:58], deferred_sync=True),
    Dialect.V3,
    1,
)
"""An entry of 30 bytes, and the flag."""


def oddities() -> list[bytes]:
    """Frames that are nearly plain adds, or impossible."""
    v2, v3, deferred = adds(2)[4:], adds(3)[4:], adds(3, deferred=True)[4:]
    recovery = recovery_adds(3)[4:]
    return [
        b"\0\0\0\0",
        b"\xff\xff\xff\xff",
        b"\x00\x50\x00\x00",
        framed(v2[:55]),
        framed(v2[:24] + b"\x80" + v2[25:]),
        framed(v2[:32] + b"\x80" + v2[33:]),
        framed(b"\x02\x01\x00\x01" + v2[4:]),
        framed(b"\x02\x01\x00\x03" + v2[4:]),
        *(framed(recovery[:-3] + flags) for flags in RECOVERY_FLAGS),
        framed(recovery[:-1]),
        framed(recovery[:-2]),
        framed(recovery[:-3]),
        framed(b"\x01" + v2[1:]),
        framed(v3 + b"\x28\x01"),
        *(framed(deferred[:-2] + flags) for flags in FLAGS),
        framed(deferred[:-1]),
        framed(deferred[:-2]),
        SHORT_DEFERRED,
        LONG_VARINT,
        framed(b"\x0a\xff" + v3[2:]),
        framed(v3[:-1]),
        framed(b"\x0a\x06\x08\x03\x10\x01\x18\x01\xa2\x06\x04\x08\x05\x10\x00"),
        framed(b"\x02\x02\x00\x00" + bytes(16)),
        framed(b"\x0a"),
        framed(b"\x02"),
    ]


frames = st.one_of(
    good_adds, good_adds, mutated(good_adds), st.sampled_from(oddities()), st.binary(max_size=40).map(framed)
)


@st.composite
def streams(draw: st.DrawFn, source: st.SearchStrategy[bytes]) -> tuple[bytes, int, int]:
    """(chunk, start, end): frames somewhere inside a chunk, perhaps cut at the end."""
    before = draw(st.binary(max_size=9))
    data = b"".join(draw(st.lists(source, max_size=8)))
    cut = draw(st.integers(0, len(data))) if draw(st.booleans()) else len(data)
    return before + data + draw(st.binary(max_size=5)), len(before), len(before) + cut


def outcome(function: Any, *args: Any) -> Any:
    """The result as plain values (an error inside it as its text), or the class of what was raised."""
    try:
        result = function(*args)
    except Exception as exc:
        return type(exc)
    if isinstance(result, tuple) and hasattr(result, "_asdict"):
        fields = result._asdict()
        if fields.get("error") is not None:
            fields["error"] = repr(fields["error"])
        return fields
    return result
