"""Plain reads in runs: the same bytes and values as the general codecs, and nothing but plain reads."""

from __future__ import annotations

import json
import random
from array import array
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookkeeper.codec import FRAME_MAX, NO_LAC, Digest, Reads, pure
from bookkeeper.errors import MalformedFrameError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import (
    Dialect,
    Operation,
    ReadEntry,
    ReadReply,
    RefusedFrame,
    Request,
    RequestHeader,
    Status,
    v2,
    v3,
)
from bookkeeper.wire.dialect import DialectDetector
from bookkeeper.wire.dialect import decode_reply as general_reply
from bookkeeper.wire.dialect import encode_request as general_request
from tests.bookkeeper.codec.codecs import CODECS, adds, framed

both = pytest.mark.parametrize("codec", CODECS)
often = settings(deadline=None)

U63 = st.one_of(st.integers(0, (1 << 63) - 1), st.integers(0, 1 << 22), st.sampled_from([127, 128, 16383, 16384]))
TXNS = st.one_of(U63, st.integers(0, (1 << 64) - 9))
LACS = st.one_of(st.integers(-1, 1 << 22), st.sampled_from([1 - (1 << 63), (1 << 63) - 1]))
DIALECTS = st.sampled_from(Dialect)
SIZES = st.lists(st.one_of(st.integers(0, 40), st.sampled_from([93, 94, 125, 1100, 20000])), min_size=1, max_size=4)


def request_of(dialect: Dialect, ledger: int, entry: int, txn: int) -> bytes:
    return general_request(ReadEntry(LedgerId(ledger), EntryId(entry)), dialect, txn)


def reply_of(dialect: Dialect, txn: int, ledger: int, entry: int, body: bytes, lac: int | None) -> bytes:
    reply = ReadReply(Status.OK, LedgerId(ledger), EntryId(entry), body, lac if dialect is Dialect.V3 else None)
    header = RequestHeader(dialect, Operation.READ, txn if dialect is Dialect.V3 else 0)
    return v3.encode_reply(header, reply) if dialect is Dialect.V3 else v2.encode_reply(header, reply)


def entry_of(ledger: int, entry: int, payload: bytes, digest: int = Digest.CRC32C, lac: int = -1) -> bytes:
    return adds(2, ledger, entry, [payload], digest=digest, lac=lac)[28:]


def laid_out(entries: list[bytes]) -> tuple[bytes, int]:
    """Their records, each at a multiple of the step."""
    records = [pure.record(entry) for entry in entries]
    step = max(map(len, records)) + 7
    return b"".join(record.ljust(step, b"?") for record in records), step


# -- requests --------------------------------------------------------------------------------------------


@both
@often
@given(DIALECTS, U63, st.lists(U63, max_size=5), TXNS)
def test_requests_are_the_general_codecs(
    codec: ModuleType, dialect: Dialect, ledger: int, entries: list[int], txn: int
) -> None:
    frames = codec.encode_reads(dialect, ledger, entries, txn)
    assert frames == b"".join(request_of(dialect, ledger, entry, txn + i) for i, entry in enumerate(entries))
    other = request_of(Dialect(5 - dialect), 1, 2, 3)
    chunk = bytearray(b"??" + frames + other + b"??")
    reads = codec.split_reads(chunk, 2, len(chunk) - 2)
    if not entries:
        assert list(reads.entry_ids) == [2]
        return
    assert reads.v2 is (dialect is Dialect.V2)
    assert list(reads.ledger_ids) == [ledger] * len(entries)
    assert list(reads.entry_ids) == entries
    assert list(reads.txns) == [txn + i if dialect is Dialect.V3 else 0 for i in range(len(entries))]
    assert reads.ends[-1] == 2 + len(frames), "the other dialect is another run"
    assert len(codec.split_reads(chunk, 2, len(chunk) - 2, FRAME_MAX, False, 1).ends) == 1
    first = reads.ends[0] - 2
    assert list(codec.split_reads(frames, 0, first, first).ends) == [first]
    assert not codec.split_reads(frames, 0, first, first - 1).ends, "longer than frames may be"
    assert not codec.split_reads(frames, 0, first - 1).ends, "not all of it"


@both
@pytest.mark.parametrize(
    "numbers",
    [
        (3, -1, [0], 1),
        (3, 0, [-1], 1),
        (2, 0, [1 << 63], 1),
        (2, 1 << 63, [0], 1),
        (3, 0, [0], 1 << 64),
        (1, 0, [0], 1),
    ],
)
def test_numbers_that_are_no_plain_reads(codec: ModuleType, numbers: tuple[int, int, list[int], int]) -> None:
    with pytest.raises(ValueError):
        codec.encode_reads(*numbers)


