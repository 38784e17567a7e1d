"""A cluster inside this process, on real parts."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from bookkeeper import BookKeeper
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.embedded import EmbeddedUri, open_embedded
from bookkeeper.errors import ConfigError, DirectoryLockedError, MetadataUnavailableError, NotEnoughBookiesError
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.real import system_seams


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("embedded://data/bk", "three slashes"),
        ("embedded:data", "three slashes"),
        ("embedded:///data?bookie=3", "the only option is bookies=1 to bookies=16, not bookie=3"),
        ("embedded:///data?bookies=none", "not bookies=none"),
        ("embedded:///data?bookies=17", "not bookies=17"),
        ("embedded:///tmp/a%zz", "begins no escape of two digits"),
        ("embedded:///tmp/a%ff", "escapes that are no UTF-8: write %25"),
    ],
)
def test_another_address_is_refused_with_what_is_expected(uri: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        EmbeddedUri.parse(uri)


def test_an_address_is_a_directory_and_a_number() -> None:
    assert EmbeddedUri.parse("embedded:///data/b%20k?bookies=5") == EmbeddedUri("/data/b k", 5)
    assert EmbeddedUri.parse("embedded:///data").bookies == 3


async def test_what_was_written_is_there_after_a_restart_and_bookies_keep_their_names(tmp_path: Path) -> None:
    uri = f"embedded://{tmp_path}/bk"
    async with BookKeeper.connect(uri) as bk:
        async with await bk.create_ledger(password=b"pw") as ledger:
            assert await ledger.append(b"hello") == 0
        assert sorted(ledger.metadata.bookies) == ["b1", "b2", "b3"]
        left_open = await bk.create_ledger()
        await left_open.append(b"left open")
    async with BookKeeper.connect(uri) as bk:
        async with await bk.open_ledger(ledger.id, b"pw") as reader:
            assert [e.payload async for e in reader.read(0, 0)] == [b"hello"]
        async with await bk.open_ledger(left_open.id) as reader:  # recovers it
            assert [e.payload async for e in reader.read(0, 0)] == [b"left open"]
            assert reader.closed


async def test_connections_of_one_loop_share_the_cluster_and_the_last_one_stops_it(tmp_path: Path) -> None:
    uri = f"embedded://{tmp_path}/bk?bookies=1"
    one, other = await asyncio.gather(BookKeeper.connect(uri)._connect(), BookKeeper.connect(uri)._connect())
    async with await one.create_ledger(ensemble=1, write_quorum=1, ack_quorum=1) as ledger:
        await ledger.append(b"x")
    await one.close()
    await one.close()
    async with await other.open_ledger(ledger.id) as reader:
        assert await reader.read_entry(0) == b"x"
    await other.close()
    user = await open_embedded(uri, system_seams())
    assert [server.boot for server in user.servers] == [2]
    await user.close()


async def test_more_bookies_than_before_are_added_and_fewer_leave_none_out(tmp_path: Path) -> None:
    async with BookKeeper.connect(f"embedded://{tmp_path}/bk?bookies=1") as bk:
        with pytest.raises(NotEnoughBookiesError, match="but 1 can be used: b1"):
            await bk.create_ledger()
        three = f"embedded://{tmp_path}/bk?bookies=3"
        async with BookKeeper.connect(three) as more, await more.create_ledger() as ledger:
            await ledger.append(b"x")
    async with BookKeeper.connect(f"embedded://{tmp_path}/bk?bookies=1") as bk:
        assert len(await bk.metadata_store.bookies.writable()) == 3


@pytest.mark.rule("B11")
async def test_a_second_process_and_a_second_loop_are_refused_with_what_to_do(tmp_path: Path) -> None:
    uri = f"embedded://{tmp_path}/bk?bookies=1"
    program = f"""
import asyncio
from bookkeeper import BookKeeper
from bookkeeper.bookie.lifecycle import BookieServer
from bookkeeper.errors import DirectoryLockedError
async def main():
    try:
        await BookKeeper.connect({uri!r})
    except DirectoryLockedError as error:
        print(error)
asyncio.run(main())
"""
    async with BookKeeper.connect(uri):
        found = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=60 * stretch(),
            check=True,
        )
        assert "another process has" in found.stdout and "bk standalone" in found.stdout
        errors: list[BaseException] = []

        def other_loop() -> None:
            async def connect() -> None:
                await BookKeeper.connect(uri)

            try:
                asyncio.run(connect())
            except DirectoryLockedError as error:
                errors.append(error)

        thread = threading.Thread(target=other_loop)
        thread.start()
        await asyncio.to_thread(thread.join)
        assert "bookkeeper.sync" in str(errors[0])


@pytest.mark.integration
async def test_a_process_that_was_killed_leaves_everything_acknowledged(tmp_path: Path) -> None:
    uri = f"embedded://{tmp_path}/bk"
    program = f"""
import asyncio, os
from bookkeeper import BookKeeper
from bookkeeper.bookie.lifecycle import BookieServer
async def main():
    bk = await BookKeeper.connect({uri!r})
    ledger = await bk.create_ledger()
    for i in range(200):
        await ledger.append(b"%d" % i)
    print(ledger.id, flush=True)
    os.kill(os.getpid(), 9)
asyncio.run(main())
"""
    found = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60 * stretch(),
        check=False,
    )
    assert found.returncode == -9, found.stderr
    async with BookKeeper.connect(uri) as bk, await bk.open_ledger(int(found.stdout)) as reader:
        assert reader.last_add_confirmed >= 199
        assert [int(e.payload) async for e in reader.read(0, 199)] == list(range(200))


async def test_bookies_that_could_not_be_added_are_added_later_also_if_others_were(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counted those that ran, and took the first of the others for the next: one that ran was started again."""
    start, lost = BookieServer.start, ["b2"]

    async def loses(self: BookieServer) -> None:
        if self.config.bookie_id in lost:
            raise MetadataUnavailableError("no answer")
        await start(self)

    monkeypatch.setattr(BookieServer, "start", loses)
    three = f"embedded://{tmp_path}/bk?bookies=3"
    async with BookKeeper.connect(f"embedded://{tmp_path}/bk?bookies=1"):
        with pytest.raises(MetadataUnavailableError):
            await BookKeeper.connect(three)
        lost.clear()
        async with BookKeeper.connect(three) as bk:
            assert sorted(await bk.metadata_store.bookies.writable()) == ["b1", "b2", "b3"]
