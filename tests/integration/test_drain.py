"""The way out: other bookies join under load, the first ones are drained and stopped, and nothing is missing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bookkeeper import BookKeeper
from tests.integration.load import Load, check_all_there
from tests.integration.processes import Bookies, bk, bk_json, bookies, until_async

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

OLD, NEW = ("b1", "b2", "b3"), ("b4", "b5", "b6")


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Bookies]:
    with bookies(tmp_path, OLD) as cluster:
        yield cluster


@pytest.fixture
def four(tmp_path: Path) -> Iterator[Bookies]:
    with bookies(tmp_path, (*OLD, "b4")) as cluster:
        yield cluster


async def read_only(cluster: Bookies, name: str) -> None:
    """Start a bookie again, read-only."""
    await asyncio.to_thread(cluster[name].stop)
    process = cluster.add(name, "--read-only")
    await asyncio.to_thread(process.until_said, r"serves at \S+")
    await cluster.until_state(name, "read-only")


@pytest.mark.rule("A1", "A3", "A5", "V3")
async def test_three_bookies_join_under_load_the_first_three_are_drained_and_stopped(three: Bookies) -> None:
    cluster = three
    async with BookKeeper.connect(cluster.uri) as client:
        closed: dict[int, dict[int, bytes]] = {}
        for i in range(20):
            async with await client.create_ledger(password=b"pw", write_quorum=2 + i % 2) as ledger:
                payloads = [b"%d/%d " % (i, n) * 40 for n in range(100)]
                closed[ledger.id] = dict(zip(await ledger.append_many(payloads), payloads, strict=True))
        async with await client.create_ledger(password=b"pw") as ledger, Load(ledger, lanes=2) as load:
            await load.more(500)
            for name in NEW:
                cluster.add(name)
            await asyncio.to_thread(cluster.await_serving)
            for name in OLD:
                await read_only(cluster, name)
                await load.more(200)
            await until_async(lambda: not set(ledger.metadata.last_fragment.ensemble) & set(OLD), 60, ledger)
            status, out, err = await asyncio.to_thread(
                bk, "bookies", "drain", *OLD, "-m", cluster.uri, deadline_s=120.0
            )
            assert (status, err) == (0, ""), out
            assert out.endswith("no ledger names them any more\n"), out
            await load.more(200)
            for name in OLD:
                cluster[name].kill()
            await load.more(500)
        async with await client.open_ledger(ledger.id, b"pw") as reader:
            assert not reader.metadata.bookies & set(OLD)
            await check_all_there(reader, load.acked)
        for ledger_id, acked in closed.items():
            async with await client.open_ledger(ledger_id, b"pw") as reader:
                assert not reader.metadata.bookies & set(OLD)
                await check_all_there(reader, acked)
    for ledger_id in list(closed)[:2]:
        rows = await asyncio.to_thread(bk_json, "ledger", "entries", str(ledger_id), "-m", cluster.uri)
        assert {row["bookie"] for row in rows} <= set(NEW) and all(row["missing"] == 0 for row in rows)


@pytest.mark.rule("A1", "A8", "V3")
async def test_a_bookie_that_burned_down_is_drained_from_the_others(four: Bookies) -> None:
    cluster = four
    async with BookKeeper.connect(cluster.uri) as client:
        closed: dict[int, dict[int, bytes]] = {}
        for i in range(8):
            async with await client.create_ledger() as ledger:
                payloads = [b"%d/%d " % (i, n) * 40 for n in range(50)]
                closed[ledger.id] = dict(zip(await ledger.append_many(payloads), payloads, strict=True))
        idle = await client.create_ledger()
        await idle.append(b"before")
        cluster["b2"].kill()
        await cluster.until_state("b2", "absent")
        words = ["bookies", "drain", "b2", "-m", cluster.uri, "--recover-open", "--grace", "1"]
        status, out, err = await asyncio.to_thread(bk, *words, deadline_s=120.0)
        assert (status, err) == (0, ""), out
        for ledger_id, acked in closed.items():
            async with await client.open_ledger(ledger_id) as reader:
                assert "b2" not in reader.metadata.bookies
                await check_all_there(reader, acked)
        async with await client.open_ledger(idle.id) as reader:
            assert await reader.read_entry(0) == b"before" and "b2" not in reader.metadata.bookies
