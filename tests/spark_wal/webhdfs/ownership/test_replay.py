"""One edit of a namespace's journal, applied to the tree."""

from __future__ import annotations

import pytest

from journal_manager import Op, TxId
from spark_wal.webhdfs.files.namespace import Namespace
from spark_wal.webhdfs.files.records import DeletePath, MakeDirectories, Record, RecordFormatError, encode_record
from spark_wal.webhdfs.ownership.replay import replay_edit


def edit(txid: int, record: Record) -> Op:
    opcode, body = encode_record(record)
    return Op(opcode=opcode, txid=TxId(txid), body=body)


def test_an_edit_changes_the_tree() -> None:
    tree = Namespace()
    replay_edit(tree, edit(1, MakeDirectories("/a", 0o755, "me", 7)))
    assert "a" in tree.root.children and tree.sequence == 1


def test_an_edit_that_the_tree_refuses_or_that_changes_nothing_does_not_fit() -> None:
    tree = Namespace()
    with pytest.raises(RecordFormatError, match="edit 1 of the journal does not change the tree"):
        replay_edit(tree, edit(1, DeletePath("/none", recursive=False, at_ms=7)))
    replay_edit(tree, edit(1, MakeDirectories("/a/b", 0o755, "me", 7)))
    with pytest.raises(RecordFormatError, match="edit 2 of the journal cannot be applied"):
        replay_edit(tree, edit(2, DeletePath("/a", recursive=False, at_ms=8)))
    with pytest.raises(RecordFormatError):
        replay_edit(tree, Op(opcode=99, txid=TxId(2), body=b"rubbish"))
