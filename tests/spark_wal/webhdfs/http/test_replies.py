from __future__ import annotations

import json

from spark_wal.webhdfs.errors import NameTooLongError, NoSuchFileError
from spark_wal.webhdfs.files.inodes import DirectoryNode, FileNode
from spark_wal.webhdfs.files.tree_answers import ContentSummary
from spark_wal.webhdfs.http import replies
from spark_wal.webhdfs.ownership.file_system import FileStatus

FILE = FileNode(16390, 0o644, "alice", "users", 7, 6, (b"abc",), 3, 1, 1 << 27)
DIRECTORY = DirectoryNode(16391, 0o1777, "alice", "users", 9)


def test_the_checksum_type_is_a_number() -> None:
    assert replies.SERVER_DEFAULTS["FsServerDefaults"]["checksumType"] == 2


def test_a_file_and_a_directory() -> None:
    file = json.loads(replies.file_status(FileStatus.of(FILE)))["FileStatus"]
    assert (file["type"], file["length"], file["permission"], file["pathSuffix"]) == ("FILE", 3, "644", "")
    directory = replies.status_fields(FileStatus.of(DIRECTORY, "d"))
    assert (directory["type"], directory["permission"], directory["pathSuffix"]) == ("DIRECTORY", "1777", "d")


def test_a_listing_has_a_line_for_each() -> None:
    data = replies.file_statuses([FileStatus.of(FILE, "a"), FileStatus.of(DIRECTORY, "b")])
    assert len(data.splitlines()) == 4
    assert [s["pathSuffix"] for s in json.loads(data)["FileStatuses"]["FileStatus"]] == ["a", "b"]
    assert json.loads(replies.file_statuses([]))["FileStatuses"]["FileStatus"] == []


def test_an_exception_says_class_and_message() -> None:
    error = json.loads(replies.remote_exception(NoSuchFileError("File does not exist: /é")))["RemoteException"]
    assert error == {
        "exception": "FileNotFoundException",
        "javaClassName": "java.io.FileNotFoundException",
        "message": "File does not exist: /é",
    }
    assert NameTooLongError("x").name == "PathComponentTooLongException"


def test_a_summary_says_its_quota() -> None:
    fields = json.loads(replies.content_summary(ContentSummary(2, 3, 40, 100)))["ContentSummary"]
    assert (fields["directoryCount"], fields["fileCount"], fields["length"], fields["spaceQuota"]) == (2, 3, 40, 100)
    assert fields["quota"] == -1
    fields = json.loads(replies.content_summary(ContentSummary(1, 0, 0, None, 7)))["ContentSummary"]
    assert (fields["spaceQuota"], fields["quota"]) == (-1, 7)
