"""Adds through both codecs: what the bookie gets out of a chunk, and what the client gets out of the replies."""

from __future__ import annotations

import hashlib
import json
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bookkeeper.codec import Digest, ReplyRun, Run, fail_acks, pure
from bookkeeper.errors import MalformedFrameError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import (
    AddEntry,
    AddReply,
    Dialect,
    DialectDetector,
    Operation,
    ReadEntry,
    RequestHeader,
    Status,
    decode_reply,
    encode_reply,
    encode_request,
)
from tests.bookkeeper.codec.codecs import (
    CODECS,
    FLAGS,
    KEY,
    LONG_VARINT,
    OTHER_KEY,
    RECOVERY_FLAGS,
    SHORT_DEFERRED,
    STREAM,
    adds,
    framed,
    recovery_adds,
)
from tests.bookkeeper.wire.framer import Framer

LEDGER, ENTRY = LedgerId(5), EntryId(0)
VECTORS = Path(__file__).parents[2] / "vectors"

both = pytest.mark.parametrize("codec", CODECS)
dialects = pytest.mark.parametrize("dialect", [2, 3])


def split(codec: ModuleType, chunk: bytes, **options: Any) -> Any:
    return codec.split_adds(chunk, 0, len(chunk), **options)


def read(ledger_id: int = 5, dialect: int = 2) -> bytes:
    request = ReadEntry(LedgerId(ledger_id), ENTRY)
    return encode_request(request, Dialect(dialect), 1)


@both
@dialects
def test_a_run_is_records_replies_and_ids(codec: ModuleType, dialect: int) -> None:
    chunk = adds(dialect, 5, 7, [b"one", b"", b"x" * 300], lac=6)
    result = split(codec, chunk)
    assert result.used == len(chunk)
    assert result.runs == [Run(5, KEY, 0, 3, True, 6)]
    assert list(result.entry_ids) == [7, 8, 9]
    assert (result.slow, result.error, result.full) == ([], None, False)
    entries = [framed_body(frame) for frame in Framer().feed(chunk)]
    assert b"".join(map(codec.record, entries)) == result.records
    assert [
        codec.read_record(result.records, at, 5, 7 + i) for i, at in enumerate([0, *result.record_ends[:2]])
    ] == entries
    replies = [decode_reply(body, Dialect(dialect)) for body in Framer().feed(result.acks)]
    assert [reply for _, reply in replies] == [AddReply(Status.OK, LEDGER, EntryId(entry)) for entry in (7, 8, 9)]
    if dialect == 3:
        assert [header.txn_id for header, _ in replies] == [STREAM << 40 | entry for entry in (7, 8, 9)]


def framed_body(body: bytes) -> bytes:
    decoded = DialectDetector().decode(body)
    assert isinstance(decoded, tuple) and isinstance(decoded[1], AddEntry)
    return decoded[1].entry


@both
@dialects
def test_another_ledger_key_or_a_repeated_id_begins_a_run(codec: ModuleType, dialect: int) -> None:
    chunk = b"".join(
        (
            adds(dialect, 5, 0, 2, lac=3),
            adds(dialect, 6, 2, 1),
            adds(dialect, 6, 3, 1, key=OTHER_KEY),
            adds(dialect, 6, 3, 1, key=OTHER_KEY),
            adds(dialect, 6, 1, 1, key=OTHER_KEY, lac=0),
        )
    )
    assert split(codec, chunk).runs == [
        Run(5, KEY, 0, 2, True, 3),
        Run(6, KEY, 2, 3, True, -1),
        Run(6, OTHER_KEY, 3, 4, True, -1),
        Run(6, OTHER_KEY, 4, 5, True, -1),
        Run(6, OTHER_KEY, 5, 6, True, 0),
    ]


