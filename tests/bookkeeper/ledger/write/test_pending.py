"""Runs of pending adds."""

from __future__ import annotations

import pytest

from bookkeeper.errors import InvariantError
from bookkeeper.ledger.write.progress import PendingAdds, PendingQueue


@pytest.mark.rule("W12")
def test_a_run_that_is_confirmed_in_part_gives_back_the_bytes_of_that_part() -> None:
    run = PendingAdds(5, (1, 2, 4, 8), deadline=9.0)
    assert run.cut(7) == 3
    assert (run.first, run.end, run.bytes) == (7, 9, 12)
    assert run.cut(8) == 4
    assert (run.first, run.bytes) == (8, 8)


@pytest.mark.rule("W12")
def test_what_is_acknowledged_leaves_the_queue_in_whole_runs_and_in_part() -> None:
    queue = PendingQueue([PendingAdds(0, (1, 2), 9.0), PendingAdds(2, (4, 8, 16), 9.0)])
    assert queue.drop_below(0) == 0
    assert queue.drop_below(3) == 1 + 2 + 4
    queue.validate_state(3, 5, 24)
    assert queue.drop_below(9) == 24
    assert not queue
    queue.validate_state(5, 5, 0)


@pytest.mark.rule("W2", "W12")
@pytest.mark.parametrize(("first", "following", "size", "rule"), [(1, 2, 3, "W2"), (0, 3, 3, "W2"), (0, 2, 4, "W12")])
def test_a_queue_that_is_not_what_its_writer_says_is_found(first: int, following: int, size: int, rule: str) -> None:
    queue = PendingQueue([PendingAdds(0, (1, 2), 9.0)])
    queue.validate_state(0, 2, 3)
    with pytest.raises(InvariantError, match=rule):
        queue.validate_state(first, following, size)
