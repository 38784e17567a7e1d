"""The table ``[audit]``: where the lines go, and how many there may be. Defaults stand here and nowhere else."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from bookkeeper.errors import require, require_range

LOG: Final = "log"
"""Instead of a file: the lines go to the program's log."""

KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditConfig:
    """The table ``[audit]``."""

    to: str | None = None
    """An absolute path of a file, or ``log`` for the program's log. Default: nothing is noted."""

    file_bytes: int = 64 * MIB
    """Bytes at which the file is put aside and the next one begins."""

    files_kept: int = 10
    """How many files that were put aside are kept: ``.1`` is the newest one. The oldest is removed."""

    queue_bytes: int = 4 * MIB
    """Bytes of lines that wait to be written. A line beyond that is left out, and counted."""

    peer_lines_per_s: float = 100.0
    """Lines a second of one kind from one peer, in the long run. A line beyond that is left out, and counted."""

    peer_lines_at_once: int = 1000
    """How many such lines may come at once."""

    def __post_init__(self) -> None:
        if self.to is not None:
            require(bool(self.to), "audit.to is empty; it must be a path, or log")
            require(
                self.to == LOG or os.path.isabs(self.to),
                f'audit.to must be an absolute path, or log for the log, not "{self.to}"',
            )
        require_range(self, "file_bytes", "queue_bytes", least=64 * KIB, table="audit.")
        require_range(self, "files_kept", least=0, most=10_000, table="audit.")
        require_range(self, "peer_lines_per_s", above=0, table="audit.")
        require_range(self, "peer_lines_at_once", least=1, table="audit.")