@both
@pytest.mark.rule("W11")
@pytest.mark.parametrize("digest", list(Digest))
@pytest.mark.parametrize("ledger_id", [0, 4, 300, (1 << 63) - 1])
@pytest.mark.parametrize("first", [0, 126, 1 << 40])
def test_a_deferred_add_is_the_plain_one_with_the_flag_of_the_protocol(
    codec: ModuleType, digest: Digest, ledger_id: int, first: int
) -> None:
    payloads = [b"x" * size for size in (0, 1, 34, 35, 36, 37, 38, 70, 120, 16_250, 16_320, 70_000)]
    frames, ends = codec.encode_adds(3, ledger_id, first, payloads, -1, 0, KEY, digest, b"mac", 7 << 40, True)
    plain = split(codec, codec.encode_adds(3, ledger_id, first, payloads, -1, 0, KEY, digest, b"mac", 7 << 40)[0])
    begin = start = 0
    for index, (end, stop) in enumerate(zip(plain.record_ends, ends, strict=True)):
        entry, entry_id = plain.records[begin + 8 : end], first + index
        request = AddEntry(LedgerId(ledger_id), EntryId(entry_id), KEY, entry, deferred_sync=True)
        assert frames[start:stop] == encode_request(request, Dialect.V3, 7 << 40 | entry_id % (1 << 40))
        begin, start = end, stop
    assert start == len(frames)
    again = split(codec, frames)
    assert again.runs == [plain.runs[0]._replace(deferred=True)] and not plain.runs[0].deferred
    assert again._replace(used=0, runs=[]) == plain._replace(used=0, runs=[]), "but for that the same"


@both
@pytest.mark.rule("W11", "B1")
def test_no_run_is_deferred_in_part(codec: ModuleType) -> None:
    """Whose last bytes look like the flag is not flagged."""
    looks = [b"no flag: \x28\x01"]
    chunk = (
        adds(3, 5, 0, 2)
        + adds(3, 5, 2, 2, deferred=True)
        + adds(3, 5, 4, looks)
        + adds(3, 5, 5, looks, deferred=True)
        + adds(2, 5, 6, looks)
    )
    result = split(codec, chunk)
    assert [(run.i0, run.i1, run.deferred) for run in result.runs] == [
        (0, 2, False),
        (2, 4, True),
        (4, 5, False),
        (5, 6, True),
        (6, 7, False),
    ]
    assert [codec.read_record(result.records, result.record_ends[at - 1], 5, at)[-11:] for at in (4, 5, 6)] == looks * 3


@both
@dialects
@pytest.mark.rule("B3")
@pytest.mark.parametrize("digest", list(Digest))
@pytest.mark.parametrize("ledger_id", [0, 300, (1 << 63) - 1])
@pytest.mark.parametrize("first", [0, 126, 1 << 40])
def test_a_recovery_add_is_the_stored_entry_with_the_flag_of_the_protocol(
    codec: ModuleType, dialect: int, digest: Digest, ledger_id: int, first: int
) -> None:
    payloads = [b"x" * size for size in (0, 1, 34, 35, 36, 37, 38, 70, 120, 16_250, 16_320, 70_000)]
    plain = split(codec, codec.encode_adds(dialect, ledger_id, first, payloads, -1, 0, KEY, digest, b"mac", 7 << 40)[0])
    entries = [plain.records[begin + 8 : end] for begin, end in pairwise([0, *plain.record_ends])]
    frames = codec.encode_recovery_adds(dialect, ledger_id, list(plain.entry_ids), entries, KEY, 7 << 40)
    assert frames == b"".join(
        encode_request(
            AddEntry(LedgerId(ledger_id), EntryId(entry_id), KEY, entry, recovery=True),
            Dialect(dialect),
            7 << 40 | entry_id % (1 << 40),
        )
        for entry_id, entry in zip(plain.entry_ids, entries, strict=True)
    )
    again = split(codec, frames)
    assert again.runs == [plain.runs[0]._replace(recovery=True)] and not plain.runs[0].recovery
    assert again._replace(used=0, runs=[]) == plain._replace(used=0, runs=[]), "but for that the same"