@both
@pytest.mark.parametrize(
    "request_",
    [
        ReadEntry(LedgerId(1), EntryId(-1)),
        ReadEntry(LedgerId(1), EntryId(2), b"k" * 20),
        ReadEntry(LedgerId(1), EntryId(2), b"k" * 20, fence=True),
        ReadEntry(LedgerId(1), EntryId(2), priority=100),
        ReadEntry(LedgerId(1), EntryId(2), previous_lac=1, timeout_ms=5),
    ],
)
@pytest.mark.parametrize("dialect", list(Dialect))
def test_requests_that_say_more_end_a_run(codec: ModuleType, request_: ReadEntry, dialect: Dialect) -> None:
    if dialect is Dialect.V2 and request_.previous_lac is not None:
        request_ = replace(request_, previous_lac=None, timeout_ms=None, entry_id=EntryId(-1))
    plain = request_of(dialect, 1, 2, 6)
    chunk = plain + general_request(request_, dialect, 7) + plain
    assert list(codec.split_reads(chunk, 0, len(chunk), FRAME_MAX, dialect is Dialect.V2).ends) == [len(plain)]


@both
def test_v3_is_not_heard_once_v2_was_spoken(codec: ModuleType) -> None:
    frame = request_of(Dialect.V3, 1, 2, 3)
    assert not codec.split_reads(frame, 0, len(frame), FRAME_MAX, True).ends


@both
@pytest.mark.parametrize("seed", range(20))
def test_hostile_requests_mean_what_the_general_codec_says(codec: ModuleType, seed: int) -> None:
    chance = random.Random(seed)
    plain = 0
    for _ in range(200):
        dialect = chance.choice(list(Dialect))
        body = mutated(chance, request_of(dialect, *numbers(chance))[4:])
        after_v2 = chance.random() < 0.3
        reads = codec.split_reads(framed(body), 0, 4 + len(body), FRAME_MAX, after_v2)
        if not reads.ends:
            continue
        plain += 1
        decoded = DialectDetector(after_v2).decode(body)
        assert not isinstance(decoded, RefusedFrame)
        header, request = decoded
        assert request == ReadEntry(reads.ledger_ids[0], reads.entry_ids[0])
        assert header.priority == 0
        assert header.context == ()
        assert (header.dialect is Dialect.V2, header.txn_id) == (reads.v2, reads.txns[0])
    assert plain > 20


# -- replies ---------------------------------------------------------------------------------------------


@both
@often
@given(DIALECTS, U63, U63, TXNS, SIZES, LACS)
def test_replies_are_the_general_codecs(
    codec: ModuleType, dialect: Dialect, ledger: int, first: int, txn: int, sizes: list[int], lac: int
) -> None:
    ids = [first % ((1 << 63) - 9) + i for i in range(len(sizes))]
    entries = [entry_of(ledger, entry, bytes(size), Digest.DUMMY) for entry, size in zip(ids, sizes, strict=True)]
    requests = codec.encode_reads(dialect, ledger, ids, txn)
    reads = codec.split_reads(requests, 0, len(requests))
    records, step = laid_out(entries)
    answers = codec.answer_reads(reads, 0, len(ids), records, step, lac)
    expected = [reply_of(dialect, t, ledger, e, body, lac) for t, e, body in zip(reads.txns, ids, entries, strict=True)]
    assert answers == (b"".join(expected), len(ids), max(map(len, entries)))
    chunk = bytearray(b"??" + answers.frames + b"\0\0\0\1?")
    replies = codec.split_read_replies(chunk, 2, len(chunk), FRAME_MAX, dialect is Dialect.V2)
    assert replies.used == 2 + len(answers.frames)
    assert (list(replies.txns), list(replies.entry_ids)) == (list(reads.txns), ids)
    assert list(replies.ledger_ids) == [ledger] * len(ids)
    assert list(replies.lacs) == [lac if dialect is Dialect.V3 else NO_LAC] * len(ids)
    assert [bytes(chunk[a:b]) for a, b in zip(replies.begins, replies.ends, strict=True)] == entries
    payloads, highest = codec.unseal_replies(chunk, replies, range(len(ids)), ledger, ids, Digest.DUMMY)
    assert payloads == [bytes(size) for size in sizes]
    assert highest == (max(lac, -1) if dialect is Dialect.V3 else -1)


