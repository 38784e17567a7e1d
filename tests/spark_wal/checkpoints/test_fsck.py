from __future__ import annotations

from collections.abc import Callable

import pytest

from spark_wal.checkpoints.fsck import CheckpointFinding, CheckpointVerdict
from tests.spark_wal.checkpoints.samples import NAMES, SampleStore, after


@pytest.mark.parametrize("name", NAMES)
def test_what_spark_wrote_is_whole(name: str) -> None:
    verdict = SampleStore(name).verdict()
    assert verdict.is_whole and verdict.can_start
    assert not [f for f in verdict.findings if f.is_damage]


def only(verdict: CheckpointVerdict) -> CheckpointFinding:
    (found,) = (f for f in verdict.findings if f.is_damage)
    return found


def test_a_bad_snapshot_is_moved_away_and_the_deltas_are_enough() -> None:
    verdict = after("hdfs", lambda s: s.flip("state/0/0/8.snapshot", 40))
    found = only(verdict)
    assert not verdict.can_start and found.path == "state/0/0/8.snapshot"
    assert "move it away" in found.advice and "4.snapshot, 4 steps and 9.delta" in found.advice


def test_a_bad_delta_behind_which_there_is_a_snapshot_needs_nothing() -> None:
    verdict = after("hdfs", lambda s: s.flip("state/0/0/7.delta", 40))
    found = only(verdict)
    assert verdict.can_start and found.path == "state/0/0/7.delta"
    assert found.advice == "nothing has to be done: version 9 is built from 8.snapshot and 9.delta"
    assert verdict.back_to == (0, 1, 2, 3, 4, 5, 7, 8)


def test_a_bad_last_delta_leaves_the_way_back() -> None:
    verdict = after("hdfs", lambda s: s.cut("state/0/1/9.delta", 60))
    found = only(verdict)
    assert not verdict.can_start and "cut short" in found.what
    assert "version 9 cannot be rebuilt without it; go back to batch 7" in found.advice
    assert verdict.back_to[-1] == 7


def test_a_missing_delta_is_named() -> None:
    needed = only(after("hdfs", lambda s: s.files.pop("state/0/1/9.delta")))
    assert (needed.path, needed.what) == ("state/0/1/9.delta", "it is missing")
    unneeded = after("hdfs", lambda s: s.files.pop("state/0/1/6.delta"))
    assert only(unneeded).path == "state/0/1/6.delta" and unneeded.can_start


def test_a_bad_changelog_and_a_bad_zip() -> None:
    zipped = after("rocksdb-changelog", lambda s: s.flip("state/0/0/9.zip", 200))
    assert "6.zip, 2 steps and 9.changelog" in only(zipped).advice
    changelog = after("rocksdb-changelog", lambda s: s.flip("state/0/0/8.changelog", 40))
    assert changelog.can_start and "version 9 is built from 9.zip" in only(changelog).advice
    assert 7 not in changelog.back_to and 8 in changelog.back_to


def test_a_zip_whose_sst_file_is_missing_or_short() -> None:
    def lose(store: SampleStore) -> None:
        shared = [path for path in store.files if path.startswith("state/0/0/SSTs/000010")]
        del store.files[shared[0]]

    found = only(after("rocksdb-changelog", lose))
    assert found.path == "state/0/0/9.zip" and "000010" in found.what and "missing" in found.what


def test_in_the_second_format_the_ids_of_the_commit_count() -> None:
    def damage(store: SampleStore) -> None:
        store.flip(store.file("state/0/0", "9_", ".zip"), 50)

    found = only(after("rocksdb-changelog-ids", damage))
    assert "move it away" in found.advice and "6_e1f40164" in found.advice

    def other_attempt(store: SampleStore) -> None:
        store.files["state/0/0/9_00000000-0000-0000-0000-000000000000.zip"] = b"half of a task that died"

    verdict = after("rocksdb-changelog-ids", other_attempt)
    assert verdict.can_start and verdict.back_to[-1] == 8
    assert "nothing has to be done" in only(verdict).advice


def test_offsets_one_ahead_of_commits_are_whole_in_the_second_format() -> None:
    verdict = after("rocksdb-changelog-ids", lambda s: s.files.pop("commits/8"))
    assert verdict.is_whole and verdict.can_start
    assert (verdict.next_batch, verdict.is_planned, verdict.back_to[-1]) == (8, True, 7)


@pytest.mark.parametrize(
    ("change", "path", "can_start"),
    [
        (lambda s: s.files.pop("offsets/4"), "offsets/4", True),
        (lambda s: s.files.pop("commits/4"), "commits/4", True),
        (lambda s: s.files.pop("offsets/7"), "offsets/7", False),
        (lambda s: s.files.pop("offsets/8"), "offsets/8", False),
        (lambda s: s.cut("offsets/8", 100), "offsets/8", False),
        (lambda s: s.cut("commits/8", 3), "commits/8", False),
        (lambda s: s.cut("metadata", 3), "metadata", False),
        (lambda s: s.files.pop("metadata"), "metadata", False),
    ],
)
def test_a_hole_or_a_damaged_log_is_named(change: Callable[[SampleStore], object], path: str, can_start: bool) -> None:
    verdict = after("hdfs", change)
    assert only(verdict).path == path
    assert verdict.can_start is can_start


def test_holes_in_both_logs_of_a_query_without_state_are_meant() -> None:
    verdict = SampleStore("asynchronous").verdict()
    assert {f.path for f in verdict.findings} == {"offsets/1", "offsets/6", "commits/1", "commits/6"}
    with_state = after("hdfs", lambda s: [s.files.pop(f"{log}/4") for log in ("offsets", "commits")])
    assert not with_state.is_whole


def test_foreign_files_and_leftovers_are_notes() -> None:
    temporary = "offsets/.9.281957e6-69b8-4254-af39-7d5e71acd87d.tmp"
    verdict = after("hdfs", lambda s: s.files.update({"notes.txt": b"x", temporary: b"y"}))
    assert verdict.is_whole
    assert {f.path for f in verdict.findings} == {"notes.txt", temporary}


@pytest.mark.parametrize("name", [name for name in NAMES if name != "asynchronous"])
def test_it_is_never_advised_to_begin_anew_and_cannot_be_rebuilt_is_said_only_where_nothing_is_left(name: str) -> None:
    """Each single damage of a file leaves another way in each of these checkpoints."""
    for path in SampleStore(name).files:
        if path.endswith((".crc", ".sst")) or path.startswith(("sources/", "state/0/_", "state/1/_")):
            continue
        for damage in (lambda s, p=path: s.cut(p, len(s.files[p]) // 2), lambda s, p=path: s.files.pop(p)):
            for finding in after(name, damage).findings:
                assert "anew" not in finding.advice
                assert "and no earlier one" not in finding.advice, (path, finding)


def test_cannot_be_rebuilt_is_said_where_nothing_is_left() -> None:
    def lose_all(store: SampleStore) -> None:
        for path in [p for p in store.files if p.startswith("state/0/0/") and p.endswith(("delta", "snapshot"))]:
            del store.files[path]

    verdict = after("hdfs", lose_all)
    assert verdict.back_to == () and not verdict.can_start
    assert "cannot be rebuilt, and no earlier one" in only(verdict).advice


def test_an_unfinished_copy_is_finished() -> None:
    def begin(store: SampleStore) -> None:
        store.files["metadata"] = b"unfinished_bk_checkpoint_copy of: file:///a\n"

    verdict = after("hdfs", begin)
    assert not verdict.can_start and "bk checkpoint copy --resume" in only(verdict).advice
