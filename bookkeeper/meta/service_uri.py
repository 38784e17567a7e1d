"""The address of a metadata store, and how it is opened.

=================================================  ==========================================================
``memory:NAME``                                    in this process, shared by name
``sqlite:///FILE``                                 several processes of one machine
``zk://h:p,h:p/ledgers``                           ZooKeeper; layout as recorded there
``zk+flat|hierarchical|longhierarchical://...``    the same, and the layout of a cluster made through it
``embedded:///DIR``                                store and bookies in this process: registered by a higher floor
=================================================  ==========================================================

Hosts are separated by ``,`` or ``;``. Credentials are never part of an address (see the module ``credentials``).

In every address a ``%`` begins an escape, as in any URI, and a name is decoded exactly once, here or in what is
registered. So an address is never pasted together from a path that is already decoded: :func:`sqlite_uri` makes one.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from bookkeeper.errors import ConfigError, MetadataUnavailableError, Outcome
from bookkeeper.meta.records.layout import BY_URI_NAME
from bookkeeper.meta.records.paths import DEFAULT_ROOT
from bookkeeper.meta.store import MetadataStore, check_path
from bookkeeper.meta.stores import credentials
from bookkeeper.seams import Seams
from bookkeeper.secret import without_secrets

if TYPE_CHECKING:
    from bookkeeper.meta.stores.memory import MemoryCluster


SESSION_S: Final = 10.0
SESSION_MIN_S: Final = 1.0
SESSION_MAX_S: Final = 300.0
"""Seconds after which the client gives up on a server that accepts a connection and does not answer."""


@dataclass(frozen=True, slots=True)
class ServiceUri:
    """A parsed address."""

    scheme: str
    """``memory``, ``sqlite``, ``zk``, or a registered scheme."""
    target: str
    """Name, file, ``host:port,host:port``, or whatever the registered scheme understands."""
    root: str = DEFAULT_ROOT
    layout: str | None = None
    """``flat``, ``hierarchical`` or ``longhierarchical``; None: the layout that the cluster has."""
    session_s: float = SESSION_S
    """Seconds that a session lasts without contact (``zk``, ``sqlite``); not part of an address."""
    undecoded: str | None = None
    """The file (``sqlite``) that earlier versions, which did not decode, took this address for; None: the same one."""


Opener = Callable[[ServiceUri, Seams], Awaitable[MetadataStore]]

_ZOOKEEPER = re.compile(r"zk(?:\+(\w+))?")
_HOST = re.compile(r"[^,;/\s:]+(?::\d{1,5})?|\[[0-9a-fA-F:.]+\](?::\d{1,5})?")
_NO_ESCAPE = re.compile("%(?![0-9A-Fa-f]{2})")
PORT_MAX: Final = 65535
_ANY_LAYOUT = (None, "", "null", "ms")


def parse(uri: str) -> ServiceUri:
    """Parse an address.

    Raises:
        ConfigError: the scheme is unknown, or the rest does not fit it.
    """
    require_address(uri)
    scheme, colon, rest = uri.partition(":")
    if not colon:
        raise ConfigError(f"{_shown(uri)} is not a metadata address, such as zk://HOST:PORT/ledgers or embedded:///DIR")
    if match := _ZOOKEEPER.fullmatch(scheme):
        return _parse_zookeeper(uri, match[1], rest)
    if scheme == "memory":
        return ServiceUri("memory", unescaped(uri, rest.strip("/")))
    if scheme in _OPENERS:
        if not rest.startswith("///") or len(rest) == 3:
            raise ConfigError(f"expected {scheme}:///PATH, got {_shown(uri)}")
        return _parse_sqlite(uri, rest[2:]) if scheme == "sqlite" else ServiceUri(scheme, rest[2:])
    if scheme == "embedded":
        raise ConfigError(
            f"{_shown(uri)} has its bookies and metadata inside one process, and no other can join them: a server "
            "needs sqlite:///FILE or zk://HOST:PORT/ledgers"
        )
    known = ", ".join(sorted({"embedded", "memory", "zk", *_OPENERS}))
    raise ConfigError(
        f"{_shown(uri)} names no kind of metadata store that this program knows; it knows {known}, and for "
        "streams grpc and grpcs, the addresses of gateways"
    )


def require_address(uri: object) -> None:
    """Check that an address is a text at all. Raises: ConfigError."""
    if not isinstance(uri, str):
        raise ConfigError(
            f"an address is a text such as zk://HOST:PORT/ledgers or embedded:///DIR, not {type(uri).__name__}"
        )


def unescaped(uri: str, part: str) -> str:
    """A part of an address without its escapes. Raises: ConfigError: one of them is none."""
    try:
        if _NO_ESCAPE.search(part) is None:
            return unquote(part, errors="strict")
    except UnicodeDecodeError:
        pass
    raise ConfigError(
        f"{_shown(uri)} has a % that begins no escape of two digits (as %20 does), or escapes that are no UTF-8: "
        "write %25 for a % that is meant as such"
    )


def _parse_sqlite(uri: str, path: str) -> ServiceUri:
    if "?" in path or "#" in path:
        raise ConfigError(
            f"expected sqlite:///FILE, which has no options, got {_shown(uri)}: in a file's name a ? is written %3F, "
            "and a # is written %23"
        )
    file = unescaped(uri, path)
    return ServiceUri("sqlite", file, undecoded=path if path != file else None)


def sqlite_uri(path: str) -> str:
    """The address of the store in a file. ``path`` is absolute, and as the system knows it."""
    escaped = path.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
    return f"sqlite://{escaped}"


def _parse_zookeeper(uri: str, layout: str | None, rest: str) -> ServiceUri:
    hosts, _, root = rest.removeprefix("//").partition("/")
    if "@" in hosts:
        raise ConfigError(
            "an address must not contain credentials, because others can read it: put them into the file that "
            f"{credentials.FILE} names"
        )
    servers = [host for host in re.split("[,;]", hosts) if host]
    if not rest.startswith("//") or not servers or not all(_HOST.fullmatch(server) for server in servers):
        raise ConfigError(f"expected zk://HOST:PORT,HOST:PORT/ROOT, got {_shown(uri)}")
    for server in servers:
        if (port := _port(server)) is not None and not 1 <= port <= PORT_MAX:
            raise ConfigError(f"{_shown(uri)} has the port {port}, but ports go from 1 to {PORT_MAX}")
    if layout not in _ANY_LAYOUT and layout not in BY_URI_NAME:
        raise ConfigError(f"{_shown(uri)} names the unknown layout {layout}; known are {', '.join(BY_URI_NAME)}")
    path = f"/{unescaped(uri, root.strip('/'))}" if root.strip("/") else DEFAULT_ROOT
    try:
        check_path(path)
    except ValueError as error:
        raise ConfigError(f"{_shown(uri)}: {error}") from error
    return ServiceUri("zk", ",".join(servers), path, layout if layout in BY_URI_NAME else None)


def _port(server: str) -> int | None:
    """The port of ``HOST:PORT`` or ``[IPV6]:PORT``; None if it is left out."""
    port = server.rpartition("]")[2].partition(":")[2]
    return int(port) if port else None


def _shown(uri: str) -> str:
    """An invalid address for messages, without what stands before an ``@``: that may be a password."""
    before, at, after = without_secrets(uri).rpartition("@")
    if not at:
        return repr(after)
    scheme, slashes, _ = before.partition("://")
    return repr(f"{scheme if slashes else ''}{slashes}***@{after}")


def register(scheme: str, opener: Opener) -> None:
    """Teach :func:`open_store` another scheme; its addresses are ``scheme:///PATH``."""
    _OPENERS[scheme] = opener


