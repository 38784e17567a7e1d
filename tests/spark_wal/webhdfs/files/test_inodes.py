from __future__ import annotations

from spark_wal.webhdfs.files.inodes import BlobRef, DirectoryNode, FileNode


def test_files_know_their_blobs() -> None:
    pieces = (b"abc", BlobRef("7", 5, 10), BlobRef("8", 0, 1))
    file = FileNode(1, 0o644, "a", "g", 1, 1, pieces, 14, 1, 1)
    assert list(file.blobs()) == ["7", "8"]


def test_names_are_in_the_order_of_their_bytes() -> None:
    directory = DirectoryNode(1, 0o755, "a", "g", 1)
    for name in ("b", "a", "é", "B", "😀", "\ufffd"):
        directory.children[name] = DirectoryNode(2, 0o755, "a", "g", 1)
    assert directory.sorted_names() == sorted(directory.children, key=lambda name: name.encode())
