"""From which network a call comes: what limits for one address count. Pure."""

from __future__ import annotations

import ipaddress
from typing import Final
from urllib.parse import unquote

_NETWORK_BITS: Final = 64
"""Of an IPv6 address: whoever has one has as many as there are below these bits."""


def host_of(peer: str) -> str:
    """The host in gRPC's words: ``ipv4:127.0.0.1:40000``, ``ipv6:%5B::1%5D:40000``."""
    host = unquote(peer.partition(":")[2].rpartition(":")[0]).strip("[]")
    return host or peer


def network_of(peer: str) -> str:
    """What counts as one address: the host, and for IPv6 its network of 64 bits."""
    host = host_of(peer)
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((address, _NETWORK_BITS), strict=False))
    return host
