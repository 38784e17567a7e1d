"""Plain reads: the same bytes and values as the general codecs, and nothing but plain reads."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.errors import MalformedFrameError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import Dialect, Header, Op, ReadEntry, ReadReply, Refused, Request, Status, plain_reads, v2, v3
from bookkeeper.wire.dialect import Detector
from bookkeeper.wire.dialect import decode_reply as general_reply
from bookkeeper.wire.dialect import encode_request as general_request

U63 = st.one_of(st.integers(0, (1 << 63) - 1), st.integers(0, 1 << 22), st.sampled_from([127, 128, 16383, 16384]))
U64 = st.one_of(U63, st.integers(0, (1 << 64) - 1))
LACS = st.one_of(st.integers(-1, 1 << 22), st.sampled_from([-(1 << 63), (1 << 63) - 1]))
DIALECTS = st.sampled_from(Dialect)
BODIES = st.one_of(st.binary(max_size=40), st.sampled_from([bytes(125), bytes(1100), bytes(20000)]))


def frame_of(dialect: Dialect, ledger: int, entry: int, txn: int) -> bytes:
    return general_request(ReadEntry(LedgerId(ledger), EntryId(entry)), dialect, txn)


@given(DIALECTS, U63, U63, U64)
def test_requests_are_the_general_codecs(dialect: Dialect, ledger: int, entry: int, txn: int) -> None:
    frame = plain_reads.encode_request(dialect, ledger, entry, txn)
    assert frame == frame_of(dialect, ledger, entry, txn)
    read = plain_reads.decode_request(frame[4:], dialect is Dialect.V2)
    assert read is not None
    assert (read.ledger_id, read.entry_id) == (ledger, entry)


@given(DIALECTS, U63, U63, U64, BODIES, LACS)
def test_replies_are_the_general_codecs(
    dialect: Dialect, ledger: int, entry: int, txn: int, body: bytes, lac: int
) -> None:
    read = plain_reads.decode_request(frame_of(dialect, ledger, entry, txn)[4:], False)
    assert read is not None
    frame = plain_reads.encode_reply(read, body, lac)
    reply = ReadReply(Status.OK, LedgerId(ledger), EntryId(entry), body, lac if dialect is Dialect.V3 else None)
    header = Header(dialect, Op.READ, txn if dialect is Dialect.V3 else 0)
    assert frame == (v3 if dialect is Dialect.V3 else v2).encode_reply(header, reply)
    chunk = bytearray(b"??" + frame[4:] + b"??")
    assert plain_reads.decode_reply(chunk, 2, len(chunk) - 2, dialect) == (header.txn_id, reply)


@given(U63, U63, U64, BODIES)
def test_a_reply_without_a_lac_is_plain_too(ledger: int, entry: int, txn: int, body: bytes) -> None:
    reply = ReadReply(Status.OK, LedgerId(ledger), EntryId(entry), body)
    frame = v3.encode_reply(Header(Dialect.V3, Op.READ, txn), reply)
    assert plain_reads.decode_reply(frame, 4, len(frame), Dialect.V3) == (txn, reply)


@pytest.mark.parametrize("numbers", [(-1, 0, 1), (0, -1, 1), (1 << 63, 0, 1), (0, 1 << 63, 1), (0, 0, 1 << 64)])
def test_numbers_that_are_no_plain_reads(numbers: tuple[int, int, int]) -> None:
    assert plain_reads.encode_request(Dialect.V3, *numbers) is None


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
def test_requests_that_say_more_are_not_plain(request_: ReadEntry, dialect: Dialect) -> None:
    if dialect is Dialect.V2 and request_.previous_lac is not None:
        request_ = replace(request_, previous_lac=None, timeout_ms=None, entry_id=EntryId(-1))
    assert plain_reads.decode_request(general_request(request_, dialect, 7)[4:], dialect is Dialect.V2) is None


def test_v3_is_not_heard_once_v2_was_spoken() -> None:
    assert plain_reads.decode_request(frame_of(Dialect.V3, 1, 2, 3)[4:], True) is None


@pytest.mark.parametrize("seed", range(40))
def test_hostile_requests_mean_what_the_general_codec_says(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        dialect = chance.choice(list(Dialect))
        body = mutated(chance, frame_of(dialect, *numbers(chance))[4:])
        after_v2 = chance.random() < 0.3
        read = plain_reads.decode_request(body, after_v2)
        if read is None:
            continue
        decoded = Detector(after_v2).decode(body)
        assert not isinstance(decoded, Refused)
        header, request = decoded
        assert request == ReadEntry(read.ledger_id, read.entry_id)
        reply = ReadReply(Status.OK, read.ledger_id, read.entry_id, b"entry", 5)
        encode = v2.encode_reply if header.dialect is Dialect.V2 else v3.encode_reply
        assert header.priority == 0
        assert header.context == ()
        assert plain_reads.encode_reply(read, b"entry", 5) == encode(header, reply)


@pytest.mark.parametrize("seed", range(40))
def test_hostile_replies_mean_what_the_general_codec_says(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(200):
        dialect = chance.choice(list(Dialect))
        ledger, entry, txn = numbers(chance)
        lac = chance.choice([None, -1, 3, 1 << 40]) if dialect is Dialect.V3 else None
        reply = ReadReply(
            Status.OK, LedgerId(ledger), EntryId(entry), chance.randbytes(chance.choice([0, 9, 200])), lac
        )
        encode = v2.encode_reply if dialect is Dialect.V2 else v3.encode_reply
        body = mutated(chance, encode(Header(dialect, Op.READ, txn if dialect is Dialect.V3 else 0), reply)[4:])
        found = plain_reads.decode_reply(body, 0, len(body), dialect)
        if found is None:
            continue
        try:
            header, expected = general_reply(body, dialect)
        except MalformedFrameError:  # pragma: no cover
            pytest.fail(f"plain, and malformed: {body.hex()}")
        assert found == (header.txn_id, expected)
        assert header.op is Op.READ


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


@pytest.mark.parametrize("dialect", list(Dialect))
def test_what_apaches_programs_send_is_plain(dialect: Dialect) -> None:
    """Captured single reads, and what they were answered, are of this shape, in both directions."""
    data = json.loads((Path(__file__).parents[2] / "vectors" / f"wire_{dialect.name.lower()}.json").read_text())
    found = {"request": 0, "response": 0}
    for exchange in data["exchanges"]:
        for frame in exchange["frames"]:
            body = bytes.fromhex(frame.get("hex") or "")[4:]
            if not body or frame.get("protocol") != dialect.name.lower() or exchange["name"].startswith("raw/"):
                continue
            if frame["dir"] == "request":
                if (read := plain_reads.decode_request(body, False)) is not None:
                    assert decoded(body)[1] == ReadEntry(read.ledger_id, read.entry_id)
                    found["request"] += 1
            elif (answer := plain_reads.decode_reply(body, 0, len(body), dialect)) is not None:
                header, reply = general_reply(body, dialect)
                assert answer[0] == header.txn_id
                assert answer[1] == reply
                found["response"] += 1
    assert min(found.values()) >= 1, found


def decoded(body: bytes) -> tuple[Header, Request]:
    outcome = Detector().decode(body)
    assert not isinstance(outcome, Refused)
    return outcome
