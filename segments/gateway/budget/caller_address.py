"""From which network a call comes: what limits for one address count. Pure."""

from __future__ import annotations

from urllib.parse import unquote

from bookkeeper.ids import counted_address


def host_of(peer: str) -> str:
    """The host in gRPC's words: ``ipv4:127.0.0.1:40000``, ``ipv6:%5B::1%5D:40000``."""
    host = unquote(peer.partition(":")[2].rpartition(":")[0]).strip("[]")
    return host or peer


def network_of(peer: str) -> str:
    """What counts as one address: the host, and for IPv6 its network of 64 bits."""
    return counted_address(host_of(peer))
