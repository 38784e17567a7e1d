from __future__ import annotations

import pytest

from spark_wal.checkpoints.layout import Kind, StatePartition, meaning
from tests.spark_wal.checkpoints.samples import NAMES, SampleStore

ID = "281957e6-69b8-4254-af39-7d5e71acd87d"


@pytest.mark.parametrize("name", NAMES)
def test_every_file_that_spark_wrote_has_a_meaning(name: str) -> None:
    assert not [path for path in SampleStore(name).files if meaning(path).kind is Kind.FOREIGN]


def test_a_state_file_says_its_version_its_id_and_whether_it_is_the_whole_state() -> None:
    step = meaning(f"state/1/3/left-keyToNumValues/12_{ID}.changelog").state
    assert step is not None
    assert (step.partition, step.version, step.unique_id) == (StatePartition(1, 3, "left-keyToNumValues"), 12, ID)
    assert not step.is_whole_state
    whole = meaning("state/0/0/4.snapshot").state
    assert whole is not None and whole.is_whole_state and whole.unique_id == ""
    assert whole.partition.directory == "state/0/0"


@pytest.mark.parametrize(
    "path",
    ["offsets/1.txt", "offsets/x", "state/0/0/4.snapshot.old", "state/0/0/4_x.zip", "notes", "state/a/0/1.delta"],
)
def test_what_spark_does_not_write_is_foreign(path: str) -> None:
    assert meaning(path).kind is Kind.FOREIGN


def test_a_checksum_says_what_it_covers() -> None:
    assert meaning(f"state/0/0/1_{ID}.zip.crc").covers == f"state/0/0/1_{ID}.zip"
    assert meaning("notes.crc").kind is Kind.FOREIGN
