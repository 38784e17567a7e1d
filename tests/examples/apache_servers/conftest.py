"""Apache's programs, where they can be had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bookkeeper.launchers.zookeeper import ZooKeeperServer
from examples.apache_servers import whats_missing
from tests.interop.apache_shell import apache_init


@pytest.fixture(scope="session")
def apache() -> None:
    """Skips where there is no Java, or no Maven and nothing cached."""
    if (missing := whats_missing()) is not None:
        pytest.skip(missing)


@pytest.fixture(scope="session")
def java_cluster(apache: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster that Java has made; nobody is in it yet."""
    directory: Path = tmp_path_factory.mktemp("apache")
    with ZooKeeperServer(directory) as zookeeper:
        apache_init(zookeeper.uri)
        yield zookeeper.uri
