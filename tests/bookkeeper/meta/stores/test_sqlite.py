"""The store over a SQLite file, and several processes on one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from bookkeeper.errors import SessionExpiredError
from bookkeeper.meta.store import SessionState
from bookkeeper.meta.stores.sqlite import SqliteStore
from tests.bookkeeper.meta.services import SqliteService, seams
from tests.contracts.metadata_store import Calls, until

CHILD = """
import asyncio, sys
from bookkeeper.errors import MetadataError
from bookkeeper.meta.stores.sqlite import SqliteStore
from bookkeeper.real import system_seams

async def main(path, lease_s):
    store = await SqliteStore.open(path, system_seams(), lease_s=lease_s)
    await store.create("/child", ephemeral=True)
    loop = asyncio.get_running_loop()
    while True:
        print("ready", flush=True)
        name = (await loop.run_in_executor(None, sys.stdin.readline)).strip()
        if not name:
            return
        try:
            await store._worker.call(lambda: store._file.write(1, lambda tx: tx.create(
                name, b"", ephemeral=False, sequential=False, parents=False)))
            print("written", flush=True)
        except MetadataError as error:
            print(type(error).__name__, flush=True)

asyncio.run(main(sys.argv[1], float(sys.argv[2])))
"""


class Child:
    """Another process with a session of its own: session 1, it comes first."""

    def __init__(self, path: str, lease_s: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, path, str(lease_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
        )
        self.expect("ready")

    @property
    def stdin(self) -> IO[str]:
        assert self.process.stdin is not None
        return self.process.stdin

    def expect(self, line: str) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline().strip() == line

    def write(self, path: str) -> None:
        self.stdin.write(f"{path}\n")
        self.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def children(tmp_path: Path) -> Iterator[list[Child]]:
    made: list[Child] = []
    yield made
    for child in made:
        child.end()


async def test_a_killed_process_ends_its_session_at_once(sqlite_service: SqliteService, children: list[Child]) -> None:
    """Its lease has an hour to go."""
    children.append(Child(sqlite_service.path, 3600))
    store, calls = await sqlite_service.connect(), Calls()
    assert await store.owner("/child") is not None
    store.watch("/child", calls)
    await calls.settle()
    children[0].process.send_signal(signal.SIGKILL)
    await calls.wait()
    assert await store.exists("/child") is None


@pytest.mark.rule("Z9", "Z1")
async def test_a_stopped_process_cannot_write_after_its_lease(
    sqlite_service: SqliteService, children: list[Child]
) -> None:
    children.append(Child(sqlite_service.path, 3.0))  # it must keep up while it runs
    child = children[0]
    child.write("/before")
    child.expect("written")
    child.expect("ready")
    store, calls = await sqlite_service.connect(), Calls()
    store.watch("/child", calls)
    await calls.settle()
    child.process.send_signal(signal.SIGSTOP)
    await calls.wait()
    assert await store.exists("/child") is None
    child.process.send_signal(signal.SIGCONT)
    child.write("/after")
    child.expect("SessionExpiredError")
    assert await store.exists("/before") == 0
    assert await store.exists("/after") is None


async def test_two_processes_see_each_other(sqlite_service: SqliteService, children: list[Child]) -> None:
    children.append(Child(sqlite_service.path, 60))
    store, calls = await sqlite_service.connect(), Calls()
    store.watch_children("/", calls)
    await calls.settle()
    children[0].write("/a")
    await calls.wait()
    await until(lambda: True)
    assert await store.children("/") == ["a", "child"]


@pytest.mark.rule("Z1")
async def test_a_write_in_an_expired_session_is_refused_and_a_new_session_follows(
    sqlite_service: SqliteService,
) -> None:
    store, states = await sqlite_service.connect(), list[SessionState]()
    store.on_session(states.append)
    before = store.session_id
    await sqlite_service.expire(store)
    with pytest.raises(SessionExpiredError):
        await store.create("/a")
    await until(lambda: SessionState.CONNECTED in states)
    assert states == [SessionState.LOST, SessionState.CONNECTED]
    assert store.session_id != before
    await store.create("/a")


async def test_a_store_that_was_closed_left_no_session(sqlite_service: SqliteService) -> None:
    store = await SqliteStore.open(sqlite_service.path, seams())
    await store.create("/e", ephemeral=True)
    await store.close()
    assert await (await sqlite_service.connect()).exists("/e") is None
