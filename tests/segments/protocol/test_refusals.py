from __future__ import annotations

import pytest

from bookkeeper.errors import BookKeeperError, NotEnoughBookiesError
from bookkeeper.outcome import Outcome
from segments import errors
from segments.errors import StreamError
from segments.position import Position
from segments.protocol.refusals import STATUSES, as_stream_error, get_error, get_status, put_error, status_of


def every_kind(kind: type[StreamError] = StreamError) -> set[type[StreamError]]:
    return {kind}.union(*(every_kind(below) for below in kind.__subclasses__()))


def test_every_error_has_a_status() -> None:
    assert {kind for kind in every_kind() if kind.__module__ == "segments.errors"} == set(STATUSES)


@pytest.mark.parametrize("kind", STATUSES, ids=lambda kind: kind.__name__)
def test_an_error_comes_back_as_what_it_was(kind: type[StreamError]) -> None:
    error = kind("what, and what to do", stream="s")
    error.outcome = Outcome.UNKNOWN
    found = get_error(type(put_error(error)).FromString(put_error(error).SerializeToString()))
    assert type(found) is kind
    assert (str(found), found.stream, found.outcome) == (str(error), "s", Outcome.UNKNOWN)


def test_the_reference_gives_these_statuses() -> None:
    for error, status in (
        (errors.StreamNotFoundError(""), "NOT_FOUND"),
        (errors.StreamExistsError(""), "ALREADY_EXISTS"),
        (errors.StreamSealedError(""), "FAILED_PRECONDITION"),
        (errors.TailMovedError(""), "FAILED_PRECONDITION"),
        (errors.ProducerFencedError(""), "FAILED_PRECONDITION"),
        (errors.SequenceGapError(""), "FAILED_PRECONDITION"),
        (errors.PositionTruncatedError(""), "OUT_OF_RANGE"),
        (errors.StreamOverloadedError(""), "RESOURCE_EXHAUSTED"),
        (errors.StreamNotReadyError(""), "UNAVAILABLE"),
        (errors.SegmentEmptyError(""), "FAILED_PRECONDITION"),
        (errors.GatewayRedirectError(""), "UNAVAILABLE"),
        (errors.AppendOutcomeUnknownError(""), "ABORTED"),
        (errors.EntryCorruptError(""), "DATA_LOSS"),
    ):
        assert status_of(error) == status


def test_what_an_error_knows_beyond_its_text_comes_back() -> None:
    tail = get_error(put_error(errors.TailMovedError("", position=Position(1, 2, 3))))
    assert tail.position == Position(1, 2, 3)
    redirect = put_error(errors.GatewayRedirectError("", owner="h:1"))
    assert (redirect.owner, redirect.retryable) == ("h:1", True)
    assert get_error(redirect).owner == "h:1"
    fenced = get_error(put_error(errors.ProducerFencedError("", epoch=7)))
    assert isinstance(fenced, errors.ProducerFencedError)
    assert fenced.epoch == 7
    gap = get_error(put_error(errors.SequenceGapError("", expected=8)))
    assert isinstance(gap, errors.SequenceGapError)
    assert gap.expected == 8
    for last in (None, 0, 9):
        order = get_error(put_error(errors.TxidOrderError("", last=last)))
        assert isinstance(order, errors.TxidOrderError)
        assert order.last == last
    assert put_error(errors.StreamOverloadedError("")).retry_after_ms > 0


def test_an_error_of_a_later_version_is_still_one() -> None:
    message = put_error(StreamError("x"))
    message.code = "from-the-future"
    assert type(get_error(message)) is StreamError
    message.retryable = True
    assert get_error(message).retryable


def test_a_call_that_nobody_of_ours_answered_tells_what_is_known() -> None:
    assert isinstance(get_status("UNAVAILABLE", "down", None), errors.StreamUnavailableError)
    assert isinstance(get_status("UNAUTHENTICATED", "who", None), errors.StreamAccessError)
    older = get_status("UNIMPLEMENTED", "Method not found!", None, call="Streams.Show", address="h:1")
    assert isinstance(older, errors.GatewayTooOldError)
    assert str(older) == "the gateway at h:1 is of an older version, which does not know the call Streams.Show"
    assert "does not know this call" in str(get_status("UNIMPLEMENTED", "", None))
    assert not get_status("RESOURCE_EXHAUSTED", "message larger than max", None).retryable
    assert get_status("UNAVAILABLE", "garbled", b"\xff\xff").outcome is Outcome.UNKNOWN
    trailer = put_error(errors.StreamSealedError("s")).SerializeToString()
    assert isinstance(get_status("UNKNOWN", "", trailer), errors.StreamSealedError)


def test_errors_of_the_cluster_become_errors_of_streams() -> None:
    assert as_stream_error(NotEnoughBookiesError("few")).retryable == NotEnoughBookiesError.retryable
    assert as_stream_error(BookKeeperError("no")).outcome is Outcome.UNKNOWN
    assert isinstance(as_stream_error(RuntimeError("bug")), errors.StreamInvariantError)
    sealed = errors.StreamSealedError("s")
    assert as_stream_error(sealed) is sealed


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: "
            "Failed to connect to remote host: Connection refused",
            "Connection refused",
        ),
        ("failed to connect to all addresses; last error: UNAVAILABLE: ipv6:%5B::1%5D:1: no route", "no route"),
        ("Socket closed", "Socket closed"),
        ("", "UNAVAILABLE"),
    ],
)
def test_a_gateway_that_does_not_answer_is_named_with_the_reason_alone(text: str, why: str) -> None:
    assert str(get_status("UNAVAILABLE", text, None, address="h:1")) == f"the gateway at h:1 did not answer: {why}"