@both
@pytest.mark.rule("B3")
def test_no_run_passes_a_fence_in_part(codec: ModuleType) -> None:
    """Whose last bytes look like the flag is not flagged."""
    looks = [b"no flag: \xa0\x06\x01"]
    chunk = (
        adds(3, 5, 0, 2)
        + recovery_adds(3, 5, 2, 2)
        + adds(3, 5, 4, looks)
        + recovery_adds(3, 5, 5, looks)
        + recovery_adds(2, 5, 6, 2)
        + adds(2, 5, 8, looks)
    )
    assert [(run.i0, run.i1, run.recovery) for run in split(codec, chunk).runs] == [
        (0, 2, False),
        (2, 4, True),
        (4, 5, False),
        (5, 8, True),
        (8, 9, False),
    ]


@both
@pytest.mark.parametrize(
    "arguments",
    [
        (1, 5, [0], [bytes(32)], KEY, 0),
        (3, -1, [0], [bytes(32)], KEY, 0),
        (3, 5, [-1], [bytes(32)], KEY, 0),
        (3, 5, [0, 1], [bytes(32)], KEY, 0),
        (3, 5, [0], [bytes(31)], KEY, 0),
        (3, 5, [0], [bytes(32)], KEY[1:], 0),
        (3, 5, [0], [bytes(32)], bytearray(KEY), 0),
        (3, 5, [0], [bytes(32)], KEY, 1 << 64),
        (2, 5, [0], [bytes(32)], KEY, -1),
    ],
)
def test_a_recovery_add_that_cannot_be_encoded(codec: ModuleType, arguments: tuple[object, ...]) -> None:
    with pytest.raises(ValueError):
        codec.encode_recovery_adds(*arguments)


@both
@dialects
def test_striped_ids_are_one_run_with_holes(codec: ModuleType, dialect: int) -> None:
    """E=5, Qw=3: one bookie sees 0 1 3 (2 and 4 went elsewhere), still one run; LAC is the greatest."""
    ids = [0, 1, 3, 5, 6, 8]
    chunk = b"".join(adds(dialect, 5, entry, 1, lac=lac) for entry, lac in zip(ids, [-1, 0, 2, 2, 4, 3], strict=True))
    result = split(codec, chunk)
    assert result.runs == [Run(5, KEY, 0, 6, False, 4)]
    assert list(result.entry_ids) == ids


@both
def test_the_order_of_a_connection_can_be_kept(codec: ModuleType) -> None:
    chunk = read() + adds(2, 5, 0, 2) + read() + read() + adds(2, 5, 2, 1) + read()
    result = split(codec, chunk)
    assert [(run.i0, run.i1) for run in result.runs] == [(0, 2), (2, 3)], "no run spans a slow frame"
    assert result.slow_after == [0, 1, 1, 2]
    assert [chunk[a:b] for a, b in result.slow] == [read()[4:]] * 4


@both
def test_a_connection_that_spoke_v2_has_no_v3_adds(codec: ModuleType) -> None:
    assert split(codec, adds(3)).v2 is False
    for first in (adds(2), read()):
        result = split(codec, first + adds(3))
        assert (
            result.v2 is True
            and len(result.entry_ids) == (first == adds(2))
            and len(result.slow) == 1 + (first == read())
        )
    assert split(codec, adds(3), v2_only=True).slow == [(4, len(adds(3)))]
    assert split(codec, adds(3) + adds(2)).slow == []


