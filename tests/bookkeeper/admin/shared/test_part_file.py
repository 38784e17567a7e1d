"""A file of a command: its errors name it."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from bookkeeper.admin.shared.part_file import PartFile


def test_what_is_written_is_there(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"what was there before")
    with PartFile(tmp_path / "f") as part:
        part.write(b"one")
        part.write(b"two")
        part.sync()
    assert (tmp_path / "f").read_bytes() == b"onetwo"


@pytest.mark.parametrize("size", [5000, 1 << 20])
def test_a_full_disk_is_named_whether_a_write_or_the_end_finds_it(tmp_path: Path, size: int) -> None:
    """A limit of a file's size stands for a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write() -> None:
        with PartFile(tmp_path / "f") as part:
            part.write(bytes(size))
            part.sync()

    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match=f"too large: '{tmp_path}/f'"):
            write()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