@both
@pytest.mark.rule("B7")
def test_a_record_that_is_not_what_was_asked_for_ends_the_replies(codec: ModuleType) -> None:
    entries = [entry_of(5, entry, b"payload %d" % entry) for entry in range(3)]
    records, step = laid_out(entries)
    requests = codec.encode_reads(Dialect.V3, 5, [0, 1, 2], 1)
    reads = codec.split_reads(requests, 0, len(requests))
    assert codec.answer_reads(reads, 0, 3, records, step, 7).n == 3
    size = len(pure.record(entries[1]))
    for at in range(step, step + size):
        for bit in (1, 0x80):
            damaged = bytearray(records)
            damaged[at] ^= bit
            assert codec.answer_reads(reads, 0, 3, damaged, step, 7).n == 1
            assert codec.answer_reads(reads, 1, 1, damaged[step:], step, 7) == (b"", 0, 0)
    assert codec.answer_reads(reads, 1, 2, records, step, 7).n == 0, "another entry's record"
    others = b"".join(codec.encode_reads(Dialect.V3, ledger, [0], 1) for ledger in (5, 6))
    mixed = codec.split_reads(others, 0, len(others))
    assert codec.answer_reads(mixed, 0, 2, records[:step] * 2, step, 7).n == 1, "another ledger's record"
    assert codec.answer_reads(reads, 0, 3, records, size - 1, 7).n == 0, "more than there is room for"
    assert codec.answer_reads(reads, 0, 3, records, step, 7, len(entries[0])).n == 0, "more than a frame may have"
    for dialect in (Dialect.V2, Dialect.V3):
        one = codec.encode_reads(dialect, 5, [0], 1)
        read, frame = codec.split_reads(one, 0, len(one)), reply_of(dialect, 1, 5, 0, entries[0], 7)
        fits = [codec.answer_reads(read, 0, 1, records, step, 7, len(frame) + more).n for more in (-1, 0)]
        assert fits == [0, 1], "the limit is that of the whole frame"


@both
@pytest.mark.rule("L5")
@pytest.mark.parametrize("digest", list(Digest))
def test_a_bad_entry_is_not_unsealed_and_tells_nothing(codec: ModuleType, digest: Digest) -> None:
    good, other = entry_of(5, 8, b"good", digest, lac=6), entry_of(5, 9, b"other", digest, lac=7)
    frames = reply_of(Dialect.V3, 1, 5, 8, good, 20) + reply_of(Dialect.V3, 2, 5, 9, other, 30)
    replies = codec.split_read_replies(frames, 0, len(frames))

    def unsealed(chunk: bytes, ledger: int, ids: list[int]) -> tuple[list[bytes | None], int]:
        result: tuple[list[bytes | None], int] = codec.unseal_replies(
            chunk, replies, [0, 1], ledger, ids, digest, b"k" * 20
        )
        return result

    assert unsealed(frames, 5, [8, 9]) == ([b"good", b"other"], 30)
    assert unsealed(frames, 5, [8, 8]) == ([b"good", None], 20)
    assert unsealed(frames, 6, [8, 9]) == ([None, None], NO_LAC)
    if digest is not Digest.DUMMY:
        for at in range(replies.begins[1], replies.ends[1]):
            hurt = bytearray(frames)
            hurt[at] ^= 4
            assert unsealed(bytes(hurt), 5, [8, 9]) == ([b"good", None], 20)
    short = reply_of(Dialect.V2, 0, 5, 8, good[:31], None)
    found = codec.split_read_replies(short, 0, len(short), FRAME_MAX, True)
    assert codec.unseal_replies(short, found, [0], 5, [8], digest, b"k" * 20) == ([None], NO_LAC)


@both
def test_a_reply_without_a_lac_is_plain_too_and_whatever_else_ends_a_run(codec: ModuleType) -> None:
    plain = reply_of(Dialect.V3, 1, 5, 8, b"entry", None)
    header = RequestHeader(Dialect.V3, Operation.READ, 2)
    for other in (
        v3.encode_reply(header, ReadReply(Status.NO_ENTRY, LedgerId(5), EntryId(8))),
        reply_of(Dialect.V2, 0, 5, 8, b"entry", None),
        adds(3),
        b"\0\0\0\0",
        plain[:-1],
    ):
        chunk = plain + plain + other
        replies = codec.split_read_replies(chunk, 0, len(chunk))
        assert (replies.used, list(replies.lacs)) == (2 * len(plain), [NO_LAC, NO_LAC])


