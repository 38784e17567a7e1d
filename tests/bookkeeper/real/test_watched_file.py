"""A private file is read again when it has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.real import WatchedFile, replace_private


def number(text: str, source: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{source}: no number") from None


@pytest.mark.rule("X6", "X43")
def test_the_value_follows_the_file_and_outlives_bad_ones(tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    replace_private(path, "1")
    file = WatchedFile(path, number)
    assert (file.value, file.refresh()) == (1, False)
    replace_private(path, "2")
    assert file.value == 1 and file.refresh() and file.value == 2
    for bad in ("x", "\udcff"):
        replace_private(path, bad) if bad == "x" else Path(path).write_bytes(b"\xff")
        for _ in range(2):
            with pytest.raises(ConfigError, match="file"):
                file.refresh()
        assert file.value == 2
    replace_private(path, "3")
    os.chmod(path, 0o604)
    with pytest.raises(ConfigError, match="chmod 600"):
        file.refresh()
    os.unlink(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        file.refresh()
    replace_private(path, "4")
    assert file.refresh() and file.value == 4


def test_a_file_that_is_not_there_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        WatchedFile(str(tmp_path / "nothing"), number)


@pytest.mark.rule("X43")
def test_a_replaced_file_is_private_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o666)
    replace_private(str(path), "new")
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "directory").mkdir()
    with pytest.raises(OSError):
        replace_private(str(tmp_path / "directory"), "text")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["directory", "file"]
