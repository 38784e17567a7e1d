"""The compiled codec gives what the Python one gives, on anything."""

from __future__ import annotations

from array import array
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookkeeper.codec import pure
from bookkeeper.codec.shapes import V3_STATUS, Dialect, Scan, Stop
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import AddReply, Operation, RequestHeader, Status, encode_reply
from tests.bookkeeper.codec.codecs import (
    KEY,
    adds,
    dialects,
    digests,
    entry_ids,
    framed,
    frames,
    good_adds,
    keys,
    ledger_ids,
    mutated,
    native,
    needs_native,
    outcome,
    payloads,
    streams,
)
from tests.examples_of import examples

pytestmark = needs_native
often = settings(deadline=None, max_examples=examples(200))


def same(name: str, *args: object) -> None:
    expected = outcome(getattr(pure, name), *args)
    assert outcome(getattr(native, name), *args) == expected


@often
@given(streams(frames), st.booleans(), st.sampled_from([5 << 20, 120, 60]))
def test_split_adds(stream: tuple[bytes, int, int], v2_only: bool, frame_max: int) -> None:
    chunk, start, end = stream
    same("split_adds", chunk, start, end, frame_max, v2_only)


@often
@given(streams(frames), st.integers(0, 1500), st.integers(0, 40))
def test_split_adds_into_a_buffer(stream: tuple[bytes, int, int], room: int, out_start: int) -> None:
    chunk, start, end = stream
    outs = [bytearray(room), bytearray(room)]
    results = [
        outcome(codec.split_adds, chunk, start, end, 5 << 20, False, out, out_start)
        for codec, out in zip((pure, native), outs, strict=True)
        if codec is not None
    ]
    assert results[0] == results[1] and outs[0] == outs[1]


@often
@given(dialects, ledger_ids, entry_ids, payloads, st.integers(-1, 2**63 - 1), st.integers(0, 2**40), keys, digests)
def test_encode_adds(
    dialect: int, ledger_id: int, first: int, bodies: list[bytes], lac: int, length: int, key: bytes, digest: int
) -> None:
    for txn_base in (0, 7 << 40, 0xFFFFFF << 40):
        for deferred, apart in ((False, False), (True, False), (False, True)):
            same(
                "encode_adds",
                dialect,
                ledger_id,
                first,
                bodies,
                lac,
                length,
                key,
                digest,
                b"m" * 20,
                txn_base,
                deferred,
                apart,
            )
    views = [memoryview(bytearray(body)) for body in bodies]
    same("encode_adds", dialect, ledger_id, first, views, lac, length, key, digest, b"m" * 20, 0, dialect == 3)


@often
@given(dialects, ledger_ids, st.lists(st.tuples(entry_ids, st.binary(min_size=32, max_size=300)), max_size=6), keys)
def test_encode_recovery_adds(dialect: int, ledger_id: int, some: list[tuple[int, bytes]], key: bytes) -> None:
    ids, entries = [entry_id for entry_id, _ in some], [entry for _, entry in some]
    for txn_base in (0, 7 << 40, 0xFFFFFF << 40):
        same("encode_recovery_adds", dialect, ledger_id, ids, entries, key, txn_base)
    same("encode_recovery_adds", dialect, ledger_id, ids, [memoryview(bytearray(entry)) for entry in entries], key, 0)


@pytest.mark.parametrize(
    "arguments",
    [
        (1, 5, 0, [b""], -1, 0, KEY, 3, b"", 0),
        (2, 5, 0, [b""], -1, 0, KEY, 5, b"", 0),
        (2, -1, 0, [b""], -1, 0, KEY, 3, b"", 0),
        (2, 5, -1, [b""], -1, 0, KEY, 3, b"", 0),
        (2, 5, 2**63 - 1, [b"", b""], -1, 0, KEY, 3, b"", 0),
        (2, 5, 0, [b""], -2, 0, KEY, 3, b"", 0),
        (2, 5, 0, [b""], -1, -1, KEY, 3, b"", 0),
        (2, 5, 0, [b""], -1, 0, KEY[1:], 3, b"", 0),
        (2, 5, 0, [b""], -1, 0, bytearray(KEY), 3, b"", 0),
        (3, 5, 0, [b""], -1, 0, KEY, 3, b"", 2**64),
        (2, 5, 0, ["text"], -1, 0, KEY, 3, b"", 0),
        (2, 5, 0, [b""], -1, 0, KEY, 3, b"", 0, True),
        (2, 5, 0, [b""], -1, 0, KEY, 2, b"", 0, True),
        (3, 5, 0, [b""], -1, 0, KEY, 3, b"", 0, True, True),
    ],
)
def test_arguments_that_cannot_be_encoded(arguments: tuple[object, ...]) -> None:
    assert outcome(pure.encode_adds, *arguments) in (ValueError, TypeError)
    same("encode_adds", *arguments)