NOT_PLAIN = {
    "v2 recovery, priority": framed(b"\x02\x01\x00\x03" + adds(2)[8:]),
    **{f"v3 flag {flags.hex()}": recovery_adds(3)[:-3] + flags for flags in RECOVERY_FLAGS},
    "v3 priority": encode_request(AddEntry(LEDGER, ENTRY, KEY, adds(2)[28:], priority=9), Dialect.V3, 1),
    "v3 deferred recovery": encode_request(
        AddEntry(LEDGER, ENTRY, KEY, adds(2)[28:], deferred_sync=True, recovery=True), Dialect.V3, 1
    ),
    **{f"v3 flags {flags.hex()}": adds(3, deferred=True)[:-2] + flags for flags in FLAGS},
    "v3 flag outside the request": framed(adds(3)[4:] + b"\x28\x01"),
    "v3 flag in the entry's place": framed(adds(3, deferred=True)[4:-2]),
    "v3 deferred short entry": SHORT_DEFERRED,
    "v3 other ids": encode_request(AddEntry(LEDGER, EntryId(1), KEY, adds(2)[28:]), Dialect.V3, 1),
    "v3 short key": encode_request(AddEntry(LEDGER, ENTRY, KEY[:19], adds(2)[28:]), Dialect.V3, 1),
    "v3 long varint": LONG_VARINT,
    "v2 short entry": framed(adds(2)[4:59]),
    "v2 version 1": framed(b"\x01" + adds(2)[5:]),
    "v2 negative ledger": framed(adds(2)[4:28] + b"\xff" * 8 + adds(2)[36:]),
    "v2 negative entry": framed(adds(2)[4:36] + b"\xff" * 8 + adds(2)[44:]),
}


@both
@pytest.mark.parametrize("frame", NOT_PLAIN.values(), ids=NOT_PLAIN)
def test_whatever_is_not_plain_takes_the_general_path(codec: ModuleType, frame: bytes) -> None:
    """Negative entry ids above all: they would be state records on disk."""
    result = split(codec, frame)
    assert result.slow == [(4, len(frame))]
    assert (result.records, result.acks, result.runs) == (b"", b"", [])


@both
@pytest.mark.parametrize("length", [0, 5 * 2**20 - 3, 2**31, 2**32 - 1])
def test_an_impossible_length_is_reported_after_what_precedes_it(codec: ModuleType, length: int) -> None:
    chunk = adds(2) + length.to_bytes(4, "big") + b"more"
    result = split(codec, chunk)
    assert isinstance(result.error, MalformedFrameError)
    assert result.used == len(adds(2)) and len(result.runs) == 1
    replies = codec.split_add_replies(chunk, 0, len(chunk))
    assert isinstance(replies.error, MalformedFrameError) and replies.used == len(adds(2))


@both
@dialects
def test_frames_cut_anywhere(codec: ModuleType, dialect: int) -> None:
    chunk = adds(dialect, 5, 0, 2) + read() + adds(dialect, 6, 0, 1)
    whole = split(codec, chunk)
    for cut in range(len(chunk)):
        first = codec.split_adds(chunk, 0, cut)
        assert first.used <= cut and first.error is None
        rest = codec.split_adds(chunk, first.used, len(chunk), v2_only=first.v2)
        assert first.records + rest.records == whole.records
        assert first.acks + rest.acks == whole.acks
        assert first.slow + rest.slow == whole.slow


@both
@dialects
def test_records_go_where_the_caller_wants_them(codec: ModuleType, dialect: int) -> None:
    chunk = adds(dialect, 5, 0, [b"a" * 100] * 5)
    whole = split(codec, chunk)
    out = bytearray(64 + 2 * whole.record_ends[0] + 10)
    first = split(codec, chunk, out=out, out_start=64)
    assert first.full and len(first.entry_ids) == 2 and first.records is out and first.record_start == 64
    assert out[64 : first.record_ends[-1]] == whole.records[: whole.record_ends[1]]
    assert list(codec.record_places(first.record_ends, 0, 2, 64, 1 << 40)) == [
        1 << 40 | 64,
        1 << 40 | 64 + whole.record_ends[0],
    ]
    rest = codec.split_adds(chunk, first.used, len(chunk))
    assert list(rest.entry_ids) == [2, 3, 4] and first.acks + rest.acks == whole.acks


