"""What every place does is in test_places."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_wal.checkpoint_copy.local_store import LocalStore
from spark_wal.checkpoint_copy.stores import CheckpointStoreError


@pytest.mark.rule("X42")
@pytest.mark.parametrize("path", ["../x", "a/../../x", "/x", "a\0b"])
def test_names_do_not_lead_out_of_the_directory(tmp_path: Path, path: str) -> None:
    place = LocalStore(str(tmp_path / "in"))
    with pytest.raises(CheckpointStoreError, match="leads out"):
        place.write(path, lambda: [b"x"])
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_breaks_off_leaves_what_was_there(tmp_path: Path) -> None:
    place = LocalStore(str(tmp_path))
    place.write("a", lambda: [b"old"])

    def broken() -> list[bytes]:
        raise CheckpointStoreError("no")

    with pytest.raises(CheckpointStoreError):
        place.write("a", broken)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert b"".join(place.read("a")) == b"old"


def test_a_file_that_an_earlier_run_left_half_written_is_not_listed(tmp_path: Path) -> None:
    (tmp_path / ".bk-copy.0011").write_bytes(b"half")
    assert LocalStore(str(tmp_path)).listing() == {}


def test_what_cannot_be_read_is_an_error_and_not_empty(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(CheckpointStoreError, match="file"):
        LocalStore(str(tmp_path / "file")).listing()


@pytest.mark.rule("K1", "S4")
def test_what_an_earlier_run_has_left_is_made_durable_by_name_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = LocalStore(str(tmp_path / "in"))
    earlier.write("offsets/0", lambda: [b"x"])
    synced: set[int] = set()
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    later = LocalStore(str(tmp_path / "in"))
    assert list(later.listing()) == ["offsets/0"]
    later.sync()
    assert {path.stat().st_ino for path in (tmp_path, tmp_path / "in", tmp_path / "in" / "offsets")} <= synced


def test_a_directory_elsewhere_is_not_left_out_in_silence(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "0").write_bytes(b"x")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "state").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CheckpointStoreError, match="state is a link"):
        LocalStore(str(tmp_path / "in")).listing()
