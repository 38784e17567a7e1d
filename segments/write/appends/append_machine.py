"""Gathers appends into groups that become entries, and bounds what is pending. Pure: who waits is a token.

    take_one, take_batch, take_columns, take_epoch --> the groups that are sent now, in order; the rest is gathered
    cut          what was gathered is sent now
    on_settled   everybody who waits for a group was answered: there is room for others

A shell sends the groups, and answers those who wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bookkeeper.amounts import counted
from segments.config import StreamConfig
from segments.entries.columns import RecordColumns
from segments.entries.layout import BODY_MAX
from segments.errors import RecordTooLargeError, StreamOverloadedError, TxidOrderError
from segments.record import Record
from segments.write.appends.grouping import RECORD_COST, Group, Grouping, Linger, ProducerRun, Promise, Send, split
from segments.write.appends.record_checks import checked, record_size

FAST_PATH_BYTES: Final = 64 * 1024
"""Values up to this size take the writer's fast path: they fit behind any entry that is not full."""

GROUP_MAX: Final = BODY_MAX - 16 * 1024
"""What fits into an entry for certain, with the columns' own bytes."""

NO_FAST_PATH: Final = -1
"""No value takes the fast path: the writer is full, or has ended."""

ProducerRecords = tuple[str, int, int]
"""A producer, its epoch, and the sequence number of the first record."""


