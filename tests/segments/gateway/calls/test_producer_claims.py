"""When a gateway looks whose a producer is, and what counts meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bookkeeper.access import Grant, Mode, Policy, Resource, ResourceKind, Right, Subject
from bookkeeper.client.tasks import Tasks
from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.gateways.caller import Caller
from bookkeeper.gateways.permissions import CallerRights
from segments.errors import StreamAccessError, StreamMetadataError
from segments.gateway.calls.producer_claims import OWNER_REREAD_S, ProducerClaims
from segments.gateway.guard.grpc_call import GrpcCall
from segments.write.producer_owners import ProducerOwners
from tests.segments.read.built_stream import BuiltStream, simulated


class Gateway:
    """What a gateway has of one stream, with its reads counted."""

    def __init__(self, stream: BuiltStream) -> None:
        self.owners = ProducerOwners(stream.client.metadata_store, "built", "built")
        self.tasks = Tasks("test")
        self.clock = stream.client.services.seams.clock
        self.claims = ProducerClaims(self.owners, self.clock, self.tasks)
        self.reads = 0
        self.away = False
        read = self.owners.owner_of

        async def counted(producer: str) -> str:
            self.reads += 1
            if self.away:
                raise MetadataUnavailableError("away")
            return await read(producer)

        self.owners.owner_of = counted  # type: ignore[method-assign]

    async def use(self, producer: str, call: GrpcCall, most: int = 10, needed: Any = lambda name: True) -> None:
        if not self.claims.allows(producer, call):
            await self.claims.require(producer, "built", call, needed, most)


def caller(who: str, *, enforced: bool = True) -> GrpcCall:
    grant = Grant(Subject.parse(who), frozenset((Right.APPEND,)), Resource(ResourceKind.STREAMS, "built"))
    mode = Mode.ENFORCE if enforced else Mode.OFF
    return GrpcCall(Caller(who), permissions=CallerRights(lambda: Policy(mode, (grant,))))


def test_who_appends_waits_for_no_look_and_a_hand_over_is_noticed_in_time() -> None:
    async def story(stream: BuiltStream) -> None:
        gateway, etl, rival = Gateway(stream), caller("etl"), caller("rival")
        await gateway.use("p", etl)
        before = gateway.reads
        for _ in range(100):
            await gateway.use("p", etl)
        assert gateway.reads == before
        await gateway.owners.hand_over("p", "rival")
        await asyncio.sleep(OWNER_REREAD_S + 0.1)
        assert gateway.claims.allows("p", etl), "it is looked at beside the append"
        await asyncio.sleep(1)
        with pytest.raises(StreamAccessError, match="belongs to rival"):
            await gateway.use("p", etl)
        await gateway.use("p", rival)
        await gateway.tasks.close()

    simulated(story)


def test_while_the_store_is_away_what_was_known_counts_on_and_nothing_is_guessed() -> None:
    async def story(stream: BuiltStream) -> None:
        gateway, etl = Gateway(stream), caller("etl")
        await gateway.use("p", etl)
        gateway.away = True
        for _ in range(3):
            await asyncio.sleep(OWNER_REREAD_S + 0.1)
            await gateway.use("p", etl)
        with pytest.raises(StreamMetadataError, match="whose producer q of stream built is"):
            await gateway.use("q", etl)
        await gateway.tasks.close()

    simulated(story)


def test_where_nobody_is_asked_who_he_is_nothing_is_read() -> None:
    async def story(stream: BuiltStream) -> None:
        gateway = Gateway(stream)
        await gateway.use("p", GrpcCall(None))
        assert gateway.reads == 0 and await gateway.owners.all() == {}

    simulated(story)


def test_where_no_policy_is_enforced_a_name_is_noted_and_everybody_may_use_it() -> None:
    async def story(stream: BuiltStream) -> None:
        gateway = Gateway(stream)
        await gateway.use("p", caller("etl", enforced=False))
        await gateway.use("p", caller("rival", enforced=False))
        assert await gateway.owners.all() == {"p": "etl"}

    simulated(story)


def test_notes_of_names_that_the_stream_has_forgotten_have_a_bound() -> None:
    async def story(stream: BuiltStream) -> None:
        gateway, etl = Gateway(stream), caller("etl")
        for number in range(30):
            await gateway.use(f"p{number}", etl, 4, lambda name: False)
            gateway.claims._known.clear()
        assert len(await gateway.owners.all()) <= 8

    simulated(story)
