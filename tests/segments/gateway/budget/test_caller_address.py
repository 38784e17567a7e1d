from __future__ import annotations

import pytest

from segments.gateway.budget.caller_address import host_of, network_of


@pytest.mark.parametrize(
    ("peer", "host", "network"),
    [
        ("ipv4:10.1.2.3:40000", "10.1.2.3", "10.1.2.3"),
        ("ipv6:%5B2001:db8:1:2:3:4:5:6%5D:40000", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("ipv6:[2001:db8:1:2::ffff]:40000", "2001:db8:1:2::ffff", "2001:db8:1:2::/64"),
        ("ipv6:%5Bfe80::1%25eth0%5D:1", "fe80::1%eth0", "fe80::/64"),
        ("ipv6:%5B::ffff:10.1.2.3%5D:1", "::ffff:10.1.2.3", "10.1.2.3"),
        ("unix:", "unix:", "unix:"),
    ],
)
def test_the_network_of_a_peer(peer: str, host: str, network: str) -> None:
    """Who has one address of IPv6 has a network of them, and is counted once."""
    assert (host_of(peer), network_of(peer)) == (host, network)
