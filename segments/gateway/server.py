"""The port: gRPC's server with our services, its limits, health and reflection. One of the files that know gRPC.

A call of which no message is received yet may send what fits into its window, 64 KiB. gRPC would widen that to some MiB
for a fast sender, whoever it is, so that is off; a message that is being received is not held up by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, Final

import grpc
import grpc.aio
from grpc_reflection.v1alpha import reflection, reflection_pb2

from bookkeeper.gateways.listener import CannotListenError
from bookkeeper.ids import Address
from segments.gateway.calls.health_calls import HEALTH, HealthCalls
from segments.gateway.config import GrpcLimits
from segments.gateway.guard.call_guard import CallGuard
from segments.gateway.guard.grpc_call import GrpcCall
from segments.protocol.methods import SERVICES, Method

_REFLECTIONS: Final = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""The same messages under two names: the older one is what most clients know."""

HEALTH_CALLS_MAX: Final = 100
"""Questions for the state of health, of one address, at a time."""

HEALTH_MESSAGES_MAX: Final = 4
"""Requests for it that may be received at a time, of all addresses; of each one."""

_METADATA_BYTES_MAX: Final = 16 * 1024
_KEEPALIVE_MS: Final = 20_000
_PING_MS: Final = 5_000


class GrpcServer:
    """gRPC's server. The port is bound before calls are accepted."""

    def __init__(self, limits: GrpcLimits) -> None:
        self._limits = limits
        self._server = grpc.aio.server(
            options=(
                ("grpc.so_reuseport", 0),  # a port that is taken is an error
                ("grpc.max_allowed_incoming_connections", limits.connections_max),
                ("grpc.max_concurrent_streams", limits.calls_per_connection_max),
                ("grpc.max_connection_idle_ms", round(limits.connection_idle_s * 1000)),  # whatever pings it answers
                ("grpc.server_handshake_timeout_ms", round(limits.handshake_s * 1000)),
                ("grpc.max_receive_message_length", limits.message_bytes_max),
                ("grpc.max_send_message_length", -1),
                ("grpc.http2.bdp_probe", 0),
                ("grpc.max_metadata_size", _METADATA_BYTES_MAX),
                ("grpc.keepalive_time_ms", _KEEPALIVE_MS),  # a client that has vanished frees what it holds
                ("grpc.keepalive_timeout_ms", _KEEPALIVE_MS // 2),
                ("grpc.keepalive_permit_without_calls", 1),
                ("grpc.http2.min_ping_interval_without_data_ms", _PING_MS),
            )
        )
        self._health = HealthCalls()

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

    async def start(self, handlers: Sequence[Any], guard: CallGuard, *, reflects: bool = False) -> None:
        """Accept calls. The state of health is NOT_SERVING until :meth:`set_health`.

        ``guard``: also for reflection, which tells the protocol to whoever asks, if ``reflects``. Whoever asks for the
        state of health is not asked who they are, and has a small budget beside that of the others.
        """
        limits = self._limits
        unasked = guard.for_anybody(
            replace(
                limits,
                address_bytes_max=limits.message_bytes_max,
                call_bytes_max=HEALTH_MESSAGES_MAX * limits.message_bytes_max,
                address_calls_max=HEALTH_CALLS_MAX,
                message_s=min(limits.message_s, limits.handshake_s),
            )
        )
        answers = reflection.aio.ReflectionServicer((*SERVICES, HEALTH, *_REFLECTIONS))

        def reflect(requests: AsyncIterator[Any], call: GrpcCall) -> Any:
            return answers.ServerReflectionInfo(requests, None)

        self._server.add_generic_rpc_handlers(tuple(handlers))
        beside = [(unasked, method, behaviour) for method, behaviour in self._health.behaviours]
        beside += [(guard, _reflection(name), reflect) for name in (_REFLECTIONS if reflects else ())]
        for each, method, behaviour in beside:
            found = grpc.method_handlers_generic_handler(method.service, {method.name: each.handler(method, behaviour)})
            self._server.add_generic_rpc_handlers((found,))
        await self._server.start()

    def set_health(self, *, serving: bool) -> None:
        """Set the state of health of every service, and of the server as a whole."""
        self._health.set_serving(serving=serving)

    def drain(self) -> None:
        """Set the state of health to NOT_SERVING for good."""
        self._health.end()

    async def stop(self, grace_s: float) -> None:
        """Accept nothing more, give calls so long to end, and cut off those that have not ended. Idempotent."""
        await self._server.stop(grace_s)
        await asyncio.sleep(0)  # callbacks of calls that were cut off


def _reflection(service: str) -> Method:
    return Method(
        service,
        "ServerReflectionInfo",
        reflection_pb2.ServerReflectionRequest,
        reflection_pb2.ServerReflectionResponse,
        streams_requests=True,
        streams_replies=True,
    )