class AppendMachine:
    """The appends of one writer until they are settled."""

    __slots__ = (
        "_config",
        "_group_bytes",
        "_grouping",
        "_stream",
        "_under_way",
        "cut_count",
        "fast_path_max",
        "group",
        "last_txid",
        "limit",
        "records_max",
        "settled_count",
    )

    def __init__(self, stream: str, config: StreamConfig, last_txid: int | None) -> None:
        self._stream, self._config = stream, config
        self.limit = config.limits.pending_bytes
        """How many bytes may be pending."""
        self._group_bytes = config.flush.max_bytes
        self.records_max = config.flush.max_records
        """How many records fill a group."""
        self._grouping = Grouping(config.flush.linger_ms / 1000)
        self._under_way = 0
        """Bytes of groups that were cut and are not settled."""
        self.cut_count = self.settled_count = 0
        """How many groups were cut, and are settled; they are in the order in which they were cut."""
        self.group = Group(self._group_bytes)
        """What is being gathered."""
        self.fast_path_max = NO_FAST_PATH
        """A value up to this size, without a transaction id, is added to ``group`` by the writer itself, without a call
        of this machine."""
        self.last_txid = last_txid
        """The greatest transaction id that was appended."""
        self.admit()

    @property
    def pending_bytes(self) -> int:
        """Bytes that were appended and are not known to be durable."""
        return self._under_way + self.group.bytes

    @property
    def pending(self) -> int:
        """Groups of appends that are not settled: those under way, and the one that is being gathered."""
        return self.cut_count - self.settled_count + bool(self.group.items)

    @property
    def is_full(self) -> bool:
        """Whether the groups under way have all the bytes that may be pending."""
        return self._under_way >= self.limit

    @property
    def is_group_full(self) -> bool:
        """Whether what is gathered has to be cut."""
        return self.group.room <= 0 or len(self.group.items) >= self.records_max

    def refuse(self) -> None:
        """Switch the fast path off until admit()."""
        self.fast_path_max = NO_FAST_PATH

    def admit(self) -> None:
        """Switch the fast path on."""
        self.fast_path_max = min(FAST_PATH_BYTES, self._config.limits.record_bytes)

    def overloaded(self) -> StreamOverloadedError:
        """What to raise where there is no room."""
        return StreamOverloadedError(
            f"stream {self._stream} has {self.pending_bytes} bytes of appends pending, and limits.pending_bytes "
            f"allows {self.limit}; await room() before the next append_nowait",
            stream=self._stream,
        )

    def take_one(
        self, record: Record | bytes, txid: int | None, waiter: Any, of: ProducerRecords | None = None
    ) -> list[Group]:
        """Take any record. Raises: RecordTooLargeError, TxidOrderError, and as ``checked``; nothing was taken."""
        record = checked(record, txid)
        size = record_size(record)
        self._check_size(size, "a record of %d bytes is")
        self._check_txids([record.txid if type(record) is Record else txid])
        cut = self._make_room(size + RECORD_COST)
        group = self.group
        group.items.append(record)
        if type(record) is Record:
            group.general = True
        elif txid is not None:
            group.with_txid(txid)
        return cut + self._added(size + RECORD_COST, 1, waiter, of)

    def parts(self, batch: Sequence[Record | bytes]) -> list[tuple[int, int]]:
        """How a batch that need not be in one entry is cut: the indices (start, end) of each part.

        Raises:
            ValueError: it is empty. And as ``checked``.
        """
        if not batch:
            raise ValueError("a batch needs at least one record")
        if set(map(type, batch)) == {bytes}:
            size = sum(map(len, batch)) + RECORD_COST * len(batch)  # type: ignore[arg-type]
            if size <= GROUP_MAX:
                return [(0, len(batch))]
        return split([record_size(checked(record, None)) + RECORD_COST for record in batch], GROUP_MAX)

    def take_batch(self, batch: list[Record | bytes], waiter: Any, of: ProducerRecords | None = None) -> list[Group]:
        """Take records that share an entry. Raises: ValueError if there is none, and as take_one."""
        if not batch:
            raise ValueError("a batch needs at least one record")
        plain = set(map(type, batch)) == {bytes}
        if plain:
            size = sum(map(len, batch)) + RECORD_COST * len(batch)  # type: ignore[arg-type]
        else:
            batch = [checked(record, None) for record in batch]
            size = sum(map(record_size, batch)) + RECORD_COST * len(batch)
        if len(batch) > 1:
            self._check_size(size, f"an atomic batch of {counted(len(batch), 'record')} of %d bytes is")
        else:
            self._check_size(size - RECORD_COST, "a record of %d bytes is")
        if not plain:
            self._check_txids([record.txid for record in batch if type(record) is Record])
        cut = self._make_room(size)
        self.group.items += batch
        self.group.general = self.group.general or not plain
        return cut + self._added(size, len(batch), waiter, of)

    def take_columns(self, columns: RecordColumns, waiter: Any) -> list[Group]:
        """Take records that are columns already, as an entry of their own. Raises: as take_batch."""
        if not columns.count:
            raise ValueError("a batch needs at least one record")
        self._check_size(columns.size, "columns of %d bytes are")
        if columns.txids is not None:
            self._check_txids([columns.first_txid, columns.last_txid])
        cut = self.cut()
        group = self.group
        group.columns, group.promises = columns, [Promise(waiter, 0, columns.count)]
        group.room -= columns.size
        return [*cut, self._cut()]

    def take_epoch(self, run: ProducerRun, waiter: Any) -> list[Group]:
        """Take an entry without records that says which epoch a producer has."""
        cut = self.cut()
        group = self.group
        group.columns, group.runs, group.promises = RecordColumns.of_values([]), [run], [Promise(waiter, 0, 0)]
        return [*cut, self._cut()]

    def cut(self) -> list[Group]:
        """What was gathered becomes an entry; nothing, if nothing was gathered."""
        return [self._cut()] if self.group.items else []

    def send_time(self, under_way: int) -> Send | Linger:
        """When what is gathered is sent, while so many entries are not durable."""
        return self._grouping.send_time(under_way)

    def on_sent(self, group: Group, under_way: int) -> None:
        """A group is sent, while so many entries are not durable."""
        self._grouping.on_cut(len(group.items), under_way)

    def on_settled(self, group: Group) -> None:
        """Every caller of this group has its result."""
        self._under_way -= group.bytes
        self.settled_count += 1

    def _cut(self) -> Group:
        group, self.group = self.group, Group(self._group_bytes)
        self._under_way += group.size - group.room
        self.cut_count += 1
        if self._under_way >= self.limit:
            self.fast_path_max = NO_FAST_PATH
        return group

    def _make_room(self, size: int) -> list[Group]:
        """Cut the group if this would make it larger than an entry."""
        return [self._cut()] if self.group.bytes and self.group.bytes + size > GROUP_MAX else []

    def _added(self, size: int, count: int, waiter: Any, of: ProducerRecords | None) -> list[Group]:
        """The last ``count`` items are of one append."""
        group = self.group
        group.promise(waiter, count)
        if of is not None:
            group.of_producer(*of, count)
        group.room -= size
        return [self._cut()] if self.is_group_full else []

    def _check_size(self, size: int, what: str) -> None:
        limit = self._config.limits.record_bytes
        if size > limit:
            raise RecordTooLargeError(
                f"{what % size} larger than the stream allows: limits.record_bytes is {limit}", stream=self._stream
            )

    def _check_txids(self, txids: Sequence[int | None]) -> None:
        known = [txid for txid in txids if txid is not None]
        if not known:
            return
        if self._config.txid != "application":
            raise TxidOrderError(
                f"stream {self._stream} takes no transaction ids from its writer: its setting txid is "
                f"{self._config.txid}",
                stream=self._stream,
            )
        last = self.last_txid
        for txid in known:
            if txid < 0 or (last is not None and txid < last):
                raise TxidOrderError(
                    f"transaction id {txid} is lower than {last if last is not None else 0}, the one before it in "
                    f"stream {self._stream}",
                    stream=self._stream,
                    last=last,
                )
            last = txid
        self.last_txid = last

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert 0 <= self.settled_count <= self.cut_count and self._under_way >= 0
        assert self.group.room > 0 and self.group.columns is None
        assert self._under_way == 0 or self.settled_count < self.cut_count
