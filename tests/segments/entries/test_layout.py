from __future__ import annotations

import pytest

from segments.entries.layout import BODY_MAX, CRC, CRC_AT, ENTRY_MAX, HEADER, HEADER_SIZE, padded


def test_the_header_has_56_bytes_and_the_checksum_is_last() -> None:
    assert HEADER_SIZE == 56 and HEADER_SIZE % 8 == 0
    packed = HEADER.pack(b"BKS", 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xAABBCCDD)
    assert packed[CRC_AT:] == b"\xdd\xcc\xbb\xaa" and CRC_AT + CRC.size == HEADER_SIZE
    assert BODY_MAX + HEADER_SIZE == ENTRY_MAX == 1_044_480


@pytest.mark.parametrize(("size", "rounded"), [(0, 0), (1, 8), (7, 8), (8, 8), (9, 16)])
def test_sections_begin_at_multiples_of_8(size: int, rounded: int) -> None:
    assert padded(size) == rounded
