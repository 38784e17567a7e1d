from __future__ import annotations

from segments.gateway.ownership.ownership_state import OwnershipAnswer, OwnershipState, OwnershipStep


def state() -> OwnershipState:
    return OwnershipState(fresh_s=1.0, probation_s=2.0)


def test_a_stream_that_nobody_owns_is_taken_by_the_first_call() -> None:
    ownership = state()
    assert ownership.answer(0.0).step is OwnershipStep.TAKE
    ownership.taking()
    assert ownership.answer(0.0).step is OwnershipStep.WAIT
    ownership.taken()
    here = ownership.is_here
    assert ownership.answer(99.0).step is OwnershipStep.SERVE
    ownership.given_up()
    assert (here, ownership.is_here) == (True, False)
    assert ownership.answer(99.0).step is OwnershipStep.TAKE


def test_calls_are_sent_to_the_owner_until_what_is_known_of_it_is_old() -> None:
    """SEG-120: a gateway that does not own the stream redirects to the owner."""
    ownership = state()
    ownership.taking()
    ownership.elsewhere("other:1", 10.0)
    assert ownership.answer(10.9) == OwnershipAnswer(OwnershipStep.REDIRECT, "other:1")
    assert ownership.answer(11.0).step is OwnershipStep.TAKE


def test_a_stream_that_a_program_took_is_left_alone_for_a_while() -> None:
    ownership = state()
    ownership.taking()
    ownership.taken()
    ownership.overtaken(5.0)
    answer = ownership.answer(6.9)
    assert (answer.step, "with the library" in answer.reason) == (OwnershipStep.REFUSE, True)
    assert ownership.answer(7.0).step is OwnershipStep.TAKE


def test_a_gateway_that_is_stopped_takes_nothing_whatever_comes() -> None:
    ownership = state()
    ownership.end()
    for later in (ownership.taking, ownership.taken, ownership.given_up):
        later()
        assert ownership.answer(0.0).step is OwnershipStep.REFUSE
    ownership.elsewhere("other:1", 0.0)
    ownership.overtaken(0.0)
    assert "stopped" in ownership.answer(99.0).reason
    assert not ownership.is_here
