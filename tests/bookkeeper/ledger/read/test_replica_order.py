"""In which order bookies are asked."""

from __future__ import annotations

from bookkeeper.ledger.read.replica_order import ReplicaOrder
from tests.bookkeeper.ledger.test_metadata import bookies
from tests.bookkeeper.validated import validated

B1, B2, B3 = bookies("b1 b2 b3")


def test_bookies_take_turns() -> None:
    order = validated(ReplicaOrder)()
    assert [order.next((B1, B2, B3)) for _ in range(4)] == [
        (B2, B3, B1),
        (B3, B1, B2),
        (B1, B2, B3),
        (B2, B3, B1),
    ]
    assert order.next((B1, B2)) == (B1, B2)


def test_those_in_doubt_come_last_and_the_others_still_take_turns() -> None:
    order = validated(ReplicaOrder)()
    found = [list(order.next((B1, B2, B3), lambda bookie: bookie == B2)) for _ in range(3)]
    assert found == [[B3, B1, B2], [B3, B1, B2], [B1, B3, B2]]
