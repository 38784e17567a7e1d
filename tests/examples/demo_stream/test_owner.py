from __future__ import annotations

import asyncio
import json

import pytest

from examples.demo_stream.flights import FlightFeed
from examples.demo_stream.owner import BATCH, ProducerLoop, tell
from segments import AppendResult, OwnershipLostError, Position


def answers(duplicates: int) -> AppendResult:
    return AppendResult(Position(1, 0, 0), Position(1, 0, BATCH - 1), 0, None, duplicates > 0)


async def test_batches_follow_each_other_and_duplicates_are_counted() -> None:
    sent: list[int] = []
    loop = asyncio.get_running_loop()

    def append(first: int) -> asyncio.Future[AppendResult]:
        sent.append(first)
        future: asyncio.Future[AppendResult] = loop.create_future()
        future.set_result(answers(duplicates=len(sent) == 1))
        if len(sent) == 3:
            producer.stopped = True
        return future

    producer = ProducerLoop(FlightFeed("p1", []), 40, append, 0.0)
    await producer.run()
    assert sent == [40, 40 + BATCH, 40 + 2 * BATCH]
    assert (producer.acknowledged, producer.duplicates) == (40 + 3 * BATCH, BATCH)


async def test_an_owner_that_is_overtaken_ends() -> None:
    def append(first: int) -> asyncio.Future[AppendResult]:
        raise OwnershipLostError("overtaken")

    with pytest.raises(OwnershipLostError):
        await ProducerLoop(FlightFeed("p1", []), 0, append, 0.0).run()


def test_everything_is_told_as_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    tell("owns", epoch=3)
    assert json.loads(capsys.readouterr().out) == {"event": "owns", "epoch": 3}
