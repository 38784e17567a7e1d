from __future__ import annotations

import pytest

from spark_wal.webhdfs.errors import NameQuotaExceededError
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
    SetNamesQuota,
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


@pytest.mark.rule("S9")
def test_a_snapshot_with_a_quota_of_names_is_refused_by_versions_that_keep_none() -> None:
    """They would let more names in, and a later version could not replay what they have let in."""
    namespace = some_tree()
    assert b'{"format":1,' in b"".join(snapshot.dump(namespace))
    namespace.apply(SetNamesQuota("/a", 4, 6), 5)
    data = b"".join(snapshot.dump(namespace))
    assert b'{"format":2,' in data
    after = snapshot.load(data)
    with pytest.raises(NameQuotaExceededError):
        after.apply(MakeDirectories("/a/b/c", 0o755, "a", 7), 6)
    assert after.apply(MakeDirectories("/a/b", 0o755, "a", 7), 6).changed
    with pytest.raises(RecordFormatError, match="reads formats up to 2"):
        snapshot.load(data.replace(b'{"format":2,', b'{"format":3,'))
