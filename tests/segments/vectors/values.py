"""The values of which ``formats.json`` has the bytes. ``python -m tests.segments.vectors.values`` prints new ones."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from segments.chain import RemovedLedger, SegmentContents, SegmentPage, StreamChain, StreamSegment, encode_chain
from segments.config import ProducerPolicy, StreamConfig, StreamRetention
from segments.entries.columns import RecordColumns
from segments.entries.compression import Compression
from segments.entries.entry import encode_entry, encode_payload
from segments.entries.footer import FooterBuilder, SegmentFooter
from segments.entries.layout import EntryKind
from segments.entries.sections import EntryBatch
from segments.position import Position
from segments.position_format import to_dlsn
from segments.producers import ProducerTable
from segments.record import Record

PAGE: Final = Path(__file__).with_name("formats.json")

RECORDS: Final = [
    Record(b"first", 7, b"key", {"trace": b"\x01\x02"}, datetime(2026, 11, 23, 4, 0, tzinfo=UTC)),
    Record(b""),
    Record("größe".encode(), 9, None, {}, datetime(2026, 11, 23, 4, 0, 1, tzinfo=UTC)),
]
BATCHES: Final = (EntryBatch(2, "billing", 3, 40), EntryBatch(1))
CHAIN: Final = StreamChain(
    "00112233445566778899aabbccddeeff",
    4,
    "nonce",
    "host-1",
    "gateway-1:7070",
    (
        StreamSegment(2, 101, 10, 1_000, 3, 2_000, SegmentContents(5, 999, 8, (7, 0), 1, 6, 1_001, 1_999, 5, 6, 8)),
        StreamSegment(3, 102, 15, 2_000, 4),
    ),
    Position(2, 3, 1),
    12,
    4,
    103,
    (RemovedLedger(1, 100),),
    False,
    15,
    6,
)


PAGED: Final = SegmentPage.of(
    (
        StreamSegment(1, 99, 0, 500, 2, 900, SegmentContents(4, 400, 3, (2, 1), 1, 2, 501, 890, None, None, 3)),
        StreamSegment(2, 100, 4, 900, 3, 1_000, SegmentContents(6, 600, 7, (6, 0), 3, 4, 901, 999, 5, 6)),
    ),
    3,
)
WITH_PAGES: Final = replace(
    CHAIN,
    recent=(replace(CHAIN.recent[0], number=3), replace(CHAIN.recent[1], number=4)),
    start=Position(2, 3, 1),
    next_number=5,
    pages=(replace(PAGED.without(1), value=None),),
)


WITH_PASSWORD: Final = replace(CHAIN, password=bytes(range(32)))


def producers() -> ProducerTable:
    """Two producers, of which one has nothing in the stream yet."""
    table = ProducerTable()
    table.apply_entry(BATCHES, 2, 5, 1_500)
    table.open("new", 1_600)
    return table


def forgetful() -> ProducerTable:
    """The same, but a producer was forgotten in between, so that the new one is in doubt."""
    table = producers()
    table.policy = ProducerPolicy(max_producers=2)
    table.apply(EntryBatch(1, "young", 7, 3), Position(2, 6, 0), 1_700)
    table.apply(EntryBatch(1, "younger", 1, 0), Position(2, 7, 0), 1_800)
    table.open("young", 1_850)
    table.open("new", 1_900)
    return table


def footer() -> SegmentFooter:
    """Of a segment with two entries."""
    builder = FooterBuilder()
    builder.add_entry(1, 70_000, 10, 1_001, last_txid=3, max_event_ms=5)
    builder.add_entry(2, 70_000, 12, 1_002, last_txid=6, max_event_ms=6)
    builder.add_producer("billing", 3, 40, 2)
    builder.add_keys([b"key", None, b"other"])
    return builder.build()


def vectors() -> dict[str, str]:
    """Name -> bytes, as hexadecimal digits. Compressed entries are for reading only: libraries may pack better."""
    columns = RecordColumns.of_records(RECORDS)
    entries = {
        f"entry-{codec.name.lower()}": encode_entry(
            columns, first_seq_no=12, append_ms=1_500, batches=BATCHES, snapshot_entry=1, compression=codec
        )
        for codec in Compression
    }
    plain = encode_entry(RecordColumns.of_values([b"a", b"bc"]), first_seq_no=0, append_ms=1)
    raw = {
        "position": to_dlsn(CHAIN.start),
        "chain": encode_chain(CHAIN),
        "chain-with-pages": encode_chain(WITH_PAGES),
        "chain-with-password": encode_chain(WITH_PASSWORD),
        "page": PAGED.value or b"",
        "config": StreamConfig(compression="lz4", retention=StreamRetention(max_age_s=60.0)).encode(),
        "entry-values": plain,
        **entries,
        "producers": producers().encode(),
        "producers-forgotten": forgetful().encode(),
        "footer": footer().encode(),
        "control": encode_payload(EntryKind.CONTROL, b"", next_seq_no=15, append_ms=1_600, snapshot_entry=1),
    }
    return {name: data.hex() for name, data in raw.items()}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(vectors(), indent=1) + "\n")
