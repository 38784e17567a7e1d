"""An embedded cluster outgrows its process: metadata to ZooKeeper, bookies to processes of their own, and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from bookkeeper import BookKeeper
from bookkeeper.ids import LedgerId
from bookkeeper.launchers.zookeeper import ZooKeeperServer
from bookkeeper.real import run
from journal_manager import EditLog
from tests.integration.processes import Process, bk, bk_json, free_port, until

pytestmark = [pytest.mark.integration, pytest.mark.zookeeper]

NAMES = ("b1", "b2", "b3")
ENTRIES = [b"entry %d" % number for number in range(200)]


@pytest.fixture
def zookeeper(tmp_path: Path) -> Iterator[str]:
    with ZooKeeperServer(tmp_path / "zookeeper") as server:
        yield f"zk://{server.address}/grown/ledgers"


async def write(uri: str, edits: range) -> tuple[LedgerId, int]:
    """A closed ledger, and edits in a journal; the ledger and the journal's epoch."""
    async with BookKeeper.connect(uri) as client:
        ledger = await client.create_ledger(password=b"pw")
        await ledger.append_many(ENTRIES)
        await ledger.close()
        async with await EditLog.open("bk:names", client=client) as log:
            for number in edits:
                await log.log(b"edit %d" % number)
            return ledger.id, log.token.epoch


async def read(uri: str, ledgers: list[LedgerId], edits: range) -> None:
    async with BookKeeper.connect(uri) as client:
        for ledger_id in ledgers:
            reader = await client.open_ledger(ledger_id, password=b"pw")
            assert [bytes(entry.payload) async for entry in reader.read(0, len(ENTRIES) - 1)] == ENTRIES
            await reader.close()
        async with await EditLog.open("bk:names", client=client) as log:
            assert [op.body async for op in log.read(1)] == [b"edit %d" % number for number in edits]


async def left_open(uri: str) -> LedgerId:
    """A ledger whose writer goes without closing it: to be recovered elsewhere."""
    async with BookKeeper.connect(uri) as client:
        ledger = await client.create_ledger(password=b"pw")
        await ledger.append_many(ENTRIES)
        return ledger.id


def start(directory: Path, uri: str, running: ExitStack) -> None:
    """The bookies of a directory as processes; stopped with ``running``."""
    settings = directory / "bookie.toml"
    settings.write_text("[storage]\njournal_file_bytes = 16777216\nreserve_bytes = 1048576\n")
    started = []
    for name in NAMES:
        words = ["bookie", "--metadata", uri, "--dir", str(directory / name), "--port", str(free_port())]
        process = Process(name, directory, *words, "--config", str(settings)).start()
        running.callback(process.stop)
        started.append(process)
    for process in started:
        process.until_said(r"serves at \S+")


@pytest.mark.rule("M6", "M10", "C5")
def test_out_to_zookeeper_and_home_again(tmp_path: Path, zookeeper: str) -> None:
    home = tmp_path / "bk"
    embedded = f"embedded://{home}?bookies=3"
    first, epoch = run(write(embedded, range(10)))
    half = run(left_open(embedded))

    said = bk_json("metadata", "copy", embedded, zookeeper)
    assert said["ledgers"] >= 3
    assert said["kinds"]["cookies"] == said["kinds"]["boot"] == 3
    refused = bk("bookies", "--metadata", embedded)
    assert refused[0] == 1
    assert f"moved to {zookeeper}" in refused[2]

    with ExitStack() as running:
        start(home, zookeeper, running)
        states = {row["bookie"]: row["state"] for row in bk_json("bookies", "--metadata", zookeeper)}
        assert states == dict.fromkeys(NAMES, "writable")
        run(read(zookeeper, [first, half], range(10)))
        second, later = run(write(zookeeper, range(10, 20)))
        assert second > max(first, half)
        assert later > epoch
        run(read(zookeeper, [first, half, second], range(20)))
        status, _, err = bk("metadata", "copy", zookeeper, f"sqlite://{tmp_path}/home.db")
        assert (status, "belongs to a live session" in err) == (1, True)

    back = f"sqlite://{tmp_path}/home.db"
    copied = until(lambda: bk("metadata", "copy", zookeeper, back)[0] == 0, 60, "the sessions of bookies that stopped")
    assert copied
    with ExitStack() as running:
        start(home, back, running)
        run(read(back, [first, half, second], range(20)))
        third, _ = run(write(back, range(20, 30)))
        assert third > second
        run(read(back, [first, half, second, third], range(30)))


@pytest.mark.rule("M10")
def test_a_bookie_that_saw_the_new_place_does_not_go_back_to_the_old_one(tmp_path: Path, zookeeper: str) -> None:
    """Also if somebody takes the sign away: what it remembers belongs to the copy."""
    home = tmp_path / "bk"
    embedded = f"embedded://{home}?bookies=3"
    run(write(embedded, range(3)))
    assert bk("metadata", "copy", embedded, zookeeper)[0] == 0
    seen = home / "b1" / "metadata-transaction"

    async def mark() -> bytes:
        async with BookKeeper.connect(zookeeper) as client:
            return client.metadata_store.seen()

    async def take_the_sign_away() -> None:
        from bookkeeper.meta import open_store
        from bookkeeper.real import system_seams

        store = await open_store(f"sqlite://{home}/metadata.sqlite", system_seams())
        await store.delete("/ledgers-py/moved", None)
        await store.close()

    seen.write_bytes(run(mark()))
    run(take_the_sign_away())
    words = ["bookie", "--metadata", f"sqlite://{home}/metadata.sqlite", "--dir", str(home / "b1")]
    process = Process("b1", tmp_path, *words, "--port", str(free_port())).start()
    assert process.wait(60) != 0
    assert "as it was before it moved" in process.said
