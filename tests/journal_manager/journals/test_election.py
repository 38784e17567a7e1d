"""Who is elected: one at a time, and the next one after the first has gone."""

from __future__ import annotations

import asyncio

import pytest

from journal_manager import JournalConfigError
from journal_manager.backends.memory import MemoryHub
from journal_manager.errors import ElectionLostError
from journal_manager.journals import election as module
from journal_manager.journals.election import Election, open_election
from tests.spark_wal.webhdfs.virtual import in_virtual_time


def held(election: Election) -> bool:
    return election.is_held


@in_virtual_time
async def test_the_second_waits_until_the_first_resigns() -> None:
    hub = MemoryHub()
    one, two = [await open_election("mem:x", name=name, hub=hub) for name in ("a", "b")]
    other = await open_election("mem:y", name="c", hub=hub)
    await one.campaign()
    await one.wait_until_held()
    await other.campaign()
    campaign = asyncio.create_task(two.campaign())
    await asyncio.sleep(10)
    assert (held(one), held(two), held(other), campaign.done()) == (True, False, True, False)
    with pytest.raises(ElectionLostError):
        await two.wait_until_held()
    await one.resign()
    await asyncio.sleep(1)
    assert (held(one), held(two)) == (False, True)
    await one.resign()
    await one.close()
    assert held(two), "only the holder's lock is given up"
    await two.close()
    await two.close()
    assert hub.elected == {"y": hub.elected["y"]}


@in_virtual_time
async def test_a_lock_is_lost_only_if_it_is_not_in_force_any_more() -> None:
    hub = MemoryHub()
    election = await open_election("mem:x", name="a", hub=hub)
    await election.campaign()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(100):
            await election.lost()
    hub.elected["x"] = object()
    assert not held(election)
    await election.lost()


async def test_a_backend_that_cannot_elect_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "backend_for", lambda uri: object())
    with pytest.raises(JournalConfigError, match="mem: journals cannot elect"):
        await open_election("mem:x", name="a")
