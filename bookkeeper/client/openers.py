"""Opens the cluster at an address: each scheme has its opener.

:mod:`bookkeeper.meta` opens the metadata stores. A scheme of a higher floor, such as ``embedded:`` that starts bookies
as well, is known here only by the name of its opener, which is loaded when it is asked for. The seams of the system
are loaded in the same way, from :mod:`bookkeeper.real`, for a caller who passes none.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from dataclasses import replace
from importlib import import_module
from typing import Final, Protocol, cast

from bookkeeper.auth.config import AuthConfig
from bookkeeper.client.config import ClientConfig
from bookkeeper.client.known import KnownCluster
from bookkeeper.encryption import EncryptionConfig
from bookkeeper.meta import Metadata
from bookkeeper.meta.service_uri import parse, require_address
from bookkeeper.net.tls import TlsConfig
from bookkeeper.seams import Net, Seams


class Cluster(Protocol):
    """What a client needs of a cluster: its metadata, and whatever runs in this process for it."""

    @property
    def metadata(self) -> Metadata: ...

    @property
    def net(self) -> Net | None:
        """The network by which its bookies are reached; None: the one of the client's seams."""

    async def close(self) -> None:
        """Release all of it. Idempotent."""


Opener = Callable[[str, Seams], Awaitable[Cluster]]
"""(uri, seams) -> cluster. Raises: ConfigError, NoClusterError, MetadataUnavailableError."""

SYSTEM_SEAMS: Final = "bookkeeper.real:system_seams"

_openers: Final[dict[str, str]] = {"embedded": "bookkeeper.embedded:open_embedded"}


def register(scheme: str, opener: str) -> None:
    """Serve ``scheme:`` by the function ``module:name`` (an :data:`Opener`), loaded when first asked for."""
    _openers[scheme] = opener


def system_seams() -> Seams:
    """The operating system's seams."""
    make: Callable[[], Seams] = _load(SYSTEM_SEAMS)  # type: ignore[assignment]
    return make()


def with_surroundings(config: ClientConfig) -> ClientConfig:
    """``config`` with the environment's settings of TLS, authentication and encryption, unless it has its own.

    Raises:
        ConfigError: the environment's settings do not fit together.
    """
    tls = config.tls if config.tls is not None else TlsConfig.from_environment(os.environ)
    encryption = config.encryption
    if encryption is None:
        encryption = EncryptionConfig.from_environment(os.environ)
    auth = config.auth
    if auth.provider is None:
        auth = AuthConfig.from_environment(os.environ) or auth
    if tls is config.tls and auth is config.auth and encryption is config.encryption:
        return config
    return replace(config, tls=tls, auth=auth, encryption=encryption)


async def open_cluster(uri: str, seams: Seams, *, session_s: float, known: KnownCluster | None = None) -> Cluster:
    """Open the cluster at ``uri``. ``session_s`` is for metadata stores in other processes; with ``known`` the session
    begins with the first question. Raises: as Opener."""
    require_address(uri)
    scheme = uri.partition(":")[0]
    if (target := _openers.get(scheme)) is not None:
        return await cast(Opener, _load(target))(uri, seams)

    async def connect() -> Metadata:
        return await Metadata.connect(uri, seams, session_s=session_s)

    if known is None:
        return _Remote(await connect())
    return _Remote(Metadata.late(connect, seams, known.layout, known.instance_id, root=parse(uri).root))


class _Remote:
    """A cluster of other processes; this one holds only a session with its metadata store."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata

    @property
    def metadata(self) -> Metadata:
        return self._metadata

    @property
    def net(self) -> Net | None:
        return None

    async def close(self) -> None:
        await self._metadata.close()


def _load(target: str) -> object:
    module, _, name = target.partition(":")
    loaded: object = getattr(import_module(module), name)
    return loaded
