"""Asks for the state of health, as a load balancer does."""

from __future__ import annotations

import grpc.aio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bookkeeper.ids import Address


async def status_of(address: Address, service: str) -> str:
    """The name of the state."""
    async with grpc.aio.insecure_channel(str(address)) as channel:
        reply = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service))
        return str(health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status))
