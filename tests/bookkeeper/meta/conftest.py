from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.meta.store import MetadataStore
from tests.bookkeeper.meta.services import MemoryService, SqliteService, ZooKeeperService

_names = itertools.count()


@pytest.fixture(scope="package")
def zookeeper_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperServer]:
    """One real ZooKeeper for all tests of this directory that follow each other."""
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper")) as server:
        yield server


@pytest.fixture
async def memory_service() -> AsyncIterator[MemoryService]:
    service = MemoryService()
    yield service
    for store in service.stores:
        await store.close()


@pytest.fixture
async def sqlite_service(tmp_path: Path) -> AsyncIterator[SqliteService]:
    service = SqliteService(tmp_path / "metadata.db")
    yield service
    for store in service.stores:
        await store.close()


@pytest.fixture
async def zookeeper_service(zookeeper_server: ZooKeeperServer) -> AsyncIterator[ZooKeeperService]:
    service = ZooKeeperService(zookeeper_server, f"/test-{next(_names)}")
    await service.start()
    yield service
    for store in service.stores:
        await store.close()


@pytest.fixture(
    params=["memory_service", "sqlite_service", pytest.param("zookeeper_service", marks=pytest.mark.zookeeper)]
)
def service(request: pytest.FixtureRequest) -> MemoryService | SqliteService | ZooKeeperService:
    """Each metadata service in turn."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, MemoryService | SqliteService | ZooKeeperService)
    return found


@pytest.fixture
async def store(service: MemoryService | SqliteService | ZooKeeperService) -> MetadataStore:
    """A session with it."""
    return await service.connect()
