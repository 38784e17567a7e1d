"""What a writer was given, and how much of it is acknowledged."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bookkeeper.errors import InvariantError
from bookkeeper.ids import EntryId
from bookkeeper.ledger.write.progress import WriterProgress


def given(*runs: tuple[int, ...]) -> WriterProgress:
    progress = WriterProgress()
    for number, sizes in enumerate(runs):
        progress.append(sizes, float(number))
    return progress


@pytest.mark.rule("W2", "W12")
def test_what_is_acknowledged_is_pending_no_more_and_counts_for_the_length() -> None:
    progress = given((1, 2, 4), (8, 16))
    assert (progress.next_entry, progress.pending_entries, progress.pending_bytes, progress.deadline) == (5, 5, 31, 0.0)
    progress.acknowledge(4)
    assert (progress.last_acknowledged, progress.acknowledged_length) == (3, 15)
    assert (progress.pending_entries, progress.pending_bytes, progress.deadline) == (1, 16, 1.0)
    progress.acknowledge(5)
    assert (progress.pending_entries, progress.pending_bytes, progress.deadline) == (0, 0, None)
    progress.validate_state(is_open=True)


@pytest.mark.rule("W7")
def test_what_is_dropped_is_told_and_keeps_its_ids() -> None:
    progress = given((1, 2, 4))
    progress.acknowledge(1)
    assert progress.drop_pending() == (1, 2)
    assert (progress.pending_bytes, progress.deadline, progress.next_entry) == (0, None, 3)
    progress.validate_state(is_open=False)


@pytest.mark.rule("W16", "W3")
def test_a_last_add_confirmed_is_untold_until_an_add_carries_it_or_it_is_sent_alone() -> None:
    progress = given((1, 2))
    progress.acknowledge(1)
    progress.last_add_confirmed = EntryId(0)
    untold = [progress.unpublished_lac]  # an entry is pending
    progress.acknowledge(2)
    progress.last_add_confirmed = EntryId(1)
    untold.append(progress.unpublished_lac)
    progress.append((4,), 9.0)  # carries it
    progress.acknowledge(3)
    untold.append(progress.unpublished_lac)
    assert (untold, progress.lac_sent) == ([None, 1, None], 1)


@pytest.mark.parametrize(
    ("rule", "spoil"),
    [
        ("W3", lambda progress: setattr(progress, "last_add_confirmed", EntryId(1))),
        ("W3", lambda progress: setattr(progress, "lac_sent", EntryId(0))),
        ("W2", lambda progress: setattr(progress, "next_entry", EntryId(4))),
        ("W12", lambda progress: setattr(progress, "pending_bytes", 5)),
    ],
)
def test_a_state_that_contradicts_itself_is_found(rule: str, spoil: Callable[[WriterProgress], object]) -> None:
    progress = given((1, 2, 4))
    progress.acknowledge(1)
    progress.validate_state(is_open=True)
    spoil(progress)
    with pytest.raises(InvariantError, match=rule):
        progress.validate_state(is_open=True)
