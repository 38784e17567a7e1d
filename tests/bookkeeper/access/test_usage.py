"""What tenants have, as it is stored."""

from __future__ import annotations

import json

import pytest

from bookkeeper.access import Amount, Usage
from bookkeeper.errors import MetadataFormatError

USAGE = Usage(1_700_000_000_000, {"red": Amount(2**50, 3)}, {"etl": Amount(7, 1)})


def test_a_count_reads_back_as_it_was_written() -> None:
    assert Usage.decode(USAGE.encode()) == USAGE
    assert json.loads(USAGE.encode()) == {
        "format": 1,
        "counted_ms": 1_700_000_000_000,
        "tenants": {"red": [2**50, 3]},
        "owners": {"etl": [7, 1]},
    }


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", USAGE.encode().replace(b'"format": 1', b'"format": 2'), USAGE.encode().replace(b"7, 1", b"7")],
)
def test_a_damaged_count_is_refused(data: bytes) -> None:
    with pytest.raises(MetadataFormatError, match="what tenants have"):
        Usage.decode(data)
