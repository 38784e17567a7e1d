"""Every request and reply, encoded and decoded, is itself; any bytes decode or raise one error."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bookkeeper.errors import MalformedFrameError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import (
    AddEntry,
    AddReply,
    Auth,
    AuthReply,
    BareReply,
    BatchRead,
    BatchReply,
    Dialect,
    DialectDetector,
    ForceLedger,
    ForceReply,
    GetBookieInfo,
    InfoReply,
    LacReply,
    ListEntries,
    ListReply,
    Operation,
    ReadEntry,
    ReadLac,
    ReadReply,
    RefusedFrame,
    Reply,
    Request,
    RequestHeader,
    StartTls,
    StartTlsReply,
    Status,
    WriteLac,
    WriteLacReply,
    decode_reply,
    encode_reply,
    encode_request,
    error_of,
    failure,
    reply_pieces,
    status_of,
)
from bookkeeper.wire.status import ERRORS, FROM_V2, FROM_V3, TO_V2, TO_V3
from tests.examples_of import examples

V2, V3 = Dialect.V2, Dialect.V3

int64 = st.integers(-(2**63), 2**63 - 1)
natural = st.integers(0, 2**63 - 1)
ledgers = natural.map(LedgerId)
entries = natural.map(EntryId)
lasts = st.integers(-1, 2**63 - 1).map(EntryId)
keys = st.binary(min_size=20, max_size=20)
priorities = st.sampled_from([0, 100])
statuses = st.sampled_from(list(Status))
errors = st.sampled_from([status for status in Status if status is not Status.OK])
blobs = st.binary(max_size=60)
texts = st.text(max_size=9)
txns = st.integers(0, 2**64 - 1)


@st.composite
def add_entries(draw: st.DrawFn, deferred: bool) -> AddEntry:
    ledger_id, entry_id = draw(ledgers), draw(entries)
    entry = ledger_id.to_bytes(8, "big") + entry_id.to_bytes(8, "big") + draw(st.binary(min_size=16, max_size=60))
    return AddEntry(
        ledger_id, entry_id, draw(keys), entry, draw(st.booleans()), deferred and draw(st.booleans()), draw(priorities)
    )


@st.composite
def reads(draw: st.DrawFn, v3: bool) -> ReadEntry:
    fence = draw(st.booleans())
    key = draw(keys) if fence else draw(st.none() | keys)
    read = ReadEntry(draw(ledgers), draw(lasts), key, fence, draw(priorities))
    if not v3:
        return read
    return ReadEntry(
        read.ledger_id,
        read.entry_id,
        key,
        fence,
        draw(st.integers(0, 2**32 - 1)),
        draw(st.none() | int64),
        draw(st.none() | int64),
        not fence and draw(st.booleans()),
    )


@st.composite
def batches(draw: st.DrawFn) -> BatchRead:
    fence = draw(st.booleans())
    key = draw(keys) if fence else draw(st.none() | keys)
    most = draw(st.integers(-(2**31), 2**31 - 1))
    return BatchRead(draw(ledgers), draw(entries), draw(int64), most, draw(int64), key, fence, draw(priorities))


@st.composite
def lac_writes(draw: st.DrawFn) -> WriteLac:
    ledger_id, lac = draw(ledgers), draw(lasts)
    body = ledger_id.to_bytes(8, "big") + lac.to_bytes(8, "big", signed=True) + draw(st.binary(max_size=20))
    return WriteLac(ledger_id, lac, draw(keys), body)


auths = st.builds(Auth, texts, blobs)
v2_requests: st.SearchStrategy[Request] = st.one_of(add_entries(False), reads(False), batches(), auths)
v3_requests: st.SearchStrategy[Request] = st.one_of(
    add_entries(True),
    reads(True),
    lac_writes(),
    auths,
    st.builds(ReadLac, ledgers),
    st.builds(ForceLedger, ledgers),
    st.builds(ListEntries, ledgers),
    st.builds(GetBookieInfo, int64, st.none() | st.builds(LedgerId, int64)),
    st.just(StartTls()),
)

v2_replies = st.one_of(
    st.builds(AddReply, statuses, st.builds(LedgerId, int64), st.builds(EntryId, int64)),
    st.builds(ReadReply, errors, ledgers, lasts),
    st.builds(ReadReply, st.just(Status.OK), ledgers, lasts, blobs),
    st.builds(BatchReply, statuses, ledgers, entries, int64, blobs),
    st.builds(AuthReply, st.just(Status.OK), texts, blobs),
)
maybe = st.none() | int64
v3_replies = st.one_of(
    st.builds(AddReply, statuses, ledgers, entries),
    st.builds(ReadReply, statuses, ledgers, lasts, st.none() | blobs, maybe, maybe),
    st.builds(LacReply, statuses, ledgers, st.none() | blobs, st.none() | blobs),
    st.builds(WriteLacReply, statuses, ledgers),
    st.builds(ForceReply, statuses, ledgers),
    st.builds(InfoReply, statuses, maybe, maybe),
    st.builds(ListReply, statuses, ledgers, st.none() | blobs),
    st.builds(AuthReply, statuses, texts, blobs),
    st.builds(StartTlsReply, statuses),
)

OPS: dict[type[object], Operation] = {
    AddReply: Operation.ADD,
    ReadReply: Operation.READ,
    BatchReply: Operation.BATCH_READ,
    LacReply: Operation.READ_LAC,
    WriteLacReply: Operation.WRITE_LAC,
    ForceReply: Operation.FORCE_LEDGER,
    InfoReply: Operation.BOOKIE_INFO,
    ListReply: Operation.LIST_ENTRIES,
    AuthReply: Operation.AUTH,
    StartTlsReply: Operation.START_TLS,
}


@given(v2_requests)
def test_v2_requests(request: Request) -> None:
    decoded = DialectDetector().decode(encode_request(request, V2)[4:])
    assert isinstance(decoded, tuple)
    header, again = decoded
    assert (header.dialect, header.version, again) == (V2, 2, request)


@given(v3_requests, txns)
def test_v3_requests(request: Request, txn_id: int) -> None:
    decoded = DialectDetector().decode(encode_request(request, V3, txn_id)[4:])
    assert isinstance(decoded, tuple)
    header, again = decoded
    assert (header.dialect, header.txn_id, again) == (V3, txn_id, request)


@given(v2_replies, st.integers(0, 2))
def test_v2_replies(reply: Reply, version: int) -> None:
    header = RequestHeader(V2, OPS[type(reply)], version=2 if isinstance(reply, AuthReply) else version)
    frame = encode_reply(header, reply)
    assert decode_reply(frame[4:], V2) == (header, reply)
    assert b"".join(reply_pieces(header, reply)) == frame


@given(v3_replies, txns)
def test_v3_replies(reply: Reply, txn_id: int) -> None:
    header = RequestHeader(V3, OPS[type(reply)], txn_id, version=3)
    frame = encode_reply(header, reply)
    assert decode_reply(frame[4:], V3) == (header, reply)
    assert b"".join(reply_pieces(header, reply)) == frame


@given(st.sampled_from(list(Operation)), statuses, txns, st.integers(1, 3), st.integers(0, 9))
def test_bare_replies_repeat_the_header(
    op: Operation, status: Status, txn_id: int, version: int, priority: int
) -> None:
    header = RequestHeader(V3, op, txn_id, version, priority)
    assert decode_reply(encode_reply(header, BareReply(status))[4:], V3) == (header, BareReply(status))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """Frame bodies of either dialect with a few bytes overwritten, cut or put in."""
    whole = draw(
        st.one_of(
            v2_requests.map(lambda r: encode_request(r, V2)),
            v3_requests.map(lambda r: encode_request(r, V3, 7)),
            v2_replies.map(lambda r: encode_reply(RequestHeader(V2, OPS[type(r)]), r)),
            v3_replies.map(lambda r: encode_reply(RequestHeader(V3, OPS[type(r)], 7), r)),
        )
    )
    body = bytearray(whole[4:])
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(body)))
        body[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(body[: draw(st.integers(0, len(body)))] if draw(st.booleans()) else body)


@settings(max_examples=examples(500))
@given(st.one_of(st.binary(max_size=80), damaged()), st.booleans())
def test_any_bytes_give_a_request_a_refusal_or_one_error(body: bytes, v2_only: bool) -> None:
    detector = DialectDetector(v2_only)
    try:
        decoded = detector.decode(body)
    except MalformedFrameError:
        assert detector.v2
        return
    if isinstance(decoded, RefusedFrame):
        header, reply = decode_reply(decoded.frame[4:], decoded.header.dialect)
        assert reply.status is decoded.status is not Status.OK
        assert (header.op, header.txn_id) == (decoded.header.op, decoded.header.txn_id)
        return
    header, request = decoded
    assert detector.v2 is (header.dialect is V2)
    failed = failure(request, Status.IO_ERROR)
    if header.dialect is V3 or not isinstance(failed, BareReply):
        encode_reply(header, failed)


@settings(max_examples=examples(500))
@given(st.one_of(st.binary(max_size=80), damaged()), st.sampled_from([V2, V3]))
def test_any_bytes_give_a_reply_or_one_error(body: bytes, dialect: Dialect) -> None:
    try:
        header, reply = decode_reply(body, dialect)
    except MalformedFrameError:
        return
    if dialect is V2 and header.version:
        assert decode_reply(encode_reply(header, reply)[4:], V2)[1] == reply


def test_v2_stays_v2() -> None:
    detector = DialectDetector()
    read = ReadEntry(LedgerId(5), EntryId(0))
    spoken = []
    for dialect in (V3, V2):
        detector.decode(encode_request(read, dialect, 1)[4:])
        spoken.append(detector.v2)
    assert spoken == [False, True]
    with pytest.raises(MalformedFrameError):
        detector.decode(encode_request(read, V3, 1)[4:])


def test_starting_tls_is_v3_even_before_v2() -> None:
    assert encode_request(StartTls(), V2, 9) == encode_request(StartTls(), V3, 9)


@pytest.mark.parametrize(
    "request_",
    [
        AddEntry(LedgerId(1), EntryId(1), bytes(20), bytes(32), deferred_sync=True),
        AddEntry(LedgerId(1), EntryId(1), bytes(19), bytes(32)),
        ReadEntry(LedgerId(1), EntryId(1), previous_lac=3),
        ReadEntry(LedgerId(1), EntryId(1), fence=True),
        ForceLedger(LedgerId(1)),
        ReadLac(LedgerId(1)),
    ],
)
def test_what_v2_cannot_say(request_: Request) -> None:
    with pytest.raises(ValueError):
        encode_request(request_, V2)


def test_what_v3_cannot_say() -> None:
    with pytest.raises(ValueError):
        encode_request(BatchRead(LedgerId(1), EntryId(0), 1, 1, 1), V3)
    with pytest.raises(ValueError):
        encode_request(ReadEntry(LedgerId(1), EntryId(0), bytes(20), fence=True, piggyback=True), V3)


def test_every_status_has_a_number_in_both_dialects_and_an_error() -> None:
    assert set(TO_V2) == set(TO_V3) == set(Status)
    assert all(FROM_V2[TO_V2[status]] is FROM_V3[TO_V3[status]] is status for status in Status)
    assert set(ERRORS) == set(Status) - {Status.OK}
    assert all(status_of(error_of(status)) is status for status in ERRORS)
    assert status_of(OSError()) is Status.IO_ERROR
    assert status_of(RuntimeError()) is Status.BAD_REQUEST
