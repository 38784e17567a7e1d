"""Whether a tenant may have a further stream: asked by what makes one, and by what renames one to him.

Streams are counted when one is to be made, with those that this gateway is making. Another gateway may make one in the
same moment: so two gateways may let through one more than the quota.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bookkeeper.access import Tenant
from bookkeeper.gateways.caller import stream_resource
from segments.errors import TooManyStreamsError
from segments.gateway.guard.grpc_call import GrpcCall
from segments.namespace import StreamNamespace


class StreamRoom:
    """The streams of tenants with a quota, at one gateway."""

    def __init__(self, namespace: StreamNamespace) -> None:
        self._namespace = namespace
        self._making: dict[str, int] = {}
        """Names of streams that are being made, and by how many calls."""
        self._counting = asyncio.Lock()

    @asynccontextmanager
    async def making(self, call: GrpcCall, name: str, was: str | None = None) -> AsyncIterator[None]:
        """While a stream of this name is made. ``was``: the name that it has, if it is renamed.

        Raises: TooManyStreamsError: a quota does not allow it. StreamMetadataError: nobody can tell.
        """
        on = stream_resource(name)
        tenant = call.permissions.limits_streams(on)
        if tenant is None or (was is not None and tenant.is_owner_of(stream_resource(was))):
            yield
            return
        async with self._counting:
            has = await self._others(tenant, on.name)
            if has is not None and (why := call.permissions.another_stream(call.caller, tenant, on, has)) is not None:
                raise TooManyStreamsError(f"{why}; stream {on.name} was not made", stream=on.name)
            self._making[on.name] = self._making.get(on.name, 0) + 1
        try:
            yield
        finally:
            self._making[on.name] -= 1
            if not self._making[on.name]:
                del self._making[on.name]

    async def _others(self, tenant: Tenant, name: str) -> int | None:
        """How many a tenant has besides this one; None: it is there already, and none will be made."""
        there = {each async for each in self._namespace.list("")}
        if name in there:
            return None
        return sum(tenant.is_owner_of(stream_resource(each)) for each in there | self._making.keys() - {name})
