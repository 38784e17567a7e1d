"""What requests are charged with, and who goes first."""

from __future__ import annotations

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
from bookkeeper.wire import Status

L, E, KEY = LedgerId(7), EntryId(1), b"k" * 20


@pytest.mark.rule("X33")
def test_fences_and_recoveries_go_first_and_a_claim_of_priority_gives_nothing() -> None:
    """Any request with a priority above 0 had the reserve: a flood of such adds kept fences and recoveries out."""
    first: list[wire.Request] = [
        wire.ReadEntry(L, E, KEY, fence=True),
        wire.BatchRead(L, E, 1, 1, 1, KEY, fence=True),
        wire.AddEntry(L, E, KEY, b"", recovery=True),
    ]
    others: list[wire.Request] = [
        wire.ReadEntry(L, E, priority=100),
        wire.AddEntry(L, E, KEY, b"", priority=1),
        wire.AddEntry(L, E, KEY, b"", priority=100, deferred_sync=True),
        wire.ReadLac(L),
        wire.WriteLac(L, 1, KEY, b""),
        wire.ForceLedger(L),
        wire.BatchRead(L, E, 1, 1, 1, priority=100),
    ]
    assert [goes_first(request) for request in first] == [True] * len(first)
    assert [goes_first(request) for request in others] == [False] * len(others)


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
