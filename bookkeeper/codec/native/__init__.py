"""The codec of runs, compiled: typed Cython in pure-Python syntax. The same functions and results as ``pure``.

adds            plain adds and their replies
reads           plain reads and the replies that hold an entry
records         disk records, batch replies, places in the index
primitives.pxd  what the three share, inlined into each
crc.h, crc.pxd  checksums, by the CPU's instruction where it has one

Each is an extension of its own; without all three this package cannot be imported, and the codec in Python runs.
"""

from bookkeeper.codec.native.adds import encode_adds, encode_recovery_adds, gather, split_add_replies, split_adds
from bookkeeper.codec.native.reads import answer_reads, encode_reads, split_read_replies, split_reads, unseal_replies
from bookkeeper.codec.native.records import (
    ascending,
    chain_crcs,
    crc32c,
    crc32c_portable,
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
    "crc32c_portable",
    "encode_adds",
    "encode_reads",
    "encode_recovery_adds",
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
