from __future__ import annotations

import pytest

from spark_wal.webhdfs.errors import NameQuotaExceededError
from spark_wal.webhdfs.files import snapshot
from spark_wal.webhdfs.files.inodes import BlobRef, DirectoryNode, FileNode
from spark_wal.webhdfs.files.namespace import Namespace
from spark_wal.webhdfs.files.records import (
    AppendToFile,
    DeletePath,
    MakeDirectories,
    NewFile,
    PutFile,
    Record,
    Rename,
    RenameMode,
    SetAttributes,
)
from spark_wal.webhdfs.files.tree_memory import NAME_BYTES, PIECE_BYTES, TreeMemory, inline_of, size_of


def file(data: bytes = b"x", owner: str = "alice") -> NewFile:
    return NewFile((data,), 0o644, owner, 1, 1 << 20, 7)


def node(**changes: object) -> FileNode:
    fields = {"inode": 1, "permission": 0, "owner": "o", "group": "g", "modified_ms": 0, "accessed_ms": 0}
    fields |= {"pieces": (), "length": 0, "replication": 1, "block_size": 1, **changes}
    return FileNode(**fields)  # type: ignore[arg-type]


def test_what_a_node_takes() -> None:
    memory = TreeMemory()
    memory.add(node())
    assert memory.used == NAME_BYTES + 2
    memory.remove(node())
    memory.add(node(pieces=(b"12345", BlobRef("b", 0, 1 << 40)), renamed_from="/before"))
    assert memory.used == NAME_BYTES + 2 + 5 + 2 * PIECE_BYTES + 2 * len("/before")
    assert size_of("\u00fc") == 4
    assert size_of(None) == 0
    assert inline_of(()) == 0


def walked(namespace: Namespace) -> int:
    """What a tree takes, counted anew."""
    memory = TreeMemory()
    memory.add(namespace.root)
    stack = [namespace.root]
    while stack:
        for name, child in stack.pop().children.items():
            memory.name(name)
            memory.add(child)
            if isinstance(child, DirectoryNode):
                stack.append(child)
    return memory.used


STEPS: list[tuple[Record, str]] = [
    (MakeDirectories("/a/b", 0o755, "al", 1), "a directory and the one above it"),
    (PutFile("/a/b/f", file(b"12"), overwrite=False), "a file"),
    (PutFile("/c/d/f", file(b"12"), overwrite=False, group="a group"), "with directories above it"),
    (PutFile("/a/b/f", file(b"123"), overwrite=True), "another in its place"),
    (AppendToFile("/a/b/f", (b"4567",), 1), "more of it"),
    (SetAttributes("/a/b/f", owner="somebody", group="some group"), "texts"),
    (Rename("/a/b/f", "/c/g", RenameMode.NONE, 1), "a move, whose origin is remembered"),
    (PutFile("/a/b/f", file(), overwrite=False), "a new one there: the origin is forgotten"),
    (Rename("/a/b", "/c/b", RenameMode.BARE, 1), "a directory"),
    (Rename("/c/g", "/c/d/f", RenameMode.OVERWRITE, 1), "over another file"),
    (DeletePath("/c/b", recursive=True, at_ms=1), "with all that is below"),
    (DeletePath("/c", recursive=True, at_ms=1), "the rest"),
]


@pytest.mark.rule("X34")
def test_every_change_is_counted_and_so_is_a_snapshot() -> None:
    namespace = Namespace()
    for sequence, (record, what) in enumerate(STEPS, 1):
        assert namespace.apply(record, sequence).changed
        assert namespace.memory.used == walked(namespace), what
        restored = snapshot.load(b"".join(snapshot.dump(namespace)))
        assert restored.memory.used == walked(restored) == namespace.memory.used, what


@pytest.mark.rule("X34")
@pytest.mark.parametrize(
    "record",
    [
        MakeDirectories("/x", 0o755, "alice", 1),
        PutFile("/x", file(b""), overwrite=False),
        PutFile("/a/f", file(b"1" * NAME_BYTES), overwrite=True),
        AppendToFile("/a/f", (b"1" * NAME_BYTES,), 1),
        SetAttributes("/a/f", owner="o" * NAME_BYTES),
        SetAttributes("/a/f", group="g" * NAME_BYTES),
        Rename("/a/" + "f" * 150, "/a/g", RenameMode.NONE, 1),
        Rename("/.temp", "/a/g", RenameMode.NONE, 1, file(b"1" * NAME_BYTES)),
    ],
)
def test_beyond_its_limit_the_tree_grows_no_more_and_still_shrinks(record: Record) -> None:
    namespace = Namespace()
    namespace.apply(PutFile("/a/f", file(), overwrite=False), 1)
    namespace.apply(PutFile("/a/" + "f" * 150, file(), overwrite=False), 2)
    namespace.memory.limit = namespace.memory.used + 200
    before = namespace.memory.used
    with pytest.raises(NameQuotaExceededError, match=r"--memory-max"):
        namespace.apply(record, 3)
    assert namespace.memory.used == walked(namespace) == before
    namespace.apply(DeletePath("/a/f", recursive=False, at_ms=1), 3)
    assert namespace.memory.used < before
    namespace.memory.limit = None
    namespace.apply(MakeDirectories("/much/more", 0o755, "alice", 1), 4)


def test_an_upload_is_refused_before_its_bytes_come() -> None:
    namespace = Namespace()
    namespace.memory.limit = namespace.memory.used + NAME_BYTES + 4
    namespace.check_put("/abcd", overwrite=False)
    with pytest.raises(NameQuotaExceededError):
        namespace.check_put("/abcde", overwrite=False)
    with pytest.raises(NameQuotaExceededError):
        namespace.check_put("/a/b", overwrite=False)


def test_small_files_take_half_of_it() -> None:
    memory = TreeMemory()
    assert memory.holds(1 << 60)
    memory.limit, memory.used = 1000, 400
    assert memory.holds(100)
    assert not memory.holds(101)
