"""Lines of a file as records, and how ``bk stream append`` sends them: to the cluster, or through gateways."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import BinaryIO, Final

from bookkeeper.admin.shared.line_input import LineInput
from bookkeeper.amounts import counted
from segments.errors import RecordTooLargeError, SequenceGapError, SequenceTooOldError
from segments.record import AppendResult, Record
from segments.stream import Stream

OWNER: Final = "bk stream append"
BATCH_RECORDS: Final = 1_000
BATCH_BYTES: Final = 500_000
"""The most that goes to a gateway in one message, or is one batch of a producer; a single record may be larger."""
RECORD_COST: Final = 40
"""More than what a batch takes for each record beside its bytes."""


class Lines:
    """The lines of a file, of which each becomes a record."""

    def __init__(self, source: BinaryIO, key_separator: str | None, txid: int | None) -> None:
        """With ``key_separator`` each line is a key, it, and the value. All records get ``txid``."""
        self._source = source
        self._line_max = self._taken = 0
        self._separator = None if key_separator is None else key_separator.encode()
        self._txid = txid
        self._input: LineInput | None = None

    def open(self, line_max: int) -> LineInput:
        """Begin to read. A line has at most ``line_max`` bytes."""
        self._input = LineInput(self._source, line_max=line_max)
        self._line_max = line_max
        return self._input

    async def runs(self) -> AsyncIterator[list[Record | bytes]]:
        """The records of the lines that arrived together, until the input ends.

        Raises:
            RecordTooLargeError: a line is too long; those before it were handed out.
        """
        assert self._input is not None
        async for run in self._input.runs():
            fitting = list(takewhile(self._fits, run))
            self._taken += len(fitting)
            if fitting:
                yield list(map(self._record, fitting))
            if len(fitting) < len(run):
                raise RecordTooLargeError(
                    f"line {self._taken + 1} of the input has more than {self._line_max} bytes, the most that a record "
                    "of this stream may have (its setting limits.record_bytes)"
                )

    def _fits(self, line: bytes) -> bool:
        return len(line) <= self._line_max

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


class AppendTally:
    """What was appended so far."""

    def __init__(self) -> None:
        self.records = self.duplicates = 0
        """All of them, and those that the stream had before."""
        self.first: AppendResult | None = None
        """None: there is none, or where it is is not remembered."""
        self.last: AppendResult | None = None

    def note(self, result: AppendResult, records: int) -> None:
        """So many records were appended."""
        if not self.records:
            self.first = result
        self.last = result
        self.records += records
        self.duplicates += records if result.duplicate else 0

    def pass_over(self, records: int) -> None:
        """So many records are in the stream, and where is not remembered."""
        self.records += records
        self.duplicates += records

    def __str__(self) -> str:
        if not self.records:
            return "no records"
        if self.last is None:
            return (
                f"{counted(self.records, 'record')}, all of them appended before, so long ago that the stream does not "
                "remember where"
            )
        again = f", {self.duplicates} of them appended before" if self.duplicates else ""
        begin = "up" if self.first is None else f"from {self.first.position}"
        return f"{counted(self.records, 'record')} {begin} to {self.last.last}{again}, all durable"


@dataclass(frozen=True, slots=True)
class Sender:
    """Appends records: by a writer or a producer of the library, or through gateways."""

    append: Callable[[Sequence[Record | bytes], int | None], Awaitable[AppendResult]]
    """Appends records, the first of which has this sequence number, if it has one."""
    part_bytes: int | None = None
    """So many bytes are sent at once; None: what arrived together."""
    part_records: int | None = None
    """So many records are sent at once, in as many bytes."""
    last_seq: int | None = None
    """The number of the producer's last record that the stream has, when it was opened."""

    def parts(self, records: Sequence[Record | bytes]) -> Iterator[Sequence[Record | bytes]]:
        """The records as they are sent: together, or in parts."""
        if self.part_bytes is None:
            yield records
            return
        at = 0
        while at < len(records):
            end, size = at, 0
            while end < len(records) and (self.part_records is None or end - at < self.part_records):
                size += _size(records[end])
                if size > self.part_bytes and end > at:
                    break
                end += 1
            yield records[at:end]
            at = end


def _size(record: Record | bytes) -> int:
    if isinstance(record, bytes):
        return len(record) + RECORD_COST
    return len(record.value) + len(record.key or b"") + RECORD_COST


@asynccontextmanager
async def sender(stream: Stream, producer: str | None, *, behind_gateway: bool) -> AsyncIterator[Sender]:
    """What appends to a stream: its writer, or a producer of this name. Raises: as ``Stream.writer``."""
    part_records = BATCH_RECORDS if behind_gateway else None
    if producer is not None:
        numbered = stream.producer(producer) if behind_gateway else stream.producer(producer, owner=OWNER)
        async with numbered as opened:
            most = min(BATCH_BYTES, stream.config.limits.record_bytes)  # a batch of a producer is atomic
            append_batch = opened.append_batch
            yield Sender(lambda records, seq: append_batch(records, seq=seq), most, part_records, opened.last_seq)
        return
    async with stream.writer() if behind_gateway else stream.writer(owner=OWNER) as writer:
        append = writer.append_batch if behind_gateway else partial(writer.append_batch, atomic=False)
        yield Sender(lambda records, _: append(records), BATCH_BYTES if behind_gateway else None, part_records)


async def append_lines(lines: Lines, to: Sender, done: AppendTally, *, seq: int | None) -> None:
    """Append all lines, those that arrive together in one go; the first has the number ``seq``.

    Lines that the stream has of this producer are not appended again, however they are divided this time.

    Raises: as ``to``."""
    async for run in lines.runs():
        for records in to.parts(run):
            if seq is None:
                done.note(await to.append(records, None), len(records))
                continue
            there = 0 if to.last_seq is None else min(max(to.last_seq + 1 - seq, 0), len(records))
            if there:
                await _append_again(records[:there], to, done, seq)
            if there < len(records):
                done.note(await to.append(records[there:], seq + there), len(records) - there)
            seq += len(records)


async def _append_again(records: Sequence[Record | bytes], to: Sender, done: AppendTally, seq: int) -> None:
    """Send what the stream has; it answers where that is, unless that was too long ago."""
    try:
        done.note(await to.append(records, seq), len(records))
    except (SequenceTooOldError, SequenceGapError):  # numbers have no gaps: a stream with a later one has these
        done.pass_over(len(records))