@both
@pytest.mark.parametrize("seed", range(20))
def test_hostile_replies_mean_what_the_general_codec_says(codec: ModuleType, seed: int) -> None:
    chance = random.Random(seed)
    plain = 0
    for _ in range(200):
        dialect = chance.choice(list(Dialect))
        ledger, entry, txn = numbers(chance)
        lac = chance.choice([None, -1, 3, 1 << 40])
        body = mutated(
            chance, reply_of(dialect, txn, ledger, entry, chance.randbytes(chance.choice([0, 9, 200])), lac)[4:]
        )
        frame = framed(body)
        replies = codec.split_read_replies(frame, 0, len(frame), FRAME_MAX, dialect is Dialect.V2)
        if not replies.ends:
            continue
        plain += 1
        try:
            header, expected = general_reply(body, dialect)
        except MalformedFrameError:  # pragma: no cover
            pytest.fail(f"plain, and malformed: {body.hex()}")
        assert isinstance(expected, ReadReply)
        assert (header.op, header.txn_id) == (Operation.READ, replies.txns[0])
        told = expected.max_lac if expected.max_lac is not None else NO_LAC
        assert (expected.status, expected.ledger_id, expected.entry_id, told) == (
            Status.OK,
            replies.ledger_ids[0],
            replies.entry_ids[0],
            replies.lacs[0],
        )
        assert expected.entry == frame[replies.begins[0] : replies.ends[0]]
    assert plain > 20


@both
def test_misuse_is_refused(codec: ModuleType) -> None:
    requests = codec.encode_reads(Dialect.V2, 5, [0, 1], 0)
    reads = codec.split_reads(requests, 0, len(requests))
    for i0, count, size, step in (
        (0, 3, 99, 33),
        (-1, 1, 99, 33),
        (0, -1, 99, 33),
        (1, 2, 99, 33),
        (0, 2, 65, 33),
        (0, 1, 9, 7),
    ):
        with pytest.raises(ValueError):
            codec.answer_reads(reads, i0, count, bytes(size), step, 0)
    frame = reply_of(Dialect.V2, 0, 5, 0, entry_of(5, 0, b"x"), None)
    replies = codec.split_read_replies(frame, 0, len(frame), FRAME_MAX, True)
    for chunk, picked, ids, digest in (
        (frame, [1], [0], 3),
        (frame, [-1], [0], 3),
        (frame, [0], [], 3),
        (frame, [0], [0], 9),
        (frame[:-1], [0], [0], 3),
    ):
        with pytest.raises(ValueError):
            codec.unseal_replies(chunk, replies, picked, 5, ids, digest)
    with pytest.raises((TypeError, ValueError, IndexError)):
        codec.answer_reads(Reads(True, array("q"), array("q"), array("Q"), reads.ends), 0, 1, bytes(99), 99, 0)


# -- of others -------------------------------------------------------------------------------------------


def numbers(chance: random.Random) -> tuple[int, int, int]:
    return chance.randrange(1 << chance.randrange(1, 40)), chance.randrange(300), chance.randrange(1 << 33)


def mutated(chance: random.Random, body: bytes) -> bytes:
    """A few bytes changed, cut out, or put in; mostly near the front, where the fields are."""
    data = bytearray(body)
    for _ in range(chance.randrange(3)):
        at = chance.randrange(min(len(data), 40)) if data else 0
        kind = chance.randrange(3)
        if kind == 0 and data:
            data[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        elif kind == 1:
            data[at:at] = chance.randbytes(1)
        else:
            del data[at : at + 1]
    return bytes(data)


@both
@pytest.mark.parametrize("dialect", list(Dialect))
def test_what_apaches_programs_send_is_plain(codec: ModuleType, dialect: Dialect) -> None:
    """Captured single reads, and what they were answered, are of this shape, in both directions."""
    data = json.loads((Path(__file__).parents[2] / "vectors" / f"wire_{dialect.name.lower()}.json").read_text())
    found = {"request": 0, "response": 0}
    for exchange in data["exchanges"]:
        for frame in exchange["frames"]:
            whole = bytes.fromhex(frame.get("hex") or "")
            if not whole[4:] or frame.get("protocol") != dialect.name.lower() or exchange["name"].startswith("raw/"):
                continue
            if frame["dir"] == "request":
                reads = codec.split_reads(whole, 0, len(whole))
                if reads.ends:
                    assert decoded(whole[4:])[1] == ReadEntry(reads.ledger_ids[0], reads.entry_ids[0])
                    found["request"] += 1
                continue
            replies = codec.split_read_replies(whole, 0, len(whole), FRAME_MAX, dialect is Dialect.V2)
            if replies.ends:
                header, reply = general_reply(whole[4:], dialect)
                assert isinstance(reply, ReadReply)
                assert (header.txn_id, reply.entry) == (replies.txns[0], whole[replies.begins[0] : replies.ends[0]])
                found["response"] += 1
    assert min(found.values()) >= 1, found


def decoded(body: bytes) -> tuple[RequestHeader, Request]:
    outcome = DialectDetector().decode(body)
    assert not isinstance(outcome, RefusedFrame)
    return outcome
