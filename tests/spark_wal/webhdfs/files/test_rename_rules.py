"""HDFS's two renames: the one without options answers false where the other refuses."""

from __future__ import annotations

import pytest

from spark_wal.webhdfs.errors import NoSuchFileError, PathExistsError, PathThroughFileError, PlainIOError, WebHdfsError
from spark_wal.webhdfs.files.inodes import DirectoryNode, FileNode, Node
from spark_wal.webhdfs.files.records import Rename, RenameMode
from spark_wal.webhdfs.files.rename_rules import is_repeated, judge_bare, judge_with_options
from spark_wal.webhdfs.files.tree_answers import UNCHANGED_FALSE, UNCHANGED_TRUE

FILE = FileNode(4, 0o644, "a", "g", 0, 0, (), 0, 1, 1)
EMPTY = DirectoryNode(5, 0o755, "a", "g", 0)
FULL = DirectoryNode(6, 0o755, "a", "g", 0, children={"f": FILE})
TREE: dict[str, Node] = {"/": FULL, "/f": FILE, "/g": FILE, "/empty": EMPTY, "/full": FULL, "/full/f": FILE}


@pytest.mark.parametrize(
    ("source", "target", "answer"),
    [
        ("/f", "/new", (None, "/new")),
        ("/f", "/empty", (None, "/empty/f")),
        ("/f", "/full", (UNCHANGED_FALSE, "/full/f")),
        ("/f", "/g", (UNCHANGED_FALSE, "/g")),
        ("/f", "/f", (UNCHANGED_TRUE, "/f")),
        ("/empty", "/empty", (UNCHANGED_FALSE, "/empty")),
        ("/full", "/full/below", (UNCHANGED_FALSE, "/full/below")),
        ("/f", "/nowhere/new", (UNCHANGED_FALSE, "/nowhere/new")),
        ("/none", "/new", (UNCHANGED_FALSE, "/new")),
        ("/", "/new", (UNCHANGED_FALSE, "/new")),
    ],
)
def test_without_options(source: str, target: str, answer: object) -> None:
    assert judge_bare(Rename(source, target, RenameMode.BARE, 1), TREE.get(source), TREE.get) == answer


@pytest.mark.parametrize(
    ("source", "target", "mode", "error"),
    [
        ("/f", "/new", RenameMode.NONE, None),
        ("/f", "/g", RenameMode.OVERWRITE, None),
        ("/full", "/empty", RenameMode.OVERWRITE, None),
        ("/f", "/g", RenameMode.NONE, PathExistsError),
        ("/f", "/f", RenameMode.OVERWRITE, PathExistsError),
        ("/none", "/new", RenameMode.NONE, NoSuchFileError),
        ("/f", "/nowhere/new", RenameMode.NONE, NoSuchFileError),
        ("/", "/new", RenameMode.NONE, PlainIOError),
        ("/f", "/", RenameMode.OVERWRITE, PlainIOError),
        ("/full", "/full/below", RenameMode.NONE, PlainIOError),
        ("/f", "/empty", RenameMode.OVERWRITE, PlainIOError),
        ("/empty", "/full", RenameMode.OVERWRITE, PlainIOError),
    ],
)
def test_with_options(source: str, target: str, mode: RenameMode, error: type[WebHdfsError] | None) -> None:
    record = Rename(source, target, mode, 1)
    if error is None:
        judge_with_options(record, TREE.get(source), TREE.get)
        return
    with pytest.raises(error):
        judge_with_options(record, TREE.get(source), TREE.get)


@pytest.mark.rule("S4")
def test_s4_only_the_rename_that_was_done_is_a_repeat() -> None:
    moved = FileNode(7, 0o644, "a", "g", 0, 0, (), 0, 1, 1, renamed_from="/a")
    tree: dict[str, Node] = {"/b": moved, "/d/a": moved}
    bare, plain = RenameMode.BARE, RenameMode.NONE
    assert is_repeated(Rename("/a", "/b", plain, 1), moved, tree.get)
    assert is_repeated(Rename("/a", "/d", bare, 1), moved, tree.get), "into a directory"
    for other in (Rename("/a", "/c", plain, 1), Rename("/a", "/d", plain, 1)):
        assert not is_repeated(other, moved, tree.get)
    assert not is_repeated(Rename("/a", "/b", plain, 1), None, tree.get), "nothing was ever renamed from there"


def test_a_target_below_a_file_is_no_repeat() -> None:
    def at(path: str) -> Node | None:
        raise PathThroughFileError(path)

    assert not is_repeated(Rename("/a", "/b/c", RenameMode.NONE, 1), FILE, at)
