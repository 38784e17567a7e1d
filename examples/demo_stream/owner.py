"""A program that owns a stream: two idempotent producers append flights with the library.

It goes on where its predecessor is *known* to have stopped, which is some records back, so it sends records again that
are in the stream already. With ids they are answered with their places; without (``--sabotage``) they are there twice.

It prints a line of JSON for everything that happens. SIGUSR1: roll. SIGTERM: end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from collections.abc import Callable
from typing import Any, Final

from bookkeeper.errors import BookKeeperError
from bookkeeper.real import run
from examples.demo_kit.slow_machine import client_config
from examples.demo_stream.flights import FlightFeed, read_flights
from segments import AppendResult, OwnershipLostError, StreamError
from segments.namespace import connect
from segments.write import Producer, Writer

BATCH: Final = 10
IN_FLIGHT: Final = 16
TOLD_EVERY_S: Final = 0.5
LOST: Final = 3
"""The exit status of an owner that was overtaken."""


def tell(event: str, **facts: Any) -> None:
    """Say something to whoever has started this program."""
    print(json.dumps({"event": event, **facts}), flush=True)


class ProducerLoop:
    """Appends the flights of one producer, batch after batch."""

    def __init__(
        self, feed: FlightFeed, first: int, append: Callable[[int], asyncio.Future[AppendResult]], pause_s: float
    ) -> None:
        self.feed = feed
        self.acknowledged = first
        """All records below this number."""
        self.duplicates = 0
        self._next = first
        self._append = append
        self._pause_s = pause_s
        self.stopped = False

    async def run(self) -> None:
        """Append until stopped. Raises StreamError."""
        pending: list[asyncio.Future[AppendResult]] = []
        while not self.stopped or pending:
            if not self.stopped and len(pending) < IN_FLIGHT:
                pending.append(self._append(self._next))
                self._next += BATCH
                await asyncio.sleep(self._pause_s)
            while pending and (pending[0].done() or self.stopped or len(pending) >= IN_FLIGHT):
                result = await pending.pop(0)
                self.acknowledged += BATCH
                self.duplicates += BATCH * result.duplicate


def progress_of(loops: list[ProducerLoop]) -> dict[str, Any]:
    """How far the producers have come."""
    return {
        "acknowledged": {each.feed.producer: each.acknowledged for each in loops},
        "duplicates": sum(each.duplicates for each in loops),
    }


async def own(arguments: argparse.Namespace) -> int:
    """Own the stream until a signal or another owner ends it. Returns the exit status."""
    starts: dict[str, int] = json.loads(arguments.starts)
    feeds = read_flights(tuple(starts))
    loop = asyncio.get_running_loop()
    async with connect(arguments.metadata, config=client_config()) as namespace:
        stream = await namespace.open(arguments.stream)
        writer: Writer
        producers: dict[str, Producer] = {}
        if arguments.sabotage:
            writer = await stream.writer(owner=arguments.name)
        else:
            for name in starts:
                producers[name] = await stream.producer(name, owner=arguments.name)
            writer = producers[next(iter(starts))].writer
        tell("owns", epoch=writer.epoch)

        def appends(name: str) -> Callable[[int], asyncio.Future[AppendResult]]:
            def append(first: int) -> asyncio.Future[AppendResult]:
                records = feeds[name].records(first, BATCH)
                if arguments.sabotage:
                    return writer.append_batch_nowait(records)
                return producers[name].append_batch_nowait(records, seq=first)

            return append

        loops = [ProducerLoop(feeds[name], first, appends(name), arguments.pause_s) for name, first in starts.items()]

        async def keep_telling() -> None:
            while True:
                await asyncio.sleep(TOLD_EVERY_S)
                tell("progress", **progress_of(loops))

        async def roll() -> None:
            try:
                tell("rolled", segment=(await writer.roll()).number)
            except StreamError as error:
                tell("not rolled", why=str(error))

        def stop() -> None:
            for each in loops:
                each.stopped = True

        rolls: set[asyncio.Task[None]] = set()
        loop.add_signal_handler(signal.SIGTERM, stop)
        loop.add_signal_handler(signal.SIGUSR1, lambda: rolls.add(loop.create_task(roll())))
        telling = loop.create_task(keep_telling())
        try:
            await asyncio.gather(*(each.run() for each in loops))
            await writer.close()
        except OwnershipLostError as error:
            tell("lost", why=str(error))
            return LOST
        finally:
            telling.cancel()
        tell("done", **progress_of(loops))
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--metadata", "--stream", "--name", "--starts"):
        parser.add_argument(name, required=True)
    parser.add_argument("--pause-s", type=float, default=0.05)
    parser.add_argument("--sabotage", action="store_true")
    try:
        return run(own(parser.parse_args()))
    except (StreamError, BookKeeperError) as error:
        tell("failed", why=f"{type(error).__name__}: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
