"""When a replica takes a snapshot (pure).

A standby takes one when enough edits, or enough time with at least one edit, have passed since the newest. The active
replica waits for several times as much: it takes one only if no standby does.
"""

from __future__ import annotations

from dataclasses import dataclass

from journal_manager.txid import NOTHING, TxId


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPolicy:
    """How often snapshots are taken."""

    edits: int = 1_000_000
    """So many edits after the newest snapshot."""
    seconds: float = 3600.0
    """So long after the newest snapshot, if there is a new edit."""
    active_factor: float = 2.0
    """The active replica waits for this many times as much."""
    check_s: float = 5.0
    """Seconds between two looks of the active replica: whether a standby has offered a snapshot, or none has."""

    def __post_init__(self) -> None:
        if self.edits < 1 or min(self.seconds, self.check_s) <= 0 or self.active_factor < 1:
            raise ValueError("edits and active_factor are at least 1; seconds and check_s are above 0")


class CheckpointSchedule:
    """Remembers the newest snapshot, and says when the next one is due."""

    def __init__(self, policy: CheckpointPolicy, now: float) -> None:
        self._policy = policy
        self.newest = NOTHING
        """The edit of the newest snapshot that is known."""
        self._since = now

    def on_snapshot(self, at: TxId, now: float) -> None:
        """There is a snapshot at ``at``. One that is older than the newest changes nothing."""
        if at > self.newest:
            self.newest, self._since = at, now

    def begin_at(self, at: TxId, now: float) -> None:
        """The newest snapshot is the one at ``at`` (NOTHING: there is none), whatever was known before."""
        self.newest, self._since = at, now

    def is_due(self, applied: TxId, now: float, *, active: bool = False) -> bool:
        """Whether a replica that has applied the edits up to ``applied`` takes a snapshot now."""
        factor = self._policy.active_factor if active else 1.0
        edits = applied - self.newest
        if edits <= 0:
            return False
        return edits >= self._policy.edits * factor or now - self._since >= self._policy.seconds * factor

    def postpone(self, now: float) -> None:
        """An attempt failed: the next one is due after the policy's seconds, or its edits."""
        self._since = now
