"""Who gets in, step by step, without a socket."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper import wire
from bookkeeper.bookie.connections import handshake as machine
from bookkeeper.bookie.connections.handshake import (
    FRAME_MAX,
    Admit,
    AskProvider,
    AwaitEarly,
    AwaitTls,
    BeginTls,
    HandshakeState,
    NeedBytes,
    Reject,
    refusal_of,
)
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import Dialect, Operation, Status
from tests.bookkeeper.validated import validated

Handshake = validated(machine.Handshake)

KEY = b"k" * 20
START_TLS = wire.encode_request(wire.StartTls(), Dialect.V3, 15)
AUTH = {dialect: wire.encode_request(wire.Auth("p", b"token"), dialect, 16) for dialect in Dialect}
READ = {dialect: wire.encode_request(wire.ReadEntry(LedgerId(5), EntryId(0), KEY), dialect, 17) for dialect in Dialect}
ADD = {
    dialect: wire.encode_request(wire.AddEntry(LedgerId(5), EntryId(0), KEY, bytes(100)), dialect, 18)
    for dialect in Dialect
}


def look(handshake: machine.Handshake, frame: bytes) -> object:
    return handshake.next_step(b"??" + frame, 2, 2 + len(frame))


@pytest.mark.rule("X2")
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("asks", [False, True])
def test_required_takes_nothing_but_start_tls_in_clear(dialect: Dialect, asks: bool) -> None:
    for frame in (READ[dialect], ADD[dialect], AUTH[dialect]):
        handshake = Handshake("required", authenticates=asks)
        step = look(handshake, frame)
        assert isinstance(step, Reject) and "requires TLS" in step.reason
        assert handshake.state is HandshakeState.SHUT
        if step.reply is not None:
            _, reply = wire.decode_reply(step.reply[4:], dialect)
            assert reply.status is Status.UNAUTHORIZED
        assert (step.reply is None) == (dialect is Dialect.V2 and frame is AUTH[dialect])


@pytest.mark.rule("X2")
def test_a_request_is_refused_by_its_first_bytes() -> None:
    """The body of a large add in clear is not waited for, let alone parsed."""
    claimed = struct.pack(">I", 4_000_000) + ADD[Dialect.V3][4:][:20] + bytes(200)
    assert isinstance(look(Handshake("required", authenticates=False), claimed), Reject)


def test_start_tls_first_and_then_the_requests() -> None:
    for mode in ("required", "offered"):
        handshake = Handshake(mode, authenticates=False)
        step = look(handshake, START_TLS)
        assert isinstance(step, BeginTls) and step.used == len(START_TLS)
        header, reply = wire.decode_reply(step.reply[4:], Dialect.V3)
        assert (header.op, header.txn_id, reply) == (Operation.START_TLS, 15, wire.StartTlsReply(Status.OK))
        assert handshake.on_encrypted(admitted=True)
        assert handshake.state is HandshakeState.OPEN


@pytest.mark.parametrize("mode", ["offered", "off"])
@pytest.mark.parametrize("dialect", Dialect)
def test_offered_serves_those_who_do_not_ask_for_it(mode: str, dialect: Dialect) -> None:
    handshake = Handshake(mode, authenticates=False)
    assert look(handshake, ADD[dialect]) == Admit()
    assert handshake.state is HandshakeState.OPEN


def test_start_tls_where_there_is_none_or_later_is_a_bad_request() -> None:
    for handshake in (Handshake("off", authenticates=True), Handshake("offered", authenticates=True)):
        if handshake._mode == "offered":
            assert isinstance(look(handshake, AUTH[Dialect.V3]), AskProvider)
        step = look(handshake, START_TLS)
        assert isinstance(step, Reject) and step.reply is not None
        assert wire.decode_reply(step.reply[4:], Dialect.V3)[1] == wire.BareReply(Status.BAD_REQUEST)
        assert handshake.state is HandshakeState.SHUT


@pytest.mark.rule("X10")
@pytest.mark.parametrize("dialect", Dialect)
def test_nothing_but_auth_until_the_provider_knows_who_it_is(dialect: Dialect) -> None:
    handshake = Handshake("required", authenticates=True)
    look(handshake, START_TLS)
    assert not handshake.on_encrypted(admitted=True)
    step = look(handshake, AUTH[dialect])
    assert isinstance(step, AskProvider)
    assert (step.plugin, step.payload, step.header.dialect) == ("p", b"token", dialect)
    assert isinstance(look(handshake, ADD[dialect]), Reject)

    handshake = Handshake("off", authenticates=True)
    look(handshake, AUTH[dialect])
    handshake.on_authenticated()
    assert handshake.state is HandshakeState.OPEN


@pytest.mark.rule("X10")
def test_messages_before_authentication_are_small() -> None:
    handshake = Handshake("off", authenticates=True)
    long = wire.encode_request(wire.Auth("p", bytes(FRAME_MAX)), Dialect.V3, 1)
    assert isinstance(look(handshake, long[:300]), Reject)


@pytest.mark.rule("X5")
@pytest.mark.parametrize("asks", [False, True])
def test_who_is_not_admitted_hears_it_with_the_first_request(asks: bool) -> None:
    for frame in (READ[Dialect.V3], AUTH[Dialect.V3]):
        handshake = Handshake("required", authenticates=asks)
        look(handshake, START_TLS)
        assert not handshake.on_encrypted(admitted=False)
        step = look(handshake, frame)
        assert isinstance(step, Reject) and step.reply is not None


@pytest.mark.rule("X11")
def test_refusals_have_one_shape() -> None:
    header = wire.RequestHeader(Dialect.V3, Operation.AUTH, 16, version=3)
    refused = look(Handshake("required", authenticates=True), AUTH[Dialect.V3])
    assert isinstance(refused, Reject)
    assert refused.reply == refusal_of(header)
    assert refusal_of(wire.RequestHeader(Dialect.V2, Operation.AUTH)) is None


@pytest.mark.rule("X40")
@given(st.binary(max_size=300), st.sampled_from(["required", "offered", "off"]), st.booleans())
def test_any_bytes_get_a_step_and_nobody_in_by_them(data: bytes, mode: str, asks: bool) -> None:
    handshake = Handshake(mode, authenticates=asks)
    step = look(handshake, data)
    assert isinstance(step, NeedBytes | BeginTls | AskProvider | Admit | Reject)
    if mode == "required" or asks:
        assert handshake.state is not HandshakeState.OPEN
    if isinstance(step, NeedBytes) and len(data) >= 4:
        assert len(data) < 4 + FRAME_MAX


# -- Apache's clients with SASL: their first message comes in clear behind START_TLS -----------------------------


EARLY = {dialect: wire.encode_request(wire.Auth("sasl", b""), dialect, 16) for dialect in Dialect}


@pytest.mark.rule("X2", "X10")
@pytest.mark.parametrize("dialect", Dialect)
def test_the_empty_first_message_may_follow_start_tls_in_clear_and_is_answered_behind_tls(dialect: Dialect) -> None:
    handshake = Handshake("required", authenticates=True, early="sasl")
    assert look(handshake, START_TLS) == AwaitEarly(len(START_TLS))
    assert look(handshake, EARLY[dialect][:-1]) == NeedBytes()
    step = look(handshake, EARLY[dialect])
    assert isinstance(step, BeginTls) and step.used == len(EARLY[dialect])
    header, reply = wire.decode_reply(step.reply[4:], Dialect.V3)
    assert (header.op, header.txn_id, reply) == (Operation.START_TLS, 15, wire.StartTlsReply(Status.OK))
    assert handshake.early is not None and (handshake.early.dialect, handshake.early.op) == (dialect, Operation.AUTH)
    assert not handshake.on_encrypted(admitted=True)
    handshake.on_authenticated()  # refuses every state but ASKING
    assert handshake.state is HandshakeState.OPEN


@pytest.mark.rule("X2", "X10")
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("what", ["another plugin", "a token", "a request", "tls again", "large"])
def test_nothing_else_may_follow_it_and_nobody_is_answered_in_clear(dialect: Dialect, what: str) -> None:
    frame = {
        "another plugin": wire.encode_request(wire.Auth("p", b""), dialect, 16),
        "a token": wire.encode_request(wire.Auth("sasl", b"x"), dialect, 16),
        "a request": READ[dialect],
        "tls again": START_TLS,
        "large": wire.encode_request(wire.Auth("sasl", bytes(100)), dialect, 16),
    }[what]
    handshake = Handshake("required", authenticates=True, early="sasl")
    look(handshake, START_TLS)
    step = look(handshake, frame)
    assert step == Reject(None, "unencrypted bytes came after START_TLS, where TLS must begin")
    assert handshake.state is HandshakeState.SHUT


@pytest.mark.rule("X2", "X10")
@pytest.mark.parametrize("dialect", Dialect)
def test_it_may_also_come_right_before_start_tls_once(dialect: Dialect) -> None:
    handshake = Handshake("required", authenticates=True, early="sasl")
    assert look(handshake, EARLY[dialect][:-1]) == NeedBytes()
    assert look(handshake, EARLY[dialect]) == AwaitTls(len(EARLY[dialect]))
    step = look(handshake, START_TLS)
    assert isinstance(step, BeginTls) and step.used == len(START_TLS), "nothing more is waited for"
    assert handshake.early is not None and (handshake.early.dialect, handshake.early.op) == (dialect, Operation.AUTH)
    assert not handshake.on_encrypted(admitted=True)
    handshake.on_authenticated()
    again = Handshake("required", authenticates=True, early="sasl")
    look(again, EARLY[dialect])
    refused = look(again, EARLY[dialect])
    assert isinstance(refused, Reject) and "requires TLS" in refused.reason


@pytest.mark.rule("X2", "X10")
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("what", ["another plugin", "a token", "a request", "large", "rubbish"])
def test_nothing_else_may_come_before_start_tls(dialect: Dialect, what: str) -> None:
    frame = {
        "another plugin": wire.encode_request(wire.Auth("p", b""), dialect, 16),
        "a token": wire.encode_request(wire.Auth("sasl", b"x"), dialect, 16),
        "a request": READ[dialect],
        "large": wire.encode_request(wire.Auth("sasl", bytes(100)), dialect, 16),
        "rubbish": EARLY[dialect][:-2] + b"\xff\xff",
    }[what]
    handshake = Handshake("required", authenticates=True, early="sasl")
    step = look(handshake, frame)
    assert isinstance(step, Reject) and "requires TLS" in step.reason and handshake.early is None
    assert handshake.state is HandshakeState.SHUT


def test_other_clients_send_none_and_go_on() -> None:
    handshake = Handshake("required", authenticates=True, early="sasl")
    look(handshake, START_TLS)
    step = handshake.on_no_early_message()
    assert step.used == 0 and wire.decode_reply(step.reply[4:], Dialect.V3)[1] == wire.StartTlsReply(Status.OK)
    assert not handshake.on_encrypted(admitted=True) and handshake.early is None
    assert isinstance(look(handshake, AUTH[Dialect.V3]), AskProvider)
