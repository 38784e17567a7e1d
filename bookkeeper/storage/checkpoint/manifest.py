"""The manifest: which files are the bookie's, and how far the journal is covered by them. The only mark.

    manifest    stamp "BKMF" of JSON

Replaced by way of a temporary file (K2). The journal position in it covers everything its own files hold, and never
moves back (K14, K15). Files it does not name are left over from an unfinished checkpoint or collection: whatever they
hold is in the journal behind the mark, or dead.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from bookkeeper.errors import CorruptionError, check
from bookkeeper.seams import Disk
from bookkeeper.storage.durable_file import replace_file, stamp, unstamp

VERSION = 1
NAME = "manifest"


@dataclass(slots=True)
class ManifestLog:
    """An entry log as the manifest knows it."""

    end: int
    """Where the synced records end."""
    finished: bool = False
    """It has its ledgers map and footer."""
    usage: dict[int, list[int]] = field(default_factory=dict)
    """Of a log that is not finished: ledger -> [bytes, records]."""


@dataclass(slots=True)
class Manifest:
    directory_id: int = 0
    boot: int = 0
    """The last start that came to a manifest; 0: of before this was kept."""
    clean: bool = False
    """Written by the last checkpoint of a life that ended cleanly."""
    file_id: int = 0
    """The journal file that holds the last covered group."""
    sequence: int = 0
    """Every group up to this one is covered."""
    next_file: int = 1
    """Greater than every journal file id ever used (K10)."""
    next_log: int = 1
    next_segment: int = 1
    logs: dict[int, ManifestLog] = field(default_factory=dict)
    segments: dict[int, int] = field(default_factory=dict)
    """Index segments, older before newer -> size, for planning merges."""
    rebuild: bool = False
    """Index damage was met: rebuild from the logs at the next start (K19)."""
    limbo: str | None = None
    """Why acknowledged data may be missing."""
    quarantined: list[str] = field(default_factory=list)

    def encode(self) -> bytes:
        return stamp(b"BKMF", VERSION, json.dumps(asdict(self), separators=(",", ":")).encode())

    @classmethod
    def decode(cls, data: bytes, what: str) -> Manifest:
        """Raises CorruptionError, UnsupportedFormatError."""
        body = unstamp(data, b"BKMF", VERSION, what)
        try:
            values = json.loads(body)
            logs = {int(log): ManifestLog(**entry) for log, entry in values.pop("logs").items()}
            for entry in logs.values():
                entry.usage = {int(ledger): row for ledger, row in entry.usage.items()}
            segments = {int(segment): size for segment, size in values.pop("segments").items()}
            return cls(logs=logs, segments=segments, **values)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise CorruptionError(f"{what}: {error}") from error

    def write(self, disk: Disk, directory: str, before: Manifest | None) -> None:
        """Durable when this returns (K2).

        Raises:
            InvariantError: the mark would move back (K14).
        """
        if before is not None:
            forward = (self.file_id, self.sequence) >= (before.file_id, before.sequence)
            check(forward, "K14", f"mark from {before.sequence} back to {self.sequence}")
        replace_file(disk, f"{directory}/{NAME}", self.encode())


def read_manifest(disk: Disk, directory: str) -> Manifest | None:
    """None if there is none. Raises CorruptionError, UnsupportedFormatError."""
    path = f"{directory}/{NAME}"
    return Manifest.decode(disk.read_file(path), path) if disk.exists(path) else None
