from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_wal.checkpoints.difference import CheckpointDifference, compare, steps_of
from spark_wal.checkpoints.reader import read_changes
from tests.spark_wal.checkpoints.samples import NAMES, SampleStore
from tests.spark_wal.checkpoints.test_changes import ENDS, PUT
from tests.spark_wal.checkpoints.test_lz4_blocks import stream


def between(one: SampleStore, other: SampleStore) -> CheckpointDifference:
    a, b = one.checkpoint(), other.checkpoint()
    return compare(a, b, read_changes(one, a), read_changes(other, b))


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_is_the_same_as_itself(name: str) -> None:
    found = between(SampleStore(name), SampleStore(name))
    assert found.batches == () and found.without_state == () and found.settings == () and found.compared


def test_two_runs_of_one_query_are_the_same_whatever_the_format_of_their_state() -> None:
    found = between(SampleStore("rocksdb-changelog"), SampleStore("rocksdb-changelog-ids"))
    assert found.batches == () and found.without_state == ()
    assert found.compared == tuple(range(9))


def test_settings_that_differ_are_no_difference_of_a_batch() -> None:
    found = between(SampleStore("hdfs"), SampleStore("rocksdb-changelog"))
    assert any("stateStore.providerClass" in setting for setting in found.settings)


def edited(store: SampleStore, path: str, old: bytes, new: bytes) -> None:
    assert old in store.files[path]
    store.files[path] = store.files[path].replace(old, new)


@pytest.mark.parametrize(
    ("change", "batch", "text"),
    [
        (lambda s: edited(s, "offsets/4", b'Offset":4', b'Offset":5'), 4, "source 0 ends at"),
        (lambda s: edited(s, "offsets/4", b'WatermarkMs":0', b'WatermarkMs":7'), 4, "the watermark is 0 and 7 ms"),
        (lambda s: s.files.pop("commits/8"), 8, "it is done only in the first"),
        (lambda s: s.files.pop("offsets/8"), 8, "it is planned only in the first"),
        (
            lambda s: s.files.update({"state/0/1/6.delta": stream(PUT + ENDS, b"")}),
            5,
            "other changes of state in state/0/1",
        ),
    ],
)
def test_what_differs_is_named_with_its_batch(change: Callable[[SampleStore], object], batch: int, text: str) -> None:
    other = SampleStore("hdfs")
    change(other)
    (found,) = between(SampleStore("hdfs"), other).batches
    assert found.batch == batch and text in found.what[0]


def test_the_order_of_names_in_an_offset_says_nothing() -> None:
    one, other = SampleStore("hdfs"), SampleStore("hdfs")
    edited(one, "offsets/4", b'{"logOffset":4}', b'{"a":1,"b":2}')
    edited(other, "offsets/4", b'{"logOffset":4}', b'{"b":2,"a":1}')
    assert between(one, other).batches == ()


def test_batches_that_one_has_removed_already_are_not_compared() -> None:
    other = SampleStore("hdfs")
    for number in range(3):
        del other.files[f"offsets/{number}"], other.files[f"commits/{number}"]
    found = between(SampleStore("hdfs"), other)
    assert found.compared == tuple(range(3, 9)) and found.batches == ()


def test_state_without_steps_is_said_to_be_not_compared() -> None:
    other = SampleStore("rocksdb-changelog")
    del other.files["state/0/0/6.changelog"]
    assert between(SampleStore("rocksdb-changelog"), other).without_state == (5,)


def test_only_files_that_a_commit_names_are_steps() -> None:
    store = SampleStore("rocksdb-changelog-ids")
    stray = "state/0/0/9_00000000-0000-0000-0000-000000000000.changelog"
    store.files[stray] = b"half"
    assert stray not in [file.path for file in steps_of(store.checkpoint())]


def test_changelogs_of_two_formats_are_not_compared() -> None:
    other = SampleStore("rocksdb-changelog")
    with_kinds = b"\x00\x02v2" + b"\x01" + PUT + b"\x00"
    other.files["state/0/0/6.changelog"] = stream(with_kinds, b"")
    found = between(SampleStore("rocksdb-changelog"), other)
    assert found.without_state == (5,) and found.batches == ()
