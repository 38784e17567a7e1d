"""The entries of a stream's ledgers.

layout        header, kinds, sizes
columns       records as columns
entry         columns to bytes
stored_entry  bytes to records
sections      where the columns lie
compression   lz4 and zstd
lone_entries  entries of one record that follow each other, read as one thing
arrow         an entry's records as Arrow columns
footer        statistics of a completed segment
"""

from segments.entries.columns import BytesColumn, RecordColumns
from segments.entries.compression import Compression, require_library
from segments.entries.entry import encode_entry, encode_payload, encode_pieces, fits_one_entry
from segments.entries.layout import BODY_MAX, NO_SNAPSHOT, EntryKind
from segments.entries.lone_entries import LoneEntries
from segments.entries.sections import EntryBatch, PieceInfo
from segments.entries.stored_entry import StoredEntry, decode_entry

__all__ = [
    "BODY_MAX",
    "NO_SNAPSHOT",
    "BytesColumn",
    "Compression",
    "EntryBatch",
    "EntryKind",
    "LoneEntries",
    "PieceInfo",
    "RecordColumns",
    "StoredEntry",
    "decode_entry",
    "encode_entry",
    "encode_payload",
    "encode_pieces",
    "fits_one_entry",
    "require_library",
]
