from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bookkeeper.errors import DirectoryLockedError
from bookkeeper.ids import Address
from bookkeeper.real import memory_limit, system_seams
from spark_wal.webhdfs.config import GatewayConfig, OwnerConfig
from spark_wal.webhdfs.service import ServingConfig, WebHdfsService
from tests.spark_wal.webhdfs.wire import connected


@pytest.mark.parametrize("scheme", ["file", "embedded"])
@pytest.mark.rule("S4")
async def test_a_namespace_outlives_its_gateway(tmp_path: Path, scheme: str) -> None:
    uri = f"{scheme}://{tmp_path}/place"
    config = ServingConfig(uri=uri, listen=Address("127.0.0.1", 0), advertise="gateway:1")
    large = bytes(range(256)) * 1000
    async with WebHdfsService(config, system_seams()) as service, connected(service.address) as wire:
        for name, data in (("small", b"s"), ("large", large)):
            target = f"/webhdfs/v1/d/{name}?op=CREATE&namenoderpcaddress=x"
            assert (await wire.request("PUT", target, body=data)).status == 201
    async with WebHdfsService(config, system_seams()) as service, connected(service.address) as wire:
        for name, data in (("small", b"s"), ("large", large)):
            opened = await wire.request("GET", f"/webhdfs/v1/d/{name}?op=OPEN&namenoderpcaddress=x")
            assert opened.body == data


@pytest.mark.rule("X34")
async def test_without_any_setting_the_tree_has_a_limit_of_memory(tmp_path: Path) -> None:
    """Cause: whoever might create made directories until the gateway's memory ended."""
    config = ServingConfig(uri=f"file://{tmp_path}/place", listen=Address("127.0.0.1", 0), advertise="gateway:1")
    async with WebHdfsService(config, system_seams()) as service:
        assert service.gateway is not None
        assert service.gateway.session is not None
        assert service.gateway.session.namespace.memory.limit == (memory_limit() or 0) // 3 > 0
    full = replace(config, gateway=GatewayConfig(owner=OwnerConfig(memory_max=5_000)))
    async with WebHdfsService(full, system_seams()) as service, connected(service.address) as wire:
        made = [await wire.request("PUT", f"/webhdfs/v1/d{number}?op=MKDIRS") for number in range(20)]
        assert [reply.status for reply in made] == [200] * 8 + [403] * 12
        assert b"NSQuotaExceeded" in made[-1].body
        assert (await wire.request("DELETE", "/webhdfs/v1/d0?op=DELETE")).status == 200
        assert (await wire.request("PUT", "/webhdfs/v1/again?op=MKDIRS")).status == 200
        page = (await wire.request("GET", "/metrics")).body
        assert b"gateway_tree_bytes_max 5000" in page


async def test_a_start_that_fails_leaves_nothing_open(tmp_path: Path) -> None:
    config = ServingConfig(uri=f"file://{tmp_path}/place", listen=Address("127.0.0.1", 0))
    async with WebHdfsService(config, system_seams()) as running:
        assert running.address is not None
        with pytest.raises(DirectoryLockedError):
            await WebHdfsService(config, system_seams()).start()
        taken = ServingConfig(uri=f"file://{tmp_path}/other", listen=running.address)
        with pytest.raises(OSError, match="in use"):
            await WebHdfsService(taken, system_seams()).start()
    async with WebHdfsService(taken, system_seams()):
        pass
