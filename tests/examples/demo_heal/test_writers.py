"""What the writers remember is what was acknowledged."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bookkeeper import BookKeeper
from examples.demo_heal.writers import PASSWORD, LedgerWriters, payload


def test_payloads_have_the_size_asked_for_and_tell_entries_apart() -> None:
    seen = {payload(ledger, entry, 200) for ledger in range(5) for entry in range(300)}
    assert len(seen) == 1500 and {len(each) for each in seen} == {200}
    assert len(payload(1, 2, 8192)) == 8192


async def test_every_entry_that_is_remembered_reads_back_and_every_ledger_is_closed(tmp_path: Path) -> None:
    async with BookKeeper.connect(f"embedded://{tmp_path}?bookies=3") as bk:
        writers = LedgerWriters(bk, count=2, per_ledger=20)
        writers.pace, writers.size = 2000.0, 100
        writers.start()
        async with asyncio.timeout(30):
            while len(writers.closed()) < 3:  # noqa: ASYNC110 - no event says it
                await asyncio.sleep(0.01)
        await writers.stop()
        assert writers.closed() == list(writers.ledgers) and writers.ended == 0
        for ledger_id, ledger in writers.ledgers.items():
            async with await bk.open_ledger(ledger_id, PASSWORD) as reader:
                found = {entry.entry_id: entry.payload async for entry in reader.read(0, reader.last_add_confirmed)}
            assert set(found) == ledger.acknowledged
            assert all(found[entry] == payload(ledger_id, entry, 100) for entry in found)
        before = writers.acknowledged
        forgotten = writers.closed()[0]
        entries = len(writers.ledgers[forgotten].acknowledged)
        writers.forget(forgotten)
        assert writers.acknowledged == before - entries
