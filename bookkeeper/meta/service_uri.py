"""Which store, from one address.

=================================================  ==========================================================
``memory:NAME``                                    in this process, shared by name
``sqlite:///FILE``                                 several processes of one machine (D19)
``zk://h:p,h:p/ledgers``                           ZooKeeper; layout as recorded there
``zk+flat|hierarchical|longhierarchical://...``    the same, and the layout of a cluster made through it
``embedded:///DIR``                                store and bookies in this process: registered by a higher floor
=================================================  ==========================================================

Hosts are separated by ``,`` or ``;`` (D18).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bookkeeper.meta.paths import DEFAULT_ROOT
from bookkeeper.meta.store import MetadataStore
from bookkeeper.seams import Seams


@dataclass(frozen=True, slots=True)
class ServiceUri:
    """A parsed address."""

    scheme: str
    """``memory``, ``sqlite``, ``zk``, or a registered one."""
    target: str
    """Name, file, ``host:port,host:port``, or whatever the registered scheme understands."""
    root: str = DEFAULT_ROOT
    layout: str | None = None
    """``flat``, ``hierarchical``, ``longhierarchical``; None: whatever the cluster says."""


Opener = Callable[[ServiceUri, Seams], Awaitable[MetadataStore]]


def parse(uri: str) -> ServiceUri:
    """Raises: ConfigError."""
    raise NotImplementedError


def register(scheme: str, opener: Opener) -> None:
    """Teach :func:`open_store` another scheme."""
    raise NotImplementedError


async def open_store(uri: str | ServiceUri, seams: Seams) -> MetadataStore:
    """A session with the store of an address. Raises: ConfigError, MetadataUnavailableError."""
    raise NotImplementedError
