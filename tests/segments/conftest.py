"""In these tests hosts of a simulated cluster die in the middle of things. What they leave behind complains when it is
collected, and that may be in another test."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
WITH_KILLED_HOSTS: Final = (
    "life/test_removal.py",
    "life/test_stories.py",
    "testing/test_stream_bugs.py",
    "testing/test_stream_worlds.py",
    "write/test_entry_output.py",
    "write/test_producer.py",
    "write/test_take_over.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _has_killed_hosts(item.path):
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


def _has_killed_hosts(path: Path) -> bool:
    return path.is_relative_to(HERE) and path.relative_to(HERE).as_posix() in WITH_KILLED_HOSTS


@pytest.fixture(scope="module", autouse=True)
def remains(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collected before the next module's tests, and without a word."""
    yield
    if not _has_killed_hosts(request.path):
        return
    before, sys.unraisablehook = sys.unraisablehook, lambda *_: None
    try:
        gc.collect()
    finally:
        sys.unraisablehook = before
