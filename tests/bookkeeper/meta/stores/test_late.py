"""A store whose session begins with the first question is a store like the others from then on."""

from __future__ import annotations

import asyncio

import pytest

from bookkeeper.errors import ClientClosedError, MetadataUnavailableError
from bookkeeper.meta.store import MetadataStore, SessionState
from bookkeeper.meta.stores.late import LateStore
from bookkeeper.meta.stores.memory import MemoryStore
from tests.bookkeeper.meta.services import MemoryService
from tests.contracts.metadata_store import Calls, MetadataStoreContract


class LateService:
    """Sessions with a service in memory, each begun by its first question."""

    def __init__(self, memory: MemoryService) -> None:
        self._memory = memory
        self._begun: dict[MetadataStore, MemoryStore] = {}

    async def connect(self) -> MetadataStore:
        async def begin() -> MetadataStore:
            self._begun[late] = store = await self._memory.connect()
            return store

        late = LateStore(begin)
        return late

    async def expire(self, store: MetadataStore) -> None:
        await store.exists("/")
        await self._memory.expire(self._begun[store])


@pytest.fixture
def service(memory_service: MemoryService) -> LateService:
    return LateService(memory_service)


@pytest.fixture
async def store(service: LateService) -> MetadataStore:
    store = await service.connect()
    await store.exists("/")
    return store


class TestLateStore(MetadataStoreContract):
    """``store`` and ``service`` are those above."""


async def test_nothing_is_opened_before_something_is_asked(memory_service: MemoryService) -> None:
    opened: list[str] = []
    late, news = LateStore(memory_service.connect), Calls()
    late.on_opened = lambda: opened.append("told")
    late.watch("/a", news)
    closed = late.watch("/b", lambda: opened.append("a closed watch"))
    closed.close()
    assert (late.session, late.session_id, late.last_transaction, late.rolled_back) == (
        SessionState.SUSPENDED,
        0,
        0,
        None,
    )
    await asyncio.sleep(0)
    assert memory_service.stores == [] and not late.is_open

    assert list(await asyncio.gather(late.exists("/a"), late.exists("/b"))) == [None, None]
    assert (len(memory_service.stores), opened, late.session) == (1, ["told"], SessionState.CONNECTED)
    await news.settle()
    assert news.count == 0
    await late.create("/a")
    await asyncio.sleep(0.01)
    assert news.count == 1


async def test_a_watch_from_before_the_session_is_called_when_it_begins(memory_service: MemoryService) -> None:
    late, news = LateStore(memory_service.connect), Calls()
    late.watch("/a", news)
    await late.exists("/a")
    await asyncio.sleep(0)
    assert news.count == 1, "whatever has changed meanwhile"


async def test_an_attempt_that_fails_is_made_again_and_one_that_nobody_awaits_goes_on(
    memory_service: MemoryService,
) -> None:
    attempts, go_on = [], asyncio.Event()

    async def begin() -> MetadataStore:
        attempts.append(1)
        await go_on.wait()
        if len(attempts) == 1:
            raise MetadataUnavailableError("away")
        return await memory_service.connect()

    late = LateStore(begin)
    impatient = asyncio.create_task(late.exists("/"))
    await asyncio.sleep(0)
    impatient.cancel()
    patient = asyncio.create_task(late.exists("/"))
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(MetadataUnavailableError):
        await patient
    assert len(attempts) == 1
    assert await late.exists("/") is not None


async def test_a_store_that_was_closed_opens_none(memory_service: MemoryService) -> None:
    never = asyncio.Event()

    async def begin() -> MetadataStore:
        await never.wait()
        return await memory_service.connect()

    late = LateStore(begin)
    asked = asyncio.create_task(late.exists("/"))
    await asyncio.sleep(0)
    await late.close()
    with pytest.raises(ClientClosedError):
        await asked
    with pytest.raises(ClientClosedError):
        await late.exists("/")
    assert memory_service.stores == []
