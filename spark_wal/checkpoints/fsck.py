"""Whether a query can go on from a checkpoint, what is damaged, and what helps. A machine.

Advice comes in this order: nothing is needed; a damaged file is moved away, because the state can be built from others;
the query goes back to an earlier batch. Only where none of these is left is it said that the state cannot be rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from spark_wal.checkpoints.checkpoint import Checkpoint
from spark_wal.checkpoints.layout import Kind, StatePartition
from spark_wal.checkpoints.rebuild import BuildObstacle, StateSources, sources_of
from spark_wal.checkpoints.state_files import FileCheck

SHOWN: Final = 3
"""Files that a sentence names; of more it says how many."""


@dataclass(frozen=True, slots=True)
class CheckpointFinding:
    """Something that is not as it should be."""

    path: str
    what: str
    advice: str
    is_damage: bool = True
    """Otherwise it is worth knowing, and harmless."""


@dataclass(frozen=True, slots=True)
class CheckpointVerdict:
    """The result of a check."""

    can_start: bool
    """Whether a query can go on as it is."""
    next_batch: int
    is_planned: bool
    """Whether the next batch has its offsets, so that it is repeated with the same rows."""
    back_to: tuple[int, ...]
    """The batches to which the query can go back."""
    findings: tuple[CheckpointFinding, ...]

    @property
    def is_whole(self) -> bool:
        return not any(finding.is_damage for finding in self.findings)


@dataclass(slots=True)
class StateChecks:
    """What is known of the files of state."""

    problems: dict[str, str] = field(default_factory=dict)
    """Path -> why the file cannot be used."""
    usable: set[str] = field(default_factory=set)
    earlier: dict[str, dict[int, str]] = field(default_factory=dict)
    unchecked: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, checkpoint: Checkpoint, checks: Mapping[str, FileCheck]) -> StateChecks:
        """Combine the verdicts on single files with what a listing says of the files that they need."""
        found = cls()
        for path, check in sorted(checks.items()):
            problem = check.problem
            for needed, size in check.needs.items():
                stamp = checkpoint.listing.get(needed)
                if stamp is None:
                    problem = problem or f"it needs {needed}, which is missing"
                elif stamp.size != size:
                    problem = problem or f"it needs {needed}, which has {stamp.size} bytes instead of {size}"
            if problem is None:
                found.usable.add(path)
                found.earlier[path] = dict(check.earlier)
            else:
                found.problems[path] = problem
            if check.is_unchecked:
                found.unchecked.add(path)
        return found


def sources_at(
    checkpoint: Checkpoint, checks: StateChecks, partition: StatePartition, version: int
) -> StateSources | BuildObstacle:
    """From what a partition's state at a version can be built."""
    files = checkpoint.state_files.get(partition, ())
    unique_id = checkpoint.unique_id(partition, version) if checkpoint.has_unique_ids else None
    if checkpoint.has_unique_ids and unique_id is None and version > 0:
        return BuildObstacle((f"commits/{version - 1}",))
    return sources_of(files, checks.usable, partition, version, unique_id, checks.earlier)


def can_go_back_to(checkpoint: Checkpoint, checks: StateChecks, batch: int) -> str | None:
    """Why the query cannot go back to a batch, so that it is the last one that is done; None if it can."""
    for log, there in (("offsets", checkpoint.offsets), ("commits", checkpoint.commits)):
        if batch not in there:
            return f"{log}/{batch} is missing or damaged"
    if batch > 0 and batch - 1 not in checkpoint.offsets:
        return f"offsets/{batch - 1} is missing, and Spark reads it when it starts"
    for partition in checkpoint.partitions:
        sources = sources_at(checkpoint, checks, partition, batch + 1)
        if isinstance(sources, BuildObstacle):
            return f"its state needs {sources.missing[-1]}, which is missing or damaged"
        if sources.unusable:
            return f"{sources.unusable[0]} is damaged and has to be moved away first"
    return None


