"""Scrubs and compactions of several volumes behind one door each."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from bookkeeper.ids import LedgerId
from bookkeeper.storage.compaction.schedule import CompactionKind
from bookkeeper.storage.engine import Engine
from bookkeeper.volumes import Volume
from bookkeeper.volumes.disks.volume_list import VolumeState, share_of
from tests.bookkeeper.storage.workload import CONFIG
from tests.bookkeeper.volumes.doors import Door


def filled() -> Door:
    """Two volumes with some finished entry logs each."""
    door = Door()
    for entry in range(0, 60, 10):
        for ledger in (1, 2, 3, 4):
            door.acked(ledger, *range(entry, entry + 10))
        assert door.done(door.volumes.checkpoint) is None
    return door


def rows(door: Door) -> list[dict[str, Any]]:
    got: list[Any] = []
    door.volumes.compactor.rows(got.append)
    door.pump()
    (found,) = got
    if isinstance(found, BaseException):
        raise found
    return list(found)


# -- scrubs -----------------------------------------------------------------------------------------------


def test_a_scrub_reads_every_file_of_every_volume() -> None:
    door = filled()
    scrubber = door.volumes.scrubber
    one, two = (door.engine(number).scrubber for number in (1, 2))
    assert list(scrubber.files()) == [*one.files(), *two.files()] and one.files() and two.files()
    assert door.done(scrubber.run_now) is None
    report = scrubber.report()
    assert report["read_bytes"] == one.report()["read_bytes"] + two.report()["read_bytes"] > 0  # type: ignore[operator]
    assert report["damaged"] == [] and report["suspects"] == [] and report["running"] is False
    assert set(report) == set(one.report()), "the same fields as that of one disk"
    assert report["files_left"] == 0 and report["bytes_left"] == 0


def test_damage_on_a_volume_is_found_named_and_told() -> None:
    door = filled()
    told: list[int] = []
    door.volumes.scrubber.on_suspects(lambda: told.append(1))
    told.clear()
    path = min(path for path in door.disk.names if path.startswith("/d2/") and path.endswith(".log"))
    data = door.disk.names[path].data
    data[len(data) // 2] ^= 0xFF
    assert door.done(door.volumes.scrubber.run_now) is None
    found = door.volumes.scrubber
    assert [damage.path for damage in found.damages] == [path]
    assert path in str(found.report()["damaged"])
    suspects = found.report()["suspects"]
    assert suspects and set(suspects) <= {2, 4} and told  # type: ignore[call-overload]
    assert door.volumes.suspects == frozenset(suspects)  # type: ignore[call-overload]
    assert any("damage" in said for said in found.sentences())


def test_a_loss_is_told_like_damage() -> None:
    door = filled()
    told: list[frozenset[int]] = []
    door.volumes.scrubber.on_suspects(lambda: told.append(door.volumes.suspects))
    assert told == [frozenset()], "whoever begins to listen looks at once"
    door.volumes.members.lose(1, "burnt")
    assert told[-1] == {1, 3}


def test_the_bookies_own_files_are_checked_once() -> None:
    door = filled()
    checks: list[int] = []

    def check() -> Any:
        checks.append(1)
        return iter(())

    scrubber = door.volumes.scrubber
    assert scrubber.state_files is None
    scrubber.state_files = check
    assert scrubber.state_files is check
    assert (door.engine(1).scrubber.state_files, door.engine(2).scrubber.state_files) == (check, None)


def test_the_bookies_own_files_are_checked_when_the_first_volume_is_lost() -> None:
    door = filled()
    scrubber = door.volumes.scrubber
    scrubber.state_files = check = lambda: iter(())
    door.volumes.members.lose(1, "burnt")
    assert door.engine(2).scrubber.state_files is check


def test_the_bookies_own_files_are_checked_when_the_first_volume_is_let_go() -> None:
    door = Door(3)
    scrubber = door.volumes.scrubber
    scrubber.state_files = check = lambda: iter(())
    for state in (VolumeState.DRAINING, VolumeState.DRAINED):
        assert door.done(lambda done: door.volumes.members.set_state(1, state, done)) is None  # noqa: B023
    assert [each.number for each in door.volumes.serving] == [2, 3]
    assert door.engine(2).scrubber.state_files is check


def test_problems_of_every_volume_are_reported_also_of_one_that_comes_later() -> None:
    door = filled()
    scrubber = door.volumes.scrubber
    said: list[str] = []
    scrubber.report_problem = lambda text, error: said.append(text)
    scrubber.begin()
    added = _added(door)
    for number, engine in ((1, door.engine(1)), (2, door.engine(2)), (3, added)):
        engine.scrubber.report_problem(f"volume {number}", None)
    assert said == ["volume 1", "volume 2", "volume 3"]


def _added(door: Door) -> Engine:
    listed = door.volumes.volume_list.with_new("/d3", "/d3")
    engine = door.engine_at("/d3", monotonic=lambda: 0.0, call_later=lambda seconds, call: None)
    volume = Volume(3, share_of(CONFIG, listed.entries[-1], 1), engine)
    assert door.done(lambda done: door.volumes.members.add(volume, listed, done)) is None
    return engine


def test_a_volume_that_is_added_scrubs_when_the_others_do() -> None:
    for began in (False, True):
        door = filled()
        assert door.volumes.members.scrubber.began is False
        if began:
            door.volumes.scrubber.begin()
        engine = _added(door)
        assert engine.scrubber._began is began
        assert door.volumes.volume_list.at("/d3").state is VolumeState.USED  # type: ignore[union-attr]


# -- compaction -------------------------------------------------------------------------------------------


def test_the_rows_of_all_logs_name_their_directories() -> None:
    door = filled()
    found = rows(door)
    assert {row["directory"] for row in found} == {"/d1", "/d2"}
    assert all(row["log"] is not None and row["bytes"] for row in found)


def test_a_compaction_wins_space_on_every_volume() -> None:
    door = filled()
    before = rows(door)
    assert door.done(lambda done: door.volumes.collect({LedgerId(1), LedgerId(2)}, done)) is None
    assert door.done(lambda done: door.volumes.compactor.run(CompactionKind.MAJOR, done)) is None
    after = rows(door)
    for place in ("/d1", "/d2"):
        had, has = (sum(row["bytes"] for row in some if row["directory"] == place) for some in (before, after))
        assert has < had, place
    assert all(door.has(ledger, entry) for ledger in (3, 4) for entry in range(60))
    assert door.volumes.compactor.is_running is False


def test_compaction_rests_and_goes_on_everywhere() -> None:
    door = filled()
    compactor = door.volumes.compactor
    compactor.suspend()
    assert compactor.sentences() and all("suspended" in said for said in compactor.sentences())
    assert len(compactor.sentences()) == 1, "what holds for all is said once"
    compactor.resume()
    assert compactor.sentences() == ()


def test_a_run_goes_on_while_any_volume_runs() -> None:
    door = filled()
    assert door.done(lambda done: door.volumes.collect({LedgerId(1)}, done)) is None
    answers: list[BaseException | None] = []
    compactor = door.volumes.compactor
    compactor.run(CompactionKind.MAJOR, answers.append)
    assert compactor.is_running and answers == []
    door.pump()
    assert answers == [None] and not compactor.is_running


def test_logs_that_are_left_are_counted() -> None:
    door = filled()
    assert door.volumes.compactor.logs_left == 0
    door.engine(1).compactor.schedule.left[1] = "damaged"
    door.engine(2).compactor.schedule.left[1] = "damaged"
    assert door.volumes.compactor.logs_left == 2


def test_a_volume_whose_rows_cannot_be_read_fails_them_all() -> None:
    door = filled()
    door.disk.faults[("read", "/d2/")] = OSError(errno.EIO, "bad")
    got: list[Any] = []
    door.volumes.compactor.rows(got.append)
    door.pump()
    assert len(got) == 1


@pytest.mark.parametrize("known", [False, True])
def test_the_age_is_that_of_the_volume_that_has_waited_longest(known: bool) -> None:
    class Fake:
        def __init__(self, age: float | None) -> None:
            self.age_s = age

    from bookkeeper.volumes.members.volume_housekeeping import VolumeCompactors

    ages: list[float | None] = [3.0, 7.0] if known else [3.0, None]
    compactors = VolumeCompactors(lambda: {at: Fake(age) for at, age in enumerate(ages)})  # type: ignore[misc]
    assert compactors.age_s == (7.0 if known else None)
    assert VolumeCompactors(dict).age_s is None
