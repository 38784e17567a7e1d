from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from spark_wal.checkpoint_copy.contents import FileStamp
from spark_wal.checkpoints import reader
from spark_wal.checkpoints.reader import check_state, checkpoint_paths, load
from tests.spark_wal.checkpoints.samples import SampleStore


def test_logs_are_read_and_state_is_checked() -> None:
    store = SampleStore("hdfs")
    found = load(store)
    assert len(found.offsets) == len(found.commits) == 9
    checks = check_state(store, found)
    assert len(checks) == 22 and not any(check.problem for check in checks.values())


def test_large_files_of_state_are_read_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    store = SampleStore("hdfs")
    found = load(store)
    whole = check_state(store, found)
    threads: dict[str, str] = {}
    read = store.read

    def noting(path: str) -> Iterator[bytes]:
        threads[path] = threading.current_thread().name
        return read(path)

    monkeypatch.setattr(store, "read", noting)
    monkeypatch.setattr(reader, "LARGE", 105)
    assert check_state(store, found) == whole
    own = threading.current_thread().name
    assert {path for path, name in threads.items() if name == own} == {p for p in whole if len(store.files[p]) > 105}


def test_checkpoints_are_found_wherever_they_lie() -> None:
    paths = ["a/metadata", "a/offsets/0", "b/c/metadata", "b/c/offsets/1", "d/metadata", "e/offsets/0", "x/a/metadata"]
    assert checkpoint_paths(dict.fromkeys(paths, FileStamp(1, 1))) == ["a", "b/c"]
    assert checkpoint_paths(dict.fromkeys(["metadata", "offsets/0"], FileStamp(1, 1))) == [""]
