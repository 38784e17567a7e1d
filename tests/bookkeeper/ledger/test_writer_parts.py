"""Runs of pending adds."""

from __future__ import annotations

import pytest

from bookkeeper.ledger.writer_parts import PendingAdds


@pytest.mark.rule("W12")
def test_a_run_that_is_confirmed_in_part_gives_back_the_bytes_of_that_part() -> None:
    run = PendingAdds(5, (1, 2, 4, 8), deadline=9.0)
    assert run.cut(7) == 3
    assert (run.first, run.end, run.bytes) == (7, 9, 12)
    assert run.cut(8) == 4
    assert (run.first, run.bytes) == (8, 8)
