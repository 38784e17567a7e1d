"""The first bytes of a request tell enough to refuse it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bookkeeper import wire
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import Dialect, Operation, envelope

VECTORS = Path(__file__).resolve().parents[2] / "vectors"


def refusals(file: str) -> list[Any]:
    """(name, request frame, the answer that Apache's bookie gave a client that had not authenticated itself)."""
    found = []
    for exchange in json.loads((VECTORS / file).read_text())["exchanges"]:
        if exchange["name"].startswith("auth/client-without-plugin"):
            frames = [bytes.fromhex(frame["hex"]) for frame in exchange["frames"] if "hex" in frame]
            found.append(pytest.param(frames[0], frames[1] if len(frames) > 1 else None, id=exchange["name"]))
    return found


@pytest.mark.rule("X10")
@pytest.mark.parametrize(("request_frame", "answer"), [*refusals("wire_v3.json"), *refusals("wire_v2.json")])
def test_refusals_are_those_of_apache(request_frame: bytes, answer: bytes | None) -> None:
    head = request_frame[4 : 4 + envelope.HEAD]
    header = envelope.header_of(head)
    assert header is not None
    assert envelope.refusal(header, head) == answer


def test_the_envelope_is_the_decoders() -> None:
    messages: list[tuple[Dialect, wire.Request]] = [
        (Dialect.V3, wire.StartTls()),
        (Dialect.V3, wire.Auth("p", b"x")),
        (Dialect.V2, wire.Auth("p", b"x")),
        (Dialect.V3, wire.GetBookieInfo()),
        (Dialect.V2, wire.BatchRead(LedgerId(1), EntryId(2), 3, 4, 5)),
    ]
    for dialect, request in messages:
        frame = wire.encode_request(request, dialect, 1 << 62)
        decoded = wire.DialectDetector().decode(frame[4:])
        assert not isinstance(decoded, wire.RefusedFrame)
        assert envelope.header_of(frame[4 : 4 + envelope.HEAD]) == decoded[0]


def test_a_connection_that_spoke_v2_stays_there() -> None:
    head = wire.encode_request(wire.StartTls(), Dialect.V3, 1)[4:]
    assert envelope.header_of(head, v2_only=True) is None


@pytest.mark.rule("X40")
@given(st.binary(max_size=envelope.HEAD))
def test_any_bytes_have_an_envelope_or_none(head: bytes) -> None:
    header = envelope.header_of(head)
    if header is not None:
        envelope.refusal(header, head)
        assert header.op in Operation
