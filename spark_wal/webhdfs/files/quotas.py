"""What directories have below them, and what their quotas allow: bytes, and names of files and directories. Pure."""

from __future__ import annotations

from spark_wal.webhdfs.errors import (
    NameQuotaExceededError,
    QuotaExceededError,
)
from spark_wal.webhdfs.files.inodes import (
    DirectoryNode,
    FileNode,
    Node,
    directories_below,
)
from spark_wal.webhdfs.files.lookups import ancestors
from spark_wal.webhdfs.files.paths import is_below, names_of
from spark_wal.webhdfs.files.records import NewFile
from spark_wal.webhdfs.files.tree_answers import ContentSummary


def summary_of(node: Node) -> ContentSummary:
    """The sums of everything at and below a node."""
    if isinstance(node, FileNode):
        return ContentSummary(0, 1, node.length, None, None)
    directories = files = 0
    for directory in directories_below(node):
        directories += 1
        files += sum(isinstance(child, FileNode) for child in directory.children.values())
    return ContentSummary(directories, files, node.bytes_below, node.quota, node.names_quota)


def length_of(node: Node | None) -> int:
    """How many bytes there are at and below a node."""
    if node is None:
        return 0
    return node.length if isinstance(node, FileNode) else node.bytes_below


def add_below(root: DirectoryNode, directory: str, size: int, names: int) -> None:
    """Count what a change has added below the directory and all above it."""
    for node in ancestors(root, directory):
        node.bytes_below += size
        node.names_below += names


def names_in(node: Node | None) -> int:
    """How many files and directories there are at and below a node."""
    if node is None:
        return 0
    return 1 if isinstance(node, FileNode) else 1 + node.names_below


def missing_names(root: DirectoryNode, path: str) -> int:
    """How many names of a path that is not there have to be made."""
    return len(names_of(path)) + 1 - len(ancestors(root, path))


def check_names(root: DirectoryNode, directory: str, delta: int, moved_from: str | None = None) -> None:
    """Refuse a change that would exceed a directory's quota of names. A move inside the directory adds nothing."""
    if delta <= 0:
        return
    for depth, node in enumerate(ancestors(root, directory)):
        if node.names_quota is None or 1 + node.names_below + delta <= node.names_quota:
            continue
        path = f"/{'/'.join(names_of(directory)[:depth])}"
        if moved_from is not None and is_below(moved_from, path):
            continue
        raise NameQuotaExceededError(
            f"The NameSpace quota (directories and files) of directory {path} is exceeded: "
            f"quota={node.names_quota} file count={1 + node.names_below + delta}"
        )


def check_quota(
    root: DirectoryNode, directory: str, delta: int, *, moved_from: str | None = None, carried: NewFile | None = None
) -> None:
    """Refuse a change that would exceed a directory's quota. A move inside the directory adds nothing."""
    if delta <= 0:
        return
    for depth, node in enumerate(ancestors(root, directory)):
        if node.quota is None or node.bytes_below + delta <= node.quota:
            continue
        path = f"/{'/'.join(names_of(directory)[:depth])}"
        if moved_from is not None and carried is None and is_below(moved_from, path):
            continue
        raise QuotaExceededError(
            f"The DiskSpace quota of {path} is exceeded: quota = {node.quota} B "
            f"but diskspace consumed = {node.bytes_below + delta} B"
        )
