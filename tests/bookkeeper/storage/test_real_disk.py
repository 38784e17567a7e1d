"""The engine on files and threads of this machine (direct I/O where the file system has it)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from bookkeeper.ids import EntryId
from bookkeeper.real.disk import PosixDisk
from bookkeeper.real.workers import ThreadWorkers
from bookkeeper.storage.base.config import MIB, StorageConfig
from bookkeeper.storage.base.results import PackedEntries
from bookkeeper.storage.engine import Engine
from tests.bookkeeper.storage.workload import CONFIG, PER_LEDGER, lid, make_adds, make_entry


async def durable(engine: Engine) -> BaseException | None:
    waiter: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    engine.when_durable(waiter.set_result)
    return await waiter


async def closed(engine: Engine) -> BaseException | None:
    waiter: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
    engine.close(waiter.set_result)
    return await waiter


@pytest.mark.parametrize("layouts", [[CONFIG], [PER_LEDGER], [CONFIG, PER_LEDGER]], ids=["shared", "own", "both"])
async def test_a_life_on_a_real_disk(tmp_path: Path, layouts: list[StorageConfig]) -> None:
    for life in range(3):
        await one_life(tmp_path, layouts[life % len(layouts)], life)


async def one_life(tmp_path: Path, layout: StorageConfig, life: int) -> None:
    config = replace(
        layout,
        journal_dir=str(tmp_path / "journal"),
        ledger_dir=str(tmp_path / "ledgers"),
        journal_file_bytes=MIB,
        entry_log_bytes=MIB,
        checkpoint_bytes=MIB,
        reserve_bytes=65536,
    )
    engine = Engine.open(config, PosixDisk(), ThreadWorkers())
    assert engine.report.clean and engine.report.limbo_reason is None
    for first in range(life * 1000, life * 1000 + 1000, 50):
        for ledger in (1, 2):
            adds = make_adds(ledger, list(range(first, first + 50)), 1000)
            engine.append(adds.runs[0], adds)
        assert await durable(engine) is None
    for ledger in (1, 2):
        at = 0
        while at < (life + 1) * 1000:
            waiter: asyncio.Future[PackedEntries | BaseException] = asyncio.get_running_loop().create_future()
            engine.read_batch(lid(ledger), EntryId(at), 100, MIB, waiter.set_result)
            packed = await waiter
            assert isinstance(packed, PackedEntries), packed
            assert make_entry(ledger, at, size=1000) in packed.body
            at += packed.count
    assert await closed(engine) is None
