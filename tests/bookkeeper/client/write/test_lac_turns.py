"""An explicit last add confirmed goes out when nothing else is about to carry it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bookkeeper.client.write import lac_turns
from bookkeeper.client.write.lac_turns import LAC_TURNS, PAUSING_MIN, PROBE_EVERY, WaitAnotherTurn
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.write import PublishLac
from tests.bookkeeper.validated import validated

LacTurns = validated(lac_turns.LacTurns)

NEWS, LATER = (PublishLac(EntryId(lac), (BookieId("b1"),)) for lac in (1, 2))


def test_it_goes_out_after_some_idle_turns() -> None:
    turns = LacTurns()
    assert turns.request(NEWS)
    assert [turns.on_turn(idle=True) for _ in range(LAC_TURNS)] == [WaitAnotherTurn.LATER] * (LAC_TURNS - 1) + [NEWS]
    assert turns.request(NEWS), "the next news begins a count of its own"


def test_news_that_comes_meanwhile_goes_out_instead_and_no_later() -> None:
    turns = LacTurns()
    turns.request(NEWS)
    turns.on_turn(idle=True)
    assert not turns.request(LATER)
    assert [turns.on_turn(idle=True) for _ in range(LAC_TURNS - 1)][-1] == LATER


def test_an_append_ends_the_count_and_nothing_goes_out() -> None:
    turns = LacTurns()
    turns.request(NEWS)
    turns.on_turn(idle=True)
    assert turns.on_turn(idle=False) is None
    assert turns.request(NEWS)


def turns_until_it_goes_out(turns: lac_turns.LacTurns) -> int:
    assert turns.request(NEWS)
    count = 1
    while (step := turns.on_turn(idle=True)) is WaitAnotherTurn.LATER:
        count += 1
    assert step == NEWS
    return count


def test_a_writer_that_pauses_after_each_append_is_not_waited_for_and_looked_at_now_and_then() -> None:
    turns = LacTurns()
    assert [turns_until_it_goes_out(turns) for _ in range(PAUSING_MIN)] == [LAC_TURNS] * PAUSING_MIN
    waited = [turns_until_it_goes_out(turns) for _ in range(4 * PROBE_EVERY)]
    assert (waited.count(LAC_TURNS), waited.count(1)) == (4, 4 * PROBE_EVERY - 4)
    turns.request(NEWS)
    assert turns.on_turn(idle=False) is None
    assert [turns_until_it_goes_out(turns) for _ in range(PAUSING_MIN)] == [LAC_TURNS] * PAUSING_MIN, (
        "one append begins it anew"
    )


@given(st.lists(st.booleans()))
def test_what_is_wanted_goes_out_or_is_overtaken(idle: list[bool]) -> None:
    turns = LacTurns()
    turns.request(NEWS)
    for n, quiet in enumerate(idle, 1):
        step = turns.on_turn(idle=quiet)
        if step is not WaitAnotherTurn.LATER:
            assert step == (NEWS if quiet else None)
            assert n == LAC_TURNS or not quiet
            return
        assert quiet and n < LAC_TURNS
