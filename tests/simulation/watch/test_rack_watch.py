"""The watch over where copies stand."""

from __future__ import annotations

from collections import Counter

import pytest

from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import LedgerMetadata, LedgerState, QuorumSpec
from bookkeeper.ledger.metadata import Fragment
from tests.simulation.watch.rack_watch import RackWatch

RACKS = {"b1": "/rack0", "b2": "/rack1", "b3": "/rack0", "b4": "/rack1"}


def metadata(*ensembles: str) -> LedgerMetadata:
    names = [tuple(BookieId(name) for name in each.split()) for each in ensembles]
    spec = QuorumSpec(ensemble_size=len(names[0]), write_quorum=2, ack_quorum=2)
    fragments = tuple(Fragment(EntryId(10 * at), each) for at, each in enumerate(names))
    return LedgerMetadata(spec=spec, state=LedgerState.OPEN, fragments=fragments)


@pytest.mark.parametrize(
    ("ensembles", "apart", "together"),
    [
        (["b1 b2"], 1, 0),
        (["b1 b3"], 0, 1),
        (["b1 b2 b3 b4"], 1, 0),
        (["b1 b2 b4 b3"], 0, 1),
        (["b1 b2", "b3 b2", "b3 b1"], 2, 1),
    ],
)
def test_every_write_set_of_every_fragment_is_judged(ensembles: list[str], apart: int, together: int) -> None:
    problems: list[str] = []
    counts: Counter[str] = Counter()
    watch = RackWatch(
        RACKS, lambda rule, detail: problems.append(rule), lambda what: counts.update([what]), enforced=True
    )
    for _ in range(2):  # once for each ensemble
        watch.on_metadata(7, metadata(*ensembles))
    assert (counts["ensembles_apart"], counts["ensembles_together"]) == (apart, together)
    assert problems == ["Q6"] * together


def test_where_racks_are_not_enforced_copies_may_stand_together() -> None:
    problems: list[str] = []
    watch = RackWatch(RACKS, lambda rule, detail: problems.append(rule), lambda what: None, enforced=False)
    watch.on_metadata(7, metadata("b1 b3"))
    assert not problems
