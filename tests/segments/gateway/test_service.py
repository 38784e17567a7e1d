"""A whole gateway in one loop. What clients see of it is in test_command and in tests/segments/remote."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from pathlib import Path

import pytest

from bookkeeper.errors import ConfigError, MetadataUnavailableError
from bookkeeper.gateways.access_control import AccessConfig
from bookkeeper.ids import Address
from bookkeeper.launchers.machine_speed import stretch
from segments.errors import StreamError
from segments.gateway.service import GrpcServingConfig
from segments.remote import connect, gateway_channels
from tests.segments.gateway.clusters import ANYWHERE, CONFIG, served
from tests.segments.gateway.health_client import status_of


def fetch(url: str) -> str:
    with urllib.request.urlopen(url) as reply:
        return str(reply.read().decode())


async def test_the_pages_show_health_and_metrics(tmp_path: Path) -> None:
    async with served(tmp_path, http=ANYWHERE) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.writer() as writer:
            await writer.append_batch([b"a", b"b"])
        assert gateway._pages is not None
        base = f"http://{gateway._pages.address}"
        page = await asyncio.to_thread(fetch, f"{base}/metrics")
        assert "bookkeeper_streams_gateway_appended_records_total 2.0" in page
        assert "bookkeeper_streams_gateway_owned_streams 1.0" in page
        assert "bookkeeper_client_stream_appended_bytes_total 2.0" in page, "its client's numbers are on the same page"
        health = json.loads(await asyncio.to_thread(fetch, f"{base}/healthz"))
        assert (health["status"], health["owned"]) == ("ok", 1)


async def test_a_gateway_is_not_healthy_while_the_store_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SEG-122: health is NOT_SERVING while metadata is unreachable."""
    async with served(tmp_path) as gateway:
        assert gateway.address is not None
        assert gateway._namespace is not None
        store = gateway._namespace.client.metadata_store.store

        async def until(state: str) -> None:
            async with asyncio.timeout(30 * stretch()):
                while await status_of(gateway.address, "segments.v1.Append") != state:  # type: ignore[arg-type]  # noqa: ASYNC110
                    await asyncio.sleep(0.1)

        async def away(path: str) -> None:
            raise MetadataUnavailableError("away")

        await until("SERVING")
        with monkeypatch.context() as patch:
            patch.setattr(store, "exists", away)
            await until("NOT_SERVING")
        await until("SERVING")


async def test_a_gateway_that_ends_completes_its_segments_and_gives_up_its_leases(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_channels, "PATIENCE_S", 0.5)
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.create("s", config=CONFIG)
        async with stream.producer("p") as producer:
            await producer.append(b"v")
        reader = stream.read(follow=True)
        assert await reader.next(timeout=10 * stretch()) is not None
        await gateway.close()
        with pytest.raises(StreamError):
            await stream.count()
        await reader.close()
    async with served(tmp_path) as gateway, connect(f"grpc://{gateway.address}") as namespace:
        stream = await namespace.open("s")
        assert [segment.is_open for segment in await stream.segments()] == [False]
        async with stream.producer("p") as producer:
            assert (await producer.append(b"v", seq=0)).duplicate


def test_a_config_beyond_loopback_needs_protection() -> None:
    with pytest.raises(ConfigError, match="nothing would be encrypted"):
        GrpcServingConfig(uri="mem:x", listen=type(ANYWHERE)("0.0.0.0", 1))


@pytest.mark.rule("X1", "X47")
def test_pages_for_other_hosts_need_a_word_of_their_own() -> None:
    """Cause: only ``listen`` was checked, so ``--http 0.0.0.0:8080`` was served to the network without a word."""
    beyond = Address("0.0.0.0", 8080)
    with pytest.raises(ConfigError, match="--http-insecure"):
        GrpcServingConfig(uri="mem:x", http=beyond)
    GrpcServingConfig(uri="mem:x", http=beyond, http_insecure=True)
    GrpcServingConfig(uri="mem:x", http=beyond, access=AccessConfig(insecure=True))
