"""What reading and writing a tree of versioned values means: shared by the stores that keep the tree themselves.

The meaning is ZooKeeper's: a created value has version 0, sequential names count the children ever created under
their parent, a value with children cannot be deleted, an ephemeral one has no children and goes with its session.
A store brings the :class:`Tree`, makes a :class:`Transaction` all or nothing, and tells the watches what it touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from bookkeeper.errors import (
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    NoSuchKeyError,
    NotEmptyError,
)
from bookkeeper.meta.store import Check, Create, Delete, Operation, Set, Version, check_creation, check_path, parent_of


@dataclass(frozen=True, slots=True)
class TreeNode:
    """One value with its versions, times and owner."""

    value: bytes
    version: int
    created_ms: int
    transaction: int
    """The transaction that wrote this version."""
    owner: int | None
    """The session to which an ephemeral value belongs."""
    children_made: int = 0
    """How many children were ever created: the number in the next sequential name."""
    children_changed: int = 0
    """The last transaction that created or deleted a child."""
    created_txn: int = 0
    """The transaction that created it."""


class Tree(Protocol):
    """Keeps the nodes."""

    def find(self, path: str) -> TreeNode | None: ...
    def put(self, path: str, node: TreeNode) -> None: ...
    def remove(self, path: str) -> None: ...
    def names(self, path: str) -> list[str]:
        """The names of the children, sorted."""

    def written_after(self, transaction: int) -> list[str]:
        """The paths of the values whose version was written by a later transaction."""

    def owned(self, session: int) -> list[str]:
        """The paths of a session's ephemeral values, sorted."""


class Transaction:
    """Changes that become visible together. After an exception none of them do."""

    def __init__(self, tree: Tree, *, session: int, number: int, now_ms: int) -> None:
        self._tree = tree
        self._session = session
        self._number = number
        self._now_ms = now_ms
        self.values: dict[str, None] = {}
        """Paths whose value was created, replaced or deleted."""
        self.families: dict[str, None] = {}
        """Paths below which a name appeared or went."""

    def create(
        self, path: str, value: bytes, *, ephemeral: bool, sequential: bool, parents: bool
    ) -> tuple[str, Version]:
        """Raises: KeyExistsError, NoSuchKeyError, MetadataError."""
        parent = parent_of(path)
        if parents and self._tree.find(parent) is None:
            self.create(parent, b"", ephemeral=False, sequential=False, parents=True)
        above = find(self._tree, parent)
        if above.owner is not None:
            raise MetadataError(f"{path} was not created: {parent} is ephemeral, and can have no children")
        if sequential:
            path = f"{path}{above.children_made:010d}"
        if self._tree.find(check_path(path)) is not None:
            raise KeyExistsError(path)
        owner = self._session if ephemeral else None
        self._tree.put(path, TreeNode(value, 0, self._now_ms, self._number, owner, created_txn=self._number))
        self._tree.put(parent, replace(above, children_made=above.children_made + 1, children_changed=self._number))
        self.values[path] = None
        self.families[parent] = None
        return path, Version(0)

    def set(self, path: str, value: bytes, expected: Version | None, created_txn: int = 0) -> Version:
        """Raises: NoSuchKeyError, MetadataConflictError."""
        check_creation(path, find(self._tree, path).created_txn, created_txn)
        node = self.check(path, expected)
        self._tree.put(path, replace(node, value=value, version=node.version + 1, transaction=self._number))
        self.values[path] = None
        return Version(node.version + 1)

    def delete(self, path: str, expected: Version | None) -> None:
        """Raises: NoSuchKeyError, MetadataConflictError, NotEmptyError."""
        self.check(path, expected)
        if path == "/" or self._tree.names(path):
            raise NotEmptyError(path)
        self._tree.remove(path)
        parent = parent_of(path)
        self._tree.put(parent, replace(find(self._tree, parent), children_changed=self._number))
        self.values[path] = None
        self.families[path] = None
        self.families[parent] = None

    def check(self, path: str, expected: Version | None) -> TreeNode:
        """Raises: NoSuchKeyError, MetadataConflictError."""
        node = find(self._tree, path)
        if expected is not None and node.version != expected:
            raise MetadataConflictError(f"{path} has version {node.version}, not {expected}: somebody else wrote it")
        return node

    def run(self, operations: Sequence[Operation]) -> list[Version | None]:
        """Perform the operations in order. Raises the error of the first that fails."""
        return [self._one(operation) for operation in operations]

    def end_session(self, session: int) -> None:
        """Delete the ephemeral values of a session."""
        for path in self._tree.owned(session):
            self.delete(path, None)

    def _one(self, operation: Operation) -> Version | None:
        match operation:
            case Create(path, value, ephemeral):
                return self.create(path, value, ephemeral=ephemeral, sequential=False, parents=False)[1]
            case Set(path, value, expected):
                return self.set(path, value, expected)
            case Delete(path, expected):
                self.delete(path, expected)
            case Check(path, expected):
                self.check(path, expected)
        return None


def find(tree: Tree, path: str) -> TreeNode:
    """The node. Raises: NoSuchKeyError."""
    if (node := tree.find(check_path(path))) is None:
        raise NoSuchKeyError(path)
    return node
