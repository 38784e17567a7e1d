"""One checkpoint, as its listing and its small files show it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from spark_wal.checkpoint_copy.contents import FileStamp, belongs, is_temporary, source_of
from spark_wal.checkpoints.layout import Kind, PathMeaning, StateFile, StatePartition, meaning
from spark_wal.checkpoints.logs import (
    CommittedBatch,
    LogFormatError,
    PlannedBatch,
    StatefulOperator,
    read_commit,
    read_offsets,
    read_operator,
    read_query_id,
)

T = TypeVar("T")
SMALL: frozenset[Kind] = frozenset([Kind.METADATA, Kind.OFFSETS, Kind.COMMITS, Kind.OPERATOR])
"""The files whose contents a :class:`Checkpoint` needs."""


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint at one moment."""

    uri: str
    listing: Mapping[str, FileStamp]
    query_id: str | None
    offsets: Mapping[int, PlannedBatch]
    commits: Mapping[int, CommittedBatch]
    operators: Mapping[int, StatefulOperator]
    unreadable: Mapping[str, str]
    """Path of a log's file -> why it cannot be read."""
    unfinished_copy_of: str | None = None
    meanings: Mapping[str, PathMeaning] = field(default_factory=dict)
    temporary: tuple[str, ...] = ()
    """Files that a writer left behind, or is writing."""

    @cached_property
    def planned(self) -> int | None:
        """The last batch whose offsets can be read."""
        return max(self.offsets, default=None)

    @cached_property
    def committed(self) -> int | None:
        """The last batch that was done."""
        return max(self.commits, default=None)

    @property
    def next_batch(self) -> int:
        """The batch with which the query goes on: it is planned already, or the one after the last."""
        planned = -1 if self.planned is None else self.planned
        return planned if self.committed is None or planned > self.committed else planned + 1

    @property
    def state_version(self) -> int:
        """The version of the state with which the next batch begins."""
        return self.next_batch

    @cached_property
    def state_files(self) -> Mapping[StatePartition, tuple[StateFile, ...]]:
        found: dict[StatePartition, list[StateFile]] = defaultdict(list)
        for each in self.meanings.values():
            if each.state is not None:
                found[each.state.partition].append(each.state)
        return {p: tuple(sorted(files, key=lambda f: (f.version, f.path))) for p, files in sorted(found.items())}

    @cached_property
    def partitions(self) -> tuple[StatePartition, ...]:
        """The partitions that operators say they have, or, of operators that say nothing, those with files."""
        found = {p for operator in self.operators.values() for p in operator.partitions()}
        return tuple(sorted(found | {p for p in self.state_files if p.operator not in self.operators}))

    @cached_property
    def has_unique_ids(self) -> bool:
        """Whether its state is in the second format."""
        last = self.commits[self.committed].state_ids if self.committed is not None else {}
        return bool(last) or any(f.unique_id for files in self.state_files.values() for f in files)

    def unique_id(self, partition: StatePartition, version: int) -> str | None:
        """The unique id of a partition's file at a version, as the commit of the batch before names it."""
        commit = self.commits.get(version - 1)
        stores = (
            [name for name, _ in self.operators[partition.operator].stores]
            if (partition.operator in self.operators)
            else [partition.store]
        )
        try:
            assert commit is not None
            return commit.state_ids[partition.operator][partition.partition][stores.index(partition.store)]
        except (AssertionError, LookupError, ValueError):
            return None

    def size(self, *kinds: Kind) -> int:
        """The bytes of the files of these kinds; of all without any."""
        return sum(self.listing[path].size for path, each in self.meanings.items() if not kinds or each.kind in kinds)


def read_checkpoint(uri: str, listing: Mapping[str, FileStamp], contents: Mapping[str, bytes]) -> Checkpoint:
    """Make a checkpoint of its listing, and of the contents of those files whose kind is in :data:`SMALL`."""
    meanings = {path: meaning(path) for path in listing if belongs(path, listing)}
    unreadable: dict[str, str] = {}

    def read(path: str, reader: Callable[[bytes], T]) -> T | None:
        try:
            return reader(contents[path])
        except LogFormatError as error:
            unreadable[path] = str(error)
            return None

    copied_from = source_of(contents.get("metadata", b""))
    query_id = read("metadata", read_query_id) if "metadata" in meanings and copied_from is None else None
    offsets: dict[int, PlannedBatch] = {}
    commits: dict[int, CommittedBatch] = {}
    operators: dict[int, StatefulOperator] = {}
    newest: dict[int, int] = {}
    for path, each in meanings.items():
        if each.number is None:
            continue
        if each.kind is Kind.OFFSETS and (planned := read(path, read_offsets)) is not None:
            offsets[each.number] = planned
        elif each.kind is Kind.COMMITS and (commit := read(path, read_commit)) is not None:
            commits[each.number] = commit
        elif each.kind is Kind.OPERATOR and (operator := read(path, read_operator)) is not None:
            of = -1 if each.batch is None else each.batch
            if of >= newest.get(each.number, -1):
                newest[each.number], operators[each.number] = of, operator
    return Checkpoint(
        uri,
        listing,
        query_id,
        dict(sorted(offsets.items())),
        dict(sorted(commits.items())),
        dict(sorted(operators.items())),
        unreadable,
        copied_from,
        meanings,
        tuple(sorted(path for path in listing if is_temporary(path))),
    )
