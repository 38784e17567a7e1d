"""Which renames HDFS does, answers with false, or refuses: one without options and one with them differ. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from spark_wal.webhdfs.errors import (
    NoSuchFileError,
    PathExistsError,
    PathThroughFileError,
    PlainIOError,
)
from spark_wal.webhdfs.files.inodes import (
    DirectoryNode,
    Node,
)
from spark_wal.webhdfs.files.paths import child_of, is_below, name_of, parent_of
from spark_wal.webhdfs.files.records import Rename, RenameMode
from spark_wal.webhdfs.files.tree_answers import UNCHANGED_FALSE, UNCHANGED_TRUE, ApplyResult

Finder: TypeAlias = Callable[[str], Node | None]
"""What is at a path. Raises a WebHdfsError: it leads through a file."""


def is_repeated(r: Rename, moved: Node | None, at: Finder) -> bool:
    """Whether exactly this rename was done before, and only its reply was lost.

    ``moved``: what was at the source before its last rename, if it was renamed.
    """
    if moved is None:
        return False
    candidates = [r.target]
    if r.mode is RenameMode.BARE:
        candidates.append(child_of(r.target, name_of(r.source)))
    for path in candidates:
        try:
            if at(path) is moved:
                return True
        except PathThroughFileError:
            continue
    return False


def judge_bare(r: Rename, source: Node | None, find: Finder) -> tuple[ApplyResult | None, str]:
    """HDFS's rename without options: the answer if it does nothing, and the real target."""
    target = r.target
    if r.source == "/" or (source is None and r.carried is None):
        return UNCHANGED_FALSE, target
    node = find(target)
    if isinstance(node, DirectoryNode) and target != r.source:
        target = child_of(target, name_of(r.source))
        node = find(target)
    if target == r.source:
        return (UNCHANGED_FALSE if isinstance(source, DirectoryNode) else UNCHANGED_TRUE), target
    if node is not None or is_below(target, r.source):
        return UNCHANGED_FALSE, target
    if find(parent_of(target)) is None:
        return UNCHANGED_FALSE, target
    return None, target


def judge_with_options(r: Rename, source: Node | None, find: Finder) -> None:
    """HDFS's rename with options: it refuses instead of answering false, and never moves into a directory."""
    if source is None and r.carried is None:
        raise NoSuchFileError(f"rename source {r.source} is not found.")
    if r.source == "/":
        raise PlainIOError("rename source cannot be the root")
    if r.source == r.target:
        raise PathExistsError(f"The source {r.source} and destination {r.target} are the same")
    if is_below(r.target, r.source):
        raise PlainIOError(f"Rename destination {r.target} is a directory or file under source {r.source}")
    if r.target == "/":
        raise PlainIOError("rename destination cannot be the root")
    node = find(r.target)
    if node is None:
        if find(parent_of(r.target)) is None:
            raise NoSuchFileError(f"rename destination parent {r.target} not found.")
        return
    if isinstance(node, DirectoryNode) != isinstance(source, DirectoryNode):
        raise PlainIOError(f"Source {r.source} and destination {r.target} must both be directories")
    if r.mode is RenameMode.NONE:
        raise PathExistsError(f"rename destination {r.target} already exists")
    if isinstance(node, DirectoryNode) and node.children:
        raise PlainIOError(f"rename destination directory is not empty: {r.target}")
