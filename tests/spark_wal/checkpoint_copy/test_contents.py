from __future__ import annotations

import pytest

from spark_wal.checkpoint_copy.contents import (
    FileStamp,
    belongs,
    difference,
    names_places,
    note,
    source_of,
    stages,
    why_not_one,
)

UUID = "0f0e0d0c-0b0a-0908-0706-050403020100"


@pytest.mark.parametrize(
    ("path", "copied"),
    [
        ("metadata", True),
        ("offsets/0", True),
        ("state/0/0/1.delta", True),
        ("state/0/0/1.delta.crc", True),
        ("offsets/.0.crc", False),
        (".metadata.crc", False),
        ("state/0/0/.1.delta.crc.crc", False),
        ("state/0/0/.odd.crc", True),
        (f"offsets/.1.{UUID}.tmp", False),
        (f"offsets/..1.{UUID}.tmp.crc", False),
        (f"state/0/0/.1.delta.{UUID}.TID7.tmp", False),
        ("offsets/.1.tmp", True),
    ],
)
def test_what_belongs_to_a_checkpoint(path: str, copied: bool) -> None:
    there = {"metadata", "offsets/0", "state/0/0/1.delta", "state/0/0/1.delta.crc"}
    assert belongs(path, there) is copied


def test_what_is_a_checkpoint_and_what_is_not() -> None:
    assert why_not_one(["metadata", "offsets/0"]) is None
    assert why_not_one([]) == "there is nothing"
    assert "file sink" in str(why_not_one(["_spark_metadata/0", "part-0.parquet"]))
    assert "metadata and a directory named offsets" in str(why_not_one(["a", "b/c"]))


def test_the_logs_come_late_and_the_id_last() -> None:
    files = ["offsets/1", "commits/0", "metadata", "state/0/metadata", "sources/0/0", "offsets/0", "offsetsish"]
    assert stages(files) == [
        ["offsetsish", "sources/0/0", "state/0/metadata"],
        ["commits/0"],
        ["offsets/0", "offsets/1"],
        ["metadata"],
    ]


def test_a_note_is_no_json_and_tells_where_it_came_from() -> None:
    assert source_of(note("file:///a b/c")) == "file:///a b/c"
    assert source_of(b'{"id":"x"}') is None
    assert source_of(b"\xff\xfe") is None
    assert not note("x").startswith((b"{", b"[", b'"'))


def test_files_that_may_name_places() -> None:
    assert names_places("state/0/_metadata/v2/1")
    assert names_places("state/0/_stateSchema/default/1_x")
    assert not names_places("metadata")
    assert not names_places("sources/0/0")


def test_a_change_is_named() -> None:
    before = {"a": FileStamp(1, 1), "b": FileStamp(2, 2)}
    assert difference(before, dict(before)) is None
    assert difference(before, {"a": FileStamp(1, 1)}) == "b was removed"
    assert difference(before, {**before, "c": FileStamp(0, 0)}) == "c is new"
    assert difference(before, {**before, "b": FileStamp(2, 3)}) == "b has changed"
