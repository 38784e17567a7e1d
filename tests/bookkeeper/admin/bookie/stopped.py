"""Directories of a bookie that was stopped, and damage to their files."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from bookkeeper.ids import LedgerId
from bookkeeper.real.disk import PosixDisk
from bookkeeper.real.workers import ThreadWorkers
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.engine import Engine
from tests.bookkeeper.storage.workload import CONFIG, make_adds


def config_of(home: Path, **settings: Any) -> StorageConfig:
    """Small files below ``home``."""
    return replace(
        CONFIG,
        journal_dir=str(home / "journal"),
        ledger_dir=str(home / "ledgers"),
        journal_file_bytes=65536,
        entry_log_bytes=8192,
        **settings,
    )


def written(home: Path, *ledgers: int, entries: int = 30, drop: tuple[int, ...] = (), clean: bool = True) -> Path:
    """A life of a bookie's disk: some entries of each ledger, a fence of the first, some ledgers dropped."""

    async def life() -> None:
        engine = Engine.open(config_of(home), PosixDisk(), ThreadWorkers(), boot=7)

        async def done(begin: object) -> None:
            ended: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
            begin(ended.set_result)  # type: ignore[operator]
            assert await ended is None

        for ledger in ledgers:
            for first in range(0, entries, 10):
                adds = make_adds(ledger, list(range(first, first + 10)), 500)
                engine.append(adds.runs[0], adds)
                await done(engine.when_durable)
        await done(lambda callback: engine.fence(LedgerId(ledgers[0]), b"k" * 20, callback))
        await done(engine.checkpoint)
        if drop:
            engine._updates.drop([LedgerId(each) for each in drop])
            await done(engine.checkpoint)
        if clean:
            await done(engine.close)
        else:
            engine._let_go(None)

    asyncio.run(life())
    return home


def names(home: Path, ending: str) -> list[Path]:
    """The files with this ending, oldest first."""
    return sorted(home.rglob(f"*{ending}"))


def flip(path: Path, offset: int, count: int = 1) -> None:
    """Turn bytes of a file over."""
    data = bytearray(path.read_bytes())
    data[offset : offset + count] = bytes(byte ^ 0xFF for byte in data[offset : offset + count])
    path.write_bytes(bytes(data))
