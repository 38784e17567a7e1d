"""What a writer knows of its stream's end: where it is, what comes next, and the idempotent producers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from segments.entries.sections import EntryBatch
from segments.position import Position
from segments.producers import ProducerTable


@dataclass(slots=True)
class WriteState:
    """Found at the take-over, and kept up by the writer."""

    next_seq_no: int = 0
    """Of the next record that is sent."""
    last_txid: int | None = None
    """Of the last record that was sent with one."""
    tail: Position | None = None
    """Of the last durable record."""
    producers: ProducerTable = field(default_factory=ProducerTable)

    @property
    def has_producers(self) -> bool:
        """Whether the next segment needs to know of producers."""
        return len(self.producers) > 0 or self.producers.forgotten > 0

    def on_batches(self, batches: Sequence[EntryBatch], segment: int, entry: int, append_ms: int) -> None:
        """The batches of an entry are durable."""
        table, slot = self.producers, 0
        for batch in batches:
            state = None if batch.producer is None else table.get(batch.producer)
            if state is not None and batch.producer is not None:
                at, end = batch.first_sequence, batch.first_sequence + batch.records
                while at < end and state.pushed:
                    pushed = state.pushed[0].records
                    table.confirm(
                        batch.producer, at, Position(segment, entry, slot + at - batch.first_sequence), append_ms
                    )
                    at += pushed
            slot += batch.records
