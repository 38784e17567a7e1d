from __future__ import annotations

import asyncio

from bookkeeper.errors import MetadataUnavailableError
from bookkeeper.real import SystemClock
from segments.gateway.config import GrpcGatewayConfig
from segments.gateway.metadata_watch import MetadataWatch, StoreHealth
from tests.spark_wal.webhdfs.virtual import in_virtual_time


def test_a_store_that_has_answered_lately_is_reachable() -> None:
    health = StoreHealth(2.0, 10.0)
    assert health.is_reachable(11.9)
    assert not health.is_reachable(12.0)
    health.answered(12.0)
    assert health.is_reachable(13.0)


class _Loop(SystemClock):
    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


@in_virtual_time
async def test_every_change_is_told_whether_the_store_fails_or_keeps_silent() -> None:
    """SEG-122: health is NOT_SERVING while metadata is unreachable."""
    state = "answers"
    told: list[tuple[bool, float]] = []

    async def ask() -> None:
        if state == "fails":
            raise MetadataUnavailableError("away")
        if state == "silent":
            await asyncio.sleep(30)

    async def tell(reachable: bool) -> None:
        told.append((reachable, asyncio.get_running_loop().time()))

    watch = MetadataWatch(ask, tell, _Loop(), GrpcGatewayConfig())
    task = asyncio.ensure_future(watch.run())
    for each in ("answers", "fails", "answers", "silent", "answers"):
        state = each
        await asyncio.sleep(40)
    task.cancel()
    assert [reachable for reachable, _ in told] == [True, False, True, False, True]
    assert watch.is_reachable
    assert 41.5 <= told[1][1] <= 43.5
