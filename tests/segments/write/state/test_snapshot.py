"""Snapshots, byte for byte."""

from __future__ import annotations

import pytest

from segments.entries.sections import EntryBatch
from segments.errors import EntryCorruptError, UnsupportedStreamFormatError
from segments.position import Position
from segments.producers import ProducerTable
from segments.write.state.contents_tally import ContentsTally
from segments.write.state.snapshot import decode_snapshot, encode_snapshot


def test_a_snapshot_comes_back_as_it_was() -> None:
    table = ProducerTable()
    table.apply(EntryBatch(3, "p", 2, 5), Position(1, 4, 0), 99)
    tally = ContentsTally(10, 1000, 4, (4, 2), 1, 9, 50, 60, None, None)
    payload = encode_snapshot(tally, table)
    found = decode_snapshot(payload)
    assert found.contents == tally
    assert found.producers.encode() == table.encode()
    empty = decode_snapshot(encode_snapshot(ContentsTally(), ProducerTable()))
    assert empty.contents == ContentsTally()


def test_damaged_and_newer_snapshots_are_refused() -> None:
    payload = encode_snapshot(ContentsTally(), ProducerTable())
    with pytest.raises(EntryCorruptError):
        decode_snapshot(payload[:20])
    with pytest.raises(EntryCorruptError):
        decode_snapshot(payload + b"x")
    with pytest.raises(UnsupportedStreamFormatError):
        decode_snapshot(b"\x63" + payload[1:])
