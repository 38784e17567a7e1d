from __future__ import annotations

import asyncio

import pytest
from grpc_health.v1 import health_pb2

from segments.errors import StreamNotFoundError
from segments.gateway.calls.health_calls import HealthCalls
from segments.gateway.guard.grpc_call import GrpcCall
from segments.protocol.methods import SERVICES

ANYBODY = GrpcCall(None)
State = health_pb2.HealthCheckResponse


def asked(service: str) -> health_pb2.HealthCheckRequest:
    return health_pb2.HealthCheckRequest(service=service)


async def test_every_service_is_in_the_state_of_the_whole() -> None:
    health = HealthCalls()
    for serving in (False, True):
        health.set_serving(serving=serving)
        for name in ("", *SERVICES):
            assert await health.check(asked(name), ANYBODY) == State(status=1 if serving else 2)
    with pytest.raises(StreamNotFoundError, match="no service other"):
        await health.check(asked("other"), ANYBODY)
    health.end()
    health.set_serving(serving=True)
    assert await health.check(asked(""), ANYBODY) == State(status=State.NOT_SERVING)


async def test_who_watches_is_told_each_change_and_a_service_that_is_not_there_may_come() -> None:
    health = HealthCalls()
    watched, unknown = health.watch(asked(""), ANYBODY), health.watch(asked("other"), ANYBODY)
    assert (await anext(watched)).status == State.NOT_SERVING
    news = asyncio.ensure_future(anext(watched))
    await asyncio.sleep(0)
    health.set_serving(serving=False)
    await asyncio.sleep(0)
    assert not news.done()
    health.set_serving(serving=True)
    assert (await news).status == State.SERVING
    assert (await anext(unknown)).status == State.SERVICE_UNKNOWN
    await watched.aclose()  # type: ignore[attr-defined]
    await unknown.aclose()  # type: ignore[attr-defined]
