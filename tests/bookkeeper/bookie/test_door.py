"""Who gets in, step by step, without a socket."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper import wire
from bookkeeper.bookie.door import FRAME_MAX, Ask, Door, Encrypt, Enter, Refuse, State, Wait, refusal_of
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import Dialect, Op, Status

KEY = b"k" * 20
START_TLS = wire.encode_request(wire.StartTls(), Dialect.V3, 15)
AUTH = {dialect: wire.encode_request(wire.Auth("p", b"token"), dialect, 16) for dialect in Dialect}
READ = {dialect: wire.encode_request(wire.ReadEntry(LedgerId(5), EntryId(0), KEY), dialect, 17) for dialect in Dialect}
ADD = {
    dialect: wire.encode_request(wire.AddEntry(LedgerId(5), EntryId(0), KEY, bytes(100)), dialect, 18)
    for dialect in Dialect
}


def look(door: Door, frame: bytes) -> object:
    return door.look(b"??" + frame, 2, 2 + len(frame))


@pytest.mark.rule("X2")
@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("asks", [False, True])
def test_required_takes_nothing_but_start_tls_in_clear(dialect: Dialect, asks: bool) -> None:
    for frame in (READ[dialect], ADD[dialect], AUTH[dialect]):
        door = Door("required", asks=asks)
        step = look(door, frame)
        assert isinstance(step, Refuse) and "clear text" in step.reason
        assert door.state is State.SHUT
        if step.reply is not None:
            _, reply = wire.decode_reply(step.reply[4:], dialect)
            assert reply.status is Status.UNAUTHORIZED
        assert (step.reply is None) == (dialect is Dialect.V2 and frame is AUTH[dialect])


@pytest.mark.rule("X2")
def test_a_request_is_refused_by_its_first_bytes() -> None:
    """The body of a large add in clear is not waited for, let alone parsed."""
    claimed = struct.pack(">I", 4_000_000) + ADD[Dialect.V3][4:][:20] + bytes(200)
    assert isinstance(look(Door("required", asks=False), claimed), Refuse)


def test_start_tls_first_and_then_the_requests() -> None:
    for mode in ("required", "offered"):
        door = Door(mode, asks=False)
        step = look(door, START_TLS)
        assert isinstance(step, Encrypt) and step.used == len(START_TLS)
        header, reply = wire.decode_reply(step.reply[4:], Dialect.V3)
        assert (header.op, header.txn_id, reply) == (Op.START_TLS, 15, wire.StartTlsReply(Status.OK))
        assert door.encrypted(admitted=True)
        assert door.state is State.OPEN


@pytest.mark.parametrize("mode", ["offered", "off"])
@pytest.mark.parametrize("dialect", Dialect)
def test_offered_serves_those_who_do_not_ask_for_it(mode: str, dialect: Dialect) -> None:
    door = Door(mode, asks=False)
    assert look(door, ADD[dialect]) == Enter()
    assert door.state is State.OPEN


def test_start_tls_where_there_is_none_or_later_is_a_bad_request() -> None:
    for door in (Door("off", asks=True), Door("offered", asks=True)):
        if door._mode == "offered":
            assert isinstance(look(door, AUTH[Dialect.V3]), Ask)
        step = look(door, START_TLS)
        assert isinstance(step, Refuse) and step.reply is not None
        assert wire.decode_reply(step.reply[4:], Dialect.V3)[1] == wire.BareReply(Status.BAD_REQUEST)
        assert door.state is State.SHUT


@pytest.mark.rule("X10")
@pytest.mark.parametrize("dialect", Dialect)
def test_nothing_but_auth_until_the_provider_knows_who_it_is(dialect: Dialect) -> None:
    door = Door("required", asks=True)
    look(door, START_TLS)
    assert not door.encrypted(admitted=True)
    step = look(door, AUTH[dialect])
    assert isinstance(step, Ask)
    assert (step.plugin, step.payload, step.header.dialect) == ("p", b"token", dialect)
    assert isinstance(look(door, ADD[dialect]), Refuse)

    door = Door("off", asks=True)
    look(door, AUTH[dialect])
    door.known()
    assert door.state is State.OPEN


@pytest.mark.rule("X10")
def test_messages_before_authentication_are_small() -> None:
    door = Door("off", asks=True)
    long = wire.encode_request(wire.Auth("p", bytes(FRAME_MAX)), Dialect.V3, 1)
    assert isinstance(look(door, long[:300]), Refuse)


@pytest.mark.rule("X5")
@pytest.mark.parametrize("asks", [False, True])
def test_who_is_not_admitted_hears_it_with_the_first_request(asks: bool) -> None:
    for frame in (READ[Dialect.V3], AUTH[Dialect.V3]):
        door = Door("required", asks=asks)
        look(door, START_TLS)
        assert not door.encrypted(admitted=False)
        step = look(door, frame)
        assert isinstance(step, Refuse) and step.reply is not None


@pytest.mark.rule("X11")
def test_refusals_have_one_shape() -> None:
    header = wire.Header(Dialect.V3, Op.AUTH, 16, version=3)
    refused = look(Door("required", asks=True), AUTH[Dialect.V3])
    assert isinstance(refused, Refuse)
    assert refused.reply == refusal_of(header)
    assert refusal_of(wire.Header(Dialect.V2, Op.AUTH)) is None


@pytest.mark.rule("X40")
@given(st.binary(max_size=300), st.sampled_from(["required", "offered", "off"]), st.booleans())
def test_any_bytes_get_a_step_and_nobody_in_by_them(data: bytes, mode: str, asks: bool) -> None:
    door = Door(mode, asks=asks)
    step = look(door, data)
    assert isinstance(step, Wait | Encrypt | Ask | Enter | Refuse)
    if mode == "required" or asks:
        assert door.state is not State.OPEN
    if isinstance(step, Wait) and len(data) >= 4:
        assert len(data) < 4 + FRAME_MAX
