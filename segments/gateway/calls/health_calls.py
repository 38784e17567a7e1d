"""The state of health, as load balancers and orchestrators ask for it, without credentials (``grpc.health.v1``)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

from grpc_health.v1 import health_pb2

from segments.errors import StreamNotFoundError
from segments.gateway.guard.call_guard import Behaviour
from segments.gateway.guard.grpc_call import GrpcCall
from segments.protocol.methods import SERVICES, Method

HEALTH: Final = "grpc.health.v1.Health"
_State = health_pb2.HealthCheckResponse


class HealthCalls:
    """The behaviours of the service. All services of the gateway are in the same state."""

    def __init__(self) -> None:
        self._serving = False
        self._ended = False
        self._changed = asyncio.Event()

    @property
    def behaviours(self) -> list[tuple[Method, Behaviour]]:
        """Each call with its behaviour."""
        request = health_pb2.HealthCheckRequest
        return [
            (Method(HEALTH, "Check", request, _State, False, False), self.check),
            (Method(HEALTH, "Watch", request, _State, False, True), self.watch),
        ]

    def set_serving(self, *, serving: bool) -> None:
        """Set the state. No effect after :meth:`end`."""
        if not self._ended and serving != self._serving:
            self._serving = serving
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    def end(self) -> None:
        """Set the state to NOT_SERVING for good."""
        self.set_serving(serving=False)
        self._ended = True

    async def check(self, request: Any, call: GrpcCall) -> Any:
        """The state now. Raises StreamNotFoundError: there is no such service."""
        if not _is_known(request.service):
            raise StreamNotFoundError(f"this gateway has no service {request.service[:100]}")
        return self._reply()

    async def watch(self, request: Any, call: GrpcCall) -> AsyncIterator[Any]:
        """The state, and each change of it."""
        if not _is_known(request.service):
            yield _State(status=_State.SERVICE_UNKNOWN)
            await asyncio.Event().wait()  # the protocol: the service may come, so the call goes on
        while True:
            changed = self._changed
            yield self._reply()
            await changed.wait()

    def _reply(self) -> Any:
        return _State(status=_State.SERVING if self._serving else _State.NOT_SERVING)


def _is_known(service: str) -> bool:
    return service in ("", *SERVICES)