@both
def test_a_failing_run_can_be_cut_out(codec: ModuleType) -> None:
    chunk = adds(2, 5, 0, 2) + adds(2, 6, 0, 3) + adds(2, 7, 0, 1)
    result = split(codec, chunk)
    run = result.runs[1]
    ends = result.record_ends
    kept = result.records[: ends[run.i0 - 1]] + result.records[ends[run.i1 - 1] :]
    assert kept == split(codec, adds(2, 5, 0, 2) + adds(2, 7, 0, 1)).records
    replies = fail_acks(result.acks, result.ack_ends, run.i0, run.i1, Status.FENCED)
    assert codec.split_add_replies(replies, 0, len(replies)).runs == [ReplyRun(-1, 6, 0, 3, Status.FENCED)]


@dialects
@pytest.mark.parametrize("status", list(Status))
def test_failing_replies_are_what_the_wire_room_encodes(dialect: int, status: Status) -> None:
    result = split(pure, adds(dialect, 5, 300, 2))
    expected = b"".join(
        encode_reply(
            RequestHeader(Dialect(dialect), Operation.ADD, STREAM << 40 | entry),
            AddReply(status, LEDGER, EntryId(entry)),
        )
        for entry in (300, 301)
    )
    assert fail_acks(result.acks, result.ack_ends, 0, 2, status) == expected
    if status is Status.OK:
        assert result.acks == expected


@both
@dialects
def test_replies_of_a_stream_are_runs_of_one_outcome(codec: ModuleType, dialect: int) -> None:
    chunk = split(codec, adds(dialect, 5, 0, 3) + adds(dialect, 5, 4, 1)).acks
    fenced = split(codec, adds(dialect, 5, 5, 2))
    chunk += fail_acks(fenced.acks, fenced.ack_ends, 0, 2, Status.FENCED)
    stream = -1 if dialect == 2 else STREAM
    assert codec.split_add_replies(chunk, 0, len(chunk)).runs == [
        ReplyRun(stream, 5, 0, 3, Status.OK),
        ReplyRun(stream, 5, 4, 1, Status.OK),
        ReplyRun(stream, 5, 5, 2, Status.FENCED),
    ]


@both
def test_replies_outside_streams_take_the_general_path(codec: ModuleType) -> None:
    def reply(txn: int, entry: int = 7) -> bytes:
        return encode_reply(RequestHeader(Dialect.V3, Operation.ADD, txn), AddReply(Status.OK, LEDGER, EntryId(entry)))

    chunk = reply(7) + reply(STREAM << 40 | 8) + reply(STREAM << 40 | 7)
    result = codec.split_add_replies(chunk, 0, len(chunk))
    assert len(result.slow) == 2 and result.runs == [ReplyRun(STREAM, 5, 7, 1, 0)]
    unknown = framed(b"\x02\x01\x00\x00" + (9).to_bytes(4, "big") + bytes(16))
    assert codec.split_add_replies(unknown, 0, len(unknown)).slow == [(4, 28)]


@both
def test_a_bookies_share_of_a_run(codec: ModuleType) -> None:
    frames, ends = codec.encode_adds(2, 5, 0, [bytes([i]) * i for i in range(9)], -1, 0, KEY, Digest.CRC32C)
    share = [0, 2, 3, 5, 6, 8]
    picked = codec.gather(frames, ends, share)
    assert list(split(codec, picked).entry_ids) == share
    assert codec.gather(frames, ends, range(9)) == frames


@both
def test_entries_carry_lac_and_running_length(codec: ModuleType) -> None:
    frames, _ = codec.encode_adds(2, 5, 3, [b"abc", b"", b"de"], 2, 100, KEY, Digest.DUMMY)
    headers = [
        tuple(int.from_bytes(body[24 + at : 32 + at], "big") for at in (0, 8, 16, 24)) for body in Framer().feed(frames)
    ]
    assert headers == [(5, 3, 2, 103), (5, 4, 2, 103), (5, 5, 2, 105)]


