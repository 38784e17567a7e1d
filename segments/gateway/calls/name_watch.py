"""Whether a stream still has the name by which a call that lasts was allowed to use it.

A right is had by a name. A stream that is renamed goes on under its new name, and calls go on with it; but whoever may
not use every stream was never asked about the new name, which may be another team's. So the call ends, and the client
opens the stream by its new name, if it may.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from segments.errors import StreamError, StreamNotFoundError
from segments.gateway.calls.served_streams import ServedStream, ServedStreams
from segments.gateway.guard.grpc_call import CallEndedError, GrpcCall
from segments.gateway.guard.request_rights import READ


@asynccontextmanager
async def while_named(table: ServedStreams, name: str, call: GrpcCall) -> AsyncIterator[ServedStream]:
    """The stream of this name, which the call may read as long as this lasts and the name leads to it.

    Raises:
        StreamNotFoundError, StreamNameError, StreamMetadataError: as ``ServedStreams.get``.
    """
    served = await table.get(name)
    looking = asyncio.get_running_loop().create_task(_watch(table, name, served, call), name=f"is {name} still {name}")
    try:
        yield served
    finally:
        looking.cancel()
        await asyncio.wait([looking])


async def _watch(table: ServedStreams, name: str, served: ServedStream, call: GrpcCall) -> None:
    while True:
        await asyncio.sleep(table.resolve_s)
        if not call.may_use_all(READ) and not await _leads_to(table, name, served):
            break
    call.end(
        CallEndedError(
            f"no stream has the name {name} any more by which this call may read it: it was renamed or deleted",
            why=f"renamed or deleted: {name}",
            stream=name,
        )
    )


async def _leads_to(table: ServedStreams, name: str, served: ServedStream) -> bool:
    try:
        return (await table.get(name)).stream.id == served.stream.id
    except StreamNotFoundError:
        return False
    except StreamError:
        return True  # it is not known now; changes of the policy are not, either
