"""Lines of a file as records, and how ``bk stream append`` sends them: to the cluster, or through gateways."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO, Final

from bookkeeper.admin.line_input import LineInput
from bookkeeper.admin.options import counted
from segments.record import AppendResult, Record
from segments.stream import Stream

OWNER: Final = "bk stream append"
BATCH_RECORDS: Final = 1_000
BATCH_BYTES: Final = 500_000
"""The most that goes to a gateway in one message; a single record may be larger."""


class Lines:
    """The lines of a file, of which each becomes a record."""

    def __init__(self, source: BinaryIO, key_separator: str | None, txid: int | None) -> None:
        """With ``key_separator`` each line is a key, it, and the value. All records get ``txid``."""
        self._source = source
        self._separator = None if key_separator is None else key_separator.encode()
        self._txid = txid
        self._input: LineInput | None = None

    def open(self, line_max: int) -> LineInput:
        """Begin to read. A line has at most ``line_max`` bytes."""
        self._input = LineInput(self._source, line_max=line_max)
        return self._input

    async def runs(self) -> AsyncIterator[list[Record | bytes]]:
        """The records of the lines that arrived together, until the input ends."""
        assert self._input is not None
        async for run in self._input.runs():
            yield list(map(self._record, run))

    def close(self) -> None:
        """Read no more."""
        if self._input is not None:
            self._input.close()

    def _record(self, line: bytes) -> Record | bytes:
        if self._separator is None and self._txid is None:
            return line
        key = None
        if self._separator is not None:
            first, found, rest = line.partition(self._separator)
            if found:
                key, line = first, rest
        return Record(line, txid=self._txid, key=key)


class Appended:
    """What was appended so far."""

    def __init__(self) -> None:
        self.records = self.duplicates = 0
        self.first: AppendResult | None = None
        self.last: AppendResult | None = None

    def note(self, result: AppendResult, records: int) -> None:
        """So many records were appended."""
        self.first = self.first or result
        self.last = result
        self.records += records
        self.duplicates += records if result.duplicate else 0

    def __str__(self) -> str:
        if self.first is None or self.last is None:
            return "no records"
        again = f", {self.duplicates} of them appended before" if self.duplicates else ""
        return f"{counted(self.records, 'record')} from {self.first.position} to {self.last.last}{again}, all durable"


@dataclass(frozen=True, slots=True)
class Sender:
    """Appends records: by a writer or a producer of the library, or through gateways."""

    append: Callable[[Sequence[Record | bytes], int | None], Awaitable[AppendResult]]
    """Appends records, the first of which has this sequence number, if it has one."""
    in_messages: bool
    """Whether they must fit into a message."""

    def parts(self, records: Sequence[Record | bytes]) -> Iterator[Sequence[Record | bytes]]:
        """The records as they are sent: together, or in parts that fit into a message."""
        if not self.in_messages:
            yield records
            return
        at = 0
        while at < len(records):
            end, size = at, 0
            while end < len(records) and end - at < BATCH_RECORDS and size < BATCH_BYTES:
                record = records[end]
                size += len(record if isinstance(record, bytes) else record.value)
                end += 1
            yield records[at:end]
            at = end


@asynccontextmanager
async def sender(stream: Stream, producer: str | None, *, behind_gateway: bool) -> AsyncIterator[Sender]:
    """What appends to a stream: its writer, or a producer of this name. Raises: as ``Stream.writer``."""
    if producer is not None:
        numbered = stream.producer(producer) if behind_gateway else stream.producer(producer, owner=OWNER)
        async with numbered as opened:
            yield Sender(lambda records, seq: opened.append_batch(records, seq=seq), behind_gateway)
        return
    async with stream.writer() if behind_gateway else stream.writer(owner=OWNER) as writer:
        append = writer.append_batch if behind_gateway else partial(writer.append_batch, atomic=False)
        yield Sender(lambda records, _: append(records), behind_gateway)


async def append_lines(lines: Lines, to: Sender, done: Appended, *, seq: int | None) -> None:
    """Append all lines, those that arrive together in one go; the first has the number ``seq``. Raises: as ``to``."""
    async for run in lines.runs():
        for records in to.parts(run):
            done.note(await to.append(records, seq), len(records))
            seq = None if seq is None else seq + len(records)
