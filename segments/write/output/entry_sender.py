"""Writes groups of appends to the open segment, and resolves their futures when the records are durable.

    a group --> columns --> an entry, or pieces --> the ledger --> durable --> futures, counts, producers, footer

:mod:`segments.write.output.entry_output` decides which segment is open and what follows its end.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from segments.config import StreamConfig
from segments.entries.columns import RecordColumns
from segments.entries.compression import Compression, require_library
from segments.entries.entry import encode_entry, encode_payload, encode_pieces
from segments.entries.footer import FooterBuilder
from segments.entries.layout import NO_SNAPSHOT, EntryKind
from segments.errors import (
    RecordTooLargeError,
    StreamError,
)
from segments.position import Position
from segments.write.appends.grouping import Group
from segments.write.ledgers.open_segment import OpenSegment
from segments.write.output.flight import Flight, OrderedGroup, column_strings, fail_group
from segments.write.output.writer_metrics import WriterMetrics
from segments.write.segment.segment_change import EndedSegment
from segments.write.state.contents_tally import ContentsTally, announces
from segments.write.state.snapshot import encode_snapshot
from segments.write.state.write_state import WriteState

if TYPE_CHECKING:
    from bookkeeper import BookKeeper


class OutputEvents(Protocol):
    """What the writer in front is notified of."""

    def on_settled(self, group: Group) -> None:
        """Every caller of this group has its result."""

    def on_progress(self) -> None:
        """An entry is durable; others may be under way."""

    def on_ended(self, error: StreamError) -> None:
        """Nothing can be written any more."""


class EntrySender:
    """The entries of the open segment. Belongs to the loop that made it."""

    def __init__(
        self, client: BookKeeper, name: str, state: WriteState, config: StreamConfig, events: OutputEvents
    ) -> None:
        self.state = state
        self.config = config
        self._client, self._name, self._events = client, name, events
        self._clock, self._rng = client.services.seams.clock, client.services.seams.rng
        self.metrics = WriterMetrics(client.services.metrics, self._clock.monotonic)
        self.open_segment: OpenSegment[Flight] | None = None
        """The segment that entries are sent to."""
        self.tally, self._footer = ContentsTally(), FooterBuilder()
        self.sent_records = self.sent_bytes = self._since_snapshot = 0
        self._last_snapshot = NO_SNAPSHOT
        self._last_append_ms = 0
        """Of the segment. Its entries' times do not fall, whatever the clock does: they are searched by halving."""
        self._compression = Compression.named(config.compression)

    def change(self, config: StreamConfig) -> None:
        """Use these settings from now on. Raises: MissingLibraryError; then entries are compressed as before."""
        self.config = config
        require_library(compression := Compression.named(config.compression))
        self._compression = compression

    def begin_segment(self, segment: OpenSegment[Flight]) -> None:
        """Write to this empty segment from now on."""
        self.open_segment = segment
        self.tally, self._footer = ContentsTally(), FooterBuilder()
        self.sent_records = self.sent_bytes = self._since_snapshot = 0
        self._last_snapshot = NO_SNAPSHOT
        self._last_append_ms = 0
        if self.state.has_producers:
            self._snapshot()

    @property
    def under_way(self) -> int:
        """Entries that were sent and are not known to be durable."""
        return len(self.open_segment.flights) if self.open_segment is not None else 0

    @property
    def segment(self) -> int:
        """The number of the open segment; 0 before the first."""
        return self.open_segment.number if self.open_segment is not None else 0

    def append(self, group: Group) -> bool:
        """Number the records of a new group and write it. False: it cannot be encoded, and its callers have the
        error."""
        state = self.state
        append_ms = max(self._clock.wall_ms(), self._last_append_ms)
        try:
            columns, txids = self._columns(group, append_ms)
        except (TypeError, ValueError, OverflowError) as error:
            fail_group(group, partial(type(error), str(error)))
            self._events.on_settled(group)
            return False
        log = OrderedGroup(group, columns, txids, state.next_seq_no, append_ms)
        state.next_seq_no += columns.count
        if columns.last_txid is not None:
            state.last_txid = columns.last_txid
        self.write(log)
        return True

    def _columns(self, group: Group, append_ms: int) -> tuple[RecordColumns, list[int | None] | None]:
        if group.columns is not None:
            return group.columns, None
        if self.config.txid == "clock":
            clock = max(append_ms, self.state.last_txid or 0)
            clocks = [clock] * len(group.items)
            if not group.general:
                return RecordColumns.of_values(group.items, txids=clocks), [*clocks]
            group.txids = [*clocks]
            return RecordColumns.of_records(group.records()), group.txids
        if not group.general and group.txids is None:
            return RecordColumns.of_gathered(group.items), None
        records = group.records()
        return RecordColumns.of_records(records), [record.txid for record in records]

    def write(self, log: OrderedGroup) -> None:
        """Write a numbered group, for the first time or again."""
        place: Mapping[str, Any] = {
            "first_seq_no": log.first_seq_no,
            "append_ms": log.append_ms,
            "batches": log.batches,
            "snapshot_entry": self._last_snapshot,
            "compression": self._compression,
        }
        try:
            self._send(Flight(EntryKind.DATA, encode_entry(log.columns, **place), log))
        except RecordTooLargeError:
            *pieces, last = encode_pieces(log.columns, **place)
            for piece in pieces:
                self._send(Flight(EntryKind.PIECE, piece, log, is_last=False))
            self._send(Flight(EntryKind.PIECE, last, log))
        self._last_append_ms = max(self._last_append_ms, log.append_ms)
        self.sent_records += log.columns.count
        self.metrics.sent(log)
        if self._since_snapshot >= self.config.producers.snapshot_every_bytes:
            self._snapshot()

    def _send(self, flight: Flight) -> None:
        assert self.open_segment is not None
        self.sent_bytes += flight.size
        self._since_snapshot += flight.size
        self.open_segment.send(flight)

    def _snapshot(self) -> None:
        """Write what is known of the producers and of this segment, so that a take-over need not read from its
        beginning."""
        assert self.open_segment is not None
        payload = encode_snapshot(self.tally, self.state.producers)
        entry = self.open_segment.next_entry
        self._send(Flight(EntryKind.SNAPSHOT, self._payload(EntryKind.SNAPSHOT, payload), None))
        self._last_snapshot, self._since_snapshot = entry, 0

    def control(self) -> None:
        """Write an entry without records, which tells the bookies that the entries before it are confirmed."""
        self._send(Flight(EntryKind.CONTROL, self._payload(EntryKind.CONTROL, b""), None))

    def footer(self) -> int | None:
        """Write the segment's footer, and return its entry; None if the segment has no record."""
        assert self.open_segment is not None
        if not self.tally.records:
            return None
        entry = self.open_segment.next_entry
        self._send(Flight(EntryKind.FOOTER, self._payload(EntryKind.FOOTER, self._footer.build().encode()), None))
        return entry

    def ended(self, footer: int | None = None) -> EndedSegment:
        """The segment as it ends: what of it is durable."""
        return EndedSegment(self.segment, self.tally.contents(footer), self.tally.announces)

    def _payload(self, kind: EntryKind, payload: bytes) -> bytes:
        return encode_payload(
            kind,
            payload,
            next_seq_no=self.state.next_seq_no,
            append_ms=self._clock.wall_ms(),
            snapshot_entry=self._last_snapshot,
            compression=self._compression,
        )

    def on_durable(self, flight: Flight) -> None:
        """An entry is durable: count it, and resolve the futures of its records."""
        tally, log = self.tally, flight.ordered
        tally.add_entry(flight.entry, flight.size)
        if log is None or not flight.is_last:
            self._events.on_progress()
            return
        assert self.open_segment is not None
        number, columns = self.open_segment.number, log.columns
        if columns.count:
            tally.add_records(
                columns.count,
                log.append_ms,
                (columns.first_txid, columns.last_txid),
                (columns.min_event_ms, columns.max_event_ms),
            )
            self.state.tail = Position(number, flight.entry, columns.count - 1)
            self._footer.add_entry(
                flight.entry,
                flight.size,
                log.first_seq_no,
                log.append_ms,
                last_txid=columns.last_txid,
                max_event_ms=columns.max_event_ms,
            )
            if columns.keys is not None:
                self._footer.add_keys(column_strings(columns.keys))
        if log.batches:
            self.state.on_batches(log.batches, number, flight.entry, log.append_ms)
            tally.announces |= announces(log.batches)
            for batch in log.batches:
                if batch.producer is not None and batch.records:
                    self._footer.add_producer(batch.producer, batch.epoch, batch.first_sequence, batch.records)
        self.metrics.durable(log)
        log.resolve(number, flight.entry)
        flight.ordered = None  # its futures are resolved
        self._events.on_settled(log.group)
        self._events.on_progress()