@both
@pytest.mark.parametrize("digest", list(Digest))
@pytest.mark.parametrize("dialect", [2, 3])
def test_frames_without_payloads_want_only_these(codec: ModuleType, dialect: int, digest: Digest) -> None:
    payloads = [b"", b"x" * 100, bytearray(b"y" * 20_000)]
    arguments = (dialect, 5, 3, payloads, 2, 9, KEY, digest, b"mac", 7 << 40)
    frames, _ = codec.encode_adds(*arguments)
    beginnings, ends = codec.encode_adds(*arguments, False, True)
    starts = [0, *ends][:-1]
    pieces = [beginnings[start:end] + payload for start, end, payload in zip(starts, ends, payloads, strict=True)]
    assert b"".join(pieces) == frames
    assert ends[-1] == len(beginnings)


def captured() -> list[tuple[str, bytes, str]]:
    """Every plain add that the official clients sent: (protocol, frame, its flag)."""
    found = []
    for name in ("wire_v2", "wire_v3"):
        data = json.loads((VECTORS / f"{name}.json").read_text())
        for item in data["exchanges"] + data["sessions"]:
            for frame in item["frames"]:
                fields = frame.get("fields") or {}
                plain_v2 = fields.get("opcode") == "ADDENTRY" and fields["flags"] in (0, 2)
                add = dict(fields.get("addRequest", {}))
                flags, flag = add.pop("writeFlags", 0), add.pop("flag", None)
                plain_v3 = set(add) == {"ledgerId", "entryId", "masterKey", "body"} and flags in (0, 1)
                recovery = flag == "RECOVERY_ADD" or fields.get("flags") == 2
                kind = "recovery" if recovery else "deferred" if flags else ""
                odd = item["name"].startswith("raw/") or fields.get("header", {}).get("priority")
                if frame["dir"] == "request" and (plain_v2 or plain_v3) and not odd:
                    found.append((frame["protocol"], bytes.fromhex(frame["hex"]), kind))
    return found


@both
def test_the_official_clients_adds_are_plain(codec: ModuleType) -> None:
    frames = captured()
    kinds = {(protocol, kind) for protocol, _, kind in frames}
    assert len(frames) > 100
    assert kinds == {("v2", ""), ("v2", "recovery"), ("v3", ""), ("v3", "deferred"), ("v3", "recovery")}
    for _, frame, kind in frames:
        result = split(codec, frame)
        assert result.records == codec.record(framed_body(frame[4:]))
        flags = [(run.deferred, run.recovery) for run in result.runs]
        assert flags == [(kind == "deferred", kind == "recovery")] and not result.slow


@both
@pytest.mark.parametrize("digest", list(Digest))
def test_our_adds_are_the_official_encoders_bytes(codec: ModuleType, digest: Digest) -> None:
    frames = json.loads((VECTORS / "digests.json").read_text())["v2_add_frames"]
    chosen = [f for f in frames if f["digest_type"] == digest.name and f["flags"] == 0]
    assert chosen
    for f in chosen:
        password, payload = bytes.fromhex(f["password_hex"]), bytes.fromhex(f["payload_hex"])
        key, mac_key = hashlib.sha1(b"ledger" + password).digest(), hashlib.sha1(b"mac" + password).digest()
        before = f["length"] - len(payload)
        ours, ends = codec.encode_adds(
            2, f["ledger_id"], f["entry_id"], [payload], f["lac"], before, key, digest, mac_key
        )
        assert ours.hex() == f["frame"] and list(ends) == [len(ours)]
        body = ours[28:]
        entry = framed(body)
        result = codec.split_entries(entry, 0, len(entry), f["ledger_id"], f["entry_id"], digest, mac_key)
        assert (result.payloads, list(result.lacs), list(result.lengths)) == ([payload], [f["lac"]], [f["length"]])


def test_a_long_varint_is_read_by_the_general_path() -> None:
    (body,) = Framer().feed(LONG_VARINT)
    decoded = DialectDetector().decode(body)
    assert isinstance(decoded, tuple) and decoded[1] == DialectDetector().decode(adds(3)[4:])[1]  # type: ignore[index]
