"""From an address to a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.auth.config import AuthConfig
from bookkeeper.client import openers
from bookkeeper.errors import ConfigError, NoClusterError
from bookkeeper.meta import Metadata, init_cluster
from bookkeeper.meta.stores.sqlite import SqliteStore
from bookkeeper.net.tls import TlsConfig
from bookkeeper.real import system_seams
from bookkeeper.seams import Net, Seams

URI = "memory:test_openers"


@dataclass
class Other:
    metadata: Metadata
    net: Net | None = None
    closed: bool = False

    async def close(self) -> None:
        self.closed = True
        await self.metadata.close()


opened: list[tuple[str, Other]] = []


async def open_other(uri: str, seams: Seams) -> Other:
    """What a higher floor would register."""
    other = Other(await Metadata.connect(URI, seams))
    opened.append((uri, other))
    return other


async def test_a_store_without_a_cluster_and_a_scheme_nobody_serves_are_told_apart() -> None:
    with pytest.raises(NoClusterError, match="bk init"):
        await BookKeeper.connect("memory:nothing-there")
    with pytest.raises(ConfigError, match="names no kind of metadata store"):
        await BookKeeper.connect("gopher://x/y")


async def test_the_session_lasts_as_the_config_says(tmp_path: Path) -> None:
    uri = f"sqlite://{tmp_path}/m.db"
    await init_cluster(uri, system_seams())
    for config, lasts in ((None, 10), (ClientConfig(metadata_session_ms=40_000), 40)):
        async with BookKeeper.connect(uri, config=config) as bk:
            store = bk.metadata_store.store
            assert isinstance(store, SqliteStore) and store._file._lease_s == lasts


async def test_a_client_closes_what_its_scheme_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openers, "_openers", dict(openers._openers))
    await init_cluster(URI, system_seams())
    openers.register("other", f"{__name__}:open_other")
    async with BookKeeper.connect("other:place") as bk:
        (uri, other), metadata = opened[-1], bk.metadata_store
        assert uri == "other:place" and metadata is other.metadata
        assert [i async for i in bk.list_ledgers()] == []
    assert other.closed


@pytest.mark.rule("X2")
def test_the_environment_encrypts_whoever_knows_only_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BK_TLS_CA", raising=False)
    config = ClientConfig(protocol="v2")
    assert openers.with_surroundings(config) is config
    monkeypatch.setenv("BK_TLS_CA", "/ca")
    assert openers.with_surroundings(config) == ClientConfig(protocol="v2", tls=TlsConfig(ca="/ca"))
    own = ClientConfig(tls=TlsConfig(ca="/own"))
    assert openers.with_surroundings(own) is own
    monkeypatch.setenv("BK_TLS_INSECURE_ANY_HOST", "maybe")
    with pytest.raises(ConfigError):
        openers.with_surroundings(config)


@pytest.mark.rule("X58")
def test_the_environment_says_how_a_client_that_knows_only_an_address_authenticates(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BK_AUTH", "token")
    monkeypatch.setenv("BK_AUTH_FILE", "/token")
    shown = AuthConfig(provider="token", options={"file": "/token"})
    assert openers.with_surroundings(ClientConfig()).auth == shown
    own = AuthConfig(provider="none")
    assert openers.with_surroundings(ClientConfig(auth=own)).auth == own
