"""The front doors stay as listed: a package's public names change only together with this list.

``python -m tests.architecture.test_front_doors`` writes the list anew; its diff is reviewed like code.
"""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("front_doors.txt")
PACKAGES = (
    "bookkeeper",
    "bookkeeper.autorecovery",
    "bookkeeper.replication",
    "bookkeeper.sync",
    "journal_manager",
    "journal_manager.sync",
    "segments",
    "segments.sync",
    "spark_wal",
)


def public_names(package: str) -> list[str]:
    return sorted(importlib.import_module(package).__all__)


def listed() -> dict[str, list[str]]:
    doors: dict[str, list[str]] = {}
    for line in LIST.read_text().splitlines():
        package, _, names = line.partition(": ")
        doors[package] = names.split()
    return doors


@pytest.mark.parametrize("package", PACKAGES)
def test_the_front_door_is_as_listed(package: str) -> None:
    assert public_names(package) == listed()[package]


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there(package: str) -> None:
    module = importlib.import_module(package)
    for name in public_names(package):
        assert getattr(module, name) is not None


if __name__ == "__main__":
    LIST.write_text("".join(f"{package}: {' '.join(public_names(package))}\n" for package in PACKAGES))
