"""What concerns all ledgers is done by every volume."""

from __future__ import annotations

from tests.bookkeeper.volumes.doors import Door


def test_every_volume_is_compacted() -> None:
    door = Door()
    assert door.done(lambda done: door.volumes.compact(done, major=True)) is None
    assert [each.engine.stats.compactions for each in door.volumes.serving] == [1, 1]
    assert door.volumes.stats.compactions == 2
