"""What an operator may set of the gateway. Defaults stand here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bookkeeper.client.config import ClientConfig
from bookkeeper.errors import require_below, require_range
from bookkeeper.ids import Address
from bookkeeper.leases.lease import LEASE_S
from bookkeeper.net.tls import HANDSHAKE_S
from bookkeeper.settings import default_of
from segments.protocol.request_elements import ELEMENTS_MAX

DEFAULT_LISTEN: Final = Address("127.0.0.1", 9872)

MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcLimits:
    """The limits of the port."""

    connections_max: int = 10_000
    """Connections at a time; one more waits, and is closed when it has waited too long."""
    calls_per_connection_max: int = 1_000
    """Calls at a time on one connection; one more waits at the client."""
    connection_idle_s: float = 600.0
    """Seconds without a call after which a connection is closed; a client makes another one with its next call."""
    handshake_s: float = HANDSHAKE_S
    """Seconds that a new connection may take until it is ready."""
    message_bytes_max: int = 20 * MIB
    """The largest message: a batch of an append, with some bytes for each record."""
    request_elements_max: int = ELEMENTS_MAX
    """Records, headers and other repeated values of one message; they are counted before it is parsed."""
    call_bytes_max: int = 512 * MIB
    """Bytes of requests that are being received, or are not answered; at the limit nothing more is received."""
    address_bytes_max: int = 256 * MIB
    """The same for the calls of one address."""
    address_calls_max: int = 4_000
    """Calls at a time of one address; one more is refused."""
    message_s: float = 30.0
    """Seconds that the message of a call with a single request may take to arrive."""
    window_records: int = 16_384
    """Records of one AppendStream that may be unanswered."""
    window_bytes: int = 8 * MIB
    """Bytes of one AppendStream that may be unanswered."""

    def __post_init__(self) -> None:
        require_range(self, "connections_max", "calls_per_connection_max", "handshake_s", above=0)
        require_range(self, "connection_idle_s", above=0)
        require_range(self, "message_bytes_max", "window_records", "window_bytes", "message_s", above=0)
        require_range(self, "request_elements_max", "address_calls_max", above=0)
        require_below(self, "message_bytes_max", "address_bytes_max", or_equal=True)
        require_below(self, "address_bytes_max", "call_bytes_max", or_equal=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrpcGatewayConfig:
    """How the gateway behaves."""

    lease_s: float = LEASE_S
    """How long an owner may answer for a stream after the start of its last renewal."""
    metadata_session_s: float = default_of(ClientConfig, "metadata_session_ms") / 1000
    """Seconds without contact after which the metadata store ends the gateway's session."""
    wait_s: float = 5.0
    """Seconds that a call waits until this gateway, or another one, owns the stream."""
    probation_s: float = 2.0
    """Seconds for which a stream is left alone after a program with the library took it from this gateway."""
    idle_s: float = 60.0
    """Seconds without an append after which a stream's writer is closed, and its lease given up."""
    resolve_s: float = 1.0
    """Seconds for which a stream's name is not looked up again."""
    probe_s: float = 0.5
    """Seconds between two looks at the metadata store, for the state of health."""
    unreachable_s: float = 2.0
    """Seconds without an answer of the metadata store after which the gateway is not healthy."""
    drain_s: float = 10.0
    """Seconds that calls may take to end after the gateway was told to stop."""

    def __post_init__(self) -> None:
        require_range(self, "lease_s", "wait_s", "idle_s", "resolve_s", "probe_s", "unreachable_s", above=0)
        require_range(self, "probation_s", "drain_s", least=0)
        require_below(self, "probe_s", "unreachable_s", or_equal=True)
