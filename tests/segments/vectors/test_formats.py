"""The stored formats stay readable: bytes that an earlier program wrote mean the same today."""

from __future__ import annotations

import json

import pytest

from segments.chain import decode_chain
from segments.config import StreamConfig
from segments.entries.columns import RecordColumns
from segments.entries.footer import SegmentFooter
from segments.entries.layout import EntryKind
from segments.entries.stored_entry import decode_entry
from segments.position_format import from_dlsn
from segments.producers import ProducerTable
from tests.segments.vectors.values import (
    BATCHES,
    CHAIN,
    PAGE,
    PAGED,
    RECORDS,
    WITH_PAGES,
    WITH_PASSWORD,
    footer,
    producers,
    vectors,
)

STORED: dict[str, bytes] = {name: bytes.fromhex(data) for name, data in json.loads(PAGE.read_text()).items()}


_READ_ONLY = ("entry-lz4", "entry-zstd", "config-with-idle-producers")
"""What a library compresses may have other bytes; earlier versions wrote a setting that had no effect."""


@pytest.mark.parametrize("name", [name for name in STORED if name not in _READ_ONLY])
def test_the_same_value_has_the_same_bytes(name: str) -> None:
    assert vectors()[name] == STORED[name].hex()


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_an_entry_is_read(codec: str) -> None:
    entry = decode_entry(STORED[f"entry-{codec}"], 2, 5)
    assert [record.as_record() for record in entry.records()] == RECORDS
    assert entry.batches == BATCHES and entry.columns() == RecordColumns.of_records(RECORDS)
    assert (entry.first_seq_no, entry.append_ms, entry.snapshot_entry) == (12, 1_500, 1)


def test_an_entry_of_values_alone_is_read() -> None:
    assert decode_entry(STORED["entry-values"]).values() == [b"a", b"bc"]


def test_a_record_a_position_and_settings_are_read() -> None:
    assert decode_chain(STORED["chain"]) == CHAIN
    assert decode_chain(STORED["chain-with-pages"]) == WITH_PAGES
    assert decode_chain(STORED["chain-with-password"]) == WITH_PASSWORD
    assert tuple(WITH_PAGES.pages[0].with_value(STORED["page"]).segments()) == (PAGED.segment(1),)
    assert from_dlsn(STORED["position"]) == CHAIN.start
    config = StreamConfig.decode(STORED["config"])
    assert StreamConfig.decode(STORED["config-with-idle-producers"]) == config
    assert config.compression == "lz4" and config.retention.max_age_s == 60


def test_producers_and_a_footer_are_read() -> None:
    table = ProducerTable.decode(STORED["producers"])
    assert table.encode() == producers().encode() and len(table) == 2
    assert table.judge("billing", 3, 41, 1).position == (2, 5, 1)
    table = ProducerTable.decode(STORED["producers-forgotten"])
    assert (table.forgotten, table.forgotten_epoch) == (3, 3)
    assert [(each.name, each.epoch, each.doubtful) for each in table.states] == [
        ("young", 8, False),
        ("new", 4, True),
    ]
    assert SegmentFooter.decode(STORED["footer"]) == footer()
    assert decode_entry(STORED["control"]).kind is EntryKind.CONTROL
