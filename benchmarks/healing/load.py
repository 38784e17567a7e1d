"""What is written for the rows of healing, and appends that are timed while something else goes on."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.apache.load import TimedLoop
from bookkeeper import BookKeeper, ClientConfig
from bookkeeper.ids import BookieId

ENTRY: Final = 1000
_AT_ONCE: Final = 500
WINDOW: Final = 100
_MANY: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast appends were, for a while."""

    per_s: float
    p99_ms: float


async def connect(uri: str) -> BookKeeper:
    """A client that deletes at once."""
    return await BookKeeper.connect(uri, config=ClientConfig(delete_grace_s=0))


async def fill(bk: BookKeeper, ledgers: int, size: int, *, write_quorum: int = 3) -> list[int]:
    """Closed ledgers of ``size`` bytes each, in entries of 1,000 bytes."""
    made: list[int] = []
    for _ in range(ledgers):
        async with await bk.create_ledger(ensemble=3, write_quorum=write_quorum, ack_quorum=2) as writer:
            for at in range(0, size // ENTRY, _AT_ONCE):
                await writer.append_many([bytes(ENTRY)] * min(_AT_ONCE, size // ENTRY - at))
            made.append(writer.id)
    return made


async def pace(bk: BookKeeper, seconds: float) -> Pace:
    """Appends of 1,000 bytes, a hundred in flight, into a ledger of their own."""
    writer = await bk.create_ledger()
    await TimedLoop(writer, bytes(ENTRY), WINDOW, _MANY, 0.5).run()
    spans = await TimedLoop(writer, bytes(ENTRY), WINDOW, _MANY, seconds).run()
    await writer.close()
    await bk.delete_ledger(writer.id)
    return _pace(spans, seconds)


async def pace_while(bk: BookKeeper, work: Callable[[], Awaitable[object]], *, slice_s: float = 1.0) -> Pace:
    """The same for as long as ``work`` takes."""
    writer = await bk.create_ledger()
    spans: array[float] = array("d")
    loop = asyncio.get_running_loop()
    began = loop.time()
    task = asyncio.ensure_future(work())
    while not task.done():
        spans.extend(await TimedLoop(writer, bytes(ENTRY), WINDOW, _MANY, slice_s).run())
    took = loop.time() - began
    await task
    await writer.close()
    await bk.delete_ledger(writer.id)
    return _pace(spans, took)


def _pace(spans: Sequence[float], seconds: float) -> Pace:
    ordered = sorted(spans)
    return Pace(len(spans) / seconds, ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))] * 1000)


async def until_whole(bk: BookKeeper, ledgers: Sequence[int], lost: str) -> None:
    """Wait until no ledger names the lost bookie, and no mark of under-replication is left."""
    left = set(ledgers)
    while left:
        for ledger_id in list(left):
            metadata = await bk.metadata(ledger_id)
            if BookieId(lost) not in {bookie for each in metadata.fragments for bookie in each.ensemble}:
                left.discard(ledger_id)
        await asyncio.sleep(0.1)
    await until_marked(bk, False)


async def until_marked(bk: BookKeeper, wanted: bool) -> None:
    """Wait until some ledger is marked as under-replicated, or none is."""
    while True:
        if await _marked(bk) == wanted:
            return
        await asyncio.sleep(0.02)


async def _marked(bk: BookKeeper) -> bool:
    async for _ in bk.metadata_store.under_replication.ledgers():
        return True
    return False
