"""Some images of each life, and planted bugs that they have to show; ``make crash-images N=…`` makes more."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bookkeeper.errors import BookKeeperError
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.journal.group_commit import GroupCommit
from tests.bookkeeper.bookie.garbage.test_model import records_are_not_looked_at
from tests.bookkeeper.storage.test_crashes import source_goes_first
from tests.crash_images.repair import repaired_life
from tests.crash_images.traced import wrong_images
from tests.crash_images.undelete import undeleting_life


@pytest.mark.rule("G8", "G1", "G3", "K13", "K17", "M6")
def test_no_crash_takes_what_lives_or_can_be_brought_back() -> None:
    life = undeleting_life(1)
    images = list(wrong_images(life, 1, 2, every=7))
    assert [(where, bad) for where, bad in images if bad] == []
    assert len(images) > 100 and len(life.disk.views) > 20 and len(life.truth.gone) == 2


@pytest.mark.rule("A1", "A5", "B1", "K7")
def test_no_crash_takes_what_the_metadata_count_on_after_a_repair() -> None:
    life, begin = repaired_life(103)
    images = list(wrong_images(life, 1, 3, begin))
    assert [(where, bad) for where, bad in images if bad] == []
    assert len(images) > 60
    owed = [len(life.owed(view)) for _, view in life.disk.views]
    assert owed[0] == 0 and owed[-1] >= 60 and len(set(owed)) >= 3, "ledger after ledger"


# -- planted bugs ---------------------------------------------------------------------------------------------


def answered_before_it_is_durable(patch: pytest.MonkeyPatch) -> None:
    original = GroupCommit.when_durable

    def early(self: GroupCommit, callback: Callable[[BaseException | None], None]) -> None:
        original(self, lambda error: None)
        callback(None)

    patch.setattr(GroupCommit, "when_durable", early)


@pytest.mark.parametrize("plant", [records_are_not_looked_at, source_goes_first], ids=lambda plant: plant.__name__)
def test_a_planted_bug_of_undeletion_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, BookKeeperError)):
        assert not any(bad for _, bad in wrong_images(undeleting_life(1), 1, 2, every=3))


def listed_before_it_is_durable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Engine, "force", lambda self, ledger_id, callback: callback(None))


@pytest.mark.parametrize(
    "plant", [answered_before_it_is_durable, listed_before_it_is_durable], ids=lambda plant: plant.__name__
)
def test_a_planted_bug_of_repair_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, BookKeeperError)):
        life, begin = repaired_life(103)
        assert not any(bad for _, bad in wrong_images(life, 1, 3, begin))
