from __future__ import annotations

import asyncio

from spark_wal.webhdfs.ownership.tail_moves import TailMoves
from tests.spark_wal.webhdfs.virtual import in_virtual_time


@in_virtual_time
async def test_moves_go_on_side_by_side_up_to_their_bytes_and_a_larger_one_goes_alone() -> None:
    moves, most, order = TailMoves(100), 0, []

    async def move(size: int) -> None:
        nonlocal most
        async with moves.room(lambda: size):
            order.append(size)
            most = max(most, moves.bytes)
            assert moves.bytes <= 100 or moves.bytes == size
            await asyncio.sleep(1)

    sizes = [40, 60, 300, 50, 50, 10]
    cancelled = asyncio.ensure_future(move(1000))
    await asyncio.sleep(0)
    tasks = [asyncio.ensure_future(move(size)) for size in sizes]
    await asyncio.sleep(0.1)
    tasks.pop().cancel()
    cancelled.cancel()
    await asyncio.gather(*tasks)
    assert (order, most, moves.bytes) == ([1000, *sizes[:-1]], 1000, 0)
