from __future__ import annotations

import pytest

from spark_wal.checkpoints.layout import StateFile, StatePartition, meaning
from spark_wal.checkpoints.rebuild import BuildObstacle, StateSources, sources_of

PARTITION = StatePartition(0, 0, "default")


def files(*names: str) -> list[StateFile]:
    found = [meaning(f"state/0/0/{name}").state for name in names]
    return [file for file in found if file is not None]


def names(found: StateSources | BuildObstacle) -> list[str]:
    assert isinstance(found, StateSources)
    return [file.path.rpartition("/")[2] for file in found.files]


DELTAS = [f"{n}.delta" for n in range(1, 7)]


@pytest.mark.parametrize(
    ("damaged", "wanted", "unusable"),
    [
        ([], ["4.snapshot", "5.delta", "6.delta"], 0),
        (["4.snapshot"], ["2.snapshot", "3.delta", "4.delta", "5.delta", "6.delta"], 1),
        (["4.snapshot", "2.snapshot"], DELTAS, 2),
        (["3.delta"], ["4.snapshot", "5.delta", "6.delta"], 0),
    ],
)
def test_the_newest_whole_state_and_each_step_behind_it(damaged: list[str], wanted: list[str], unusable: int) -> None:
    there = files(*DELTAS, "2.snapshot", "4.snapshot")
    usable = [f.path for f in there if f.path.rpartition("/")[2] not in damaged]
    found = sources_of(there, usable, PARTITION, 6)
    assert names(found) == wanted
    assert isinstance(found, StateSources) and len(found.unusable) == unusable


def test_what_cannot_be_built_names_the_step_that_is_lost() -> None:
    there = files("4.snapshot", "5.delta", "6.delta")
    assert sources_of(there, ["state/0/0/4.snapshot", "state/0/0/6.delta"], PARTITION, 6) == BuildObstacle(
        ("state/0/0/5.delta",)
    )
    assert sources_of(files("5.delta", "6.delta"), ["state/0/0/5.delta", "state/0/0/6.delta"], PARTITION, 6) == (
        BuildObstacle(("state/0/0/4.delta",))
    )
    assert sources_of([], [], PARTITION, 3) == BuildObstacle(("state/0/0/3.delta",))


def test_version_0_is_empty() -> None:
    assert sources_of([], [], PARTITION, 0) == StateSources(())


A, B, C = (f"{n}0000000-0000-0000-0000-000000000000" for n in "abc")


def test_the_second_format_takes_what_the_changelog_names_and_no_other_file_of_that_version() -> None:
    there = files(f"1_{A}.zip", f"1_{C}.zip", f"2_{B}.changelog", f"2_{C}.changelog", f"3_{A}.changelog")
    usable = [f.path for f in there]
    earlier = {f"state/0/0/3_{A}.changelog": {1: A, 2: B}}
    found = sources_of(there, usable, PARTITION, 3, A, earlier)
    assert names(found) == [f"1_{A}.zip", f"2_{B}.changelog", f"3_{A}.changelog"]
    usable.remove(f"state/0/0/2_{B}.changelog")
    assert sources_of(there, usable, PARTITION, 3, A, earlier) == BuildObstacle((f"state/0/0/2_{B}.changelog",))


def test_the_second_format_finds_no_zip_that_the_changelog_does_not_name() -> None:
    there = files(f"1_{A}.zip", f"2_{B}.zip", f"2_{B}.changelog", f"3_{A}.changelog")
    usable = [f"state/0/0/1_{A}.zip", f"state/0/0/2_{B}.changelog", f"state/0/0/3_{A}.changelog"]
    earlier = {f"state/0/0/3_{A}.changelog": {2: B}}
    assert sources_of(there, usable, PARTITION, 3, A, earlier) == BuildObstacle((f"state/0/0/2_{B}.zip",))
