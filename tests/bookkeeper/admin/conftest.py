"""A cluster of three bookies in processes of their own, one for tests of this directory that follow each other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.processes import Bookies, bookies


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bookies]:
    """A test leaves all of them writable."""
    with bookies(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def embedded(tmp_path: Path) -> str:
    """The address of a cluster of one bookie inside the process."""
    return f"embedded://{tmp_path}/bk?bookies=1"
