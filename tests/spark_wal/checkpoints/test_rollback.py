from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_wal.checkpoints.fsck import StateChecks
from spark_wal.checkpoints.layout import StatePartition
from spark_wal.checkpoints.reader import check_state
from spark_wal.checkpoints.rollback import RollbackPlan, RollbackRefusedError, plan_rollback
from tests.spark_wal.checkpoints.samples import WITH_STATE, SampleStore


def plan(store: SampleStore, batch: int) -> RollbackPlan:
    found = store.checkpoint()
    return plan_rollback(found, StateChecks.of(found, check_state(store, found)), batch)


def without(store: SampleStore, done: RollbackPlan) -> SampleStore:
    store.files = {path: data for path, data in store.files.items() if path not in done.removed}
    return store


@pytest.mark.parametrize("name", WITH_STATE)
def test_after_each_rollback_the_checkpoint_is_whole_and_goes_on_behind_that_batch(name: str) -> None:
    *batches, last = SampleStore(name).verdict().back_to
    for batch in batches:
        store = SampleStore(name)
        before = store.checkpoint()
        done = plan(store, batch)
        after = without(store, done)
        verdict = after.verdict()
        assert verdict.is_whole and verdict.can_start and not verdict.findings
        assert (verdict.next_batch, verdict.is_planned) == (batch + 1, False)
        assert done.repeated == tuple(range(batch + 1, last + 1))
        assert {p.directory for p in before.partitions} == {path.rpartition("/")[0] for path in done.needed}
        assert max(f.version for files in after.checkpoint().state_files.values() for f in files) == batch + 1
        assert {p for p in before.listing if p.startswith("sources/")} <= set(after.files)


def test_in_the_second_format_it_goes_on_with_the_file_that_the_commit_names() -> None:
    store = SampleStore("rocksdb-changelog-ids")
    named = store.checkpoint().commits[4].state_ids[0][1][0]
    other = "state/0/1/5_00000000-0000-0000-0000-000000000000.changelog"
    store.files[other] = store.files[f"state/0/1/5_{named}.changelog"]
    done = plan(store, 4)
    assert f"state/0/1/5_{named}.changelog" in done.needed and other not in done.needed
    assert other not in done.removed, "nobody guesses that it is not needed"
    assert without(store, done).checkpoint().unique_id(StatePartition(0, 1, "default"), 5) == named


def test_offsets_one_ahead_of_commits_go_back_to_the_last_commit() -> None:
    store = SampleStore("rocksdb-changelog-ids")
    del store.files["commits/8"]
    done = plan(store, 7)
    assert "offsets/8" in done.removed and done.repeated == ()
    assert without(store, done).verdict().next_batch == 8


@pytest.mark.parametrize(
    ("change", "batch", "text"),
    [
        (lambda s: None, 8, "nothing is behind it"),
        (lambda s: None, 9, "offsets/9 is missing or damaged; the last batch before it to which it can is 8"),
        (lambda s: s.files.pop("offsets/3"), 4, "offsets/3 is missing, and Spark reads it when it starts"),
        (lambda s: s.files.pop("commits/0"), 0, "the first batch to which it can is 1"),
        (lambda s: s.flip("state/0/0/6.delta", 40), 5, "its state needs state/0/0/6.delta"),
        (lambda s: s.flip("state/0/0/4.snapshot", 40), 5, "4.snapshot is damaged and has to be moved away first"),
    ],
)
def test_it_is_refused_with_the_reason_and_another_way(
    change: Callable[[SampleStore], object], batch: int, text: str
) -> None:
    store = SampleStore("hdfs")
    change(store)
    with pytest.raises(RollbackRefusedError, match=text):
        plan(store, batch)


def test_an_unfinished_copy_does_not_go_back() -> None:
    store = SampleStore("hdfs")
    store.files["metadata"] = b"unfinished_bk_checkpoint_copy of: file:///a\n"
    with pytest.raises(RollbackRefusedError, match="unfinished copy of file:///a"):
        plan(store, 3)
