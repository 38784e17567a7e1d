"""Quotas are counted from the root down: a change is refused by the first directory that it would exceed."""

from __future__ import annotations

import pytest

from spark_wal.webhdfs.errors import NameQuotaExceededError, QuotaExceededError
from spark_wal.webhdfs.files.inodes import DirectoryNode, FileNode
from spark_wal.webhdfs.files.quotas import add_below, check_names, check_quota, length_of, missing_names, summary_of
from spark_wal.webhdfs.files.tree_answers import ContentSummary


def tree() -> DirectoryNode:
    """/c/d, with a file of 4 bytes in d."""
    file = FileNode(4, 0o644, "a", "g", 0, 0, (b"1234",), 4, 1, 1)
    inner = DirectoryNode(3, 0o755, "a", "g", 0, children={"f": file})
    outer = DirectoryNode(2, 0o755, "a", "g", 0, children={"d": inner})
    root = DirectoryNode(1, 0o755, "a", "g", 0, children={"c": outer})
    add_below(root, "/", 0, 1)
    add_below(root, "/c", 0, 1)
    add_below(root, "/c/d", 4, 1)
    return root


def test_every_directory_above_counts_what_is_added() -> None:
    root = tree()
    outer = root.children["c"]
    assert isinstance(outer, DirectoryNode)
    assert (root.bytes_below, root.names_below) == (4, 3)
    assert (outer.bytes_below, outer.names_below) == (4, 2)
    assert summary_of(root) == ContentSummary(3, 1, 4, None)
    assert (length_of(None), length_of(outer)) == (0, 4)
    assert missing_names(root, "/c/d/x/y") == 2


def test_a_quota_is_full_at_its_number_and_not_before() -> None:
    root = tree()
    outer = root.children["c"]
    assert isinstance(outer, DirectoryNode)
    outer.quota, outer.names_quota = 6, 4
    check_quota(root, "/c/d", 2)
    with pytest.raises(QuotaExceededError, match="quota of /c is exceeded: quota = 6 B but diskspace consumed = 7 B"):
        check_quota(root, "/c/d", 3)
    check_names(root, "/c/d", 1)
    with pytest.raises(NameQuotaExceededError, match="directory /c is exceeded: quota=4 file count=5"):
        check_names(root, "/c/d", 2)


def test_a_move_inside_a_directory_adds_nothing_to_it() -> None:
    root = tree()
    outer = root.children["c"]
    assert isinstance(outer, DirectoryNode)
    outer.quota, outer.names_quota = 4, 3
    check_quota(root, "/c", 4, moved_from="/c/d/f")
    check_names(root, "/c", 1, "/c/d/f")
    for other in ("/e", None):
        with pytest.raises(QuotaExceededError):
            check_quota(root, "/c", 4, moved_from=other)
        with pytest.raises(NameQuotaExceededError):
            check_names(root, "/c", 1, other)
