"""Snapshots: the state at a transaction id, so that a replay need not begin at the first edit. All of it is pure.

snapshots     what a snapshot is, and what every store of them does
checkpoints   when a replica takes one
retention     which snapshots and segments may be removed then
"""

from journal_manager.snapshots.checkpoints import CheckpointPolicy
from journal_manager.snapshots.retention import RetentionPlan, RetentionPolicy, plan_retention
from journal_manager.snapshots.snapshots import (
    PIECE_BYTES,
    Chunks,
    SnapshotInfo,
    SnapshotStore,
    adoptable,
    ensure_durable,
    no_snapshot,
    pieces,
    restore_newest,
)

__all__ = [
    "PIECE_BYTES",
    "CheckpointPolicy",
    "Chunks",
    "RetentionPlan",
    "RetentionPolicy",
    "SnapshotInfo",
    "SnapshotStore",
    "adoptable",
    "ensure_durable",
    "no_snapshot",
    "pieces",
    "plan_retention",
    "restore_newest",
]
