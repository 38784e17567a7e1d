"""Small values in the metadata store: a newer format and a changed value are refused."""

from __future__ import annotations

import json

import pytest

from segments.errors import StreamCorruptError, UnsupportedStreamFormatError
from segments.retention.checked_json import pack_json, unpack_json


def test_a_value_comes_back() -> None:
    value = {"b": [1, None, "ü"], "a": {}}
    assert unpack_json(pack_json(1, value), 1, "a thing") == value


def test_a_value_that_was_changed_by_hand_is_refused() -> None:
    stored = json.loads(pack_json(1, {"a": 1}))
    stored["value"]["a"] = 2
    with pytest.raises(StreamCorruptError, match="a thing do not have the checksum"):
        unpack_json(json.dumps(stored).encode(), 1, "a thing")


@pytest.mark.parametrize("data", [b"", b"\xff", b"[]", b"{}", b"7"])
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(StreamCorruptError, match="this is not a thing"):
        unpack_json(data, 1, "a thing")


def test_a_newer_format_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedStreamFormatError, match="format 2, and this program reads formats up to 1"):
        unpack_json(pack_json(2, {}), 1, "a thing")
