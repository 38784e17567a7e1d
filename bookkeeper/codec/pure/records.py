"""Disk records and batch replies, for the codec in Python.

record    | length: u32 | crc32c over length and entry: u32 | entry |
entry     | ledger id: i64 | entry id: i64 | LAC: i64 | length: i64 | digest | payload |
batch     | length: u32 | entry | length: u32 | entry | ...
"""

from __future__ import annotations

import hmac
from array import array
from struct import Struct
from typing import Final

from bookkeeper.codec.pure import checksums
from bookkeeper.codec.pure.checksums import DIGEST_SIZES, digest_of
from bookkeeper.codec.pure.frames import HEADER, U32, check_bounds, view_of
from bookkeeper.codec.shapes import (
    ENTRY_HEADER,
    RECORD_HEADER,
    RECORD_MAX,
    Entries,
    LedgerRuns,
    Packed,
    Scan,
    ScannedRun,
    Stop,
)
from bookkeeper.seams import Buffer

_IDS: Final = Struct(">qq")


def crc32c(data: Buffer, seed: int = 0) -> int:
    """CRC32C of ``data``, continuing ``seed``."""
    return checksums.crc32c(data, seed)


def record(entry: Buffer) -> bytes:
    """The disk record of one entry: [length u32][crc32c u32 over length and entry][entry]."""
    whole = bytes(entry)
    return record_header(whole) + whole


def record_header(entry: Buffer) -> bytes:
    """What stands before the entry in its record."""
    length = U32.pack(len(entry))
    return length + U32.pack(checksums.crc32c(entry, checksums.crc32c(length, 0)))


def place_record(out: memoryview, at: int, entry: Buffer) -> None:
    """Write the entry's record into ``out``."""
    body = at + RECORD_HEADER
    out[at:body] = record_header(entry)
    out[body : body + len(entry)] = entry


def _has_crc(view: memoryview, at: int, length: int) -> bool:
    crc = checksums.crc32c(
        view[at + RECORD_HEADER : at + RECORD_HEADER + length], checksums.crc32c(view[at : at + 4], 0)
    )
    return U32.unpack_from(view, at + 4) == (crc,)


def _least(entry_id: int) -> int:
    """Bytes that an entry has at least; a state record (negative id) only its ids."""
    return ENTRY_HEADER if entry_id >= 0 else _IDS.size


def read_record(buffer: Buffer, offset: int, ledger_id: int, entry_id: int) -> bytes | None:
    """The entry in the record at ``offset``; None if crc, ledger or entry id are not as they must be (B7)."""
    view = view_of(buffer, 0, len(buffer))
    if offset < 0 or len(view) - offset < RECORD_HEADER:
        return None
    (length,) = U32.unpack_from(view, offset)
    if length < _least(entry_id) or length > len(view) - offset - RECORD_HEADER or not _has_crc(view, offset, length):
        return None
    at = offset + RECORD_HEADER
    if _IDS.unpack_from(view, at) != (ledger_id, entry_id):
        return None
    return bytes(view[at : at + length])


def pack_entries(
    buffer: Buffer, offsets: array[int], ledger_id: int, first: int, size_budget: int, at_least: int = 1
) -> Packed:
    """Verify the records at ``offsets`` (entries ``first``, ``first + 1``, ...) and pack them for a batch reply.

    Stops before an entry that would take the sum of ``4 + length`` over ``size_budget`` (the first ``at_least``
    entries are exempt), and at the first record that is not whole (PARTIAL) or not what it must be (DAMAGED, B7).
    """
    view = view_of(buffer, 0, len(buffer))
    out = bytearray()
    n, stop = 0, Stop.END
    for offset in offsets:
        if offset < 0:
            stop = Stop.DAMAGED
            break
        if offset > len(view) - RECORD_HEADER:
            stop = Stop.PARTIAL
            break
        (length,) = U32.unpack_from(view, offset)
        if length < ENTRY_HEADER:
            stop = Stop.DAMAGED
            break
        if length > len(view) - offset - RECORD_HEADER:
            stop = Stop.PARTIAL
            break
        if n >= at_least and len(out) + 4 + length > size_budget:
            stop = Stop.BUDGET
            break
        at = offset + RECORD_HEADER
        if not _has_crc(view, offset, length) or _IDS.unpack_from(view, at) != (ledger_id, first + n):
            stop = Stop.DAMAGED
            break
        out += view[offset : offset + 4]
        out += view[at : at + length]
        n += 1
    return Packed(bytes(out), n, stop)


