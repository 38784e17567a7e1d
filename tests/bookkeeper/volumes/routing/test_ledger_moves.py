"""The steps of a move: who is asked, who is waited for, and what is taken back."""

from __future__ import annotations

from random import Random

import pytest

from bookkeeper.errors import BookieFailedError, DiskFullError
from bookkeeper.ids import LedgerId
from bookkeeper.storage.engine import Engine
from bookkeeper.volumes.routing.ledger_moves import LedgerMove
from tests.bookkeeper.volumes.doors import Door, moving


def _moving() -> tuple[Door, LedgerMove]:
    door = Door(3)
    door.add(1, 0)
    assert door.done(door.volumes.when_durable) is None
    source = door.volumes.placements.volume_of(1)
    target = next(each for each in door.volumes.serving if each.number != source)
    return door, door.volumes.begin_move(LedgerId(1), target)


def test_the_target_is_asked_at_once_and_waited_for_later() -> None:
    door, move = _moving()
    asked: list[Engine] = []
    assert door.volumes.moves
    assert door.volumes.moves.too(move, asked.append) is False
    assert door.done(lambda done: door.volumes.moves.wait_for_both(move, done)) is None
    assert door.volumes.moves.too(move, asked.append) is True
    assert asked == [move.target.engine] * 2
    assert door.done(lambda done: door.volumes.moves.finish(move, done)) is None
    assert door.volumes.placements.volume_of(1) == move.target.number
    assert not door.volumes.moves and door.volumes.moves.get(1) is None


def test_a_target_that_fails_ends_the_move_and_nothing_else() -> None:
    door, move = _moving()

    def full(engine: Engine) -> None:
        raise DiskFullError("no space")

    assert door.volumes.moves.too(move, full) is False
    assert isinstance(move.error, DiskFullError)
    asked: list[Engine] = []
    assert door.volumes.moves.too(move, asked.append) is False and asked == []
    assert isinstance(door.done(lambda done: door.volumes.moves.finish(move, done)), DiskFullError)
    door.volumes.moves.end(move)
    assert door.volumes.placements.volume_of(1) == move.source.number
    door.workers.pump()
    assert door.again().volumes.placements.volume_of(1) == move.source.number, "the record was taken back"


def test_a_lost_volume_ends_the_moves_from_it_and_to_it() -> None:
    door, move = _moving()
    door.volumes.moves.lost(move.target, BookieFailedError("gone"))
    assert isinstance(move.error, BookieFailedError)
    other, another = _moving()
    third = next(each for each in other.volumes.serving if each not in (another.source, another.target))
    other.volumes.moves.lost(third, BookieFailedError("gone"))
    assert another.error is None


@pytest.mark.parametrize("seed", range(6))
def test_a_move_that_fails_takes_no_answered_add_with_it(seed: int) -> None:
    """The record of the move is on its way, the copy fails: adds are answered when it is taken back (K35)."""
    door = Door()
    door.acked(1, 0, 1)
    move = moving(door, 1)
    door.begun = len(door.disk.ops)
    answers: list[BaseException | None] = []
    acked: list[tuple[int, int]] = []
    ended: list[BaseException | None] = []

    def finished(error: BaseException | None) -> None:
        ended.append(error)
        door.volumes.moves.end(move)

    door.volumes.moves.finish(move, finished)
    move.error = OSError("the copy has failed")
    for entry in (2, 3, 4):
        door.add(1, entry)

        def answered(error: BaseException | None, entry: int = entry) -> None:
            acked.append((len(door.disk.ops) + 1, entry))
            answers.append(error)

        door.volumes.when_durable(answered)
        for _ in range(entry - 1):
            door.workers.step()
    door.pump()
    assert answers == [None] * 3 and ended == [move.error]
    for done, name, files in door.crash_images(Random(seed), 10):
        again = Door(files=files)
        for entry in (0, 1, *(key for since, key in acked if since <= done)):
            assert again.has(1, entry), (done, name, entry)


@pytest.mark.parametrize("which", ["source", "target"])
def test_a_move_knows_that_its_volume_was_lost(which: str) -> None:
    door = Door(3)
    door.add(1, 0)
    assert door.done(door.volumes.when_durable) is None
    source = door.volumes.placements.volume_of(1)
    move = door.volumes.begin_move(LedgerId(1), next(each for each in door.volumes.serving if each.number != source))
    door.volumes.members.lose(getattr(move, which).number, "burnt")
    assert isinstance(move.error, BookieFailedError)
    assert "was lost: burnt" in str(move.error)


@pytest.mark.rule("K35")
def test_a_move_that_was_given_up_before_it_is_durable_places_nothing() -> None:
    door, move = _moving()
    ended: list[BaseException | None] = []
    door.volumes.moves.finish(move, ended.append)
    door.volumes.moves.end(move)
    door.pump()
    assert len(ended) == 1
    assert door.volumes.placements.volume_of(1) == move.source.number
    assert door.again().volumes.placements.volume_of(1) == move.source.number


def test_of_a_move_that_nobody_has_written_down_nothing_is_taken_back() -> None:
    door, move = _moving()
    before = door.volumes.placement_log.end
    move.error = OSError("the copy has failed")
    for _ in range(3):
        assert door.volumes.moves.too(move, lambda engine: None) is False
    door.volumes.moves.end(move)
    door.pump()
    assert door.volumes.placement_log.end == before
