"""Numbers of bytes as people write them."""

from __future__ import annotations

import click
import pytest

from bookkeeper.admin.bookies.operations import drain
from bookkeeper.admin.shared.amounts import byte_count


@pytest.mark.parametrize(("text", "size"), [("4096", 4096), ("20M", 20 << 20), ("1g", 1 << 30), ("500KB", 500 << 10)])
def test_numbers_of_bytes(text: str, size: int) -> None:
    assert byte_count(click.Context(drain), drain.params[0], text) == size


@pytest.mark.parametrize("text", ["", "0", "-5", "fast", "1.5M", "M"])
def test_what_is_no_number_of_bytes(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a number of bytes"):
        byte_count(click.Context(drain), drain.params[0], text)
