"""Decides which appends share an entry, and when the entry is sent. Pure.

The appends of one turn of the loop share an entry. An entry that is full is sent at once. A writer with a linger waits
longer than a turn, unless nothing else is under way and the caller waits for each append. While many small entries are
under way, what comes is gathered until one of them is durable, so that the bookies have fewer and larger ones to sync.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from segments.record import Record

if TYPE_CHECKING:
    import asyncio

    from segments.entries.columns import RecordColumns

RECORD_COST: Final = 8
"""What a record adds to an entry beside its value."""

GATHER_UNDER_WAY: Final = 4
"""With so many entries under way a group that is not full waits until one of them is durable."""

LONE_APPENDS: Final = 8
"""After so many groups of a single append, each with nothing under way, the next one is sent at once and not at the end
of its turn: the caller has no other to send with it."""


class Promise(NamedTuple):
    """The future of an append, and which slots of the entry are its records."""

    future: asyncio.Future[Any]
    first: int
    records: int


class ProducerRun(NamedTuple):
    """Consecutive records of an idempotent producer in one entry."""

    producer: str
    epoch: int
    first_sequence: int
    first: int
    """The slot of the first one."""
    records: int


class Group:
    """Appends that become one entry.

    As long as every append is one record, ``futures`` has one for each; after that ``promises`` has all of them.
    """

    __slots__ = ("columns", "futures", "general", "items", "promises", "room", "runs", "size", "txids")

    def __init__(self, room: int) -> None:
        self.items: list[Any] = []
        """Values, or records."""
        self.futures: list[asyncio.Future[Any]] = []
        self.promises: list[Promise] | None = None
        self.runs: list[ProducerRun] = []
        self.general = False
        """Whether something in ``items`` is a Record."""
        self.room = room
        """How many bytes may still come before the entry is full; below 0 it is."""
        self.size = room
        self.txids: list[int | None] | None = None
        """Of each item that is a value; None as long as no value has one."""
        self.columns: RecordColumns | None = None
        """Records that came as columns, instead of ``items``."""

    @property
    def bytes(self) -> int:
        """What it holds, with the cost of each record."""
        return self.size - self.room

    def promise(self, future: asyncio.Future[Any], count: int) -> None:
        """The last ``count`` items are of one append."""
        if self.promises is None:
            if count == 1:
                self.futures.append(future)
                return
            self.promises = [Promise(each, slot, 1) for slot, each in enumerate(self.futures)]
        self.promises.append(Promise(future, len(self.items) - count, count))

    def of_producer(self, producer: str, epoch: int, first_sequence: int, count: int) -> None:
        """The last ``count`` items are those of a producer, from this sequence on."""
        first = len(self.items) - count
        if self.runs:
            before = self.runs[-1]
            if (
                before.producer == producer
                and before.epoch == epoch
                and before.first_sequence + before.records == first_sequence
                and before.first + before.records == first
            ):
                self.runs[-1] = before._replace(records=before.records + count)
                return
        self.runs.append(ProducerRun(producer, epoch, first_sequence, first, count))

    def with_txid(self, txid: int) -> None:
        """The last item, a value, has this transaction id."""
        if self.txids is None:
            self.txids = []
        self.txids += [None] * (len(self.items) - 1 - len(self.txids))
        self.txids.append(txid)

    def records(self) -> list[Record]:
        """All items as records."""
        txids = self.txids or ()
        none = len(self.items) - len(txids)
        return [
            item if type(item) is Record else Record(item, txid)
            for item, txid in zip(self.items, (*txids, *[None] * none), strict=True)
        ]


class Send(Enum):
    """When a group is sent."""

    NOW = "now"
    AT_THE_TURN = "at the end of this turn"
    ON_PROGRESS = "when an entry becomes durable"


@dataclass(frozen=True, slots=True)
class Linger:
    """Send the group after this time in seconds, if it is not full before."""

    seconds: float


class Grouping:
    """Says when the open group is sent."""

    __slots__ = ("_in_a_row", "linger_s")

    def __init__(self, linger_s: float = 0.0) -> None:
        self.linger_s = linger_s
        self._in_a_row = 0

    def send_time(self, under_way: int) -> Send | Linger:
        """The first append of a group has come, and ``under_way`` entries are not durable yet."""
        if not under_way and self._in_a_row >= LONE_APPENDS:
            return Send.NOW
        if self.linger_s:
            return Linger(self.linger_s)
        return Send.AT_THE_TURN if under_way < GATHER_UNDER_WAY else Send.ON_PROGRESS

    def on_cut(self, records: int, under_way: int) -> None:
        """A group with so many records was made an entry, while ``under_way`` entries were not durable."""
        self._in_a_row = self._in_a_row + 1 if records == 1 and not under_way else 0


def split(sizes: Sequence[int], limit: int) -> list[tuple[int, int]]:
    """Cut consecutive records of these sizes into runs of at most ``limit`` bytes: the indices (start, end) of each. A
    record that is larger has a run of its own."""
    runs: list[tuple[int, int]] = []
    start = held = 0
    for index, size in enumerate(sizes):
        if index > start and held + size > limit:
            runs.append((start, index))
            start, held = index, 0
        held += size
    if start < len(sizes):
        runs.append((start, len(sizes)))
    return runs
