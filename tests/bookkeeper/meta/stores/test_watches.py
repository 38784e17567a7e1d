from __future__ import annotations

import asyncio
import contextvars

import pytest

from bookkeeper.meta.store import SessionState
from bookkeeper.meta.stores.watches import SessionWatches, WatchRegistry


async def turn() -> None:
    await asyncio.sleep(0)


@pytest.mark.rule("Z3")
async def test_changes_before_the_callback_runs_are_one_call_and_never_inside() -> None:
    registry: WatchRegistry[str] = WatchRegistry(asyncio.get_running_loop())
    calls: list[int] = []
    registry.add("a", lambda: calls.append(1))
    registry.fire(["a"])
    registry.fire(["a"])
    assert calls == []
    await turn()
    assert calls == [1]
    registry.fire(["a"])
    await turn()
    assert calls == [1, 1]


async def test_a_closed_subscription_is_silent_even_if_it_was_due() -> None:
    registry: WatchRegistry[str] = WatchRegistry(asyncio.get_running_loop())
    calls: list[str] = []
    first, _ = registry.add("a", lambda: calls.append("1")), registry.add("a", lambda: calls.append("2"))
    registry.fire_all()
    first.close()
    first.close()
    await turn()
    assert calls == ["2"]
    assert registry.keys() == ["a"]


async def test_a_key_that_nobody_watches_is_forgotten() -> None:
    registry: WatchRegistry[str] = WatchRegistry(asyncio.get_running_loop())
    registry.add("a", lambda: None).close()
    assert "a" not in registry
    assert registry.keys() == []


@pytest.mark.rule("Z1", "Z3")
async def test_session_states_are_told_each_and_in_order() -> None:
    sessions = SessionWatches(asyncio.get_running_loop(), SessionState.CONNECTED)
    told: list[SessionState] = []
    watch = sessions.add(told.append)
    for state in (SessionState.SUSPENDED, SessionState.LOST, SessionState.LOST, SessionState.CONNECTED):
        sessions.change(state)
    assert told == []
    await turn()
    assert told == [SessionState.SUSPENDED, SessionState.LOST, SessionState.CONNECTED]
    watch.close()
    sessions.change(SessionState.LOST)
    await turn()
    assert len(told) == 3


async def test_waiting_for_contact_ends_with_it_or_with_the_time() -> None:
    sessions = SessionWatches(asyncio.get_running_loop(), SessionState.SUSPENDED)
    assert not await sessions.connected(0.001)
    waiting = asyncio.create_task(sessions.connected(5))
    await turn()
    sessions.change(SessionState.CONNECTED)
    assert await waiting


async def test_a_callback_runs_in_the_context_of_whoever_subscribed() -> None:
    owner: contextvars.ContextVar[str] = contextvars.ContextVar("owner", default="nobody")
    registry: WatchRegistry[str] = WatchRegistry(asyncio.get_running_loop())
    watches = SessionWatches(asyncio.get_running_loop(), SessionState.CONNECTED)
    seen: list[str] = []
    owner.set("subscriber")
    registry.add("a", lambda: seen.append(owner.get()))
    watches.add(lambda state: seen.append(owner.get()))
    owner.set("someone else")
    registry.fire(["a"])
    watches.change(SessionState.LOST)
    await turn()
    assert seen == ["subscriber", "subscriber"]
