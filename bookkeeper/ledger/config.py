"""Limits of the protocol's machines. A client that may set one takes its default from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import require_range

HEDGE_MS: Final = 500
"""Milliseconds without an answer after which a read is asked of another bookie, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterConfig:
    """Limits of one writer. A bookie that exceeds ``stall_ms`` or ``trail_bytes_max`` counts as failed."""

    deferred_sync: bool = False
    """Bookies acknowledge an entry before it is durable. ``force`` makes it durable, and only that moves the last add
    confirmed."""
    add_timeout_ms: int = 15_000
    """An append that no ack quorum acknowledges within this time ends the handle."""
    force_timeout_ms: int = 15_000
    """A ``force`` that one bookie does not answer within this time fails."""
    stall_ms: int = 500
    """A bookie may make no progress for so long while others do."""
    trail_bytes_max: int = 32 << 20
    """So many payload bytes may be confirmed without a bookie that should have stored them."""
    pending_bytes_max: int = 64 << 20
    """Payload bytes that may be appended and not confirmed; then callers must wait."""
    pending_entries_max: int = 200_000
    """Entries that may be appended and not confirmed; then callers must wait."""
    change_retry_ms: int = 1_000
    """The pause after a failed ensemble change before the next one. A bookie that appears ends the pause."""

    def __post_init__(self) -> None:
        require_range(self, "add_timeout_ms", "force_timeout_ms", "stall_ms", "change_retry_ms", above=0)
        require_range(self, "trail_bytes_max", "pending_bytes_max", "pending_entries_max", above=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryConfig:
    """Limits of one recovery."""

    window_entries: int = 64
    """How many entries are read, or written back, at a time."""
    hedge_ms: int = HEDGE_MS
    """After so long without an answer a read is also sent to the rest of its write set."""
    retry_ms: int = 500
    """The pause before bookies that gave no usable answer are asked again."""
    rounds_max: int = 5
    """How often bookies that give no usable answer are asked; then the recovery is inconclusive."""

    def __post_init__(self) -> None:
        require_range(self, "window_entries", "hedge_ms", "retry_ms", "rounds_max", least=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadConfig:
    """Limits of one read."""

    hedge_ms: int = HEDGE_MS
    """After so long without an answer the next bookie is asked, too."""
    rounds_max: int = 2
    """How often all replicas are asked before a transient error is raised."""

    def __post_init__(self) -> None:
        require_range(self, "hedge_ms", "rounds_max", least=1)
