"""The history checker accepts what is legal and finds everything that is not."""

from __future__ import annotations

from random import Random

import pytest

from tests.simulation.histories import PLANTS, Story
from tests.simulation.watch.history import (
    ANOMALIES,
    Anomaly,
    EventKind,
    History,
    check_history,
    is_whole,
    make_payload,
)

LEGAL = 2_000


def test_legal_histories_are_accepted() -> None:
    for seed in range(LEGAL):
        assert check_history(Story(seed).tell()) == [], f"seed {seed}"


@pytest.mark.rule("R11", "L1", "L2", "L3", "W2", "W6")
@pytest.mark.parametrize("what", ANOMALIES)
def test_each_planted_anomaly_is_found_with_a_witness(what: str) -> None:
    for seed in range(60):
        events = Story(seed).tell()
        PLANTS[what](events, Random(seed))
        found = check_history(events)
        assert what in [anomaly.what for anomaly in found], f"seed {seed}: {[a.what for a in found]}"
        assert all(anomaly.witness for anomaly in found)


def test_ledgers_are_judged_apart_and_an_anomaly_can_be_printed() -> None:
    good, bad = Story(1, ledger=1).tell(), Story(2, ledger=2).tell()
    PLANTS["phantom"](bad, Random(0))
    mixed = [event for pair in zip(good, bad, strict=False) for event in pair] + good[len(bad) :] + bad[len(good) :]
    found = check_history(mixed)
    assert {anomaly.ledger for anomaly in found} == {2}
    assert "phantom, ledger 2" in str(found[0])
    assert isinstance(found[0], Anomaly)


def test_a_payload_knows_whether_it_is_whole() -> None:
    payload = make_payload(3, 4, Random(1), 10)
    assert is_whole(payload)
    assert not is_whole(payload[:-1])
    assert not is_whole(b"")
    history = History(lambda: 7.0)
    history.add(EventKind.ACK, "w", 3, entry=1, payload=payload)
    assert history.events[0].time == 7.0


def test_what_is_seen_while_metadata_are_put_back_is_judged_apart_and_promises_of_survivors_hold() -> None:
    history = History()
    for ledger in (1, 2):
        history.add(EventKind.INVOKE, "w", ledger, payload=b"before")
    history.resting = True
    for ledger in (1, 2):
        history.add(EventKind.ACK, "w", ledger, entry=0, payload=b"before")
        history.add(EventKind.MISSING, "r", ledger, entry=0)
    assert check_history(history.events) == []
    assert len(history.meanwhile) == 4
    history.trust([1])
    assert [(e.kind, e.ledger) for e in history.events] == [
        (EventKind.INVOKE, 1),
        (EventKind.INVOKE, 2),
        (EventKind.ACK, 1),
    ]
    history.add(EventKind.CLOSED, "r", 1, entry=-1)
    assert [anomaly.what for anomaly in check_history(history.events)] == ["end before an acked entry"]
