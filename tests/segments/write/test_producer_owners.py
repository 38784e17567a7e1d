"""Whose the names of producers are, as it is stored."""

from __future__ import annotations

import asyncio

import pytest

from segments.errors import StreamConfigError, StreamCorruptError, StreamNameError
from segments.names import stream_path
from segments.retention.checked_json import pack_json
from segments.write.producer_owners import FORMAT, ProducerOwners
from tests.segments.read.built_stream import BuiltStream, simulated


def test_a_name_is_whose_it_was_first_until_it_is_handed_over() -> None:
    async def story(stream: BuiltStream) -> None:
        owners = ProducerOwners(stream.client.metadata_store, "built", "built")
        assert await owners.owner_of("a/b") == "" and await owners.all() == {} and await owners.count() == 0
        assert sorted(await asyncio.gather(*(owners.claim("a/b", who) for who in ("etl", "etl")))) == ["etl", "etl"]
        assert await owners.claim("a/b", "rival") == "etl"
        await owners.hand_over("a/b", "rival")
        await owners.hand_over("kept", "boss")
        assert await owners.all() == {"a/b": "rival", "kept": "boss"}
        for _ in range(2):
            await owners.hand_over("a/b", "")
        assert await owners.claim("a/b", "etl") == "etl"
        for producer, who, error in (("a", "role:writer", StreamConfigError), ("a b", "etl", StreamNameError)):
            with pytest.raises(error):
                await owners.hand_over(producer, who)

    simulated(story)


def test_of_two_who_claim_a_name_at_once_one_has_it() -> None:
    async def story(stream: BuiltStream) -> None:
        owners = ProducerOwners(stream.client.metadata_store, "built", "built")
        found = await asyncio.gather(*(owners.claim("p", f"caller-{number}") for number in range(5)))
        assert len(set(found)) == 1 and await owners.owner_of("p") == found[0]

    simulated(story)


def test_whose_forgotten_producers_were_is_forgotten_unless_it_was_ordered() -> None:
    async def story(stream: BuiltStream) -> None:
        owners = ProducerOwners(stream.client.metadata_store, "built", "built")
        for name in ("gone", "here"):
            await owners.claim(name, "etl")
        await owners.hand_over("ordered", "boss")
        assert await owners.tidy(lambda name: name == "here") == 2
        assert await owners.all() == {"here": "etl", "ordered": "boss"}

    simulated(story)


@pytest.mark.parametrize("value", [b"?", pack_json(FORMAT, {"by": 7, "given": False}), pack_json(FORMAT, ["etl"])])
def test_a_note_that_cannot_be_read_is_told_and_nobodys_it_is_not(value: bytes) -> None:
    async def story(stream: BuiltStream) -> None:
        metadata = stream.client.metadata_store
        owners = ProducerOwners(metadata, "built", "built")
        await owners.claim("p", "etl")
        await metadata.store.set(stream_path(metadata, "built", "producers", "p"), value, None)
        with pytest.raises(StreamCorruptError):
            await owners.claim("p", "rival")
        await owners.hand_over("p", "etl")
        assert await owners.owner_of("p") == "etl"

    simulated(story)
