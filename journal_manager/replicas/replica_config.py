"""The settings of a replica."""

from __future__ import annotations

from dataclasses import dataclass, field

from journal_manager.snapshots.checkpoints import CheckpointPolicy
from journal_manager.snapshots.retention import RetentionPolicy
from journal_manager.write.edit_log_config import EditLogConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaConfig:
    """The settings of a replica."""

    edit_log: EditLogConfig = field(default_factory=EditLogConfig)
    checkpoints: CheckpointPolicy = field(default_factory=CheckpointPolicy)
    retention: RetentionPolicy = field(default_factory=RetentionPolicy)
    """What stays when a snapshot was kept."""
    follow_poll_s: float = 0.5
    """A standby looks for edits after this many seconds if the store does not report them."""
    retry_s: float = 0.5
    """Seconds before an attempt that failed is repeated."""
    doubt_s: float = 10.0
    """Seconds that a read waits for the election to be certain again, for instance because the store is slow. A standby
    waits as long before it believes that its journal was put back to an older state."""
    max_answers: int = 100_000
    """So many requests are remembered, so that a repeated one gets its first answer."""
    max_clients: int = 100_000
    """Of so many silent clients it is remembered which requests are too old to tell."""
