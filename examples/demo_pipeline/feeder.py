"""A program that owns the stream of flights: it appends each file of flights as one batch of records.

It asks the stream where its predecessor has stopped, and goes on there. It prints a line of JSON for everything that
happens, and ends when the last file is in the stream. SIGUSR1: without pauses.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from typing import Any, Final

from bookkeeper.errors import BookKeeperError
from bookkeeper.real import run
from examples.demo_kit.slow_machine import client_config
from segments import Record, StreamError
from segments.namespace import connect

PRODUCER: Final = "airports"
BATCH: Final = 500
"""Records of one append."""


def tell(event: str, **facts: Any) -> None:
    """Say something to whoever has started this program."""
    print(json.dumps({"event": event, **facts}), flush=True)


def flights(path: Path) -> list[Record]:
    """The flights of one file, as records: the value is JSON, the key is the carrier."""
    import pyarrow.parquet as pq

    records = []
    for row in pq.read_table(path).to_pylist():
        scheduled = row["scheduled"].astimezone(UTC)
        value = {**row, "scheduled": scheduled.strftime("%Y-%m-%dT%H:%M:%S.000Z")}
        text = json.dumps(value, separators=(",", ":"))
        records.append(Record(text.encode(), key=row["carrier"].encode(), event_time=scheduled))
    return records


def batches(records: list[Record], first: int, wanted: int) -> Iterator[tuple[int, list[Record]]]:
    """The records from number ``wanted`` on, in batches with the number of their first one.

    Args:
        first: the number of the first of ``records``.
    """
    for at in range(max(0, wanted - first), len(records), BATCH):
        yield first + at, records[at : at + BATCH]


async def feed(arguments: argparse.Namespace) -> None:
    """Append every file, with a pause between two until a signal says that there is no time."""
    hurry = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, hurry.set)
    async with connect(arguments.metadata, config=client_config()) as namespace:
        stream = await namespace.open(arguments.stream)
        producer = await stream.producer(PRODUCER, owner=arguments.name)
        wanted = producer.next_seq
        tell("owns", epoch=producer.writer.epoch, acknowledged=wanted)
        first = 0
        for path in sorted(arguments.data.glob("*.parquet")):
            records = flights(path)
            if first + len(records) > wanted:
                for seq, batch in batches(records, first, wanted):
                    await producer.append_batch(batch, seq=seq)
                tell("progress", acknowledged=first + len(records))
                with suppress(TimeoutError):
                    await asyncio.wait_for(hurry.wait(), arguments.pause_s)
            first += len(records)
        await producer.writer.close()
        tell("done", acknowledged=first)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--metadata", "--stream", "--name"):
        parser.add_argument(name, required=True)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--pause-s", type=float, default=0.5, help="between two files")
    try:
        run(feed(parser.parse_args()))
    except (StreamError, BookKeeperError) as error:
        tell("failed", why=f"{type(error).__name__}: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
