"""The run codec in Python: what a machine without a compiler runs, and what the native one is tested against.

Stateless; total: any bytes give a result, and impossible ones are reported in it. Buffers are any contiguous
bytes-like object; positions are absolute in the buffer given.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from bookkeeper.runs.shapes import (
    FRAME_MAX,
    RECORD_MAX,
    Adds,
    Entries,
    Packed,
    Payloads,
    Replies,
    Scan,
)
from bookkeeper.seams import Buffer


def crc32c(data: Buffer, seed: int = 0) -> int:
    """CRC32C of ``data``, continuing ``seed``."""
    raise NotImplementedError


def split_adds(
    chunk: Buffer,
    start: int,
    end: int,
    frame_max: int = FRAME_MAX,
    v2_only: bool = False,
    out: bytearray | memoryview | None = None,
    out_start: int = 0,
) -> Adds:
    """Cut whole frames from ``chunk[start:end]``; plain adds become disk records, replies and runs.

    A plain add is v2 version 2 with flags 0, or v3 of the one shape header{3, ADD_ENTRY, txn} + addRequest{ledger,
    entry, 20-byte key, body}, ids not negative and equal to the body's, body of at least 32 bytes. Everything else
    is reported in ``slow``.

    Args:
        frame_max: limit of a frame with its length field.
        v2_only: this connection has spoken v2 before (``Adds.v2`` of the call before): v3 frames are slow.
        out: write records here from ``out_start`` on (an aligned journal buffer), instead of into new bytes. It
            should have room for ``frame_max + 8`` bytes, or the largest add never fits.
    """
    raise NotImplementedError


def fail_acks(acks: Buffer, ack_ends: array[int], i0: int, i1: int, status: int) -> bytes:
    """The replies ``i0 .. i1 - 1`` of ``Adds.acks`` with ``status`` (neutral) instead of success."""
    raise NotImplementedError


def encode_adds(
    dialect: int,
    ledger_id: int,
    first: int,
    payloads: Payloads,
    lac: int,
    length_before: int,
    master_key: bytes,
    digest: int,
    mac_key: bytes = b"",
    txn_base: int = 0,
) -> tuple[bytes, array[int]]:
    """Frames of consecutive plain adds and where each ends (array('q')); the same bytes go to every bookie.

    Args:
        length_before: payload bytes of the ledger before entry ``first``.
        digest: number of the digest kind (:class:`~bookkeeper.runs.shapes.Digest`).
        mac_key: SHA1("mac" + password); HMAC only.
        txn_base: v3: ``stream << 40``; entry e travels under ``txn_base | e mod 2**40``.
    """
    raise NotImplementedError


def split_add_replies(chunk: Buffer, start: int, end: int, frame_max: int = FRAME_MAX) -> Replies:
    """Cut whole frames from ``chunk[start:end]``; replies to streamed adds become runs, the rest is ``slow``.

    A reply that belongs to no stream (v3 transaction id below 2**40, or whose low 40 bits are not the entry id) and
    one with an unknown status is slow.
    """
    raise NotImplementedError


def gather(data: Buffer, ends: array[int], indices: Sequence[int], start: int = 0) -> bytes:
    """The items ``indices`` (ascending) of ``data`` in one piece; item 0 begins at ``start``.

    For E > Qw: the frames of a run that one bookie holds.
    """
    raise NotImplementedError


def record(entry: Buffer) -> bytes:
    """The disk record of one entry: [length u32][crc32c u32 over length and entry][entry]."""
    raise NotImplementedError


def read_record(buffer: Buffer, offset: int, ledger_id: int, entry_id: int) -> bytes | None:
    """The entry in the record at ``offset``; None if crc, ledger or entry id are not as they must be (B7)."""
    raise NotImplementedError


def pack_entries(
    buffer: Buffer, offsets: array[int], ledger_id: int, first: int, size_budget: int, at_least: int = 1
) -> Packed:
    """Verify the records at ``offsets`` (entries ``first``, ``first + 1``, ...) and pack them for a batch reply.

    Stops before an entry that would take the sum of ``4 + length`` over ``size_budget`` (the first ``at_least``
    entries are exempt), and at the first record that is not whole or not what it must be (B7).
    """
    raise NotImplementedError


def split_entries(
    body: Buffer, start: int, end: int, ledger_id: int, first: int, digest: int, mac_key: bytes = b""
) -> Entries:
    """The client's side of a batch reply: verify digest, ledger and entry id of each entry, hand out payloads (L5)."""
    raise NotImplementedError


def scan_records(buffer: Buffer, start: int, end: int, record_max: int = RECORD_MAX) -> Scan:
    """Walk the records in ``buffer[start:end]``, verifying each; for replay and rebuild."""
    raise NotImplementedError


def find_record(buffer: Buffer, start: int, end: int, record_max: int = RECORD_MAX) -> int:
    """Where the next whole, valid record begins in ``buffer[start:end]``; -1 if there is none (G4)."""
    raise NotImplementedError


def chain_crcs(records: Buffer, start: int, end: int, seed: int = 0) -> int:
    """CRC32C over the crc fields of the records in ``records[start:end]``, continuing ``seed`` (journal groups).

    The records are trusted to be whole; a length field that leads past ``end`` ends the walk.
    """
    raise NotImplementedError


def record_places(record_ends: array[int], i0: int, i1: int, record_start: int, base: int) -> array[int]:
    """Places for an index: ``base`` + where record i begins, for i in ``i0 .. i1 - 1`` (array('q')).

    With the records of a slice written at offset x of a log, ``base`` is ``log_id << 40 | x`` less where the slice
    begins in ``records``.
    """
    raise NotImplementedError


def scatter(target: array[int], origin: int, entry_ids: array[int], i0: int, i1: int, values: array[int]) -> None:
    """``target[entry_ids[i] - origin] = values[i - i0]`` for i in ``i0 .. i1 - 1``: a run with holes into an index.

    Raises:
        ValueError: an id falls outside ``target``; nothing was written.
    """
    raise NotImplementedError
