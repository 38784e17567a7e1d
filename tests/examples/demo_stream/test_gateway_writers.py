from __future__ import annotations

import asyncio
from typing import Any

from examples.demo_stream.flights import FlightFeed
from examples.demo_stream.gateway_writers import BATCH, GatewayWriter
from segments import AppendOutcomeUnknownError, AppendResult, Position

FEED = FlightFeed("p3", [("2013-01-01T05:00:00Z", "0", "UA", "1", "EWR")])
RESULT = AppendResult(Position(1, 0, 0), Position(1, 0, BATCH - 1), 0, None)


class Unsure:
    """A writer that does not know what became of its first batch."""

    def __init__(self, stop: Any) -> None:
        self.sent = 0
        self._stop = stop

    def append_batch_nowait(self, records: list[Any]) -> asyncio.Future[AppendResult]:
        future: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()
        self.sent += 1
        if self.sent == 1:
            future.set_exception(AppendOutcomeUnknownError("who knows"))
        else:
            future.set_result(RESULT)
        if self.sent == 3:
            self._stop()
        return future

    async def close(self) -> None:
        pass


class Stream:
    def __init__(self) -> None:
        self.made: Unsure | None = None
        self.stop: Any = None

    async def writer(self) -> Unsure:
        self.made = Unsure(self.stop)
        return self.made


async def test_without_ids_a_batch_of_unknown_outcome_is_sent_again() -> None:
    stream = Stream()
    writer = GatewayWriter(stream, FEED, 0.0, sabotage=True)  # type: ignore[arg-type]
    stream.stop = writer.stop
    await writer.run()
    assert stream.made is not None
    assert (writer.sent_again, writer.acknowledged) == (1, (stream.made.sent - 1) * BATCH)
