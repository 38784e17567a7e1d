"""What is at a path, and which record the answer rests on."""

from __future__ import annotations

import pytest

from spark_wal.webhdfs.errors import (
    NoSuchFileError,
    ParentNotDirectoryError,
    PathExistsError,
    PathThroughFileError,
    WebHdfsError,
)
from spark_wal.webhdfs.files.inodes import DirectoryNode, FileNode
from spark_wal.webhdfs.files.lookups import ancestors, existing_file, file_to_append, look_up, node_at

FILE = FileNode(4, 0o644, "a", "g", 0, 0, (), 0, 1, 1, changed=5)
INNER = DirectoryNode(3, 0o755, "a", "g", 0, children={"f": FILE}, changed=2, names_changed=7)
ROOT = DirectoryNode(1, 0o755, "a", "g", 0, children={"d": INNER}, changed=1, names_changed=3)


@pytest.mark.rule("S3")
@pytest.mark.parametrize(
    ("path", "node", "seen"), [("/d/f", FILE, 5), ("/d", INNER, 7), ("/d/none", None, 7), ("/none", None, 3)]
)
def test_s3_an_answer_rests_on_the_newest_record_on_its_way(path: str, node: object, seen: int) -> None:
    assert look_up(ROOT, path) == (node, seen)
    assert node_at(ROOT, path) is node


def test_a_path_through_a_file_names_the_file() -> None:
    for find in (look_up, node_at):
        with pytest.raises(PathThroughFileError, match=r"^/d/f \(is not a directory\)"):
            find(ROOT, "/d/f/g")


def test_the_directories_on_the_way_end_where_the_tree_does() -> None:
    assert ancestors(ROOT, "/d/f/g") == [ROOT, INNER]
    assert ancestors(ROOT, "/none/d") == [ROOT]


def test_what_a_new_file_may_replace_and_what_can_be_appended_to() -> None:
    assert existing_file(ROOT, "/d/f", overwrite=True) is FILE
    assert existing_file(ROOT, "/d/new", overwrite=False) is None
    assert file_to_append(ROOT, "/d/f") is FILE
    refusals: list[tuple[type[WebHdfsError], str]] = [
        (PathExistsError, "/d/f"),
        (PathExistsError, "/d"),
        (ParentNotDirectoryError, "/d/f/g"),
    ]
    for error, path in refusals:
        with pytest.raises(error):
            existing_file(ROOT, path, overwrite=False)
    for path, refusal in (("/d", PathExistsError), ("/d/new", NoSuchFileError)):
        with pytest.raises(refusal):
            file_to_append(ROOT, path)
