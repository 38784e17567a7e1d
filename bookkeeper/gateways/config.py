"""What an operator may set of a gateway's port. Defaults stand here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass

from bookkeeper.errors import require_below, require_range
from bookkeeper.net.tls import HANDSHAKE_S


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """The limits that an operator may set."""

    connections_max: int = 10_000
    """Connections at a time; one more is closed."""
    connections_per_host_max: int = 1_000
    """Connections at a time from one address."""
    handshakes_max: int = 256
    """TLS handshakes at a time."""
    handshake_s: float = HANDSHAKE_S
    """Seconds that one TLS handshake may take."""
    slow_s: float = 30.0
    """Seconds for the head of a request, for a chunk of its body that has begun, and for the client to read replies."""
    upload_idle_s: float = 3600.0
    """Seconds between two chunks of a body, many because Spark's state stores keep an upload open for a whole task."""

    def __post_init__(self) -> None:
        require_range(self, "connections_max", "connections_per_host_max", "handshakes_max", above=0)
        require_below(self, "connections_per_host_max", "connections_max", or_equal=True)
        require_range(self, "handshake_s", "slow_s", above=0)
        require_below(self, "slow_s", "upload_idle_s", or_equal=True)
