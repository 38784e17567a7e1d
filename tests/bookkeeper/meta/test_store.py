"""All three stores against the contract."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bookkeeper.errors import (
    MetadataConflictError,
    MetadataUnavailableError,
    NoSuchKeyError,
    SessionExpiredError,
)
from bookkeeper.meta.store import (
    LOST_MAX,
    Check,
    Create,
    MetadataStore,
    Version,
    settled_create,
    settled_delete,
    settled_set,
    settled_set_if,
)
from bookkeeper.meta.stores.memory import Fate
from tests.bookkeeper.meta.services import FINE, REPLY_LOST, REQUEST_LOST, Losing, MemoryService
from tests.contracts.metadata_store import MetadataStoreContract


class TestEveryStore(MetadataStoreContract):
    """``store`` and ``service`` come from conftest.py, once for each implementation."""


SETTLED: dict[str, Callable[[MetadataStore], Awaitable[Any]]] = {
    "set": lambda store: settled_set(store, "/old", b"ours", Version(0)),
    "multi": lambda store: settled_set_if(store, "/old", b"ours", Version(0), [Check("/other", Version(0))]),
    "create": lambda store: settled_create(store, "/new", b"ours"),
    "delete": lambda store: settled_delete(store, "/old", Version(0)),
}


@pytest.mark.rule("M8", "Z1")
@pytest.mark.parametrize("kind", SETTLED)
@pytest.mark.parametrize("done", [False, True])
@pytest.mark.parametrize("lost", [MetadataUnavailableError, SessionExpiredError])
async def test_a_write_is_settled_whether_its_reply_was_lost_or_its_session_ended(
    kind: str, done: bool, lost: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await MemoryService().connect()
    for path in ("/old", "/other"):
        await store.create(path, b"before")
    write = getattr(store, kind)

    async def unanswered(*args: object, **options: object) -> object:
        monkeypatch.undo()
        if done:
            await write(*args, **options)
        raise lost("nobody knows")

    monkeypatch.setattr(store, kind, unanswered)
    assert await SETTLED[kind](store) == {"set": 1, "multi": 1, "create": 0, "delete": None}[kind]
    assert await store.exists("/old") == {"set": 1, "multi": 1, "create": 0, "delete": None}[kind]
    assert (await store.exists("/new") is not None) == (kind == "create")


@pytest.mark.rule("M8")
@pytest.mark.parametrize("expected", [None, Version(0)])
async def test_a_deletion_without_an_answer_spares_what_was_made_anew(expected: Version | None) -> None:
    service = MemoryService()
    store = await service.connect()
    await store.create("/a", b"first")
    service.cluster.interference = Anew(service, "/a", REPLY_LOST)
    await settled_delete(store, "/a", expected)
    assert (await store.get("/a")).value == b"second"


@pytest.mark.rule("M8")
async def test_a_deletion_that_was_not_done_is_repeated_also_over_what_was_written_since() -> None:
    service = MemoryService()
    store = await service.connect()
    await store.create("/a", b"first")
    service.cluster.interference = Losing(delete=[REQUEST_LOST, REQUEST_LOST], sync=[FINE])
    deleting = asyncio.create_task(settled_delete(store, "/a", None))
    other = await service.connect()
    await other.set("/a", b"more", None)
    await deleting
    assert await store.exists("/a") is None
    service.cluster.interference = Losing(delete=[REQUEST_LOST] * LOST_MAX)
    await store.create("/a", b"again")
    with pytest.raises(MetadataUnavailableError, match="no answer to 10 attempts"):
        await settled_delete(store, "/a", None)
    with pytest.raises(NoSuchKeyError, match="created anew"):
        await settled_delete(store, "/a", None, created_txn=1)
    with pytest.raises(MetadataConflictError):
        await settled_delete(store, "/a", Version(4))
    assert (await store.get("/a")).value == b"again"


@pytest.mark.rule("M8")
async def test_a_deletion_that_is_repeated_spares_what_was_made_anew_right_before() -> None:
    """The first attempt was not done; after the look somebody else deletes the value and makes another one."""
    service = MemoryService()
    store, other = await service.connect(), await service.connect()
    await store.create("/a", b"first")

    class Meanwhile:
        asked = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def delete(self, path: str, expected: Version | None) -> None:
            self.asked += 1
            if self.asked == 1:
                raise MetadataUnavailableError("no answer")
            await other.delete(path, None)
            await other.create(path, b"second")
            await other.set(path, b"third", None)
            await store.delete(path, expected)

    await settled_delete(Meanwhile(), "/a", None)
    assert (await other.get("/a")).value == b"third"


class Anew:
    """Somebody makes a value anew as soon as its deletion is done, of which no answer comes."""

    def __init__(self, service: MemoryService, path: str, fate: Fate) -> None:
        self._cluster, self._path, self._fate = service.cluster, path, fate
        self._deleted = self._made = False

    def fate(self, session: int, kind: str, path: str) -> Fate:
        if kind == "delete" and not self._deleted:
            self._deleted = True
            return self._fate
        if self._deleted and not self._made:
            self._made = True
            self._cluster.write(0, lambda transaction: transaction.run([Create(self._path, b"second")]))
        return Fate()
