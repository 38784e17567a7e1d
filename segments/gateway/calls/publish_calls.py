"""The call of the service Append that publishes a batch: the gateway closes its writer, publishes, and goes on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.outcome import Outcome
from segments.errors import (
    OwnershipLostError,
    StreamAccessError,
    StreamConfigError,
    StreamError,
    StreamNotReadyError,
    StreamOwnedError,
)
from segments.gateway.calls.served_streams import ServedStream, ServedStreams
from segments.gateway.guard.call_guard import Behaviour
from segments.gateway.guard.grpc_call import GrpcCall
from segments.gateway.guard.request_rights import OVERRULE
from segments.protocol import segments_pb2 as pb
from segments.protocol.publish_messages import get_key, get_rows, put_published
from segments.publish import PublishedBatch
from segments.publish.batch_key import AppRecord

_STAGING: Final = re.compile(r"[0-9A-Za-z_-]{1,64}")


class PublishCalls:
    """The behaviour of the call."""

    def __init__(self, table: ServedStreams) -> None:
        self._table = table

    @property
    def behaviours(self) -> Mapping[str, Behaviour]:
        """By service and name."""
        return {"Append.Publish": self.publish}

    async def publish(self, request: pb.PublishRequest, call: GrpcCall) -> pb.PublishReply:
        """Publish a batch. Raises: as ``StreamPublisher.publish``, and GatewayRedirectError. StreamOverloadedError: a
        quota of the caller's is used up. StreamAccessError: the application is somebody else's. StreamNotReadyError:
        with the outcome unknown, if the stream was taken over meanwhile; the same call tells what became of it.
        """
        _check(request)
        inline = [each for each in request.rows if each.entries]  # the others their tasks have written to bookies
        records = sum(max(each.records, len(each.entries)) for each in inline)
        if records:
            await call.charge_in_time(records, sum(len(entry) for each in inline for entry in each.entries))
        served = await self._table.get(request.stream)
        work = served.ownership.exclusively(partial(_published, served, request, call))
        try:
            return put_published(await asyncio.shield(asyncio.ensure_future(work)))
        except StreamOwnedError as error:
            raise StreamNotReadyError(str(error), stream=request.stream) from error
        except OwnershipLostError as error:
            raise StreamNotReadyError(
                f"stream {request.stream} was taken over while a batch was published: publish it again, with its key",
                stream=request.stream,
                outcome=Outcome.UNKNOWN,
            ) from error


def _check(request: pb.PublishRequest) -> None:
    """Names become parts of paths in the metadata store, and numbers are counted. Raises StreamConfigError."""
    wrong = next((each.records for each in request.rows if each.records < 0), None)
    if wrong is not None:
        raise StreamConfigError(f"no task has written {counted(wrong, 'record')}", stream=request.stream)
    if not all(_STAGING.fullmatch(each.staging) for each in request.rows):
        raise StreamConfigError("a staging has a name of 1 to 64 letters, digits, - and _", stream=request.stream)
    if request.HasField("key") and not request.key.app:
        raise StreamConfigError("the key of a batch names its application", stream=request.stream)


async def _published(served: ServedStream, request: pb.PublishRequest, call: GrpcCall) -> PublishedBatch:
    key = get_key(request.key) if request.HasField("key") else None
    who = "" if call.caller is None else call.caller.name

    def require_app(known: AppRecord) -> None:
        """Check that the caller may publish for an application: its own, one without an owner, or any with the right to
        administer."""
        if not known.by or known.by == who:
            return
        try:
            call.require(request.stream, OVERRULE)
        except StreamAccessError as error:
            raise StreamAccessError(
                f"{error}. Application {known.app} of this stream belongs to {known.by}, and only he, or who may "
                "administer the stream, publishes in its name: give this query a name of its own "
                '(Spark: option("txnAppId", ...)), or have the application handed over '
                f"(bk stream apps hand-over {request.stream} {known.app} {who or 'NAME'})",
                stream=request.stream,
            ) from error

    publisher = await served.stream.publisher_for(who, require_app, owner="a gateway, for a batch")
    try:
        return await publisher.publish(key, [get_rows(each) for each in request.rows])
    finally:
        with suppress(StreamError):
            await publisher.close()
