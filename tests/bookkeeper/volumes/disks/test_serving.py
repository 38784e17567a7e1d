"""The volumes that serve."""

from __future__ import annotations

import errno

import pytest

from bookkeeper.ids import LedgerId
from bookkeeper.volumes.disks.serving import ServingVolumes
from tests.bookkeeper.volumes.doors import Door


def test_a_volume_that_was_opened_again_is_another_one() -> None:
    door = Door()
    before = door.volumes.serving[0]
    after = door.again().volumes.serving[0]
    assert (before.number, before.config) == (after.number, after.config)
    assert before == before and before != after


def test_a_volume_serves_until_it_ends() -> None:
    door, serving = Door(), ServingVolumes()
    first, second = door.volumes.serving
    serving.begin(first)
    serving.begin(second)
    assert list(serving) == [first, second] and len(serving) == 2
    for each in serving:  # whoever goes through them may end them
        assert serving.end(each.number) is each
    assert not serving.by_number and serving.engines == []


def test_what_any_volume_has_dropped_is_dropped() -> None:
    door = Door()
    door.acked(1, 0)
    door.done(lambda done: door.engine(1).collect({LedgerId(1)}, done))
    serving = ServingVolumes()
    for each in reversed(door.volumes.serving):
        serving.begin(each)
    assert serving.has_dropped(1) and not serving.has_dropped(2)
    assert list(serving.dropped) == [(1, 1)]


def test_the_space_of_a_volume_that_cannot_be_asked_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    door, serving = Door(), ServingVolumes()
    volume = door.volume(1)
    serving.note_space(volume)
    before = dict(serving.free_bytes)
    assert before == {1: volume.engine.space().free}

    def burnt() -> None:
        raise OSError(errno.EIO, "burnt")

    monkeypatch.setattr(volume.engine, "space", burnt)
    with pytest.raises(OSError, match="burnt"):
        serving.note_space(volume)
    assert serving.free_bytes == before
