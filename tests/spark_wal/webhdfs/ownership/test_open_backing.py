from __future__ import annotations

from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError, DirectoryLockedError
from bookkeeper.real import system_seams
from spark_wal.webhdfs.ownership.backing import Backing
from spark_wal.webhdfs.ownership.open_backing import open_backing


async def backing(uri: str) -> Backing:
    return await open_backing(uri, system_seams(), namespace="n", owner="o", address="h:1")


async def test_a_directory_is_used_by_one_gateway_at_a_time(tmp_path: Path) -> None:
    first = await backing(f"file://{tmp_path}/place")
    with pytest.raises(DirectoryLockedError):
        await backing(f"file://{tmp_path}/place")
    await first.close()
    second = await backing(f"file://{tmp_path}/place")
    opened = await second.open_namespace()
    assert opened.log.token.epoch == 1
    await opened.log.close()
    await opened.snapshots.close()
    await second.close()


@pytest.mark.parametrize("uri", ["/just/a/path", "file://host/dir", "file:///dir?x=1", "nonsense://x"])
async def test_what_is_no_address(uri: str) -> None:
    with pytest.raises(ConfigError):
        await backing(uri)
