"""What a check finds wrong with a file of a bookie. Data."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class FileKind(IntEnum):
    """In the order in which they are read."""

    MANIFEST = 0
    JOURNAL = 1
    INDEX = 2
    LOG = 3
    STATE = 4
    """Cookies, and the bookie's notes about itself."""

    @property
    def word(self) -> str:
        """As people read it."""
        return _WORDS[self]


_WORDS = {
    FileKind.MANIFEST: "manifest",
    FileKind.JOURNAL: "journal file",
    FileKind.INDEX: "index segment",
    FileKind.LOG: "entry log",
    FileKind.STATE: "state file",
}


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file that is to be checked."""

    kind: FileKind
    number: int
    """Its id; 0 for kinds of which there is one."""
    size: int
    """About how many bytes will be read."""


@dataclass(frozen=True, slots=True)
class DamagedPlace:
    """One damaged place."""

    kind: FileKind
    number: int
    """The file's id, as in :class:`CheckedFile`."""
    path: str
    offset: int
    size: int
    """Bytes of the stretch; 0 if it is a fact about the whole file."""
    what: str
    """What is wrong, as the end of a sentence that begins with the file."""
    ledgers: frozenset[int] | None = frozenset()
    """Of which ledgers entries may be lost by it; None: nobody can tell."""

    @property
    def place(self) -> tuple[str, int]:
        """What makes it the same one when it is found again."""
        return self.path, self.offset

    def explains(self, log_id: int, offset: int | None) -> bool:
        """Whether this is why an entry log could not be read at an offset, or anywhere."""
        if self.kind is not FileKind.LOG or self.number != log_id:
            return False
        all_of_it = not self.size and self.ledgers != frozenset()
        return offset is None or all_of_it or self.offset <= offset < self.offset + self.size

    def report(self) -> dict[str, object]:
        """The place, as plain data."""
        return {
            "kind": self.kind.word,
            "path": self.path,
            "offset": self.offset,
            "bytes": self.size,
            "what": self.what,
            "ledgers": None if self.ledgers is None else sorted(self.ledgers),
        }

    def __str__(self) -> str:
        where = f" at byte {self.offset}" if self.size else ""
        return f"{self.path}{where}: {self.what}"
