"""Checkpoints in a gateway's tree: where they are, and what each one's names and times say. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_wal.checkpoint_copy.contents import FileStamp, is_temporary
from spark_wal.checkpoints.layout import Kind, meaning
from spark_wal.webhdfs.files.inodes import DirectoryNode, FileNode
from spark_wal.webhdfs.files.numbered import files_below


@dataclass(frozen=True, slots=True)
class CheckpointDirectory:
    """A directory that holds a query's checkpoint."""

    path: str
    node: DirectoryNode

    @property
    def planned(self) -> int | None:
        """The last batch that has offsets."""
        return max(self._log("offsets"), default=None)

    @property
    def committed(self) -> int | None:
        """The last batch that was done."""
        return max(self._log("commits"), default=None)

    @property
    def newest(self) -> FileNode | None:
        """The file of its logs that was written last: of the batch that was planned, or done, last."""
        logs = (self._log("offsets"), self._log("commits"))
        last = [log[max(log)] for log in logs if log]
        return max(last, key=lambda each: each.modified_ms, default=None)

    @property
    def metadata(self) -> FileNode | None:
        """The file with the query's id."""
        found = self.node.children.get("metadata")
        return found if isinstance(found, FileNode) else None

    @property
    def state_bytes(self) -> int:
        """The bytes of all versions of state."""
        state = self.node.children.get("state")
        return state.bytes_below if isinstance(state, DirectoryNode) else 0

    @property
    def files(self) -> int:
        """How many files and directories it has."""
        return self.node.names_below

    def listing(self, batches: int) -> dict[str, FileNode]:
        """The files by their paths below the checkpoint; of its logs those of the last ``batches`` batches."""
        first = max(self.planned or 0, self.committed or 0) - batches
        found: dict[str, FileNode] = {}
        for path, file in files_below(self.node):
            known = meaning(path)
            if known.kind in (Kind.OFFSETS, Kind.COMMITS) and known.number is not None and known.number <= first:
                continue
            found[path] = file
        return found

    def _log(self, name: str) -> dict[int, FileNode]:
        """The batches of a log, each with its file, whatever else lies there."""
        directory = self.node.children.get(name)
        if not isinstance(directory, DirectoryNode):
            return {}
        named = ((meaning(f"{name}/{each}").number, file) for each, file in directory.children.items())
        return {number: file for number, file in named if number is not None and isinstance(file, FileNode)}


def checkpoint_directories(root: DirectoryNode) -> Iterator[CheckpointDirectory]:
    """Each directory with ``metadata`` beside ``offsets``, by its path. Nothing is looked for below one."""
    waiting = [("", root)]
    while waiting:
        path, node = waiting.pop()
        offsets = node.children.get("offsets")
        if isinstance(node.children.get("metadata"), FileNode) and isinstance(offsets, DirectoryNode):
            yield CheckpointDirectory(path or "/", node)
            continue
        below = ((f"{path}/{name}", child) for name, child in sorted(node.children.items(), reverse=True))
        waiting += [(name, child) for name, child in below if isinstance(child, DirectoryNode)]


def stamp_of(file: FileNode) -> FileStamp:
    """What a gateway's listing says of a file."""
    return FileStamp(file.length, file.modified_ms, file.modified_ms, file.owner)


def being_written(listing: dict[str, FileNode]) -> dict[str, FileNode]:
    """The temporary files: somebody writes them, or their writer died."""
    return {path: file for path, file in sorted(listing.items()) if is_temporary(path)}
