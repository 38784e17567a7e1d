from __future__ import annotations

from segments.cursors.acked_ranges import Mark
from segments.cursors.cursor_state import Acknowledgement, CursorState
from segments.position import EARLIEST, Position
from tests.segments.world.cursor_judge import CursorJudge
from tests.segments.world.test_judge import stored

FOUND = [stored(at, b"%d" % at) for at in range(5)]


def state_of(*done: int) -> CursorState:
    changes = [Acknowledgement(Mark(at + 1, Position(1, at, 1)), at) for at in done]
    return CursorState.create(Mark(0, EARLIEST), 1).acknowledge(changes, 2)[0]


def judge_of(said: set[int], done: set[int]) -> CursorJudge:
    judge = CursorJudge()
    judge.on_said(said)
    judge.on_done(done)
    return judge


def test_what_was_said_and_stored_is_no_problem() -> None:
    assert judge_of({0, 1, 3}, {0, 1}).judge(state_of(0, 1, 3), FOUND) == []


def test_a_cursor_that_passes_over_records_or_forgets_some_is_found() -> None:
    assert judge_of({0, 3}, {0, 3}).judge(state_of(0, 1, 3), FOUND) == [
        "the cursor says that record 1 is done, and nobody said so"
    ]
    assert judge_of({0, 3}, {0, 3}).judge(state_of(0), FOUND) == [
        "record 3 was done, and the cursor does not know it any more"
    ]


def test_a_record_that_comes_again_after_it_was_done_is_found() -> None:
    judge = judge_of({0, 1}, {0})
    never = judge.opened()
    judge.on_done([1])
    judge.on_handed(1, never)
    assert judge.problems == [] and judge.handed == {1}
    judge.on_handed(0, never)
    assert judge.problems == ["record 0 was handed out although it was done"]
