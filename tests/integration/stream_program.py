"""A process that owns a stream: appends numbers as an idempotent producer, and prints what was acknowledged.

python -m tests.integration.stream_program URI STREAM RECORDS

Each line it prints: ``acked SEQUENCE POSITION``, after ``owner EPOCH NEXT``; at the end ``lost`` or ``done``.
"""

from __future__ import annotations

import asyncio
import sys

from bookkeeper.real import run
from segments.config import RollPolicy, StreamConfig
from segments.errors import StreamError
from segments.namespace import connect
from segments.record import AppendResult

CONFIG = StreamConfig(roll=RollPolicy(max_records=400, min_age_s=0))
"""Rolls often, so that kills meet rolls."""
AT_A_TIME = 20


def value_of(number: int) -> bytes:
    """The record with this number."""
    return b"%d " % number * 30


async def work(uri: str, name: str, records: int) -> None:
    async with connect(uri) as namespace:
        stream = await namespace.open(name, create=True, config=CONFIG)
        producer = await stream.producer("numbers")
        print(f"owner {producer.epoch} {producer.next_seq}", flush=True)

        def acked(number: int, done: asyncio.Future[AppendResult]) -> None:
            if not done.cancelled() and done.exception() is None:
                print(f"acked {number} {done.result().position}", flush=True)

        try:
            while producer.next_seq < records:
                futures = []
                for _ in range(AT_A_TIME):
                    number = producer.next_seq
                    future = producer.append_nowait(value_of(number))
                    future.add_done_callback(lambda done, number=number: acked(number, done))  # type: ignore[misc]
                    futures.append(future)
                await asyncio.gather(*futures)
            await producer.close()
        except StreamError as error:
            print(f"lost {type(error).__name__} {error.outcome.value}", flush=True)
            return
        print("done", flush=True)


if __name__ == "__main__":
    run(work(sys.argv[1], sys.argv[2], int(sys.argv[3])))
