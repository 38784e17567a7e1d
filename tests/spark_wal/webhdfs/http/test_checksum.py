from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_wal.webhdfs.http.checksum import CompositeChecksum


def checksum(data: bytes, block_size: int, cuts: list[int] | None = None) -> tuple[str, str, int]:
    composite = CompositeChecksum(block_size)
    last = 0
    for at in [*sorted(cuts or []), len(data)]:
        composite.add(data[last:at])
        last = max(at, last)
    return composite.finish()


@pytest.mark.parametrize(
    ("data", "algorithm", "value"),
    [
        (b"", "MD5-of-0MD5-of-0CRC32", "00000000000000000000000070bc8f4b72a86921468bf8e8441dce5100000000"),
        (
            b"0123456789abcd!",
            "MD5-of-0MD5-of-512CRC32C",
            "000002000000000000000000348c58401444699e48f5e1bc7b58efff00000000",
        ),
    ],
)
def test_what_hdfs_says(data: bytes, algorithm: str, value: str) -> None:
    assert checksum(data, 1 << 27) == (algorithm, value, 28)


@given(st.binary(max_size=5000), st.lists(st.integers(0, 5000), max_size=5), st.sampled_from([512, 1024, 1536]))
def test_how_the_bytes_come_does_not_matter(data: bytes, cuts: list[int], block_size: int) -> None:
    assert checksum(data, block_size, [min(c, len(data)) for c in cuts]) == checksum(data, block_size)


def test_several_blocks_are_named() -> None:
    assert checksum(bytes(3000), 1024)[0] == "MD5-of-2MD5-of-512CRC32C"
