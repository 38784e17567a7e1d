"""In many of these tests hosts of a simulated cluster die, or its time ends, in the middle of things. What they leave
behind complains when it is collected, and that may be in another test."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"))


@pytest.fixture(scope="module", autouse=True)
def remains() -> Iterator[None]:
    """Collected before the next module's tests, and without a word."""
    yield
    before, sys.unraisablehook = sys.unraisablehook, lambda *_: None
    try:
        gc.collect()
    finally:
        sys.unraisablehook = before
