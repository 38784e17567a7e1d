from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.real import (
    append_private,
    make_private,
    new_private_file,
    private,
    read_private,
    read_secret,
    require_own,
)
from bookkeeper.real.private import make_private_file, replace_private
from bookkeeper.secret import Secret
from tests.bookkeeper.real.places import in_place_of_another


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
    with pytest.raises(ConfigError, match="is not a file"):
        read_private("/dev/null")
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigError, match="is not a file"):  # at once: nobody will ever write
        read_private(str(tmp_path / "pipe"))
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


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.rule("X43")
@pytest.mark.rule("K2", "K25")
def test_a_file_that_does_not_fit_fails_and_the_old_one_stays(tmp_path: Path) -> None:
    """A limit of a file's size stands for a full disk: a write takes what fits, and the next one fails."""
    path = tmp_path / "secrets"
    replace_private(str(path), "old\n")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match=f"too large: '{path}'"):
            replace_private(str(path), "x" * 5000)
        with pytest.raises(OSError, match="too large"):
            append_private(str(path), "x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == "old\n" and list(tmp_path.iterdir()) == [path]


def test_what_is_ours_is_made_private_and_links_are_not_followed(tmp_path: Path) -> None:
    file, directory, link = tmp_path / "file", tmp_path / "directory", tmp_path / "link"
    file.touch(0o666)
    file.chmod(0o664)
    directory.mkdir(0o777)
    directory.chmod(0o755)
    link.symlink_to(file)
    make_private(str(link))
    assert mode_of(file) == 0o664
    for path in (file, directory, tmp_path / "not there"):
        make_private(str(path))
    assert (mode_of(file), mode_of(directory)) == (0o600, 0o700)


@pytest.mark.rule("X43")
def test_a_file_is_private_from_its_first_moment_and_one_that_is_there_is_left(tmp_path: Path) -> None:
    path = tmp_path / "new"
    before = os.umask(0)
    try:
        make_private_file(str(path))
    finally:
        os.umask(before)
    assert mode_of(path) == 0o600
    path.write_text("kept")
    make_private_file(str(path))
    assert path.read_text() == "kept" and os.listdir(tmp_path) == ["new"]
    with pytest.raises(FileNotFoundError):
        make_private_file(str(tmp_path / "nowhere" / "new"))


@pytest.mark.rule("X42", "X43")
def test_a_new_file_is_its_owners_and_leads_nowhere(tmp_path: Path) -> None:
    """Cause: who lays a link at a name that a command will use has another file of its user's overwritten; and what was
    exported could be read by everybody on the machine."""
    elsewhere, path = tmp_path / "elsewhere", tmp_path / "x.part"
    elsewhere.write_bytes(b"kept")
    path.symlink_to(elsewhere)
    before = os.umask(0)
    try:
        with new_private_file(str(path)) as file:
            file.write(b"new")
    finally:
        os.umask(before)
    assert (elsewhere.read_bytes(), path.read_bytes(), mode_of(path)) == (b"kept", b"new", 0o600)
    with new_private_file(str(path)) as file:
        file.write(b"again")
    assert path.read_bytes() == b"again"


@pytest.mark.rule("X43")
def test_data_of_another_user_is_refused_and_that_of_root_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_own(str(tmp_path))
    says = in_place_of_another(monkeypatch, tmp_path)
    with pytest.raises(ConfigError, match=says):
        require_own(str(tmp_path))
    require_own(str(tmp_path / "nowhere"))
    monkeypatch.setattr(private, "ROOT", os.geteuid())  # who is asked is root
    require_own(str(tmp_path))
    monkeypatch.setattr(private, "ROOT", tmp_path.stat().st_uid)
    require_own(str(tmp_path))


@pytest.mark.rule("X43")
def test_a_file_of_another_user_is_refused_and_one_of_root_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key"
    path.write_text("secret")
    path.chmod(0o600)
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setattr(private, "ROOT", owner + 2)
    with pytest.raises(ConfigError, match=f"belongs to another user .number {owner}.*chown {owner + 1}"):
        read_private(str(path))
    with pytest.raises(ConfigError, match="belongs to another user"):
        append_private(str(path), "more")
    assert path.read_text() == "secret"
    monkeypatch.setattr(private, "ROOT", owner)
    assert read_private(str(path)) == b"secret"
