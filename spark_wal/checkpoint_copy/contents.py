"""What belongs to a checkpoint, in which order it is copied, and how an unfinished copy shows itself.

A query begins with ``metadata`` (its id), then ``offsets`` and ``commits``. While the target's ``metadata`` is our note
instead of JSON, no query can start there, because Spark reads it first and fails. The real one comes last, when
everything else is there and was read back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

METADATA: Final = "metadata"
NOTE_MAX: Final = 4096
"""The length of the longest note, in bytes."""

_NOTE: Final = "unfinished_bk_checkpoint_copy of: "
_TEMPORARY: Final = re.compile(r"\..+\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(\.TID\d+)?\.tmp")
_NAMING_PLACES: Final = re.compile(r"(^|/)(_metadata|_stateSchema)/")


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What a listing says about a file."""

    size: int
    modified: int
    """The time of the last change in the store's own unit; stamps are only compared for equality."""
    modified_ms: int = field(default=0, compare=False)
    """The same in milliseconds since 1970; 0 where the store does not say."""
    owner: str = field(default="", compare=False)
    """Who wrote it; empty where the store does not say."""


def is_temporary(path: str) -> bool:
    """Whether Spark gives this name to a file that it is still writing."""
    return _TEMPORARY.fullmatch(path.rpartition("/")[2]) is not None


def belongs(path: str, all_paths: Collection[str]) -> bool:
    """Whether this file is copied. Not copied: what writers leave behind, and what Hadoop's local file system adds.

    Spark's temporary files mean nothing once their writer has ended. ``.x.crc`` beside ``x`` is Hadoop's own checksum
    of a local file; ``x.crc`` is Spark's, and belongs to the checkpoint.
    """
    directory, slash, name = path.rpartition("/")
    if _TEMPORARY.fullmatch(name):
        return False
    if name.startswith(".") and name.endswith(".crc"):
        covered = directory + slash + name[1:-4]
        return not (covered in all_paths or _TEMPORARY.fullmatch(name[1:-4]))
    return True


def why_not_one(paths: Iterable[str]) -> str | None:
    """Why these files are not a checkpoint of a query; None if they are one."""
    tops = {path.partition("/")[0] for path in paths}
    if not tops:
        return "there is nothing"
    if "_spark_metadata" in tops:
        return "it is the output of a file sink, whose _spark_metadata names full addresses"
    if METADATA not in tops or "offsets" not in tops:
        return "a query's checkpoint has a file named metadata and a directory named offsets"
    return None


def stages(paths: Iterable[str]) -> list[list[str]]:
    """The files in four steps: state and the rest; commits; offsets; metadata."""
    steps: list[list[str]] = [[], [], [], []]
    for path in sorted(paths):
        top, slash, _ = path.partition("/")
        steps[3 if path == METADATA else {"commits": 1, "offsets": 2}.get(top, 0) if slash else 0].append(path)
    return steps


def names_places(path: str) -> bool:
    """Whether Spark may have written full addresses into this file (transformWithState does)."""
    return _NAMING_PLACES.search(path) is not None


def note(source: str) -> bytes:
    """The ``metadata`` of an unfinished copy. It is not JSON, so no query starts."""
    return f"{_NOTE}{source}\n".encode()


def source_of(data: bytes) -> str | None:
    """The address from which an unfinished copy came. None: ``metadata`` is no note."""
    text = data.decode("utf-8", "replace")
    return text.removeprefix(_NOTE).rstrip("\n") if text.startswith(_NOTE) else None


def difference(before: Mapping[str, FileStamp], after: Mapping[str, FileStamp]) -> str | None:
    """Say in a few words what changed between two listings. None: nothing."""
    for path in sorted(before.keys() | after.keys()):
        if path not in after:
            return f"{path} was removed"
        if path not in before:
            return f"{path} is new"
        if before[path] != after[path]:
            return f"{path} has changed"
    return None
