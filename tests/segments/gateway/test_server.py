from __future__ import annotations

import pytest

from bookkeeper.gateways.listener import CannotListenError
from bookkeeper.ids import Address
from segments.gateway.config import GrpcLimits
from segments.gateway.server import GrpcServer
from segments.remote.gateway_address import GatewayCredentials
from segments.remote.gateway_channels import GatewayChannels
from segments.rpc.methods import SERVICES
from tests.segments.gateway.health_client import status_of


async def test_the_state_of_health_is_that_of_every_service_and_of_the_whole() -> None:
    """SEG-122: one name for each service, and the empty one."""
    server = GrpcServer(GrpcLimits())
    address = server.bind(Address("127.0.0.1", 0))
    await server.start([])
    try:
        for serving in (False, True, False):
            await server.tell_health(serving=serving)
            for name in ("", *SERVICES):
                assert await status_of(address, name) == ("SERVING" if serving else "NOT_SERVING")
        await server.tell_health(serving=True)
        await server.drain()
        await server.tell_health(serving=True)
        assert await status_of(address, "") == "NOT_SERVING"
    finally:
        await server.stop(0.1)


async def test_a_port_that_is_taken_is_an_error_in_words() -> None:
    first, second = GrpcServer(GrpcLimits()), GrpcServer(GrpcLimits())
    taken = first.bind(Address("127.0.0.1", 0))
    await first.start([])
    try:
        with pytest.raises(CannotListenError, match="another program listens there"):
            second.bind(taken)
    finally:
        await first.stop(0)
        await second.stop(0)


async def test_a_service_without_handlers_does_not_answer() -> None:
    channels = GatewayChannels(["127.0.0.1:1"], GatewayCredentials())
    assert channels.address_for("s") == "127.0.0.1:1"
    await channels.close()
