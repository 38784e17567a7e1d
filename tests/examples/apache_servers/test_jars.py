from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from bookkeeper.launchers import java
from examples.apache_servers.jars import NEWEST, VARIABLE, VERSION, cache_directory, jars, whats_missing

SERVER = f"bookkeeper-server-{VERSION}.jar"


def world(tmp_path: Path, *, maven: str | None) -> dict[str, str]:
    """An environment with a Java of its own, and a Maven that is this script."""
    binaries = tmp_path / "bin"
    binaries.mkdir()
    scripts = {"java": "echo 'openjdk version \"17.0.1\"' >&2"} | ({"mvn": maven} if maven else {})
    for name, script in scripts.items():
        (binaries / name).write_text(f"#!/bin/sh\n{script}\n")
        (binaries / name).chmod(0o755)
    for tool in ("sh", "mkdir", "touch", "sleep", "cp"):
        (binaries / tool).symlink_to(shutil.which(tool) or tool)
    return {"PATH": str(binaries), "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": str(tmp_path)}


FETCHES = f"""
echo run >> "$HOME/runs"
for argument do
  case "$argument" in -DoutputDirectory=*) into="${{argument#*=}}";; *pom.xml) cp "$argument" "$HOME/";; esac
done
mkdir -p "$into"; sleep 0.2; touch "$into/{SERVER}" "$into/a.jar"
"""


def test_the_jars_are_fetched_once_into_the_cache(tmp_path: Path) -> None:
    environment = world(tmp_path, maven=FETCHES)
    cache = cache_directory(environment)
    assert jars(environment) == jars(environment) == f"{cache}/a.jar{os.pathsep}{cache}/{SERVER}"
    assert (tmp_path / "runs").read_text() == "run\n"
    asked_for = (tmp_path / "pom.xml").read_text()
    assert f"<bookkeeper.version>{VERSION}<" in asked_for
    assert all(name in asked_for for name in ("bookkeeper-server", "bookkeeper-benchmark", "distributedlog-core"))
    assert sorted(path.name for path in cache.parent.iterdir()) == [cache.name, f"{cache.name}.lock"]


def test_another_release_has_its_own_list_and_its_own_place(tmp_path: Path) -> None:
    environment = world(tmp_path, maven=FETCHES.replace(VERSION, NEWEST))
    usual = cache_directory(environment)
    environment[VARIABLE] = NEWEST
    assert f"bookkeeper-server-{NEWEST}.jar" in jars(environment)
    assert cache_directory(environment) != usual and not usual.exists()
    asked_for = (tmp_path / "pom.xml").read_text()
    assert f"<bookkeeper.version>{NEWEST}<" in asked_for and "bookkeeper-benchmark" not in asked_for


def test_a_release_that_is_not_known_is_refused(tmp_path: Path) -> None:
    environment = {**world(tmp_path, maven=FETCHES), VARIABLE: "4.18"}
    with pytest.raises(ConfigError, match=f"{VARIABLE} must be one of {VERSION}, {NEWEST}, not '4.18'"):
        jars(environment)
    assert not (tmp_path / "runs").exists()


def test_two_that_ask_at_once_fetch_once(tmp_path: Path) -> None:
    environment = world(tmp_path, maven=FETCHES)
    program = "import os; from examples.apache_servers.jars import jars; print(jars())"
    command = [sys.executable, "-c", program]
    asking = [
        subprocess.Popen(command, env={**environment, "PYTHONPATH": os.getcwd()}, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    answers = {process.communicate()[0] for process in asking}
    assert len(answers) == 1 and SERVER.encode() in answers.pop()
    assert (tmp_path / "runs").read_text() == "run\n"


def test_a_failed_attempt_leaves_no_cache_behind(tmp_path: Path) -> None:
    environment = world(tmp_path, maven="echo '[ERROR] Unknown host repo.maven.apache.org'; exit 1")
    with pytest.raises(ConfigError, match=r"no network.*Unknown host repo"):
        jars(environment)
    assert not cache_directory(environment).exists()
    assert [path.name for path in cache_directory(environment).parent.iterdir()] == [f"apache-{VERSION}.lock"]


def test_a_maven_that_brings_something_else_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"no {SERVER}: odd"):
        jars(world(tmp_path, maven="echo odd"))


def test_without_maven_it_is_said_what_to_do_and_it_is_known_beforehand(tmp_path: Path) -> None:
    environment = world(tmp_path, maven=None)
    with pytest.raises(ConfigError, match="no mvn on the PATH: install maven"):
        jars(environment)
    assert "no mvn" in (whats_missing(environment) or "")
    cache_directory(environment).mkdir(parents=True)
    assert whats_missing(environment) is None


def test_without_java_that_is_what_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "packaged_java", lambda: None)
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    with pytest.raises(ConfigError, match="needs Java"):
        jars(environment)
    assert "needs Java" in (whats_missing(environment) or "")


@pytest.mark.interop
def test_the_real_ones_are_there(apache: None) -> None:
    names = [Path(jar).name for jar in jars().split(os.pathsep)]
    for name in ("bookkeeper-server", "bookkeeper-benchmark", "distributedlog-core"):
        assert f"{name}-{VERSION}.jar" in names
