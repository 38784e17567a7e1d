"""What is given up, and how it is recorded."""

from __future__ import annotations

import json

import pytest

from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import LedgerMetadata, QuorumSpec
from bookkeeper.replication.losses.closing_loss import ClosingLoss, closing_entry, lost_entries, size_of_gaps

METADATA = LedgerMetadata.create(
    QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1), [BookieId("b1")]
).change_ensemble(5, [BookieId("b2")])


def test_a_ledger_is_never_closed_before_its_last_fragment() -> None:
    assert closing_entry(METADATA, 9) == 9
    assert closing_entry(METADATA, 4) == closing_entry(METADATA, -1) == 4


@pytest.mark.parametrize(
    ("gaps", "last", "confirmed", "entries"),
    [
        ([], 9, 9, ()),
        ([], 9, 7, ()),
        ([range(2, 4)], 9, 7, (range(2, 4),)),
        ([range(2, 4)], 1, 3, (range(2, 4),)),
        ([range(1), range(7, 12)], 9, 11, (range(1), range(7, 12))),
        ([range(7, 12)], 9, 3, (range(7, 10),)),
        ([], -1, -1, ()),
    ],
)
def test_gaps_and_confirmed_entries_after_the_end_are_given_up(
    gaps: list[range], last: int, confirmed: int, entries: tuple[range, ...]
) -> None:
    assert lost_entries(gaps, last, confirmed) == entries


def test_the_neighbours_of_a_gap_say_how_large_it_is() -> None:
    lengths = {2: (30, 10), 5: (100, 20)}
    assert size_of_gaps([range(3, 5)], lengths) == 50
    assert size_of_gaps([range(2)], lengths) == 20
    assert size_of_gaps([range(3, 6)], lengths) is None
    assert size_of_gaps([range(4, 5)], lengths) is None
    assert size_of_gaps([], {}) == 0


def test_the_record_names_what_is_given_up_and_stays_small() -> None:
    given = ClosingLoss(
        EntryId(9), 100, tuple(range(n, n + 1) for n in range(0, 400, 2)), None, "too few answer", {BookieId("b2"): "?"}
    )
    found = json.loads(given.encode(7))
    assert found["entries"][:2] == ["0..0", "2..2"] and len(found["entries"]) == 100
    assert (found["entries_count"], found["closed_at"], found["bytes"], found["when_ms"]) == (200, 9, None, 7)
    assert found["silent"] == {"b2": "?"} and found["why"] == "too few answer"
