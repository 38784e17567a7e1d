from __future__ import annotations

import pytest

from spark_wal.webhdfs.files import snapshot
from spark_wal.webhdfs.files.inodes import BlobRef, FileNode
from spark_wal.webhdfs.files.namespace import Namespace
from spark_wal.webhdfs.files.records import (
    MakeDirectories,
    NewFile,
    PutFile,
    RecordFormatError,
    Rename,
    RenameMode,
    SetQuota,
)


def some_tree() -> Namespace:
    namespace = Namespace()
    large = NewFile((b"inline", BlobRef("9", 0, 70_000)), 0o600, "bob", 2, 1 << 20, 3)
    namespace.apply(MakeDirectories("/a/empty", 0o700, "alice", 1), 1)
    namespace.apply(PutFile("/a/.t", large, overwrite=False), 2)
    namespace.apply(Rename("/a/.t", "/a/large", RenameMode.NONE, 4), 3)
    namespace.apply(SetQuota("/a", 100_000, 5), 4)
    return namespace


def test_a_tree_survives_its_snapshot() -> None:
    before = some_tree()
    after = snapshot.load(b"".join(snapshot.dump(before)))
    assert snapshot.dump(after) == snapshot.dump(before)
    assert (after.sequence, after.last_inode) == (before.sequence, before.last_inode)
    node = after.find("/a/large").node
    assert isinstance(node, FileNode)
    assert node.pieces == (b"inline", BlobRef("9", 0, 70_000))


def test_a_repeated_rename_is_recognised_after_a_snapshot() -> None:
    after = snapshot.load(b"".join(snapshot.dump(some_tree())))
    again = after.apply(Rename("/a/.t", "/a/large", RenameMode.NONE, 9), 5)
    assert (again.value, again.changed) == (True, False)


@pytest.mark.rule("S9")
def test_s9_a_snapshot_cut_anywhere_is_an_error_and_never_a_smaller_tree() -> None:
    data = b"".join(snapshot.dump(some_tree()))
    for end in range(len(data)):
        with pytest.raises(RecordFormatError):
            snapshot.load(data[:end])
    with pytest.raises(RecordFormatError):
        snapshot.load(data + data)


def test_a_large_tree_comes_in_chunks() -> None:
    namespace = Namespace()
    for number in range(40):
        file = NewFile((bytes(20_000),), 0o644, "a", 1, 1, 1)
        namespace.apply(PutFile(f"/f{number}", file, overwrite=False), number + 1)
    assert len(snapshot.dump(namespace)) > 2
