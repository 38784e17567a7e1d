"""One client at one address, closed with its last user."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bookkeeper import BookKeeper
from journal_manager import EditLog, JournalConfigError, open_reader, open_snapshots
from journal_manager.backends.bookkeeper import shared_client as module
from journal_manager.backends.bookkeeper.shared_client import SharedClient, shared_client


class Opened:
    """Stands for clients; opening takes as long as the test says."""

    def __init__(self) -> None:
        self.open: list[str] = []
        self.calls: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None

    async def connect(self, uri: str) -> Any:
        self.calls.append(f"open {uri}")
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        assert uri not in self.open, "two clients at once"
        self.open.append(uri)
        return Client(self, uri)


class Client:
    def __init__(self, opened: Opened, uri: str) -> None:
        self._opened, self.uri = opened, uri

    async def close(self) -> None:
        self._opened.calls.append(f"close {self.uri}")
        await self._opened.gate.wait()
        self._opened.open.remove(self.uri)


@pytest.fixture
async def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    clients = Opened()
    monkeypatch.setattr(BookKeeper, "connect", clients.connect)
    return clients


async def test_users_of_one_address_share_a_client(opened: Opened) -> None:
    one, two, other = await asyncio.gather(*(shared_client(uri) for uri in ("a", "a", "b")))
    assert one.client is two.client is not other.client
    await one.close()
    await one.close()
    assert opened.open == ["a", "b"]
    await two.close()
    await other.close()
    assert opened.open == [] and module._entries == {}


async def test_who_comes_while_it_is_being_closed_gets_a_new_one(opened: Opened) -> None:
    one = await shared_client("a")
    opened.gate.clear()
    closing = asyncio.ensure_future(one.close())
    await asyncio.sleep(0)
    again = asyncio.ensure_future(shared_client("a"))
    await asyncio.sleep(0)
    opened.gate.set()
    await closing
    assert (await again).client is not one.client
    assert opened.calls == ["open a", "close a", "open a"]
    await (await again).close()
    assert module._entries == {}


async def test_a_failure_is_for_those_who_wait_and_the_next_tries_again(opened: Opened) -> None:
    opened.failure = RuntimeError("not now")
    with pytest.raises(RuntimeError):
        await shared_client("a")
    assert module._entries == {}
    opened.failure = None
    await (await shared_client("a")).close()


async def test_who_is_cancelled_leaves_the_opening_to_the_others(opened: Opened) -> None:
    opened.gate.clear()
    one, two = (asyncio.ensure_future(shared_client("a")) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.sleep(0)
    opened.gate.set()
    shared = await two
    assert one.cancelled() and opened.open == ["a"]
    await shared.close()
    assert opened.open == [] and module._entries == {}


async def test_a_client_of_the_application_stays_open(opened: Opened) -> None:
    client = await opened.connect("a")
    await SharedClient(client).close()
    assert opened.open == ["a"]


async def test_a_cluster_in_this_process_is_opened_once_for_all_its_journals(tmp_path: Path) -> None:
    uri = f"bk+embedded://{tmp_path}/bk?bookies=3"
    log = await EditLog.open(uri)
    assert await log.log(b"x") == 1
    await log.save_snapshot(1, [b"x"])
    reader, snapshots = await open_reader(uri), await open_snapshots(uri)
    other = await EditLog.open(f"{uri}&name=other")
    assert other.next_txid == 1 and len(await reader.segments()) == 1
    for each in (other, log, reader, snapshots):
        await each.close()
    assert module._entries == {}
    again = await EditLog.open(uri)
    assert [op.body async for op in again.read(1)] == [b"x"]
    await again.close()
    with pytest.raises(JournalConfigError, match="colour"):
        await open_reader(f"{uri}&colour=red")
