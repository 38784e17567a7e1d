"""Small values in the metadata store: a newer format and a changed value are refused."""

from __future__ import annotations

import json

import pytest

from segments.errors import StreamCorruptError, UnsupportedStreamFormatError
from segments.retention.checked_json import checked_fields, pack_json, unpack_json


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


def test_fields_are_of_their_kinds_whoever_has_written_them() -> None:
    kinds = {"name": str, "at": int}
    assert checked_fields({"name": "a", "at": 5, "more": []}, kinds, "it")["at"] == 5
    wrong: list[object] = [None, [], {"name": "a"}, {"name": 1, "at": 5}, {"name": "a", "at": True}]
    for odd in (*wrong, {"name": "a", "at": 1.0}):
        with pytest.raises(StreamCorruptError, match="it cannot be read"):
            checked_fields(odd, kinds, "it")
    with pytest.raises(StreamCorruptError, match="its field at is 9223372036854775808"):
        checked_fields({"name": "a", "at": 2**63}, kinds, "it")
