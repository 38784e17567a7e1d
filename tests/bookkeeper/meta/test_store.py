"""All three stores against the contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from bookkeeper.errors import MetadataUnavailableError, SessionExpiredError
from bookkeeper.meta.store import (
    Check,
    MetadataStore,
    Version,
    settled_create,
    settled_delete,
    settled_set,
    settled_set_if,
)
from tests.bookkeeper.meta.services import MemoryService
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
