"""Files by the number with which their names begin: which of them go when a directory goes back to a number. Pure.

Logs and state of a streaming query are such files (``offsets/7``, ``state/0/1/8_id.zip.crc``). Client and gateway
decide by the same function, and compare what they have seen by the same digest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from spark_wal.webhdfs.errors import IllegalArgumentError
from spark_wal.webhdfs.files.inodes import DirectoryNode, FileNode

_NUMBER: Final = re.compile(r"([0-9]{1,18})(?:[._].*)?", re.DOTALL)
_LIMIT: Final = re.compile(r"([^,:]+):([0-9]{1,18})")
LIMITS_MAX: Final = 64


@dataclass(frozen=True, slots=True)
class NumberLimit:
    """The last number that stays in some directories."""

    directories: str
    """Names between slashes, below the directory that goes back; ``*`` is any one name."""
    last: int

    def removes(self, path: str) -> bool:
        """Whether this file goes: it lies in such a directory, and its name begins with a greater number."""
        directory, _, name = path.rpartition("/")
        number = _NUMBER.fullmatch(name)
        if number is None or int(number[1]) <= self.last:
            return False
        wanted, given = self.directories.split("/"), directory.split("/")
        return len(wanted) == len(given) and all(w in ("*", g) for w, g in zip(wanted, given, strict=True))


Limits = tuple[NumberLimit, ...]


def removed_by(limits: Limits, paths: Iterable[str]) -> list[str]:
    """The files that go, in order. Paths are relative."""
    return sorted(path for path in paths if any(limit.removes(path) for limit in limits))


def files_below(directory: DirectoryNode) -> Iterator[tuple[str, FileNode]]:
    """Each file, however deep, by its path relative to the directory."""
    waiting = [("", directory)]
    while waiting:
        above, node = waiting.pop()
        for name, child in node.children.items():
            if isinstance(child, DirectoryNode):
                waiting.append((f"{above}{name}/", child))
            else:
                yield above + name, child


def listing_digest(files: Iterable[tuple[str, int, int]]) -> str:
    """A digest of relative path, length and modification time (in milliseconds) of each file, in any order."""
    lines = sorted(f"{path}\0{length}\0{modified_ms}\n" for path, length, modified_ms in files)
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def limits_text(limits: Limits) -> str:
    """The limits as a request has them."""
    return ",".join(f"{limit.directories}:{limit.last}" for limit in limits)


def parse_limits(text: str) -> Limits:
    """Raises IllegalArgumentError: the text is not DIRECTORIES:NUMBER, several with commas between them."""
    parts = text.split(",")
    found = [_LIMIT.fullmatch(part) for part in parts[: LIMITS_MAX + 1]]
    if len(parts) > LIMITS_MAX or not all(found):
        raise IllegalArgumentError(
            f'Invalid value for webhdfs parameter "limits": expected DIRECTORIES:NUMBER, at most {LIMITS_MAX} of them '
            "with commas between them"
        )
    return tuple(NumberLimit(each[1], int(each[2])) for each in found if each is not None)