def check(checkpoint: Checkpoint, state: Mapping[str, FileCheck]) -> CheckpointVerdict:
    """Check a checkpoint; ``state`` has a verdict on each file of state."""
    if checkpoint.unfinished_copy_of is not None:
        what = f"this is an unfinished copy of {checkpoint.unfinished_copy_of}"
        found = CheckpointFinding("metadata", what, "finish it: bk checkpoint copy --resume")
        return CheckpointVerdict(False, checkpoint.next_batch, False, (), (found,))
    checks = StateChecks.of(checkpoint, state)
    back_to = tuple(batch for batch in checkpoint.commits if can_go_back_to(checkpoint, checks, batch) is None)
    findings = [
        *_metadata(checkpoint),
        *_logs(checkpoint, back_to),
        *_state(checkpoint, checks, back_to),
        *_others(checkpoint, checks),
    ]
    cannot = any(f.is_damage and f.path in _needed(checkpoint, checks) for f in findings)
    is_planned = checkpoint.next_batch in checkpoint.offsets
    return CheckpointVerdict(not cannot, checkpoint.next_batch, is_planned, back_to, tuple(findings))


def _needed(checkpoint: Checkpoint, checks: StateChecks) -> set[str]:
    """The files without which the query cannot start now."""
    logs = (Kind.OFFSETS, Kind.COMMITS)
    last = max((each.number or 0 for each in checkpoint.meanings.values() if each.kind in logs), default=0)
    needed = {"metadata", f"offsets/{last}", f"offsets/{last - 1}", f"commits/{last}", f"commits/{last - 1}"}
    for partition in checkpoint.partitions:
        match sources_at(checkpoint, checks, partition, checkpoint.state_version):
            case StateSources() as sources:
                needed.update(sources.unusable)
            case BuildObstacle() as lost:
                needed.update(lost.missing)
    return needed


# -- the logs ----------------------------------------------------------------------------------------------


def _metadata(checkpoint: Checkpoint) -> Iterable[CheckpointFinding]:
    if checkpoint.query_id is None and (checkpoint.offsets or checkpoint.commits):
        there = checkpoint.unreadable.get("metadata")
        yield CheckpointFinding(
            "metadata",
            "it is missing" if there is None else there,
            "write it again, with the id of the query that its sinks know: "
            '{"id":"..."}. With another id a sink takes batches twice',
        )


def _logs(checkpoint: Checkpoint, back_to: tuple[int, ...]) -> Iterable[CheckpointFinding]:
    numbers = {
        kind: {m.number for m in checkpoint.meanings.values() if m.kind is kind and m.number is not None}
        for kind in (Kind.OFFSETS, Kind.COMMITS)
    }
    holes = {kind: _holes(found) for kind, found in numbers.items()}
    last = max(numbers[Kind.OFFSETS], default=-1)
    if (newest := max(numbers[Kind.COMMITS], default=-1)) < last - 1 and numbers[Kind.COMMITS]:
        holes[Kind.COMMITS] |= set(range(newest + 1, last))
    holes[Kind.OFFSETS] |= {n for n in numbers[Kind.COMMITS] if n > last}
    asynchronous = holes[Kind.OFFSETS] == holes[Kind.COMMITS] and not checkpoint.partitions
    for kind, found in holes.items():
        for number in sorted(found):
            path = f"{kind.value}/{number}"
            if asynchronous:
                advice = "nothing: a query with asynchronous progress tracking leaves such holes in both logs"
                yield CheckpointFinding(path, "it is missing, and so is the other log's", advice, is_damage=False)
            else:
                yield CheckpointFinding(path, "it is missing: a hole in the log", _log_advice(number, last, back_to))
        for number in sorted(numbers[kind]):
            path = f"{kind.value}/{number}"
            if path in checkpoint.unreadable:
                yield CheckpointFinding(path, checkpoint.unreadable[path], _log_advice(number, last, back_to))
    for path, why in checkpoint.unreadable.items():
        if checkpoint.meanings[path].kind is Kind.OPERATOR:
            yield CheckpointFinding(path, why, "take it from a copy, or " + _back(back_to, None))


def _holes(numbers: set[int]) -> set[int]:
    return set(range(min(numbers), max(numbers))) - numbers if numbers else set()


def _log_advice(number: int, last: int, back_to: tuple[int, ...]) -> str:
    if number < last - 1:
        return "nothing has to be done: the query does not read it when it starts, only a rollback to there would"
    return _back(back_to, number)


