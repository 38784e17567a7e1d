"""The port: gRPC's server with our services, its limits, health and reflection. One of the files that know gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import grpc
import grpc.aio
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection, reflection_pb2

from bookkeeper.gateways.listener import CannotListenError
from bookkeeper.ids import Address
from segments.gateway.config import GrpcLimits
from segments.rpc.methods import SERVICES

_REFLECTIONS: Final = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""The same messages under two names: the older one is what most clients know."""

_HEALTH: Final = "grpc.health.v1.Health"
_METADATA_BYTES_MAX: Final = 16 * 1024
_KEEPALIVE_MS: Final = 20_000
_PING_MS: Final = 5_000


class GrpcServer:
    """gRPC's server. The port is bound before calls are accepted."""

    def __init__(self, limits: GrpcLimits) -> None:
        self._server = grpc.aio.server(
            options=(
                ("grpc.so_reuseport", 0),  # a port that is taken is an error
                ("grpc.max_allowed_incoming_connections", limits.connections_max),
                ("grpc.max_concurrent_streams", limits.calls_per_connection_max),
                ("grpc.server_handshake_timeout_ms", round(limits.handshake_s * 1000)),
                ("grpc.max_receive_message_length", limits.message_bytes_max),
                ("grpc.max_send_message_length", -1),
                ("grpc.max_metadata_size", _METADATA_BYTES_MAX),
                ("grpc.keepalive_time_ms", _KEEPALIVE_MS),  # a client that has vanished frees what it holds
                ("grpc.keepalive_timeout_ms", _KEEPALIVE_MS // 2),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", _PING_MS),
            )
        )
        self._health = health.aio.HealthServicer()

    def bind(self, listen: Address, credentials: Any | None = None) -> Address:
        """Take the port; return the address (port 0 resolved). ``credentials``: with TLS.

        Raises:
            CannotListenError: the address cannot be listened at.
        """
        host = f"[{listen.host}]" if ":" in listen.host else listen.host
        try:
            if credentials is None:
                port = self._server.add_insecure_port(f"{host}:{listen.port}")
            else:
                port = self._server.add_secure_port(f"{host}:{listen.port}", credentials)
        except RuntimeError as error:
            raise CannotListenError(
                None,
                f"cannot listen at {listen}: another program listens there, or this machine does not have the address",
            ) from error
        return Address(listen.host, port)

    async def start(self, handlers: Sequence[Any]) -> None:
        """Accept calls. The state of health is NOT_SERVING until :meth:`tell_health`."""
        self._server.add_generic_rpc_handlers(tuple(handlers))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        answers = reflection.aio.ReflectionServicer((*SERVICES, _HEALTH, *_REFLECTIONS))
        for name in _REFLECTIONS:
            self._server.add_generic_rpc_handlers((_reflection_handler(name, answers.ServerReflectionInfo),))
        await self.tell_health(serving=False)
        await self._server.start()

    async def tell_health(self, *, serving: bool) -> None:
        """Set the state of health of every service, and of the server as a whole."""
        response = health_pb2.HealthCheckResponse
        for name in ("", *SERVICES):
            await self._health.set(name, response.SERVING if serving else response.NOT_SERVING)

    async def drain(self) -> None:
        """Say for good that this server does not serve."""
        await self._health.enter_graceful_shutdown()

    async def stop(self, grace_s: float) -> None:
        """Accept nothing more, give calls so long to end, and cut off those that have not ended. Idempotent."""
        await self._server.stop(grace_s)
        await asyncio.sleep(0)  # callbacks of calls that were cut off


def _reflection_handler(name: str, answer: Callable[[Any, Any], Any]) -> Any:
    method = grpc.stream_stream_rpc_method_handler(
        answer,
        reflection_pb2.ServerReflectionRequest.FromString,
        reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    return grpc.method_handlers_generic_handler(name, {"ServerReflectionInfo": method})
