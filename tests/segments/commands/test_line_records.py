from __future__ import annotations

import io
from collections.abc import Sequence

import pytest

from segments.commands.line_records import BATCH_BYTES, BATCH_RECORDS, AppendTally, Lines, Sender, append_lines
from segments.errors import SequenceTooOldError
from segments.position import Position
from segments.record import AppendResult, Record


class Sent:
    def __init__(self) -> None:
        self.calls: list[tuple[list[Record | bytes], int | None]] = []

    async def append(self, records: Sequence[Record | bytes], seq: int | None) -> AppendResult:
        self.calls.append((list(records), seq))
        at = Position(1, len(self.calls) - 1, 0)
        return AppendResult(at, at._replace(slot=len(records) - 1), 0, None, bool(seq) and len(self.calls) == 1)


async def sent_of(
    data: bytes, *, in_messages: bool, seq: int | None = None, **options: object
) -> tuple[Sent, AppendTally]:
    sent, done = Sent(), AppendTally()
    lines = Lines(io.BytesIO(data), **{"key_separator": None, "txid": None} | options)  # type: ignore[arg-type]
    lines.open(10_000_000)
    try:
        await append_lines(
            lines, Sender(sent.append, *((BATCH_BYTES, BATCH_RECORDS) if in_messages else ())), done, seq=seq
        )
    finally:
        lines.close()
    return sent, done


async def test_lines_become_records_with_keys_and_transaction_ids() -> None:
    sent, done = await sent_of(b"anna=1\nbert\n", in_messages=False, key_separator="=", txid=7)
    assert [record for records, _ in sent.calls for record in records] == [
        Record(b"1", txid=7, key=b"anna"),
        Record(b"bert", txid=7),
    ]
    assert done.records == 2 and str(done).startswith("2 records from 1:0:0 to 1:0:")
    assert str((await sent_of(b"", in_messages=True))[1]) == "no records"


@pytest.mark.parametrize("size", [1, 10_000])
async def test_what_goes_to_a_gateway_fits_into_messages(size: int) -> None:
    count = 2 * BATCH_RECORDS + 5 if size == 1 else 3 * BATCH_BYTES // size
    data = b"".join(b"%0*d\n" % (size, number % 10) for number in range(count))
    sent, done = await sent_of(data, in_messages=True, seq=100)
    assert sum(len(records) for records, _ in sent.calls) == done.records == count
    at = 100
    for records, seq in sent.calls:
        assert seq == at and len(records) <= BATCH_RECORDS
        assert sum(map(len, records)) <= max(BATCH_BYTES, size)  # type: ignore[arg-type]
        at += len(records)
    assert done.duplicates == len(sent.calls[0][0])


class Remembers:
    """A stream that has records of the producer up to a number, and remembers where the last ones stand."""

    def __init__(self, last_seq: int, remembered: int) -> None:
        self.next, self.remembered, self.appended = last_seq + 1, remembered, list[bytes]()

    async def append(self, records: Sequence[Record | bytes], seq: int | None) -> AppendResult:
        assert seq is not None and (seq == self.next or seq + len(records) <= self.next), "an overlap is refused"
        if seq < self.next - self.remembered:
            raise SequenceTooOldError("nobody remembers")
        at, new = Position(1, seq, 0), seq == self.next
        if new:
            self.next += len(records)
            self.appended += (each for each in records if isinstance(each, bytes))
        return AppendResult(at, at._replace(slot=len(records) - 1), 0, None, not new)


@pytest.mark.parametrize("remembered", [0, 3, 1000])
@pytest.mark.parametrize("part_records", [1, 7, None])
@pytest.mark.parametrize("had", [0, 1, 8, 20])
async def test_lines_that_are_sent_again_and_more_are_appended_once(
    had: int, part_records: int | None, remembered: int
) -> None:
    stream, done = Remembers(had - 1, remembered), AppendTally()
    lines = Lines(io.BytesIO(b"".join(b"%d\n" % number for number in range(20))), None, None)
    lines.open(100)
    to = Sender(stream.append, None if part_records is None else 10_000, part_records, had - 1 if had else None)
    try:
        await append_lines(lines, to, done, seq=0)
    finally:
        lines.close()
    assert stream.appended == [b"%d" % number for number in range(had, 20)]
    assert (done.records, done.duplicates) == (20, had)
    if had == 20 and not remembered:
        assert str(done).startswith("20 records, all of them appended before, so long ago")


async def test_what_nobody_remembers_at_all_is_an_error() -> None:
    """A producer that was forgotten has no last number: its records may be there or not."""

    async def forgotten(records: Sequence[Record | bytes], seq: int | None) -> AppendResult:
        raise SequenceTooOldError("nobody remembers")

    lines = Lines(io.BytesIO(b"one\n"), None, None)
    lines.open(100)
    try:
        with pytest.raises(SequenceTooOldError):
            await append_lines(lines, Sender(forgotten), AppendTally(), seq=0)
    finally:
        lines.close()
