"""What a replica says about itself. Data."""

from __future__ import annotations

from dataclasses import dataclass

from journal_manager.replicas.replica import ReplicaRole
from journal_manager.txid import TxId


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    """What a replica says about itself."""

    name: str
    role: ReplicaRole
    epoch: int
    """The epoch of its last claim; 0 if there was none."""
    applied: TxId
    durable: TxId
    """The last edit that is durable, as far as this replica knows."""
    newest_snapshot: TxId
    active: str | None
    """The name of the active replica, as far as it is known."""
    problem: str | None
    """The last failure, if it was not overcome yet."""
