"""ZooKeeper servers that a test may hurt."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.meta.stores.zookeeper import ZooKeeperStore
from tests.bookkeeper.meta.services import seams


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ZooKeeperServer]:
    """A server that a test may hurt."""
    with ZooKeeperServer(tmp_path, tick_ms=200) as server:
        yield server


@pytest.fixture
async def fragile(server: ZooKeeperServer) -> AsyncIterator[ZooKeeperStore]:
    """A session with it that notices silence soon."""
    store = await ZooKeeperStore.open(str(server.address), seams(), session_timeout_s=2.0)
    yield store
    await store.close()


async def in_thread(job: object) -> None:
    await asyncio.get_running_loop().run_in_executor(None, job)  # type: ignore[arg-type]