def _back(back_to: tuple[int, ...], below: int | None) -> str:
    batches = [batch for batch in back_to if below is None or batch < below]
    if not batches:
        return "take it from a copy of this checkpoint: no earlier batch is whole"
    return (
        f"go back to batch {batches[-1]}, and the batches behind it are computed again: "
        f"bk checkpoint rollback LOCATION {batches[-1]}"
    )


# -- state -------------------------------------------------------------------------------------------------


def _state(checkpoint: Checkpoint, checks: StateChecks, back_to: tuple[int, ...]) -> Iterable[CheckpointFinding]:
    """First what the next start needs, then what is damaged and not needed now."""
    told: set[str] = set()
    version = checkpoint.state_version
    for partition in checkpoint.partitions:
        sources = sources_at(checkpoint, checks, partition, version)
        bad = sources.missing if isinstance(sources, BuildObstacle) else sources.unusable
        for path in bad:
            if path in told or path.startswith("commits/"):
                continue
            told.add(path)
            what = checks.problems.get(path, "it is missing")
            if isinstance(sources, StateSources):
                advice = (
                    f"move it away, and version {version} is rebuilt from {_named(sources)}: "
                    "Spark takes those when it does not find this file"
                )
            else:
                advice = _unbuildable(version, back_to)
            yield CheckpointFinding(path, what, advice)
    for path, why in sorted(checks.problems.items()):
        if path not in told:
            told.add(path)
            yield CheckpointFinding(path, why, _not_needed(checkpoint, checks, path, version))
    for partition, files in checkpoint.state_files.items():
        if not checkpoint.has_unique_ids:
            there = {f.version for f in files}
            for hole in sorted(_holes(there | {version}) if files else ()):
                path = f"{partition.directory}/{hole}.{files[0].path.rpartition('.')[2]}"
                if path not in told and not any(p.startswith(f"{partition.directory}/{hole}.") for p in told):
                    yield CheckpointFinding(path, "it is missing", _not_needed(checkpoint, checks, path, version))


def _named(sources: StateSources) -> str:
    names = [file.path.rpartition("/")[2] for file in sources.files]
    if not names:
        return "nothing, because it is empty"
    if len(names) > SHOWN:
        names = [names[0], f"{len(names) - 2} steps", names[-1]]
    return " and ".join(names) if len(names) < 3 else f"{names[0]}, {', '.join(names[1:-1])} and {names[-1]}"


def _unbuildable(version: int, back_to: tuple[int, ...]) -> str:
    if not back_to:
        return (
            f"version {version} cannot be rebuilt, and no earlier one that a batch ends with: "
            "take the file from a copy of this checkpoint"
        )
    return f"version {version} cannot be rebuilt without it; {_back(back_to, None)}"


def _not_needed(checkpoint: Checkpoint, checks: StateChecks, path: str, version: int) -> str:
    each = checkpoint.meanings.get(path)
    if each is not None and each.state is not None and each.state.partition in checkpoint.partitions:
        sources = sources_at(checkpoint, checks, each.state.partition, version)
        if isinstance(sources, StateSources) and sources.files:
            return f"nothing has to be done: version {version} is built from {_named(sources)}"
    return f"nothing has to be done: version {version} does not need it, only a rollback would"


def _others(checkpoint: Checkpoint, checks: StateChecks) -> Iterable[CheckpointFinding]:
    for path, each in sorted(checkpoint.meanings.items()):
        if each.kind is Kind.FOREIGN:
            yield CheckpointFinding(
                path, "Spark writes no such file", "look who did; Spark ignores it", is_damage=False
            )
        elif each.kind is Kind.SIDECAR and each.covers not in checkpoint.meanings:
            what = f"it is the checksum of {each.covers}, which is not there"
            yield CheckpointFinding(path, what, "nothing: Spark removes it", is_damage=False)
    for path in checkpoint.temporary:
        what = "a temporary file: somebody is writing it, or its writer died"
        yield CheckpointFinding(
            path, what, "nothing: a gateway removes it when nobody has touched it for a day", is_damage=False
        )
    for path in sorted(checks.unchecked & checks.usable):
        what = "only looked at, because it is not compressed with lz4"
        yield CheckpointFinding(path, what, "nothing", is_damage=False)
