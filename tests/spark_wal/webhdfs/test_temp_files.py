from __future__ import annotations

from spark_wal.webhdfs.content import MemoryBlobs
from spark_wal.webhdfs.temp_files import TempFile, TempFiles
from spark_wal.webhdfs.uploads import UploadLimits, Uploads


def temp() -> TempFile:
    return TempFile(Uploads(MemoryBlobs(), 1, UploadLimits()).begin(), 0o644, "a", 1, 1, 1)


def test_they_are_found_by_path_and_by_directory() -> None:
    temps = TempFiles()
    one, two = temp(), temp()
    assert temps.put("/c/o/.0.tmp", one) is None
    temps.put("/c/s/.1.tmp", two)
    assert temps.get("/c/o/.0.tmp") is one
    assert temps.names_in("/c/o") == {".0.tmp": one}
    assert temps.names_in("/c") == {}
    assert temps.below("/c") == ["/c/o/.0.tmp", "/c/s/.1.tmp"]
    assert temps.below("/c/o/.0.tmp") == []


def test_a_second_one_of_the_same_name_replaces_the_first() -> None:
    temps = TempFiles()
    one, two = temp(), temp()
    temps.put("/c/.0.tmp", one)
    assert temps.put("/c/.0.tmp", two) is one
    assert len(temps) == 1


def test_what_is_taken_is_gone() -> None:
    temps = TempFiles()
    temps.put("/c/.0.tmp", temp())
    assert temps.pop("/c/.0.tmp") is not None
    assert temps.pop("/c/.0.tmp") is None
    assert temps.names_in("/c") == {}
    assert len(temps) == 0
