"""A volume is one open directory: another one with the same number is another volume."""

from __future__ import annotations

from tests.bookkeeper.volumes.doors import Door


def test_a_volume_that_was_opened_again_is_another_one() -> None:
    door = Door()
    before = door.volumes.serving[0]
    after = door.again().volumes.serving[0]
    assert (before.number, before.config) == (after.number, after.config)
    assert before == before and before != after
