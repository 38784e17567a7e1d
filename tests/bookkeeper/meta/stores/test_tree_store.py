"""What memory and SQLite share; that both keep the contract is in test_memory and test_sqlite."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import pytest

from bookkeeper.errors import NoSuchKeyError
from bookkeeper.meta.store import Create, Delete, SessionState
from bookkeeper.meta.stores.memory import MemoryTree
from bookkeeper.meta.stores.tree import Transaction, Tree
from bookkeeper.meta.stores.tree_store import TreeStore

T = TypeVar("T")


class Recorded(TreeStore):
    """Does its jobs at once, and notes what they were called."""

    def __init__(self) -> None:
        super().__init__(asyncio.get_running_loop())
        self.tree, self.calls = MemoryTree(), list[str]()

    async def _read(self, kind: str, path: str, job: Callable[[Tree], T]) -> T:
        self.calls.append(f"{kind} {path}")
        return job(self.tree)

    def _newest(self) -> int:
        return 1

    async def _write(self, kind: str, path: str, job: Callable[[Transaction], T]) -> T:
        self.calls.append(f"{kind} {path}")
        return job(Transaction(self.tree, session=7, number=1, now_ms=0))


async def test_each_call_is_one_job_that_says_what_it_is() -> None:
    store = Recorded()
    await store.multi([Create("/a"), Create("/b"), Delete("/b", None)])
    await store.create("/a/x", ephemeral=True)
    assert (await store.owner("/a/x"), await store.children("/a"), await store.exists("/b")) == (7, ["x"], None)
    with pytest.raises(NoSuchKeyError):
        await store.get("/b")
    assert store.calls == ["multi /a", "create /a/x", "owner /a/x", "children /a", "exists /b", "get /b"]
    assert store.session is SessionState.CONNECTED and store.rolled_back is None
