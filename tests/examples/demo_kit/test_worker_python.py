from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError
from examples.demo_kit.worker_python import worker_python


def installed(directory: Path) -> Path:
    """A PySpark that says where it is from."""
    package = directory / "pyspark"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    return directory


def interpreter(directory: Path, packages: Path) -> Path:
    """A Python in which these packages are installed. It puts them last, as an installation does."""
    program = directory / "python of its own"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec {sys.executable} -S "$@"\n')
    program.chmod(0o700)
    return program


def test_workers_import_what_is_installed_and_not_the_archive(tmp_path: Path) -> None:
    packages, archive = installed(tmp_path / "site packages"), installed(tmp_path / "archive")
    python = interpreter(tmp_path, packages)
    program = worker_python(str(python), tmp_path)
    assert program == worker_python(str(python), tmp_path) == str(tmp_path / "worker-python")
    asked = [program, "-c", "import pyspark, sys; print(pyspark.__file__, sys.argv[1])", "an argument"]
    given = {**os.environ, "PYTHONPATH": str(archive)}
    said = subprocess.run(asked, env=given, check=True, capture_output=True, text=True).stdout.strip()
    assert said == f"{packages}/pyspark/__init__.py an argument"


@pytest.mark.parametrize("python", ["/nowhere/python", "/bin/false"])
def test_a_python_without_pyspark_is_an_error(tmp_path: Path, python: str) -> None:
    with pytest.raises(ConfigError, match="is PySpark installed there"):
        worker_python(python, tmp_path)
    assert not list(tmp_path.iterdir())
