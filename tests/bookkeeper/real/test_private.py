from __future__ import annotations

from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.real import append_private, read_private, read_secret
from bookkeeper.secret import Secret


@pytest.mark.rule("X43")
@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o610])
def test_a_file_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "token"
    path.write_text("hunter2\n")
    path.chmod(mode)
    with pytest.raises(ConfigError, match="chmod 600") as refused:
        read_secret(str(path))
    assert "hunter2" not in str(refused.value)
    with pytest.raises(ConfigError, match="chmod 600"):
        append_private(str(path), "more\n")
    path.chmod(0o600)
    assert read_secret(str(path)) == Secret("hunter2")


def test_a_secret_file_holds_one_secret(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    for text in ("", "a b"):
        path.write_text(text)
        with pytest.raises(ConfigError, match="one secret"):
            read_secret(str(path))
    with pytest.raises(ConfigError, match="is a file"):
        read_private("/dev/null")
    path.write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(ConfigError, match="at most"):
        read_private(str(path))


def test_lines_are_added_as_lines(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    append_private(str(path), "one\n")
    append_private(str(path), "two")
    append_private(str(path), "three\n")
    assert path.read_text() == "one\ntwo\nthree\n"
    assert path.stat().st_mode & 0o777 == 0o600
