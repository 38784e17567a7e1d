"""The manifest: which files are the bookie's, and how far they cover the journal. There is no other mark.

    manifest    stamp "BKMF" of JSON

A temporary file replaces it (K2). Its files hold everything up to its journal position, which never moves back (K14,
K15). Files that it does not name are left over from an unfinished checkpoint or collection. What they hold is in the
journal behind the mark, or dead.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields

from bookkeeper.errors import CorruptionError, check
from bookkeeper.seams import Disk
from bookkeeper.storage.base.durable_file import replace_file, stamp, unstamp

VERSION = 1
NAME = "manifest"


@dataclass(slots=True)
class ManifestLog:
    """An entry log as the manifest knows it."""

    end: int
    """Where the synced records end."""
    finished: bool = False
    """Whether it has its map of ledgers and its footer."""
    usage: dict[int, list[int]] = field(default_factory=dict)
    """Ledger -> [bytes, records], if the log is not finished, or one ledger's."""

    def text(self) -> str:
        """As JSON."""
        usage = ",".join([f'"{ledger}":[{size},{records}]' for ledger, (size, records) in self.usage.items()])
        return f'{{"end":{self.end},"finished":{"true" if self.finished else "false"},"usage":{{{usage}}}}}'


@dataclass(slots=True)
class Manifest:
    directory_id: int = 0
    boot: int = 0
    """The last start that wrote a manifest; 0 if an earlier version did not record it."""
    clean: bool = False
    """Whether the last checkpoint of a clean stop wrote it."""
    file_id: int = 0
    """The journal file that holds the last covered group."""
    sequence: int = 0
    """The last covered group."""
    next_file: int = 1
    """The next journal file id, greater than every id that was used (K10)."""
    next_log: int = 1
    next_segment: int = 1
    logs: dict[int, ManifestLog] = field(default_factory=dict)
    segments: dict[int, int] = field(default_factory=dict)
    """Index segments, older before newer, with their sizes for planning merges."""
    rebuild: bool = False
    """Whether the next start must rebuild the index from the logs, because it is damaged (K19)."""
    limbo: str | None = None
    """Why acknowledged data may be missing."""
    quarantined: list[str] = field(default_factory=list)

    @property
    def deletions(self) -> int | None:
        """The index segment that says of every deleted ledger once more that it was deleted, and says nothing else;
        None: there is none.

        It stands before all others, and its number is greater than that of the next one: so programs that do not know
        of it take it for a segment like others.
        """
        first, second = [*self.segments, -1, -1][:2]
        return first if first > second >= 0 else None

    def encode(self) -> bytes:
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        logs = ",".join([f'"{log_id}":{entry.text()}' for log_id, entry in self.logs.items()])
        texts = {name: json.dumps(value, separators=(",", ":")) for name, value in values.items() if name != "logs"}
        texts["logs"] = f"{{{logs}}}"  # there may be a hundred thousand; one call for all of them would hold others up
        body = ",".join(f'"{name}":{texts[name]}' for name in values)
        return stamp(b"BKMF", VERSION, f"{{{body}}}".encode())

    @classmethod
    def decode(cls, data: bytes, what: str) -> Manifest:
        """Raises CorruptionError if it is damaged, UnsupportedFormatError if an unknown version wrote it."""
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
        """Write the manifest. It is durable when this returns (K2).

        Raises:
            InvariantError: the mark would move back (K14).
        """
        if before is not None:
            forward = (self.file_id, self.sequence) >= (before.file_id, before.sequence)
            check(forward, "K14", f"the mark would move back from group {before.sequence} to {self.sequence}")
        replace_file(disk, f"{directory}/{NAME}", self.encode())


def read_manifest(disk: Disk, directory: str) -> Manifest | None:
    """Read the manifest; None if there is none. Raises CorruptionError, UnsupportedFormatError."""
    path = f"{directory}/{NAME}"
    return Manifest.decode(disk.read_file(path), path) if disk.exists(path) else None
