"""What pip is doing, from what it has written into its log: for people who wait."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_FETCHES: Final = re.compile(r"^\s*Downloading (\S+)(?: \(([\d.]+) (kB|MB|GB)\))?")
_BUILDS: Final = re.compile(r"^\s*Building (?:wheel|editable) for (\S+) .*: (started|finished)")
_READS: Final = re.compile(r"^Processing (?:\S*/)?(\S+)")
_INSTALLS: Final = re.compile(r"^Installing collected packages: (.*)")
_MB: Final = {"kB": 0.001, "MB": 1.0, "GB": 1000.0}


@dataclass(frozen=True, slots=True)
class PipState:
    """What one pip is doing."""

    fetched: int = 0
    """Files that it has begun to fetch, the present one included."""
    fetched_mb: float = 0.0
    """Their size, the present one included."""
    file: str = ""
    """The file that is being fetched; empty: none is."""
    file_mb: float = 0.0
    doing: str = "looks up packages"

    def told(self, file_bytes: int = 0) -> str:
        """In a few words. ``file_bytes``: how much of the present file is there."""
        if not self.file:
            return self.doing
        before, now = self.fetched_mb - self.file_mb, min(file_bytes / 1e6, self.file_mb)
        earlier = f"{self.fetched - 1} files, {before:.0f} MB before"
        return f"fetches {self.file} ({now:.0f} of {self.file_mb:.0f} MB; {earlier})"


def pip_state(log: str) -> PipState:
    """What a pip that has written this does."""
    fetched, total, file, size, doing = 0, 0.0, "", 0.0, "looks up packages"
    for line in log.splitlines():
        if (found := _FETCHES.match(line)) is not None:
            size = float(found[2]) * _MB[found[3]] if found[2] else 0.0
            fetched, total, file = fetched + 1, total + size, found[1]
        elif (found := _BUILDS.match(line)) is not None:
            file, doing = "", f"builds {found[1]}" if found[2] == "started" else "looks up packages"
        elif (found := _READS.match(line)) is not None:
            file, doing = "", f"reads {found[1]}"
        elif "Preparing editable metadata" in line:
            file, doing = "", "prepares the package"
        elif (found := _INSTALLS.match(line)) is not None:
            file, doing = "", f"installs {found[1].count(',') + 1} packages"
        elif line.startswith(("Collecting ", "Successfully ", "Building ")):
            file = ""
    return PipState(fetched, total, file, size, doing)