def reply(dialect: int, ledger_id: int, entry_id: int, status: int, txn: int) -> bytes:
    header = RequestHeader(Dialect(dialect), Operation.ADD, txn)
    return encode_reply(header, AddReply(Status(status), LedgerId(ledger_id), EntryId(entry_id)))


@st.composite
def reply_runs(draw: st.DrawFn) -> bytes:
    """Replies of one stream in order, now and then one that does not fit."""
    dialect, ledger_id, first = draw(dialects), draw(ledger_ids), draw(entry_ids)
    status = draw(st.sampled_from([0, 0, 0, *V3_STATUS]))
    stream = draw(st.integers(0, 3))
    step = draw(st.sampled_from([1, 1, 1, 2, 0]))
    many = draw(st.integers(1, 6))
    ids = [(first + step * i) % 2**63 for i in range(many)]
    return b"".join(reply(dialect, ledger_id, e, status, stream << 40 | e % 2**40) for e in ids)


replies = st.one_of(reply_runs(), reply_runs(), mutated(reply_runs()), st.binary(max_size=30).map(framed), good_adds)


@often
@given(streams(replies), st.sampled_from([5 << 20, 30]))
def test_split_add_replies(stream: tuple[bytes, int, int], frame_max: int) -> None:
    same("split_add_replies", *stream, frame_max)


many_ids = st.lists(entry_ids | st.integers(0, 300), max_size=6)
txns = st.one_of(st.integers(0, 1 << 45), st.integers(0, (1 << 64) - 1))


@st.composite
def reads(draw: st.DrawFn) -> bytes:
    return pure.encode_reads(draw(dialects), draw(ledger_ids), draw(many_ids), draw(st.integers(0, 1 << 63)))


read_frames = st.one_of(reads(), reads(), mutated(reads()), st.binary(max_size=30).map(framed), good_adds)


@often
@given(dialects | st.integers(0, 9), ledger_ids | st.just(-1), many_ids | st.just([-1]) | st.just([1 << 63]), txns)
def test_encode_reads(dialect: int, ledger_id: int, ids: list[int], txn: int) -> None:
    same("encode_reads", dialect, ledger_id, ids, txn)


@often
@given(streams(read_frames), st.sampled_from([5 << 20, 24]), st.booleans(), st.sampled_from([8192, 2, 0]))
def test_split_reads(stream: tuple[bytes, int, int], frame_max: int, v2_only: bool, most: int) -> None:
    same("split_reads", *stream, frame_max, v2_only, most)


@st.composite
def answers(draw: st.DrawFn) -> tuple[object, bytes, int]:
    """Reads, and their records, perhaps damaged, each at a multiple of the step."""
    ids = draw(many_ids)
    chunk = pure.encode_reads(draw(dialects), 5, ids, draw(st.integers(0, 1 << 63)))
    step = draw(st.integers(8, 500))
    records = b""
    for entry_id in ids:
        body = adds(2, draw(st.sampled_from([5, 5, 5, 5, 6])), entry_id, [draw(st.binary(max_size=400))])[28:]
        records += pure.record(body)[:step].ljust(step, b"?")
    return pure.split_reads(chunk, 0, len(chunk)), draw(st.one_of(st.just(records), mutated(st.just(records)))), step


