"""An entry on its way to the ledger, and the group of appends that it carries."""

from __future__ import annotations

import asyncio
import struct
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from segments.codec import append_results
from segments.entries.columns import BytesColumn, RecordColumns
from segments.entries.layout import EntryKind
from segments.entries.sections import EntryBatch
from segments.position import Position
from segments.record import AppendResult
from segments.write.appends.grouping import Group

_INT32: Final = struct.Struct("<i")


def column_strings(column: BytesColumn) -> list[bytes]:
    """The strings of a column."""
    bounds = [end for (end,) in _INT32.iter_unpack(column.offsets)]
    return list(map(column.data.__getitem__, map(slice, bounds, bounds[1:])))


class OrderedGroup:
    """A group that has its place in the order of records. It keeps that place when it is written again."""

    __slots__ = ("append_ms", "batches", "columns", "first_seq_no", "group", "txids")

    def __init__(
        self,
        group: Group,
        columns: RecordColumns,
        txids: Sequence[int | None] | None,
        first_seq_no: int,
        append_ms: int,
    ) -> None:
        self.group = group
        self.columns = columns
        self.txids = txids
        """Of each record; None if none has one."""
        self.first_seq_no = first_seq_no
        self.append_ms = append_ms
        self.batches: Sequence[EntryBatch] = batches_of(group, columns.count)

    def resolve(self, segment: int, entry: int) -> None:
        """The records are durable in this entry: tell everybody who waits for them."""
        group, first_seq_no, txids = self.group, self.first_seq_no, self.txids
        if group.promises is None:
            records = self.columns.count
            if records == 1:  # one append at a time
                (future,) = group.futures
                if not future.done():
                    future.set_result(*append_results(1, segment, entry, first_seq_no, txids, Position, AppendResult))
                return
            results = append_results(records, segment, entry, first_seq_no, txids, Position, AppendResult)
            each = map(asyncio.Future.set_result, group.futures, results)
            while True:
                try:
                    deque(each, 0)  # which takes no step of Python for each
                    return
                except asyncio.InvalidStateError:
                    pass  # cancelled, and the others follow; asking each of them first would cost more
        for future, first, number in group.promises:
            if not future.done():
                last = first + number - 1
                txid = None if txids is None else txids[last]
                where = Position(segment, entry, first)
                future.set_result(AppendResult(where, Position(segment, entry, last), first_seq_no + first, txid))


def fail_group(group: Group, error: Callable[[], BaseException]) -> None:
    """Give an error of its own to everybody who waits for an append of this group."""
    promises = group.promises
    for future in group.futures if promises is None else [promise.future for promise in promises]:
        if not future.done():
            future.set_exception(error())


def batches_of(group: Group, records: int) -> list[EntryBatch]:
    """The table of batches of a group; empty if no idempotent producer is in it."""
    batches: list[EntryBatch] = []
    at = 0
    for run in group.runs:
        if run.first > at:
            batches.append(EntryBatch(run.first - at))
        batches.append(EntryBatch(run.records, run.producer, run.epoch, run.first_sequence))
        at = run.first + run.records
    if batches and at < records:
        batches.append(EntryBatch(records - at))
    return batches


class Flight:
    """One entry. Of a group that needs several, each piece is one; the last one carries the records."""

    __slots__ = ("entry", "is_last", "kind", "ordered", "payload", "size")

    def __init__(self, kind: EntryKind, payload: bytes, log: OrderedGroup | None, *, is_last: bool = True) -> None:
        self.kind = kind
        self.payload = payload
        self.size = len(payload)
        self.ordered = log
        self.is_last = is_last
        self.entry = -1


def groups_of(flights: Iterable[Flight]) -> list[OrderedGroup]:
    """The groups of these entries, each once, in order."""
    found: dict[int, OrderedGroup] = {}
    for flight in flights:
        if flight.ordered is not None:
            found.setdefault(id(flight.ordered), flight.ordered)
    return list(found.values())
