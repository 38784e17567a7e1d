from __future__ import annotations

import pytest

from segments.errors import (
    AppendOutcomeUnknownError,
    GatewayRedirectError,
    SequenceGapError,
    StreamConfigError,
    StreamError,
    StreamNotReadyError,
    StreamOverloadedError,
    StreamUnavailableError,
    TxidOrderError,
)
from segments.position import Position
from segments.record import AppendResult
from segments.remote.append_queue import QueuedBatch, RemoteAppendQueue

RESULT = AppendResult(Position(1, 0, 0), Position(1, 0, 0), 0, None)


def queue(count: int, *, idempotent: bool = False) -> RemoteAppendQueue:
    made = RemoteAppendQueue(idempotent=idempotent)
    for number in range(count):
        made.add(QueuedBatch(number, 1, 10, f"answer {number}"))
    made.began()
    return made


def sent(made: RemoteAppendQueue) -> list[int]:
    return [batch.request for batch in made.sendable()]


def test_nothing_is_sent_before_the_window_is_known_and_never_more_than_it_allows() -> None:
    made = queue(5)
    assert sent(made) == []
    made.resize(3, 1000)
    assert sent(made) == [0, 1, 2]
    assert sent(made) == []
    settled = made.answered(RESULT)
    assert settled is not None
    assert (settled[0].answer, settled[1]) == ("answer 0", RESULT)
    assert sent(made) == [3]
    assert (len(made), made.size) == (4, 40)


def test_a_refusal_for_the_batchs_own_sake_is_told_and_the_others_go_on() -> None:
    made = queue(3)
    made.resize(10, 1000)
    sent(made)
    for error in (TxidOrderError("order"), SequenceGapError("gap")):
        settled = made.answered(error)
        assert settled is not None
        assert settled[1] is error
    assert made.answered(RESULT) is not None
    with pytest.raises(LookupError):
        made.answered(RESULT)


@pytest.mark.parametrize("error", [GatewayRedirectError("r"), StreamNotReadyError("n"), StreamOverloadedError("o")])
def test_what_was_not_applied_is_sent_again_in_order_and_nothing_overtakes_it(error: StreamError) -> None:
    """SEG-120: a client follows redirects and retries on not-ready."""
    made = queue(3)
    made.resize(2, 1000)
    assert sent(made) == [0, 1]
    assert made.answered(error) is None
    assert sent(made) == []
    assert made.answered(error) is None
    assert made.ended(error, rest_not_applied=True) == []
    made.began()
    made.resize(10, 1000)
    assert sent(made) == [0, 1, 2]


def test_when_a_call_breaks_a_plain_append_is_unknown_and_a_producers_is_sent_again() -> None:
    plain, idempotent = queue(3), queue(3, idempotent=True)
    for made in (plain, idempotent):
        made.resize(2, 1000)
        assert sent(made) == [0, 1]
    told = plain.ended(StreamUnavailableError("broken"), rest_not_applied=False)
    assert [(batch.request, type(error)) for batch, error in told] == [
        (0, AppendOutcomeUnknownError),
        (1, AppendOutcomeUnknownError),
    ]
    assert idempotent.ended(StreamUnavailableError("broken"), rest_not_applied=False) == []
    for made, expected in ((plain, [2]), (idempotent, [0, 1, 2])):
        made.began()
        made.resize(10, 1000)
        assert sent(made) == expected


def test_what_the_gateway_does_not_know_is_told_or_sent_again_by_a_producer() -> None:
    plain, idempotent = queue(1), queue(1, idempotent=True)
    for made in (plain, idempotent):
        made.resize(2, 1000)
        sent(made)
    assert plain.answered(AppendOutcomeUnknownError("u")) is not None
    assert idempotent.answered(AppendOutcomeUnknownError("u")) is None


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_message_that_is_refused_unread_is_told_alone_if_it_is_known(idempotent: bool) -> None:
    """Cause: the refusal of one message was the end of all; a producer's would have been sent again for ever."""
    known, unknown = queue(4, idempotent=idempotent), queue(4, idempotent=idempotent)
    for made in (known, unknown):
        made.resize(3, 1000)
        assert sent(made) == [0, 1, 2]
        assert made.answered(RESULT) is not None
        assert sent(made) == [3]
    refusal = StreamConfigError("too many")
    told = known.ended(refusal, rest_not_applied=True, refuses=True)
    assert [(batch.request, error) for batch, error in told] == [(1, refusal)]
    told = unknown.ended(StreamError("too large"), rest_not_applied=False, refuses=True)
    assert [(batch.request, type(error)) for batch, error in told] == [
        (n, AppendOutcomeUnknownError) for n in (1, 2, 3)
    ]
    assert [(len(made), made.size) for made in (known, unknown)] == [(2, 20), (0, 0)]
    known.began()
    known.resize(10, 1000)
    assert sent(known) == [2, 3]


def test_who_gives_up_is_told_the_truth_about_each_batch() -> None:
    made = queue(3, idempotent=True)
    made.resize(1, 1000)
    sent(made)
    told = made.give_up(StreamNotReadyError("enough"))
    assert [type(error) for _, error in told] == [
        AppendOutcomeUnknownError,
        StreamNotReadyError,
        StreamNotReadyError,
    ]
    assert len(made) == 0


def test_who_gives_up_what_was_refused_is_told_that_it_was_not_applied() -> None:
    """It was told to be unknown, though the gateway had answered."""
    made = queue(2)
    made.resize(10, 1000)
    assert sent(made) == [0, 1]
    assert made.answered(StreamNotReadyError("not now")) is None
    told = made.give_up(StreamNotReadyError("enough"))
    assert [type(error) for _, error in told] == [StreamNotReadyError, AppendOutcomeUnknownError]
