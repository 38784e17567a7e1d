"""Who got what was not his."""

from __future__ import annotations

from examples.demo_tenants.verdict import Loot


def test_everything_that_is_wrong_is_told() -> None:
    loot = Loot(read=3, over_quota=2, lost=["ledger 5 of red is gone"], own=9)
    assert not loot.good
    assert loot.problems == ["entries read: 3", "entries over quota: 2", "ledger 5 of red is gone"]
    assert Loot(own=1).good and Loot(own=1).problems == []