def split_entries(
    body: Buffer, start: int, end: int, ledger_id: int, first: int, digest: int, mac_key: bytes = b""
) -> Entries:
    """The client's side of a batch reply: verify digest, ledger and entry id of each entry, hand out payloads (L5).

    Raises:
        ValueError: no such digest; ``start`` or ``end`` lie outside the body.
    """
    if digest not in DIGEST_SIZES:
        raise ValueError(f"no digest {digest}")
    size = DIGEST_SIZES[digest]
    view = view_of(body, start, end)
    payloads: list[bytes] = []
    lacs, lengths = array("q"), array("q")
    at, stop = start, Stop.END
    while at < end:
        if end - at < 4:
            stop = Stop.PARTIAL
            break
        (length,) = U32.unpack_from(view, at)
        at += 4
        if length < ENTRY_HEADER + size:
            stop = Stop.DAMAGED
            break
        if length > end - at:
            stop = Stop.PARTIAL
            break
        header = view[at : at + ENTRY_HEADER]
        payload_at = at + ENTRY_HEADER + size
        payload = view[payload_at : at + length]
        own_ledger_id, own_entry_id, lac, running = HEADER.unpack(header)
        if (own_ledger_id, own_entry_id) != (ledger_id, first + len(payloads)) or not hmac.compare_digest(
            digest_of(digest, mac_key, header, payload), view[at + ENTRY_HEADER : payload_at]
        ):
            stop = Stop.DAMAGED
            break
        payloads.append(bytes(payload))
        lacs.append(lac)
        lengths.append(running)
        at += length
    return Entries(payloads, lacs, lengths, stop)


def scan_records(buffer: Buffer, start: int, end: int, record_max: int = RECORD_MAX) -> Scan:
    """Walk the records in ``buffer[start:end]``, verifying each; for replay and rebuild.

    ZERO where a length is 0, PARTIAL where the next record reaches past ``end``, DAMAGED where it is too short, longer
    than ``record_max``, or its crc is wrong.

    Raises:
        ValueError: ``start`` or ``end`` lie outside the buffer.
    """
    view = view_of(buffer, start, end)
    offsets, ledger_ids, entry_ids = array("q"), array("q"), array("q")
    lacs, sizes = array("q"), array("q")
    at = start
    while (stop := _check_record(view, at, end, record_max)) is None:
        (length,) = U32.unpack_from(view, at)
        ledger_id, entry_id = _IDS.unpack_from(view, at + RECORD_HEADER)
        lac = HEADER.unpack_from(view, at + RECORD_HEADER)[2] if entry_id >= 0 else -1
        offsets.append(at)
        ledger_ids.append(ledger_id)
        entry_ids.append(entry_id)
        lacs.append(lac)
        sizes.append(length)
        at += RECORD_HEADER + length
    return Scan(offsets, ledger_ids, entry_ids, lacs, sizes, at, stop)


def _check_record(view: memoryview, at: int, end: int, record_max: int) -> Stop | None:
    """None if a whole, valid record begins at ``at``."""
    if at == end:
        return Stop.END
    if end - at < 4:
        return Stop.PARTIAL
    (length,) = U32.unpack_from(view, at)
    if length == 0:
        return Stop.ZERO
    if length < _IDS.size or length > record_max:
        return Stop.DAMAGED
    if length > end - at - RECORD_HEADER:
        return Stop.PARTIAL
    if not _has_crc(view, at, length) or length < _least(_IDS.unpack_from(view, at + RECORD_HEADER)[1]):
        return Stop.DAMAGED
    return None


def find_record(buffer: Buffer, start: int, end: int, record_max: int = RECORD_MAX) -> int:
    """Where the next whole, valid record begins in ``buffer[start:end]``; -1 if there is none (G4).

    Raises:
        ValueError: ``start`` or ``end`` lie outside the buffer.
    """
    view = view_of(buffer, start, end)
    for at in range(start, end - RECORD_HEADER - _IDS.size + 1):
        (length,) = U32.unpack_from(view, at)
        if not _IDS.size <= length <= min(record_max, end - at - RECORD_HEADER):
            continue
        ledger_id, entry_id = _IDS.unpack_from(view, at + RECORD_HEADER)
        if ledger_id >= 0 and length >= _least(entry_id) and _has_crc(view, at, length):
            return at
    return -1


