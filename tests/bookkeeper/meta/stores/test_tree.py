from __future__ import annotations

import pytest

from bookkeeper.errors import MetadataError, NoSuchKeyError
from bookkeeper.meta.store import Check, Create, Delete, Set, Version
from bookkeeper.meta.stores.memory import MemoryTree
from bookkeeper.meta.stores.tree import Transaction, find


def transaction(tree: MemoryTree, number: int = 1, session: int = 9) -> Transaction:
    return Transaction(tree, session=session, number=number, now_ms=1000 + number)


def make(tree: MemoryTree, path: str, number: int = 1, *, ephemeral: bool = False) -> None:
    transaction(tree, number).create(path, b"", ephemeral=ephemeral, sequential=False, parents=True)


def test_a_node_knows_when_and_by_which_transaction_it_was_made() -> None:
    tree = MemoryTree()
    make(tree, "/a", 3)
    transaction(tree, 4).set("/a", b"x", Version(0))
    node = find(tree, "/a")
    assert (node.created_ms, node.transaction, node.version, node.owner) == (1003, 4, 1, None)
    assert node.created_txn == 3


def test_a_transaction_names_what_it_touched() -> None:
    tree = MemoryTree()
    make(tree, "/old")
    done = transaction(tree, 2)
    done.run([Create("/a"), Create("/a/b"), Set("/a", b"", None), Delete("/old", None), Check("/a", Version(1))])
    assert set(done.values) == {"/a", "/a/b", "/old"}
    assert set(done.families) == {"/", "/a", "/old"}


def test_children_ever_made_are_counted_and_survive_deletion() -> None:
    tree = MemoryTree()
    make(tree, "/a/x")
    transaction(tree, 2).delete("/a/x", None)
    make(tree, "/a/y", 3)
    assert find(tree, "/a").children_made == 2
    assert find(tree, "/a").children_changed == 3


def test_a_session_takes_its_values_with_it_and_no_others() -> None:
    tree = MemoryTree()
    make(tree, "/mine", ephemeral=True)
    transaction(tree, session=8).create("/theirs", b"", ephemeral=True, sequential=False, parents=False)
    transaction(tree, 2).end_session(9)
    assert tree.names("/") == ["theirs"]


def test_nothing_grows_below_an_ephemeral_value() -> None:
    tree = MemoryTree()
    make(tree, "/e", ephemeral=True)
    with pytest.raises(MetadataError):
        make(tree, "/e/a")


def test_the_root_stays() -> None:
    with pytest.raises(MetadataError):
        transaction(MemoryTree()).delete("/", None)
    with pytest.raises(NoSuchKeyError):
        find(MemoryTree(), "/a")
