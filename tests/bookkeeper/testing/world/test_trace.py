from __future__ import annotations

from bookkeeper.testing import Trace


def test_the_hash_tells_events_apart_and_the_last_ones_are_kept() -> None:
    one, other = Trace(keep=2), Trace(keep=2)
    for trace in (one, other):
        trace.add(0.5, "send", "a", "b", 7)
    assert one.digest == other.digest
    other.add(0.5, "send", "a", "b", 8)
    one.add(0.6, "send", "a", "b", 8)
    assert one.digest != other.digest
    one.add(1.0, "crash", "a")
    assert (one.count, one.counts) == (3, {"send": 2, "crash": 1})
    assert list(one.last) == ["0.600000000 send a b 8", "1.000000000 crash a"]
