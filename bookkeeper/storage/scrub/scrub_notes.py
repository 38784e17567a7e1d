"""What a scrub remembers over restarts: how far its pass has come, and which ledgers are suspect. Bytes only.

    scrub    stamp "BKSC" of JSON

The suspects must outlive a restart: a start does not read the entry logs, and would not find the damage again. If the
file is damaged a pass begins at once, as fast as it may, and finds it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Final

from bookkeeper.errors import CorruptionError
from bookkeeper.seams import Buffer
from bookkeeper.storage.base.durable_file import stamp, unstamp

VERSION: Final = 1
NAME: Final = "scrub"


@dataclass(slots=True)
class ScrubNotes:
    passed_s: float = 0.0
    """Seconds since the last pass began, in which the bookie ran."""
    behind: tuple[int, int] | None = None
    """Kind and number of the last file that was read to its end."""
    ended: bool = False
    """Whether that pass has come to its end."""
    suspects: list[int] = field(default_factory=list)
    """Ledgers of which entries may be lost by damage."""
    unindexed: list[int] = field(default_factory=list)
    """Those of them of which the index may lack entries."""
    damaged: list[str] = field(default_factory=list)
    """Damaged places that were counted."""

    def encode(self) -> bytes:
        values = {**asdict(self), "suspects": sorted(self.suspects), "unindexed": sorted(self.unindexed)}
        return stamp(b"BKSC", VERSION, json.dumps(values, separators=(",", ":")).encode())

    @classmethod
    def decode(cls, data: Buffer, what: str) -> ScrubNotes:
        """Raises CorruptionError if it is damaged, UnsupportedFormatError if an unknown version wrote it."""
        body = unstamp(data, b"BKSC", VERSION, what)
        try:
            values = json.loads(body)
            behind = values.pop("behind")
            return cls(behind=None if behind is None else (int(behind[0]), int(behind[1])), **values)
        except (ValueError, TypeError, KeyError, AttributeError, IndexError) as error:
            raise CorruptionError(f"{what}: {error}") from error

    def with_suspects(self, ledgers: Iterable[int]) -> ScrubNotes:
        """A copy with these suspects, too."""
        return replace(self, suspects=sorted({*self.suspects, *ledgers}))