async def open_store(uri: str | ServiceUri, seams: Seams) -> MetadataStore:
    """Open a session with the store at an address.

    Raises:
        ConfigError: the address is invalid.
        MetadataUnavailableError: the store does not answer. Nothing was asked of it, so its outcome is REJECTED.
    """
    address = parse(uri) if isinstance(uri, str) else uri
    try:
        return await _OPENERS[address.scheme](address, seams)
    except MetadataUnavailableError as error:
        error.outcome = Outcome.REJECTED
        raise


def may_exist(address: ServiceUri, seams: Seams) -> bool:
    """False if there is certainly nothing at an address. A program that only looks for a cluster must not create a
    file there."""
    files = (address.target, address.undecoded)
    return address.scheme != "sqlite" or any(file is not None and seams.disk.exists(file) for file in files)


def memory_cluster(name: str, seams: Seams) -> MemoryCluster:
    """The service behind ``memory:NAME``, which the first use creates."""
    from bookkeeper.meta.stores.memory import MemoryCluster  # only who uses it pays for it

    if name not in _MEMORY:
        _MEMORY[name] = MemoryCluster(seams.clock.wall_ms)
    return _MEMORY[name]


async def _open_memory(address: ServiceUri, seams: Seams) -> MetadataStore:
    return memory_cluster(address.target, seams).connect()


async def _open_sqlite(address: ServiceUri, seams: Seams) -> MetadataStore:
    from bookkeeper.meta.stores.sqlite import SqliteStore  # only who uses it pays for it

    if address.undecoded is not None and seams.disk.exists(address.undecoded):
        raise ConfigError(
            f"the address names the file {address.target}, because %XX is one character. There is also a file "
            f"{address.undecoded}, which earlier versions opened by this address: write "
            f"{sqlite_uri(address.undecoded)} to go on with it, or move it away"
        )
    return await SqliteStore.open(address.target, seams, lease_s=address.session_s)


async def _open_zookeeper(address: ServiceUri, seams: Seams) -> MetadataStore:
    from bookkeeper.meta.stores.zookeeper import ZooKeeperStore  # only who uses it pays for it

    return await ZooKeeperStore.open(
        address.target, seams, credentials=credentials.from_environment(), session_timeout_s=address.session_s
    )


_MEMORY: dict[str, MemoryCluster] = {}
_OPENERS: dict[str, Opener] = {"memory": _open_memory, "sqlite": _open_sqlite, "zk": _open_zookeeper}
