"""Files whose bytes are on their way: they are not in the tree yet, but have attributes already. A machine.

HDFS makes a file when its first byte comes, so a client may give it attributes and ask for its status while it still
writes; ``FileSystem.create(fs, path, permission)`` does, and so do Spark's event logs. Here the file appears with its
last byte. Until then its attributes are kept here; the record that makes the file brings them along.

As in HDFS the length of such a file is 0, and a modification time that is set is lost when the file is complete.
"""

from __future__ import annotations

from dataclasses import dataclass

from spark_wal.webhdfs.files.paths import is_below
from spark_wal.webhdfs.files.records import SetAttributes


@dataclass(slots=True, eq=False)
class IncomingFile:
    """The attributes of a file whose upload is open."""

    path: str
    permission: int
    owner: str
    replication: int
    block_size: int
    modified_ms: int
    group: str | None = None
    """None: that of its directory."""
    accessed_ms: int | None = None
    """None: when the file was complete."""

    def set(self, r: SetAttributes) -> None:
        """Set the attributes of a record."""
        self.permission = self.permission if r.permission is None else r.permission
        self.owner = r.owner or self.owner
        self.group = r.group or self.group
        self.replication = self.replication if r.replication is None else r.replication
        self.modified_ms = self.modified_ms if r.modified_ms is None else r.modified_ms
        self.accessed_ms = self.accessed_ms if r.accessed_ms is None else r.accessed_ms


class IncomingFiles:
    """The open files of one owner, by path."""

    def __init__(self) -> None:
        self._at: dict[str, list[IncomingFile]] = {}

    def begin(self, file: IncomingFile) -> None:
        self._at.setdefault(file.path, []).append(file)

    def end(self, file: IncomingFile) -> None:
        """Forget the file, because it has appeared, or never will. Idempotent."""
        rest = self._at.get(file.path, [])
        if file in rest:
            rest.remove(file)
            if not rest:
                del self._at[file.path]

    def at(self, path: str) -> IncomingFile | None:
        """The file at ``path`` whose upload began last: of several, requests mean that one."""
        found = self._at.get(path)
        return found[-1] if found else None

    def below(self, directory: str) -> str | None:
        """The path of one that is below a directory; None if there is none."""
        return next((path for path in self._at if is_below(path, directory)), None)

    def __len__(self) -> int:
        return len(self._at)
