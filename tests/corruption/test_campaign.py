"""A small campaign, and planted bugs that it has to notice; ``make corruption N=…`` makes a large one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from bookkeeper.bookie.identity import checked_note
from bookkeeper.storage.base.durable_file import STAMP_SIZE
from bookkeeper.storage.index import index_segment
from tests.corruption.campaign import Tally, campaign, outcomes, stopped_bookies, trials
from tests.corruption.damage import HARMS, changed
from tests.corruption.directory import Stopped, kind_of
from tests.faultlog import put_section
from tests.simulation.bugs.bugs import BUGS


@pytest.fixture(scope="module")
def stopped() -> list[Stopped]:
    return stopped_bookies()


@pytest.mark.rule("B5", "B7", "B3", "K9", "K18", "K19", "K27", "M6")
def test_damage_is_noticed_or_does_not_matter() -> None:
    tally = campaign(60, seed=2)
    assert tally.problems == []
    noticed = sum(row["needed noticed"] for row in tally.counts.values())
    assert noticed >= 20 and len(tally.counts) >= 12, tally.table()


def test_every_kind_of_file_and_every_damage_has_its_turn(stopped: list[Stopped]) -> None:
    kinds = {kind_of(path) for one in stopped for path in one.files}
    assert {"journal", "spare journal", "entry log", "index segment", "manifest", "cookie", "reserve", "boot"} <= kinds
    chosen = list(trials(stopped, 1000, Random(1)))
    assert {kind_of(trial.path) for trial in chosen} == kinds
    assert {trial.harm for trial in chosen} == set(HARMS)
    assert {kind_of(trial.path) for trial in chosen if trial.needed} == kinds - {
        "lock",
        "dirty",
        "reserve",
        "spare journal",
    }


def test_damage_that_changes_nothing_is_none() -> None:
    assert changed(b"abcd" * 300, b"abcd" * 300) == []
    assert changed(b"abcd", b"abXd") == [2]
    assert changed(b"abcd", b"ab") == [2, 3]
    assert changed(b"ab", b"abcd") == []
    assert changed(b"ab", None) == [0, 1]


# -- planted bugs ---------------------------------------------------------------------------------------------


def segments_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        index_segment, "unstamp", lambda data, magic, version, what: bytes(data)[STAMP_SIZE:][: body_size(data)]
    )


def body_size(data: bytes) -> int:
    return int.from_bytes(data[8:12], "big")


def notes_are_not_checked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(checked_note, "decode", lambda data: data.decode().partition("\n")[0])


def of_the_simulator(name: str) -> Callable[[pytest.MonkeyPatch], None]:
    def plant(patch: pytest.MonkeyPatch) -> None:
        BUGS[name].plant(patch.setattr)

    plant.__name__ = name
    return plant


PLANTED = [
    segments_are_not_checked,
    notes_are_not_checked,
    of_the_simulator("damage-is-denied"),
    of_the_simulator("missing-log-is-empty"),
    of_the_simulator("damaged-index-is-empty"),
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, stopped: list[Stopped]
) -> None:
    plant(monkeypatch)
    wanted = ["metadata-transaction"] if plant is notes_are_not_checked else ["entry log", "index segment"]
    chosen = [each for each in trials(stopped, 1500, Random(3)) if each.needed and kind_of(each.path) in wanted]
    for at in range(0, len(chosen), 10):
        tally = Tally()
        for trial, outcome in outcomes(chosen[at : at + 10]):
            tally.add(trial, outcome)
        if tally.problems:
            return
    pytest.fail("no damage showed it")


def test_the_table_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Page\n\n## Mine\n\nold\n\n## Others\n\nstay\n")
    put_section(page, "Mine", "new\n")
    assert page.read_text() == "# Page\n\n## Mine\n\nnew\n\n## Others\n\nstay\n"
    put_section(page, "More", "last")
    assert page.read_text().endswith("stay\n\n## More\n\nlast\n")
    put_section(page, "More", "very last")
    assert page.read_text().endswith("stay\n\n## More\n\nvery last\n")
