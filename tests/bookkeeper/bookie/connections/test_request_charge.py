"""What requests are charged with, and who goes first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bookkeeper import wire
from bookkeeper.bookie.connections.request_charge import (
    BATCH_CHARGE_MAX,
    READ_CHARGE,
    goes_first,
    reply_charge,
    too_large,
)
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import Dialect, Operation, Status

L, E, KEY = LedgerId(7), EntryId(1), b"k" * 20


@pytest.mark.rule("X33")
def test_fences_recovery_forces_and_high_priority_go_first() -> None:
    header = wire.RequestHeader(Dialect.V3, Operation.READ, 1, version=3)
    first: list[wire.Request] = [
        wire.ForceLedger(L),
        wire.ReadEntry(L, E, KEY, fence=True),
        wire.AddEntry(L, E, KEY, b"", recovery=True),
    ]
    others: list[wire.Request] = [
        wire.ReadEntry(L, E),
        wire.AddEntry(L, E, KEY, b""),
        wire.ReadLac(L),
        wire.BatchRead(L, E, 1, 1, 1),
    ]
    assert [goes_first(header, request) for request in first] == [True] * len(first)
    assert [goes_first(header, request) for request in others] == [False] * len(others)
    assert all(goes_first(replace(header, priority=1), request) for request in others)


@pytest.mark.rule("X32")
@pytest.mark.parametrize(
    ("request_", "charge"),
    [
        (wire.ReadEntry(L, E), READ_CHARGE),
        (wire.ReadEntry(L, E, previous_lac=0, timeout_ms=10), 0),
        (wire.BatchRead(L, E, 1, 10, 1), READ_CHARGE),
        (wire.BatchRead(L, E, 1, 10, 100_000), 100_000),
        (wire.BatchRead(L, E, 1, 10, 1 << 30), BATCH_CHARGE_MAX),
        (wire.ListEntries(L), READ_CHARGE),
        (wire.ForceLedger(L), 0),
    ],
    ids=repr,
)
def test_a_request_is_charged_with_the_reply_that_it_may_get(request_: wire.Request, charge: int) -> None:
    assert reply_charge(request_) == charge


def test_what_does_not_fit_into_a_frame_becomes_an_error_of_the_same_entry() -> None:
    assert too_large(wire.ReadReply(Status.OK, L, E, b"x")) == wire.ReadReply(Status.IO_ERROR, L, E)
    batch = wire.BatchReply(Status.OK, L, E, 9, b"x")
    assert too_large(batch) == wire.BatchReply(Status.IO_ERROR, L, E, 9)
    assert too_large(wire.LacReply(Status.OK, L, b"lac", b"entry")) == wire.LacReply(Status.OK, L, b"lac")
    assert too_large(wire.LacReply(Status.OK, L, None, b"entry")) == wire.LacReply(Status.IO_ERROR, L)
    assert too_large(wire.BareReply(Status.OK)) == wire.BareReply(Status.OK)
