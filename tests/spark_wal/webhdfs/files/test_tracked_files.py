"""A file that is followed has its new path after a rename of it, or above it; others keep theirs."""

from __future__ import annotations

from spark_wal.webhdfs.files.inodes import FileNode
from spark_wal.webhdfs.files.tracked_files import TrackedFiles


def test_a_rename_leads_what_is_at_the_path_and_below_it() -> None:
    node = FileNode(4, 0o644, "a", "g", 0, 0, (), 0, 1, 1)
    files = TrackedFiles()
    below, beside, itself = (files.follow(node, path) for path in ("/a/b/c", "/a/bb", "/a/b"))
    files.lead("/a/b", "/x")
    assert [each.path for each in (below, beside, itself)] == ["/x/c", "/a/bb", "/x"]
    files.unfollow(below)
    files.lead("/x", "/y")
    assert (below.path, itself.path, len(files)) == ("/x/c", "/y", 2)
