"""Readers while all this happens: tails, one by a cursor, one by time. Each checks what it reads."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from bookkeeper.amounts import counted
from examples.demo_stream.flights import number_of
from segments import AtTime, Gap, StreamError
from segments.stream import Stream

CURSOR: Final = "billing"
REOPENED_EVERY_S: Final = 8.0
_PAUSE_S: Final = 0.3


@dataclass(slots=True)
class ReadCheck:
    """What one reader has read: each producer's records must come in order, each once."""

    name: str
    from_start: bool = True
    """Whether the reader began at the first record. Otherwise the first one that it gets is right."""
    next: dict[str, int] = field(default_factory=dict)
    """The number that each producer's next record must have."""
    read: int = 0
    doubled: int = 0
    missing: int = 0
    gaps: list[str] = field(default_factory=list)
    trouble: int = 0
    """How often it had to begin a read again."""

    def take(self, values: Iterable[bytes]) -> None:
        """Note records in the order in which they came."""
        for value in values:
            producer, number = number_of(value)
            expected = self.next.get(producer, 0 if self.from_start else number)
            self.read += 1
            if number < expected:
                self.doubled += 1
                continue
            self.missing += number - expected
            self.next[producer] = number + 1

    def gap(self, gap: Gap) -> None:
        """Note a gap."""
        self.gaps.append(f"{self.name}: {gap.kind.value} from {gap.first} to {gap.last}")

    def has(self, acknowledged: dict[str, int]) -> bool:
        """Whether everything that was acknowledged was read."""
        return all(self.next.get(producer, 0) >= count for producer, count in acknowledged.items())

    def problems(self, acknowledged: dict[str, int]) -> list[str]:
        """What is wrong, as lines for people."""
        found = list(self.gaps)
        if self.doubled:
            found.append(f"{self.name}: {counted(self.doubled, 'record')} came twice")
        if self.missing:
            found.append(f"{self.name}: {counted(self.missing, 'record', 'is', 'are')} missing")
        for producer, count in acknowledged.items():
            if (have := self.next.get(producer, 0)) < count:
                found.append(f"{self.name}: {counted(count, 'record')} of {producer} acknowledged, and {have} read")
        return found


async def tail(stream: Any, check: ReadCheck, *, since: datetime | None = None) -> None:
    """Follow a stream, of the library or behind gateways, until cancelled."""
    options: dict[str, Any] = {"follow": True, "on_gap": "yield"}
    opened = stream.read(**options) if since is None else stream.read(AtTime(since), **options)
    async with opened as reader:
        while True:
            try:
                item = await reader.next()
            except StreamError as error:
                if not error.retryable:
                    raise
                check.trouble += 1
                await asyncio.sleep(_PAUSE_S)
                continue
            if isinstance(item, Gap):
                check.gap(item)
            elif item is not None:
                check.take([item.value])


async def by_cursor(stream: Stream, check: ReadCheck) -> None:
    """Read what a cursor has not done, and advance it; now and then begin again where it stands. Until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        until = loop.time() + REOPENED_EVERY_S
        try:
            async with stream.cursor(CURSOR) as cursor, cursor.read(follow=True) as reader:
                while loop.time() < until:
                    batch = await reader.next_batch(500, wait=0.2)
                    if batch:
                        await cursor.advance(batch.records()[-1])
                        check.take(batch.values())
        except StreamError as error:
            if not error.retryable:
                raise
            check.trouble += 1
            await asyncio.sleep(_PAUSE_S)


def seconds_ago(seconds: float) -> datetime:
    """The time so many seconds ago."""
    return datetime.now(UTC) - timedelta(seconds=seconds)