def chain_crcs(records: Buffer, start: int, end: int, seed: int = 0) -> int:
    """CRC32C over the crc fields of the records in ``records[start:end]``, continuing ``seed`` (journal groups).

    The records are trusted to be whole; a length field that leads past ``end`` ends the walk.

    Raises:
        ValueError: ``start`` or ``end`` lie outside the buffer.
    """
    view = view_of(records, start, end)
    crcs = bytearray()
    at = start
    while end - at >= RECORD_HEADER:
        crcs += view[at + 4 : at + RECORD_HEADER]
        at += RECORD_HEADER + U32.unpack_from(view, at)[0]
    return checksums.crc32c(crcs, seed)


def ledger_runs(scan: Scan, base: int = 0) -> LedgerRuns:
    """The records of a scan as runs, ledger by ledger, with their places: ``base`` + where each begins.

    Raises:
        ValueError: the scan's arrays are not of one length.
    """
    count = len(scan.offsets)
    if any(len(column) != count for column in scan[1:5]):
        raise ValueError("the arrays of a scan are not of one length")
    order = sorted(range(count), key=scan.ledger_ids.__getitem__)
    runs: list[ScannedRun] = []
    i0 = 0
    for i1 in range(1, count + 1):
        at = order[i1 - 1]
        if i1 < count and _follows(scan, at, order[i1]):
            continue
        members = order[i0:i1]
        first = scan.entry_ids[members[0]]
        runs.append(
            ScannedRun(
                scan.ledger_ids[at],
                i0,
                i1,
                scan.entry_ids[at] - first == i1 - i0 - 1,
                max(scan.lacs[each] for each in members),
                sum(RECORD_HEADER + scan.sizes[each] for each in members),
            )
        )
        i0 = i1
    places = array("q", [base + scan.offsets[each] for each in order])
    return LedgerRuns(places, array("q", [scan.entry_ids[each] for each in order]), runs)


def _follows(scan: Scan, at: int, following: int) -> bool:
    """Whether a record goes on with the run of the one before it."""
    ids = scan.entry_ids
    return scan.ledger_ids[at] == scan.ledger_ids[following] and 0 <= ids[at] < ids[following]


# -- places, for the index -------------------------------------------------------------------------------


def record_places(record_ends: array[int], i0: int, i1: int, record_start: int, base: int) -> array[int]:
    """Places for an index: ``base`` + where record i begins, for i in ``i0 .. i1 - 1`` (array('q')).

    With the records of a slice written at offset x of a log, ``base`` is ``log_id << 40 | x`` less where the slice
    begins in ``records``.

    Raises:
        ValueError: ``i0 .. i1`` lies outside the array.
    """
    check_bounds(len(record_ends), i0, i1)
    if i0 == i1:
        return array("q")
    first = record_ends[i0 - 1] if i0 else record_start
    return array("q", [base + begin for begin in (first, *record_ends[i0 : i1 - 1])])


def scatter(target: array[int], origin: int, entry_ids: array[int], i0: int, i1: int, values: array[int]) -> None:
    """``target[entry_ids[i] - origin] = values[i - i0]`` for i in ``i0 .. i1 - 1``: a run with holes into an index.

    Raises:
        ValueError: an id falls outside ``target``, or there are not enough values; nothing was written.
    """
    check_bounds(len(entry_ids), i0, i1)
    ids = entry_ids[i0:i1]
    if len(values) < len(ids) or (ids and not (min(ids) - origin >= 0 and max(ids) - origin < len(target))):
        raise ValueError(f"entries {i0}..{i1} do not fit into {len(target)} places from {origin}")
    for entry_id, value in zip(ids, values, strict=False):
        target[entry_id - origin] = value


def unbroken(places: array[int], begin: int, end: int) -> array[int]:
    """``places[begin:end]`` up to the first 0.

    Raises:
        ValueError: there are not so many places.
    """
    check_bounds(len(places), begin, end)
    run = places[begin:end]
    return run if 0 not in run else run[: run.index(0)]


def ascending(places: array[int], span: int) -> array[int]:
    """How far each of the first places lies behind ``places[0]``: as long as they ascend, and up to the first that is
    further than ``span``, that one included."""
    offsets = array("q")
    for found in places:
        if offsets and (found - places[0] <= offsets[-1] or offsets[-1] > span):
            break
        offsets.append(found - places[0])
    return offsets
