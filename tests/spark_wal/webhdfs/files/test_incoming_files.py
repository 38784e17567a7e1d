from __future__ import annotations

from spark_wal.webhdfs.files.incoming_files import IncomingFile, IncomingFiles
from spark_wal.webhdfs.files.records import SetAttributes


def file(path: str = "/a") -> IncomingFile:
    return IncomingFile(path, 0o644, "me", 1, 1 << 20, 5)


def test_of_several_uploads_to_a_path_the_last_one_is_meant() -> None:
    files, first, second = IncomingFiles(), file(), file()
    assert files.at("/a") is None
    files.begin(first)
    files.begin(second)
    assert files.at("/a") is second
    assert files.at("/b") is None
    files.end(second)
    assert files.at("/a") is first
    files.end(second)
    assert files.at("/a") is first, "ending it again ends no other"
    files.end(first)
    files.end(first)
    assert (files.at("/a"), len(files)) == (None, 0)


def test_what_is_set_is_kept_and_what_is_not_stays() -> None:
    made = file()
    made.set(SetAttributes("/a", permission=0o770))
    assert (made.permission, made.owner, made.group, made.accessed_ms) == (0o770, "me", None, None)
    made.set(SetAttributes("/a", owner="you", replication=3, modified_ms=7))
    assert (made.permission, made.owner, made.replication, made.modified_ms) == (0o770, "you", 3, 7)
    assert (made.group, made.accessed_ms) == (None, None)
    made.set(SetAttributes("/a", group="us", accessed_ms=9))
    assert (made.group, made.accessed_ms) == ("us", 9)
