"""The settings of an edit log."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class EditLogConfig:
    """The settings of an edit log."""

    layout_version: int = 1
    """The version of the edits' bodies, kept with each segment."""
    max_batch_bytes: int = 1 << 20
    """The most bytes that become durable at once. A longer group is refused. The backend has its own limit, too."""
    max_pending_bytes: int = 64 << 20
    """The most bytes that may wait to become durable; above this, JournalOverloadedError."""
    segment_bytes: int = 64 << 20
    """The log rolls by itself before a segment grows beyond this."""
    segment_edits: int = 2_000_000
    """The log rolls by itself before a segment gets more edits than this, unless one group has more."""
    segment_s: float | None = None
    """The log rolls by itself when a segment is this many seconds old, also if no edit comes. None: at no age."""
    transmit_bytes: int | None = None
    """More bytes than this do not wait for the batch before them to be durable. None: they always wait."""
    max_transmitted: int = 8
    """The most batches that are being made durable at once, with ``transmit_bytes``."""
    patience_s: float = 15.0
    """Seconds for which a step is repeated that begins, ends or removes segments, while the store does not answer. A
    step that failed on a disk is not repeated."""

    def __post_init__(self) -> None:
        if min(self.max_batch_bytes, self.max_pending_bytes, self.segment_bytes, self.segment_edits) < 1:
            raise ValueError("the sizes of batches and segments are at least 1")
        if self.max_transmitted < 1 or (self.segment_s is not None and self.segment_s <= 0):
            raise ValueError("max_transmitted is at least 1, and segment_s is above 0")
