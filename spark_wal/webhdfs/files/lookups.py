"""From a path to what is there, and what the answer rests on. Pure."""

from __future__ import annotations

from spark_wal.webhdfs.errors import NoSuchFileError, ParentNotDirectoryError, PathExistsError, PathThroughFileError
from spark_wal.webhdfs.files.inodes import DirectoryNode, FileNode, Node
from spark_wal.webhdfs.files.paths import names_of
from spark_wal.webhdfs.files.tree_answers import PathLookup, shown


def look_up(root: DirectoryNode, path: str) -> PathLookup:
    """Find what is at ``path``. A directory's children are part of it: their number and its time are shown with it.

    Raises:
        PathThroughFileError: the path leads through a file.
    """
    node: Node = root
    seen = node.changed
    for name in names_of(path):
        if isinstance(node, FileNode):
            raise _through_file(root, path)
        child = node.children.get(name)
        if child is None:
            return PathLookup(None, max(seen, node.names_changed))
        node = child
        if node.changed > seen:
            seen = node.changed
    return PathLookup(node, max(seen, shown(node)))


def node_at(root: DirectoryNode, path: str) -> Node | None:
    """Find the node for a change: what the answer rests on is not asked."""
    node: Node = root
    for name in names_of(path):
        if isinstance(node, FileNode):
            raise _through_file(root, path)
        child = node.children.get(name)
        if child is None:
            return None
        node = child
    return node


def _through_file(root: DirectoryNode, path: str) -> PathThroughFileError:
    node: Node = root
    at = ""
    for name in names_of(path):
        if isinstance(node, FileNode):
            break
        at, node = f"{at}/{name}", node.children[name]
    return PathThroughFileError(f"{at} (is not a directory)")


def ancestors(root: DirectoryNode, path: str) -> list[DirectoryNode]:
    """The directories from the root down to ``path`` that exist."""
    node = root
    found = [node]
    for name in names_of(path):
        child = node.children.get(name)
        if not isinstance(child, DirectoryNode):
            break
        found.append(child)
        node = child
    return found


def existing_file(root: DirectoryNode, path: str, *, overwrite: bool) -> FileNode | None:
    """The file that a new one at ``path`` replaces, if there is one. Raises a WebHdfsError: none can be put there."""
    try:
        node = node_at(root, path)
    except PathThroughFileError as error:
        raise ParentNotDirectoryError(str(error)) from None
    if isinstance(node, DirectoryNode):
        raise PathExistsError(f"{path} already exists as a directory")
    if node is not None and not overwrite:
        raise PathExistsError(f"{path} for client 127.0.0.1 already exists")
    return node


def file_to_append(root: DirectoryNode, path: str) -> FileNode:
    """The file at ``path``. Raises: NoSuchFileError, PathExistsError: it is a directory."""
    node = node_at(root, path)
    if node is None:
        raise NoSuchFileError(f"File {path} not found.")
    if isinstance(node, DirectoryNode):
        raise PathExistsError(f"Cannot append to directory {path}; already exists as a directory.")
    return node
