"""One cluster in this process for the tests of the source."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("pyspark.sql.datasource")

from segments import sync
from spark_wal.data_source import connections


@pytest.fixture(scope="session")
def cluster_uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"embedded://{tmp_path_factory.mktemp('bk')}?bookies=3"


@pytest.fixture
def namespace(cluster_uri: str) -> Iterator[sync.Namespace]:
    yield connections.namespace(cluster_uri)
