"""What a bookie publishes in its registration: where its services listen.

Formats: Apache BookKeeper's BookieServiceInfo. Empty bytes are the old form: host and port are the two parts of
the bookie id. Clients connect to the endpoint whose protocol is ``bookie-rpc``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import DecodeError, EncodeError

from bookkeeper.errors import MetadataFormatError
from bookkeeper.ids import Address, BookieId
from bookkeeper.meta import metadata_pb2 as pb

BOOKIE_RPC = "bookie-rpc"
TLS = "tls"

HOST_MAX: Final = 255
"""Characters of a host's name or address, as DNS has it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One service of a bookie."""

    id: str
    host: str
    port: int
    protocol: str
    auth: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """All services of a bookie."""

    endpoints: tuple[Endpoint, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def bookie(cls, address: Address, *, tls: bool = False, http: Address | None = None) -> ServiceInfo:
        """A bookie that listens at ``address``, with an HTTP server at ``http`` if there is one."""
        endpoints = [Endpoint("bookie", address.host, address.port, BOOKIE_RPC, (), (TLS,) if tls else ())]
        if http is not None:
            endpoints.append(Endpoint("httpserver", http.host, http.port, "http"))
        return cls(tuple(endpoints))

    def address(self, bookie_id: BookieId) -> Address:
        """The address to which clients connect: the ``bookie-rpc`` endpoint, or the bookie id if nothing is published.

        Raises:
            MetadataFormatError: there is no such endpoint, and the id is not ``host:port``.
        """
        for endpoint in self.endpoints:
            if endpoint.protocol == BOOKIE_RPC:
                return Address(endpoint.host, endpoint.port)
        try:
            return Address.parse(bookie_id)
        except ValueError as error:
            raise MetadataFormatError(f"{bookie_id} publishes no {BOOKIE_RPC} endpoint") from error


def encode(info: ServiceInfo) -> bytes:
    """The bytes of a registration.

    Raises:
        MetadataFormatError: a value has no place in the format (a port beyond 32 bits).
    """
    message = pb.BookieServiceInfoFormat()
    try:
        for endpoint in info.endpoints:
            message.endpoints.add(
                id=endpoint.id,
                port=endpoint.port,
                host=endpoint.host,
                protocol=endpoint.protocol,
                auth=endpoint.auth,
                extensions=endpoint.extensions,
            )
        message.properties.update(info.properties)
        return message.SerializeToString(deterministic=True)
    except (EncodeError, ValueError, TypeError) as error:
        raise MetadataFormatError(f"a bookie's registration cannot be encoded: {error}") from error


def decode(data: bytes) -> ServiceInfo:
    """The reverse of encode; empty bytes give an empty ServiceInfo.

    Raises:
        MetadataFormatError: the bytes are no registration.
    """
    message = pb.BookieServiceInfoFormat()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        raise MetadataFormatError(f"a bookie's registration of {len(data)} bytes cannot be decoded") from error
    endpoints = tuple(
        Endpoint(e.id, e.host, e.port, e.protocol, tuple(e.auth), tuple(e.extensions)) for e in message.endpoints
    )
    for endpoint in endpoints:
        if not endpoint.host.isprintable() or len(endpoint.host) > HOST_MAX or not 0 <= endpoint.port < 1 << 16:
            shown = f"{endpoint.host[:100]!r} with port {endpoint.port}"
            raise MetadataFormatError(f"a bookie's registration names a host that cannot be one: {shown}")
    return ServiceInfo(endpoints, dict(message.properties))
