"""The lock holds what ``pyproject.toml`` asks for, in versions that fit each other, and every file by its hash."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.environment.locked import BESIDE, EXTRAS, LOCK, ROOT, LockedPackage, bump, read_lock, requirements

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = read_lock(LOCK.read_text())


def wanted() -> list[Requirement]:
    project = PROJECT["project"]
    lines = [*project["dependencies"], *PROJECT["build-system"]["requires"], *BESIDE]
    lines += [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
    return [Requirement(line) for line in lines]


def of(name: str) -> list[LockedPackage]:
    return [each for each in PACKAGES if canonicalize_name(each.name) == canonicalize_name(name)]


@pytest.mark.parametrize("requirement", wanted(), ids=str)
def test_what_the_project_asks_for_is_locked_in_a_version_that_it_allows(requirement: Requirement) -> None:
    """After a change of pyproject.toml: python -m tests.environment.locked"""
    found = of(requirement.name)
    assert found
    assert all(requirement.specifier.contains(each.version) for each in found)


def test_every_package_is_locked_by_the_hashes_of_its_files() -> None:
    assert len(PACKAGES) > 60
    assert [each.name for each in PACKAGES if not each.hashes] == []


def test_pandas_is_one_that_pyspark_supports() -> None:
    """PySpark 4.3 met pandas 3, which it says it does not support."""
    assert [each.version.split(".")[0] for each in of("pandas")] == ["2"]


def test_what_is_read_is_what_pip_is_given() -> None:
    text = "a==1 ; python_version < '3.12' \\\n    --hash=sha256:" + "0" * 64 + "\nb-c==2.0.post1 \\\n    --hash=x\n"
    found = read_lock("# head\n" + text)
    assert [(each.name, each.version, len(each.hashes)) for each in found] == [("a", "1", 1), ("b-c", "2.0.post1", 0)]
    assert requirements(found) == text
    with pytest.raises(ValueError, match="no requirement: -r other"):
        read_lock("-r other\n")


class Uv:
    """Stands for ``uv``."""

    def __init__(self, status: int, said: str) -> None:
        self.status, self.said = status, said
        self.command: Sequence[str] = ()
        self.given = ""

    def __call__(self, command: Sequence[str], *, input: str, **_: Any) -> subprocess.CompletedProcess[str]:  # noqa: A002
        self.command, self.given = command, input
        return subprocess.CompletedProcess(command, self.status, self.said)


def test_one_command_writes_it_anew_with_hashes_for_all_systems(tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    uv = Uv(0, LOCK.read_text())
    assert bump(uv, lock) == 0
    assert read_lock(lock.read_text()) == PACKAGES
    assert {"--upgrade", "--universal", "--generate-hashes", str(ROOT / "pyproject.toml")} <= set(uv.command)
    assert uv.given.split("\n") == list(BESIDE)
    assert [path.name for path in tmp_path.iterdir()] == [lock.name]


def test_one_that_fails_leaves_it_as_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / "requirements.lock"
    lock.write_text("before")
    assert bump(Uv(2, ""), lock) == 2

    def missing(*_: object, **__: object) -> Any:
        raise FileNotFoundError("uv")

    assert bump(missing, lock) == 1
    assert "pip install uv" in capsys.readouterr().err
    assert lock.read_text() == "before"
