"""How a query goes back to a batch: which files go, and why it may be refused. A machine.

What goes is a matter of numbers: logs behind the batch, and state behind the version that the batch ended with. In the
second format several files may have that version: all of them stay, and the one that the batch's commit names must be
there. Files that ``sources/`` has for later batches stay: they say which input was planned, and it is planned again.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_wal.checkpoints.checkpoint import Checkpoint
from spark_wal.checkpoints.fsck import StateChecks, can_go_back_to, sources_at
from spark_wal.checkpoints.rebuild import StateSources
from spark_wal.webhdfs.files.numbered import Limits, NumberLimit, removed_by


class RollbackRefusedError(Exception):
    """The query cannot go back to that batch. The text says why, and to which batches it can."""


@dataclass(frozen=True, slots=True)
class RollbackPlan:
    """What a rollback does."""

    batch: int
    limits: Limits
    removed: tuple[str, ...]
    """The files that go."""
    repeated: tuple[int, ...]
    """The batches that were done, and are computed again, perhaps cut otherwise."""
    needed: tuple[str, ...]
    """The files of state with which the query goes on."""


def limits_of(batch: int) -> Limits:
    """What stays when a batch is the last one: its logs, and the version of the state that it ended with."""
    return (
        NumberLimit("offsets", batch),
        NumberLimit("commits", batch),
        NumberLimit("state/*/_metadata/v2", batch),
        NumberLimit("state/*/*", batch + 1),
        NumberLimit("state/*/*/*", batch + 1),
    )


def plan_rollback(checkpoint: Checkpoint, checks: StateChecks, batch: int) -> RollbackPlan:
    """Plan to go back to a batch, the last one that is then done.

    Raises:
        RollbackRefusedError: it is not one to which the query can go back.
    """
    if checkpoint.unfinished_copy_of is not None:
        raise RollbackRefusedError(f"{checkpoint.uri} is an unfinished copy of {checkpoint.unfinished_copy_of}")
    why = can_go_back_to(checkpoint, checks, batch)
    if why is not None:
        others = [n for n in checkpoint.commits if can_go_back_to(checkpoint, checks, n) is None]
        way = (
            f"the last batch before it to which it can is {max(n for n in others if n < batch)}"
            if (others and others[0] < batch)
            else f"the first batch to which it can is {others[0]}"
            if others
            else "there is no batch to which it can"
        )
        raise RollbackRefusedError(f"{checkpoint.uri} cannot go back to batch {batch}: {why}; {way}")
    limits = limits_of(batch)
    removed = tuple(removed_by(limits, checkpoint.listing))
    needed: list[str] = []
    for partition in checkpoint.partitions:
        sources = sources_at(checkpoint, checks, partition, batch + 1)
        assert isinstance(sources, StateSources)
        needed += [file.path for file in sources.files]
    assert not set(needed) & set(removed)
    if not removed:
        raise RollbackRefusedError(f"{checkpoint.uri} is at batch {batch}: nothing is behind it")
    return RollbackPlan(batch, limits, removed, tuple(n for n in checkpoint.commits if n > batch), tuple(needed))
