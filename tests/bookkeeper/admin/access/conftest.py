"""A cluster without servers: its metadata in SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bookkeeper.admin.access.clusters import Cluster
from tests.bookkeeper.admin.commands import bk


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    uri = f"sqlite://{tmp_path}/metadata.db"
    assert bk("init", "-m", uri).status == 0
    return Cluster(uri)
