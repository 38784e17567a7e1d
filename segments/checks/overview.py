"""All that is known of a stream, as ``bk stream show`` prints it (data)."""

from __future__ import annotations

from dataclasses import dataclass

from segments.chain import StreamChain, StreamSegment
from segments.config import StreamConfig
from segments.directory.directory import StreamInfo, info_of
from segments.position import Position
from segments.retention.holds import Hold
from segments.retention.retention import CursorPosition


@dataclass(frozen=True, slots=True)
class StreamOverview:
    """A stream at one moment."""

    info: StreamInfo
    location: str
    """Where the writer can be reached; empty if it cannot."""
    last: Position | None
    """The last record of the completed segments."""
    next_ledger: int | None
    """The ledger that was made in advance for the next segment."""
    removing: tuple[int, ...]
    """Ledgers that are out of the stream, and not deleted yet."""
    at_ms: int
    """When all this was so, in milliseconds since 1970."""
    config: StreamConfig
    segments: tuple[StreamSegment, ...]
    cursors: tuple[CursorPosition, ...]
    holds: tuple[Hold, ...]


def overview_of(
    name: str,
    chain: StreamChain,
    config: StreamConfig,
    cursors: tuple[CursorPosition, ...],
    holds: tuple[Hold, ...],
    now_ms: int,
) -> StreamOverview:
    """The overview of a stream with this node."""
    return StreamOverview(
        info_of(name, chain),
        chain.location,
        chain.last_position,
        chain.next_ledger,
        tuple(removed.ledger_id for removed in chain.removing),
        now_ms,
        config,
        tuple(chain.segments),
        cursors,
        holds,
    )
