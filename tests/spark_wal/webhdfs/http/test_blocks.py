from __future__ import annotations

import pytest

from spark_wal.webhdfs.http.blocks import SIZE_MIN, FileBlock, blocks_of

MB = SIZE_MIN
WHOLE = [FileBlock(0, 0, 2 * MB), FileBlock(1, 2 * MB, 2 * MB), FileBlock(2, 4 * MB, 1)]


@pytest.mark.parametrize(
    ("offset", "count", "numbers"),
    [
        (0, None, [0, 1, 2]),
        (0, 1, [0]),
        (2 * MB - 1, 2, [0, 1]),
        (2 * MB, 2 * MB, [1]),
        (2 * MB, 2 * MB + 1, [1, 2]),
        (4 * MB, None, [2]),
        (4 * MB + 1, None, []),
        (4 * MB + 1, 100, []),
        (1 << 62, 1 << 62, []),
        (3, 0, [0]),
    ],
)
def test_those_that_have_any_of_the_bytes(offset: int, count: int | None, numbers: list[int]) -> None:
    assert list(blocks_of(4 * MB + 1, 2 * MB, offset, count)) == [WHOLE[number] for number in numbers]


def test_an_empty_file_has_none() -> None:
    assert list(blocks_of(0, 2 * MB, 0, None)) == []
    assert list(blocks_of(0, 2 * MB, 0, 0)) == []


def test_a_list_of_them_has_an_end() -> None:
    """A client may give a file blocks of one byte."""
    assert len(list(blocks_of(64 * MB, 1, 0, None))) == 64
