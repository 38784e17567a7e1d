"""What clients see of appends is in test_command and in tests/segments/remote; here is what errors become."""

from __future__ import annotations

from segments.errors import (
    AppendOutcomeUnknownError,
    Applied,
    OwnershipLostError,
    StreamClosedError,
    StreamNotReadyError,
    TxidOrderError,
)
from segments.gateway.append_calls import elsewhere, for_the_rest


def test_a_writer_that_was_lost_is_the_gateways_own_affair() -> None:
    for error in (OwnershipLostError("lost"), StreamClosedError("closed")):
        found = elsewhere(error, "s")
        assert isinstance(found, StreamNotReadyError)
        assert (found.retryable, found.outcome, found.stream) == (True, Applied.NO, "s")
    unsure = elsewhere(OwnershipLostError("lost", outcome=Applied.UNKNOWN), "s")
    assert isinstance(unsure, AppendOutcomeUnknownError)
    order = TxidOrderError("order")
    assert elsewhere(order, "s") is order


def test_what_a_call_has_not_answered_was_not_applied_whatever_ended_it() -> None:
    refused = StreamNotReadyError("not now")
    assert for_the_rest(refused) is refused
    rest = for_the_rest(AppendOutcomeUnknownError("who knows", stream="s"))
    assert (rest.outcome, rest.retryable) == (Applied.NO, True)
