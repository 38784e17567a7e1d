"""The codec of runs in Python: what a machine without a compiler runs, and what the native one is tested against.

Stateless and total: any bytes give a result, and impossible ones are reported in it. Buffers are contiguous
bytes-like objects; positions are absolute in them.

adds       plain adds and their replies
reads      plain reads and the replies that hold an entry
records    disk records, batch replies, places in the index
frames     the bytes of plain adds and their replies
checksums  CRC32C, and the digests of entries
"""

from bookkeeper.codec.pure.adds import (
    encode_adds,
    encode_recovery_adds,
    fail_acks,
    gather,
    split_add_replies,
    split_adds,
)
from bookkeeper.codec.pure.reads import answer_reads, encode_reads, split_read_replies, split_reads, unseal_replies
from bookkeeper.codec.pure.records import (
    ascending,
    chain_crcs,
    crc32c,
    find_record,
    ledger_runs,
    pack_entries,
    read_record,
    record,
    record_places,
    scan_records,
    scatter,
    split_entries,
    unbroken,
)

__all__ = [
    "answer_reads",
    "ascending",
    "chain_crcs",
    "crc32c",
    "encode_adds",
    "encode_reads",
    "encode_recovery_adds",
    "fail_acks",
    "find_record",
    "gather",
    "ledger_runs",
    "pack_entries",
    "read_record",
    "record",
    "record_places",
    "scan_records",
    "scatter",
    "split_add_replies",
    "split_adds",
    "split_entries",
    "split_read_replies",
    "split_reads",
    "unbroken",
    "unseal_replies",
]
