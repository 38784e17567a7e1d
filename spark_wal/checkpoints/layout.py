"""Where Structured Streaming keeps what: the meaning of each path of a checkpoint. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

DEFAULT_STORE: Final = "default"
"""The name of a state store that has no directory of its own."""

_UUID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_LOG: Final = re.compile(r"(offsets|commits)/(\d+)")
_STATE: Final = re.compile(rf"state/(\d+)/(\d+)/(?:([^/]+)/)?(\d+)(?:_({_UUID}))?\.(delta|snapshot|changelog|zip)")
_OPERATOR: Final = re.compile(r"state/(\d+)/_metadata/(?:metadata|v2/(\d+))")
_SCHEMA: Final = re.compile(r"state/\d+/(?:\d+/(?:[^/]+/)?_metadata/schema|_stateSchema/.+)")
_SHARED: Final = re.compile(r"state/\d+/\d+/(?:[^/]+/)?(?:SSTs/[^/]+\.sst|logs/[^/]+\.log)")
_SOURCE: Final = re.compile(r"sources/\d+/.+")


class Kind(Enum):
    """What a file of a checkpoint is."""

    METADATA = "metadata"
    OFFSETS = "offsets"
    COMMITS = "commits"
    SOURCE = "source"
    OPERATOR = "operator"
    SCHEMA = "schema"
    STATE = "state"
    SHARED = "shared"
    """A file of RocksDB that several snapshots may use."""
    SIDECAR = "checksum"
    """``x.crc`` beside ``x``: Spark's checksum of a file."""
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True, order=True)
class StatePartition:
    """One partition of one state store."""

    operator: int
    partition: int
    store: str

    @property
    def directory(self) -> str:
        below = "" if self.store == DEFAULT_STORE else f"/{self.store}"
        return f"state/{self.operator}/{self.partition}{below}"


@dataclass(frozen=True, slots=True)
class StateFile:
    """A file that holds a version of a partition's state, or the step to it from the version before."""

    path: str
    partition: StatePartition
    version: int
    unique_id: str
    """What the second format of state checkpoints adds to the name; empty in the first."""
    is_whole_state: bool
    """A snapshot, or RocksDB's zip. Otherwise a delta, or RocksDB's changelog."""


@dataclass(frozen=True, slots=True)
class PathMeaning:
    """What a path means."""

    kind: Kind
    number: int | None = None
    """The batch of a log's file; the operator of an operator's file."""
    batch: int | None = None
    """Of an operator's file in the second format: the first batch for which it is meant."""
    state: StateFile | None = None
    covers: str | None = None
    """Of a checksum: the file that it is of."""


def meaning(path: str) -> PathMeaning:
    """What a path of a checkpoint means; FOREIGN if Spark writes no such file."""
    if path == "metadata":
        return PathMeaning(Kind.METADATA)
    if found := _LOG.fullmatch(path):
        return PathMeaning(Kind(found[1]), int(found[2]))
    if found := _STATE.fullmatch(path):
        partition = StatePartition(int(found[1]), int(found[2]), found[3] or DEFAULT_STORE)
        whole = found[6] in ("snapshot", "zip")
        return PathMeaning(Kind.STATE, state=StateFile(path, partition, int(found[4]), found[5] or "", whole))
    if found := _OPERATOR.fullmatch(path):
        return PathMeaning(Kind.OPERATOR, int(found[1]), None if found[2] is None else int(found[2]))
    for pattern, kind in ((_SCHEMA, Kind.SCHEMA), (_SHARED, Kind.SHARED), (_SOURCE, Kind.SOURCE)):
        if pattern.fullmatch(path):
            return PathMeaning(kind)
    if path.endswith(".crc") and meaning(path[:-4]).kind is not Kind.FOREIGN:
        return PathMeaning(Kind.SIDECAR, covers=path[:-4])
    return PathMeaning(Kind.FOREIGN)
