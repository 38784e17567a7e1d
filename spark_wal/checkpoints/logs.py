"""The text files of a checkpoint: ``metadata``, ``offsets/N``, ``commits/N``, and what an operator notes of itself.

Each begins with its format's version (``v1``, ``v2``) on a line of its own; ``metadata`` is JSON alone. Of a batch that
was planned ``offsets/N`` has a line for each source, and in its second version a name before it. Of a batch that is
done ``commits/N`` has, in its second version, the unique ids of the state's files: operator -> partition -> store.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from spark_wal.checkpoints.layout import StatePartition


class LogFormatError(Exception):
    """A file of the checkpoint is short or damaged, or of a version that is not known. The text says which."""


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """``offsets/N``."""

    version: int
    watermark_ms: int
    planned_ms: int
    """When it was planned, in milliseconds since 1970."""
    conf: Mapping[str, str]
    sources: Mapping[str, str | None]
    """Where each source ends with this batch, as its JSON; None if it has none yet."""


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """``commits/N``."""

    version: int
    next_watermark_ms: int
    state_ids: Mapping[int, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """StatefulOperator -> partition -> store -> the unique id of its file; empty in the first format."""


@dataclass(frozen=True, slots=True)
class StatefulOperator:
    """What a stateful operator notes of itself."""

    number: int
    name: str
    stores: tuple[tuple[str, int], ...]
    """The name and the number of partitions of each store."""

    def partitions(self) -> list[StatePartition]:
        return [StatePartition(self.number, p, store) for store, count in self.stores for p in range(count)]


def read_query_id(data: bytes) -> str:
    """The query's id from ``metadata``. Raises LogFormatError."""
    return str(_field(_object(data), "id"))


def read_offsets(data: bytes) -> PlannedBatch:
    """Raises LogFormatError."""
    version, lines = _lines(data, (1, 2))
    if not lines:
        raise LogFormatError("it ends behind its version")
    head = _object(lines[0])
    sources: dict[str, str | None] = {}
    for number, line in enumerate(lines[1:]):
        name, text = str(number), line.decode("utf-8", "replace")
        if version == 2:
            name, colon, text = text.partition(":")
            if not colon:
                raise LogFormatError(f"the line of a source has no name: {text[:40]!r}")
        if text == "-":
            sources[name] = None
        else:
            _json(text.encode())
            sources[name] = text
    if not sources:
        raise LogFormatError("it has no line of a source")
    conf = head.get("conf") or {}
    return PlannedBatch(
        version,
        int(_field(head, "batchWatermarkMs")),
        int(_field(head, "batchTimestampMs")),
        {str(name): str(value) for name, value in conf.items()},
        dict(sorted(sources.items(), key=lambda item: (len(item[0]), item[0]))),
    )


def read_commit(data: bytes) -> CommittedBatch:
    """Raises LogFormatError."""
    version, lines = _lines(data, (1, 2))
    if not lines or not lines[0]:
        raise LogFormatError("it ends behind its version")
    head = _object(lines[0])
    try:
        ids = {
            int(operator): tuple(tuple(str(each) for each in stores) for stores in partitions)
            for operator, partitions in (head.get("stateUniqueIds") or {}).items()
        }
    except (TypeError, ValueError, AttributeError) as error:
        raise LogFormatError("its list of the state's files cannot be read") from error
    return CommittedBatch(version, int(head.get("nextBatchWatermarkMs", 0)), ids)


def read_operator(data: bytes) -> StatefulOperator:
    """Raises LogFormatError."""
    _, lines = _lines(data, (1, 2))
    head = _object(lines[0] if lines else b"")
    try:
        info = head["operatorInfo"]
        stores = tuple((str(each["storeName"]), int(each["numPartitions"])) for each in head["stateStoreInfo"])
        return StatefulOperator(int(info["operatorId"]), str(info["operatorName"]), stores)
    except (KeyError, TypeError, ValueError) as error:
        raise LogFormatError("it does not describe a stateful operator") from error


def _lines(data: bytes, versions: tuple[int, ...]) -> tuple[int, list[bytes]]:
    first, *rest = data.split(b"\n")
    if not data:
        raise LogFormatError("it is empty")
    if not first.startswith(b"v") or not first[1:].isdigit():
        raise LogFormatError(f"it does not begin with a version: {first[:20].decode('utf-8', 'replace')!r}")
    if int(first[1:]) not in versions:
        raise LogFormatError(f"it has version {int(first[1:])}; known are {', '.join(map(str, versions))}")
    return int(first[1:]), rest


def _json(data: bytes) -> object:
    try:
        return json.loads(data)
    except ValueError as error:
        raise LogFormatError("it holds JSON that is cut short or damaged") from error


def _object(data: bytes) -> dict[str, Any]:
    found = _json(data)
    if not isinstance(found, dict):
        raise LogFormatError("it holds JSON that is not an object")
    return found


def _field(found: Mapping[str, Any], name: str) -> Any:
    if found.get(name) is None:
        raise LogFormatError(f"it has no {name}")
    return found[name]
