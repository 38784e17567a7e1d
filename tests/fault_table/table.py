"""The cells of the table, and what is allowed to come of each."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

EVER: Final = 1 << 60


class Result(Enum):
    """What came of a fault."""

    GOES_ON = "goes on"
    """What met the fault was tried again, or left for later."""
    REFUSES = "refuses adds"
    """Adds are refused as long as it lasts; reads and fences go on."""
    FAILS = "stops"
    """The bookie acknowledges nothing any more, and its process ends."""
    NO_START = "no start"
    """The start is refused, with a sentence."""


class When(Enum):
    """Which of the calls fail: how many pass before, and how many fail."""

    FIRST = (0, 1)
    THIRD = (2, 1)
    ALL = (0, EVER)
    ALL_FROM_THE_THIRD = (2, EVER)

    @property
    def passing(self) -> int:
        return self.value[0]

    @property
    def failing(self) -> int:
        return self.value[1]


NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
SCARCE: Final = (errno.EMFILE, errno.ENOMEM)

CALLS: Final[dict[str, tuple[int, ...]]] = {
    "open": (errno.EIO, errno.ENOSPC, errno.EROFS, errno.EMFILE),
    "pwrite": (errno.EIO, *NO_SPACE, errno.ENOMEM),
    "short pwrite": (errno.EIO, errno.ENOSPC),
    "sync": (errno.EIO, errno.ENOSPC, errno.EDQUOT),
    "truncate": (errno.EIO, errno.EROFS),
    "rename": (errno.EIO, errno.ENOSPC, errno.EROFS),
    "unlink": (errno.EIO, errno.EROFS),
    "sync_directory": (errno.EIO, errno.ENOSPC),
    "pread": (errno.EIO, errno.ENOMEM),
    "close": (errno.EIO,),
}
"""Call -> how it fails."""

PLACES: Final[dict[str, tuple[str, ...]]] = {
    "journal": ("open", "pwrite", "short pwrite", "sync", "rename", "unlink", "pread", "close"),
    "spare": ("open", "pwrite", "short pwrite", "sync", "rename", "unlink"),
    "log": ("open", "pwrite", "short pwrite", "sync", "truncate", "unlink", "pread", "close"),
    "index": ("open", "pwrite", "short pwrite", "sync", "unlink", "pread", "close"),
    "manifest": ("open", "pwrite", "short pwrite", "sync", "rename", "pread", "close"),
    "dirty": ("open", "pwrite", "sync", "unlink"),
    "reserve": ("open", "pwrite", "short pwrite", "sync", "unlink"),
    "journal directory": ("sync_directory",),
    "ledger directory": ("sync_directory",),
}
"""Kind of file -> which calls are made of it."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault: which call, on what, with which error, how often, and in which phase."""

    place: str
    call: str
    code: int
    when: When
    starting: bool
    """In the start after a kill; else while the bookie serves."""

    def __str__(self) -> str:
        phase = "starting" if self.starting else "serving"
        often = self.when.name.replace("_", " ").lower()
        return f"{phase}: {self.call} of the {self.place}: {errno.errorcode[self.code]}, {often}"

    @property
    def allowed(self) -> set[Result]:
        """By the rules K23 to K28."""
        final = self.call == "sync" or (self.call == "sync_directory" and self.code == errno.EIO)
        if self.starting:
            return {Result.NO_START, Result.FAILS} if final else {Result.NO_START, Result.GOES_ON, Result.REFUSES}
        if final:
            return {Result.FAILS}
        if self.code in NO_SPACE:
            return {Result.REFUSES, Result.GOES_ON}
        if self.code in SCARCE:
            return {Result.GOES_ON, Result.REFUSES}
        if self.call == "pread":
            return {Result.GOES_ON}
        return {Result.FAILS, Result.GOES_ON}


def cells(whens: tuple[When, ...] = tuple(When)) -> Iterator[Cell]:
    """All of them. Some are met by no call."""
    for starting in (False, True):
        for place, calls in PLACES.items():
            for call in calls:
                for code in CALLS[call]:
                    for when in whens:
                        yield Cell(place, call, code, when, starting)
