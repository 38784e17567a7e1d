"""The header of an entry."""

from __future__ import annotations

import pytest

from bookkeeper.errors import DigestMismatchError
from bookkeeper.ledger import entry


def test_a_header_is_four_big_endian_longs() -> None:
    packed = entry.header(1, 2, -1, 3)
    assert packed == b"".join(n.to_bytes(8, "big", signed=True) for n in (1, 2, -1, 3))
    assert entry.ids(entry.header(7, 8, 6, 99) + b"rest") == (7, 8, 6)


def test_fewer_bytes_than_a_header_are_no_entry() -> None:
    with pytest.raises(DigestMismatchError):
        entry.ids(b"\0" * (entry.HEADER_SIZE - 1))
