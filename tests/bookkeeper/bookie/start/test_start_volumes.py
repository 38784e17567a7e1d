"""One ledger directory and several answer a start's questions in their own way."""

from __future__ import annotations

from typing import Any

import pytest

from bookkeeper.bookie.config import config_from
from bookkeeper.bookie.start.start_volumes import StartVolumes, start_volumes
from bookkeeper.errors import CookieError
from bookkeeper.ids import BookieId
from bookkeeper.testing import World
from bookkeeper.volumes.disks.volume_list import ONLY, read_volumes

B1 = BookieId("b:3181")


def found(world: World, *, has_joined: bool = False, **options: Any) -> StartVolumes:
    seams = world.node("b", ["/disk1", "/disk2"]).seams
    for directory in ("/data/ledgers", "/data/journal"):
        seams.disk.make_directories(directory)
    given = {"metadata_uri": "memory://test", "directory": "/data", "listen": "b:3181", "insecure": True, **options}
    return start_volumes(config_from(given), seams, has_joined=has_joined, bookie=B1)


def test_the_only_directory_keeps_the_cookie_and_must_not_be_emptied() -> None:
    with World(1) as world:
        only = found(world)
        assert list(only.configs()) == [ONLY] and not only.may_grow and only.note_new() is None
        assert only.without_notes == "an empty disk"
        with pytest.raises(CookieError, match="/data/ledgers is empty, but b:3181 has served before"):
            only.refuse_emptied(B1)


def test_several_are_written_down_and_new_ones_are_for_the_cookie_to_name() -> None:
    with World(1) as world:
        several = found(world, ledger_dirs=["/disk1", "/disk2"])
        assert list(several.configs()) == [1, 2] and several.may_grow
        assert several.without_notes == "an empty disk", "all are new"
        assert several.note_new() == ["/disk1", "/disk1", "/disk2", "/disk2"]
        assert read_volumes(world.node("b").disk, "/data") == several.listed
        several.refuse_emptied(B1)


def test_a_bookie_that_has_served_does_not_begin_with_nothing_but_new_directories() -> None:
    with World(1) as world, pytest.raises(CookieError, match="are empty, but it has served before"):
        found(world, ledger_dirs=["/disk1"], has_joined=True)
