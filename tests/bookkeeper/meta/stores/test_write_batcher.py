"""On a real store's transactions: what is shown by the answers is shown of the tree, too."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from bookkeeper.errors import (
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataUnavailableError,
    Outcome,
)
from bookkeeper.meta.store import Create, Operation, Set, Version
from bookkeeper.meta.stores.memory import MemoryStore
from bookkeeper.meta.stores.write_batcher import BYTES_MAX, OPERATIONS_MAX, WriteBatcher
from tests.bookkeeper.meta.services import REPLY_LOST, Losing, MemoryService


class Sent:
    """A lane over a store, and what went through it as one request."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.requests: list[int] = []
        self.batcher: WriteBatcher[Operation, Any] = WriteBatcher(self.one, self.many, self.size)

    async def one(self, operation: Operation) -> Any:
        self.requests.append(1)
        return (await self.store.multi([operation]))[0]

    async def many(self, operations: Sequence[Operation]) -> list[Any] | None:
        self.requests.append(len(operations))
        try:
            return await self.store.multi(operations)
        except MetadataUnavailableError:
            raise
        except MetadataError:
            return None

    def size(self, operation: Operation) -> int:
        return len(operation.value) if isinstance(operation, Create | Set) else 0

    async def together(self, *operations: Operation) -> list[Any]:
        return await asyncio.gather(*map(self.batcher.put, operations), return_exceptions=True)


@pytest.fixture
async def sent(memory_service: MemoryService) -> Sent:
    return Sent(await memory_service.connect())


async def test_a_lone_write_is_sent_as_it_is(sent: Sent) -> None:
    assert await sent.batcher.put(Create("/a")) == 0
    assert sent.requests == [1]


async def test_writes_of_one_turn_are_one_request_in_their_order(sent: Sent) -> None:
    answers = await sent.together(Create("/a", b"0"), Set("/a", b"1", Version(0)), Set("/a", b"2", Version(1)))
    assert answers == [0, 1, 2]
    assert sent.requests == [3]
    assert (await sent.store.get("/a")).value == b"2"


async def test_a_batch_ends_before_it_has_too_many_operations_by_what_they_consist_of(sent: Sent) -> None:
    sent.batcher = WriteBatcher(sent.one, sent.many, sent.size, lambda _: OPERATIONS_MAX // 2)
    assert await sent.together(*(Create(f"/{number}") for number in range(5))) == [0] * 5
    assert sent.requests == [2, 2, 1]


@pytest.mark.rule("M1")
async def test_one_that_is_refused_does_not_touch_the_others(sent: Sent) -> None:
    await sent.store.create("/taken")
    answers = await sent.together(Create("/a"), Create("/taken"), Set("/taken", b"", Version(7)), Create("/b"))
    assert [answers[0], answers[3]] == [0, 0]
    assert isinstance(answers[1], KeyExistsError)
    assert isinstance(answers[2], MetadataConflictError)
    assert sent.requests == [4, 1, 1, 1, 1]


@pytest.mark.rule("M1")
async def test_of_two_compare_and_sets_on_one_version_one_wins(sent: Sent) -> None:
    await sent.store.create("/a")
    answers = await sent.together(Set("/a", b"x", Version(0)), Set("/a", b"y", Version(0)))
    assert answers[0] == 1
    assert isinstance(answers[1], MetadataConflictError)
    assert (await sent.store.get("/a")).value == b"x"


@pytest.mark.rule("M8", "Z4")
async def test_a_request_of_unknown_outcome_is_that_for_each_and_nothing_is_sent_again(
    sent: Sent, memory_service: MemoryService
) -> None:
    memory_service.cluster.interference = Losing(multi=[REPLY_LOST])
    answers = await sent.together(Create("/a"), Create("/b"))
    assert all(isinstance(answer, MetadataUnavailableError) for answer in answers)
    assert answers[0] is not answers[1]
    assert sent.requests == [2]
    assert await sent.store.exists("/b") == 0


async def test_a_request_is_bounded_in_operations_and_bytes(sent: Sent) -> None:
    await sent.together(*(Create(f"/n{number}") for number in range(2 * OPERATIONS_MAX + 1)))
    assert sent.requests == [OPERATIONS_MAX, OPERATIONS_MAX, 1]
    sent.requests.clear()
    big = bytes(BYTES_MAX // 2)
    await sent.together(Create("/a", big), Create("/b", big), Create("/c", big + big + b"x"), Create("/d"))
    assert sent.requests == [2, 1, 1]


class _Detailed(MetadataError):
    """An error that cannot be made from what it says alone."""

    def __init__(self, text: str, *, path: str) -> None:
        super().__init__(text)
        self.path = path


@pytest.mark.rule("Z4")
async def test_whatever_ends_a_batch_everyone_hears_of_it_with_its_outcome(sent: Sent) -> None:
    detailed, told = _Detailed("no", path="/a"), MetadataError("perhaps")
    told.outcome = Outcome.UNKNOWN
    for error in (detailed, told):

        async def fails(operations: Sequence[Operation], error: Exception = error) -> list[Any] | None:
            raise error

        sent.batcher = WriteBatcher(sent.one, fails, sent.size)
        answers = await asyncio.wait_for(sent.together(Create("/a"), Create("/b")), 5)
        assert [type(answer) for answer in answers] == [type(error)] * 2
        assert [vars(answer) for answer in answers] == [vars(error)] * 2


async def test_who_stops_waiting_leaves_the_others_alone_and_is_not_sent_any_more(sent: Sent) -> None:
    waiting = [asyncio.ensure_future(sent.batcher.put(Create(path))) for path in ("/a", "/b")]
    await asyncio.sleep(0)
    waiting[0].cancel()
    assert await waiting[1] == 0
    assert await sent.store.exists("/a") is None
    alone = asyncio.ensure_future(sent.batcher.put(Create("/c")))
    await asyncio.sleep(0)
    alone.cancel()
    assert await sent.batcher.put(Create("/d")) == 0
    assert await sent.store.exists("/c") is None


@pytest.mark.rule("Z4")
async def test_a_write_of_before_never_overtakes_what_its_caller_did_after_it_was_cancelled(sent: Sent) -> None:
    """As a registration does that is withdrawn while it is published: what it looks at then is the end of it."""
    await sent.store.create("/taken")
    refused, go_on, many = asyncio.Event(), asyncio.Event(), sent.many

    async def slow(operations: Sequence[Operation]) -> list[Any] | None:
        answers = await many(operations)
        refused.set()
        await go_on.wait()
        return answers

    sent.batcher = WriteBatcher(sent.one, slow, sent.size)
    waiting = [asyncio.ensure_future(sent.batcher.put(Create(path))) for path in ("/a", "/taken")]
    await refused.wait()
    waiting[0].cancel()
    assert await sent.store.exists("/a") is None  # so there is nothing to withdraw
    go_on.set()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert await sent.store.exists("/a") is None
