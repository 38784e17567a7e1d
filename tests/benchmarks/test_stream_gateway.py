"""Batches in flight, in small: what is measured really happens."""

from __future__ import annotations

import asyncio

from benchmarks.stream_gateway import BATCH, IN_FLIGHT, batches


async def test_all_batches_are_appended_and_so_many_are_in_flight() -> None:
    under_way: list[asyncio.Future[None]] = []
    most, records = 0, 0

    def append(values: list[bytes]) -> asyncio.Future[None]:
        nonlocal most, records
        records += len(values)
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        under_way.append(future)
        most = max(most, sum(not each.done() for each in under_way))
        asyncio.get_running_loop().call_soon(future.set_result, None)
        return future

    assert await batches(append, 40) > 0
    assert records == 40 * BATCH and most == IN_FLIGHT
