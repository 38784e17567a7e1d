"""In which batches two checkpoints differ, for instance of one query at a gateway and in a directory. A machine.

When a batch was planned, ids of the query and of files, and sizes of files say nothing: they are others in each run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from bookkeeper.amounts import counted
from spark_wal.checkpoints.checkpoint import Checkpoint
from spark_wal.checkpoints.layout import StateFile, StatePartition
from spark_wal.checkpoints.logs import PlannedBatch

StateDigests = Mapping[tuple[StatePartition, int], str | None]
"""Partition and version -> a digest of what the version changed, behind the name of its format; None if it cannot be
read."""


@dataclass(frozen=True, slots=True)
class BatchDifference:
    """A batch in which two checkpoints differ."""

    batch: int
    what: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckpointDifference:
    """How two checkpoints differ."""

    compared: tuple[int, ...]
    """The batches that were compared: those before the first that both still have are not."""
    batches: tuple[BatchDifference, ...]
    without_state: tuple[int, ...]
    """Batches whose state was not compared, or not all of it: it is in snapshots alone, cannot be read, or is in two
    formats of changelogs."""
    settings: tuple[str, ...]
    """Settings of the last batch that both have, and that differ: which manager, store, format."""


def steps_of(checkpoint: Checkpoint) -> list[StateFile]:
    """The deltas and changelogs of versions that a batch ended with; in the second format those that commits name."""
    found = []
    for partition, files in checkpoint.state_files.items():
        for file in files:
            wanted = checkpoint.unique_id(partition, file.version) if checkpoint.has_unique_ids else ""
            if not file.is_whole_state and file.unique_id == wanted and file.version - 1 in checkpoint.commits:
                found.append(file)
    return found


def compare(a: Checkpoint, b: Checkpoint, state_a: StateDigests, state_b: StateDigests) -> CheckpointDifference:
    """Compare two checkpoints batch by batch."""
    logged = [set(each.offsets) | set(each.commits) for each in (a, b)]
    first = max((min(numbers, default=0) for numbers in logged), default=0)
    batches = tuple(sorted(number for number in logged[0] | logged[1] if number >= first))
    different: list[BatchDifference] = []
    without: list[int] = []
    for batch in batches:
        what = [*_logs(a, b, batch)]
        if batch in a.commits and batch in b.commits:
            state, is_complete = _state(a, b, state_a, state_b, batch + 1)
            what += state
            if not is_complete:
                without.append(batch)
        if what:
            different.append(BatchDifference(batch, tuple(what)))
    both = [batch for batch in batches if batch in a.offsets and batch in b.offsets]
    settings = _settings(a.offsets[both[-1]], b.offsets[both[-1]]) if both else ()
    return CheckpointDifference(batches, tuple(different), tuple(without), settings)


def _logs(a: Checkpoint, b: Checkpoint, batch: int) -> list[str]:
    what = []
    one, other = a.offsets.get(batch), b.offsets.get(batch)
    if one is None or other is None:
        what.append(f"it is planned only in the {'second' if one is None else 'first'}")
    else:
        for name in sorted(one.sources.keys() | other.sources.keys()):
            ends = one.sources.get(name), other.sources.get(name)
            if _value(ends[0]) != _value(ends[1]):
                what.append(f"source {name} ends at {ends[0]} and at {ends[1]}")
        if one.watermark_ms != other.watermark_ms:
            what.append(f"the watermark is {one.watermark_ms} and {other.watermark_ms} ms")
    if (batch in a.commits) != (batch in b.commits):
        what.append(f"it is done only in the {'first' if batch in a.commits else 'second'}")
    return what


def _value(text: str | None) -> object:
    """An offset as a value: the order of names in its JSON says nothing."""
    return None if text is None else json.loads(text)


def _state(
    a: Checkpoint, b: Checkpoint, state_a: StateDigests, state_b: StateDigests, version: int
) -> tuple[list[str], bool]:
    """What differs in a version, and whether all of it was compared."""
    if a.partitions != b.partitions:
        return [
            f"its state has {len(a.partitions)} and {counted(len(b.partitions), 'partition')}, or other ones"
        ], False
    what, is_complete = [], True
    for partition in a.partitions:
        one, other = state_a.get((partition, version)), state_b.get((partition, version))
        if one is None or other is None or one.split()[0] != other.split()[0]:
            is_complete = False
        elif one != other:
            what.append(f"other changes of state in {partition.directory}")
    return what, is_complete


def _settings(one: PlannedBatch, other: PlannedBatch) -> tuple[str, ...]:
    names = sorted(one.conf.keys() | other.conf.keys())
    return tuple(
        f"{name}: {one.conf.get(name)} and {other.conf.get(name)}"
        for name in names
        if one.conf.get(name) != other.conf.get(name)
    )