@often
@given(answers(), st.integers(-1, 6), st.integers(-1, 6), st.integers(-1, 2**63 - 1), st.sampled_from([5 << 20, 200]))
def test_answer_reads(given_: tuple[object, bytes, int], i0: int, count: int, lac: int, frame_max: int) -> None:
    found, records, step = given_
    same("answer_reads", found, i0, count, records, step, lac, frame_max)
    same("answer_reads", found, 0, len(records) // step, records, step, lac, frame_max)


@st.composite
def read_replies(draw: st.DrawFn, made: int) -> bytes:
    dialect, ids = draw(dialects), draw(many_ids)
    chunk = pure.encode_reads(dialect, 5, ids, draw(st.integers(0, 1 << 63)))
    entries = [adds(2, 5, entry_id, [draw(st.binary(max_size=200))], digest=made)[28:] for entry_id in ids]
    records = b"".join(pure.record(entry).ljust(300, b"?") for entry in entries)
    lac = draw(st.integers(-(2**63), 2**63 - 1))
    return pure.answer_reads(pure.split_reads(chunk, 0, len(chunk)), 0, len(ids), records, 300, lac).frames


@often
@given(digests, digests, st.booleans(), st.data())
def test_split_read_replies_and_unseal(made: int, read: int, v2: bool, more: st.DataObject) -> None:
    source = read_replies(made)
    chunk, start, end = more.draw(streams(st.one_of(source, source, mutated(source), read_frames)))
    same("split_read_replies", chunk, start, end, 200, v2)
    same("split_read_replies", chunk, start, end, 5 << 20, v2)
    found = pure.split_read_replies(chunk, start, end, 5 << 20, v2)
    picked = more.draw(st.lists(st.integers(-1, 6), max_size=3)) if more.draw(st.booleans()) else range(len(found.ends))
    ids = [found.entry_ids[i] if 0 <= i < len(found.ends) else 0 for i in picked]
    for digest in (made, read, 9):
        same("unseal_replies", chunk, found, picked, 5, ids, digest, b"k" * 20)
    same("unseal_replies", chunk, found, picked, 5, [*ids, 1], made, b"k" * 20)


@st.composite
def records(draw: st.DrawFn) -> tuple[bytes, array[int]]:
    ledger_id, first = draw(ledger_ids), draw(entry_ids)
    bodies = draw(payloads)
    split = pure.split_adds(chunk := adds(2, ledger_id, first, bodies), 0, len(chunk))
    state = draw(st.lists(st.tuples(st.integers(1, 2**16), st.binary(max_size=9)), max_size=2))
    own = ledger_id.to_bytes(8, "big")
    tail = b"".join(pure.record(own + (-e).to_bytes(8, "big", signed=True) + body) for e, body in state)
    return bytes(split.records) + tail + draw(st.sampled_from([b"", bytes(3), bytes(64)])), split.record_ends


record_bytes = records().map(lambda r: r[0])
record_ends = records().map(lambda r: r[1])
places = st.lists(st.integers(0, 99), max_size=6)
indices = st.integers(-1, 7)
ids = st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 15), max_size=6)
long_bytes = st.binary(max_size=300) | st.integers(0, 9000).map(lambda n: bytes(range(256)) * (n // 256 + 1))


@often
@given(st.one_of(record_bytes, mutated(record_bytes), st.binary(max_size=80)), st.data())
def test_scan_find_and_chain(data: bytes, more: st.DataObject) -> None:
    start = more.draw(st.sampled_from([0, 0, 0, 1, min(9, len(data))]))
    start = min(start, len(data))
    for record_max in (1 << 26, 64):
        same("scan_records", data, start, len(data), record_max)
        same("find_record", data, start, len(data), record_max)
    same("chain_crcs", data, start, len(data), 17)


@often
@given(st.one_of(records(), st.tuples(mutated(record_bytes), record_ends)), st.data())
def test_pack_and_read(given_: tuple[bytes, array[int]], more: st.DataObject) -> None:
    data, ends = given_
    offsets = array("q", [0, *ends][: len(ends)])
    if more.draw(st.booleans()):
        offsets.append(more.draw(st.one_of(st.integers(-5, len(data) + 5), st.sampled_from([2**63 - 1, -(2**63)]))))
    ledger_id, first = 0, 0
    if len(data) >= 24:
        ledger_id = int.from_bytes(data[8:16], "big", signed=True)
        first = int.from_bytes(data[16:24], "big", signed=True)
    budget = more.draw(st.one_of(st.integers(-1, 800), st.just(2**70)))
    at_least = more.draw(st.integers(0, 2))
    same("pack_entries", data, offsets, ledger_id, first, budget, at_least)
    for offset in offsets:
        same("read_record", data, offset, ledger_id, first)


@often
@given(digests, digests, st.data())
def test_split_entries(made: int, read: int, more: st.DataObject) -> None:
    ledger_id, first, bodies = more.draw(ledger_ids), more.draw(entry_ids), more.draw(payloads)
    split = pure.split_adds(chunk := adds(2, ledger_id, first, bodies, digest=made), 0, len(chunk))
    offsets = array("q", [0, *split.record_ends][: len(bodies)])
    body = pure.pack_entries(split.records, offsets, ledger_id, first, 1 << 40).body
    if more.draw(st.booleans()):
        body = more.draw(mutated(st.just(body)))
    same("split_entries", body, 0, len(body), ledger_id, first, read, b"k" * 20)
    same("split_entries", body, 0, len(body), ledger_id, first, made, b"k" * 20)


@often
@given(
    st.binary(max_size=60),
    st.lists(st.integers(-2, 70), max_size=6),
    st.lists(st.integers(-1, 6), max_size=6),
    st.integers(-1, 9),
)
def test_gather(data: bytes, ends: list[int], picked: list[int], start: int) -> None:
    same("gather", data, array("q", ends), picked, start)


@often
@given(places, indices, indices, st.integers(0, 9), st.integers(0, 2**50))
def test_record_places(ends: list[int], i0: int, i1: int, start: int, base: int) -> None:
    same("record_places", array("q", ends), i0, i1, start, base)


rows = st.tuples(st.integers(-1, 3), st.integers(-2, 6) | st.just(2**63 - 1), st.integers(-1, 9), st.integers(16, 99))


@often
@given(st.lists(rows, max_size=40), st.integers(0, 2**50))
def test_ledger_runs(scanned: list[tuple[int, int, int, int]], base: int) -> None:
    ledgers, entries, lacs, sizes = (array("q", [row[at] for row in scanned]) for at in range(4))
    offsets = array("q", range(len(scanned)))
    same("ledger_runs", Scan(offsets, ledgers, entries, lacs, sizes, len(scanned), Stop.END), base)


@often
@given(st.lists(st.integers(0, 60) | st.integers(0, 2**62), max_size=12), st.booleans(), st.integers(-1, 40))
def test_ascending(values: list[int], ordered: bool, span: int) -> None:
    same("ascending", array("q", sorted(values) if ordered else values), span)


@often
@given(st.lists(st.integers(0, 2) | st.integers(0, 2**62), max_size=12), indices, indices)
def test_unbroken(values: list[int], begin: int, end: int) -> None:
    same("unbroken", array("q", values), begin, end)


@often
@given(st.integers(0, 9), st.integers(0, 9), ids, st.integers(0, 7))
def test_scatter(size: int, origin: int, entries: list[int], values: int) -> None:
    targets = [array("q", [-1] * size), array("q", [-1] * size)]
    results = [
        outcome(codec.scatter, target, origin, array("q", entries), 0, len(entries), array("q", range(values)))
        for codec, target in zip((pure, native), targets, strict=True)
        if codec is not None
    ]
    assert results[0] == results[1] and targets[0] == targets[1]


@often
@given(long_bytes, st.integers(0, 2**32 - 1))
def test_crc32c_with_and_without_the_instruction(data: bytes, seed: int) -> None:
    assert native is not None
    expected = pure.crc32c(data, seed)
    assert native.crc32c(data, seed) == expected
    assert native.crc32c_portable(data, seed) == expected


@pytest.mark.parametrize("size", [0, 1, 7, 8, 63, 191, 192, 255, 256, 319, 320, 512, 1040, 6143, 6144, 6145, 20000])
def test_crc32c_of_every_stretch(size: int) -> None:
    assert native is not None
    data = Random(size).randbytes(size)
    for seed in (0, 1, 0xFFFFFFFF):
        assert native.crc32c(data, seed) == native.crc32c_portable(data, seed) == pure.crc32c(data, seed)


def test_misuse_is_refused_alike() -> None:
    for name in (
        "split_adds",
        "split_add_replies",
        "split_reads",
        "split_read_replies",
        "scan_records",
        "find_record",
        "chain_crcs",
    ):
        for start, end in ((-1, 2), (3, 2), (0, 5)):
            assert outcome(getattr(pure, name), b"abcd", start, end) is ValueError
            same(name, b"abcd", start, end)
    same("split_adds", b"", 0, 0, 99, False, bytearray(4), 5)
