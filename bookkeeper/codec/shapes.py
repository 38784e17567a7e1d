"""What the run codec hands out: flat arrays and a short list of runs, so that no caller does anything per entry.

A *run* is a stretch of adds of one ledger under one key with strictly ascending entry ids and the same flag: none,
DEFERRED_SYNC or RECOVERY_ADD. Rules (key, fence, read-only) are applied once per run; its records and its replies are
slices that can be cut out if a rule fails.

    records  record 0 | record 1 | record 2 | ...        record i = records[begin : record_ends[i]]
    acks     reply  0 | reply  1 | reply  2 | ...        reply  i = acks[begin : ack_ends[i]]
                                                         (begin = the end of i - 1; of item 0: record_start, 0)
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from bookkeeper.errors import MalformedFrameError
from bookkeeper.seams import Buffer

FRAME_MAX: Final = 5 * 1024 * 1024
"""Default limit of a frame, its 4-byte length included (Apache BookKeeper's nettyMaxFrameSizeBytes)."""

RECORD_MAX: Final = 1 << 26
"""Default limit of a record's entry: a longer length field is damage."""

RECORD_HEADER: Final = 8
"""Bytes of a disk record before the entry: length u32, CRC32C u32."""

ENTRY_HEADER: Final = 32
"""Bytes of a stored entry before digest and payload: ledger id, entry id, LAC, length."""

KEY_SIZE: Final = 20
"""Bytes of a master key."""

LAC_BODY_MAX: Final = 36
"""Bytes of the longest body of an explicit LAC: ledger id, LAC, and the longest digest, the HMAC."""

READS_MAX: Final = 8192
"""Plain reads that are cut from a chunk at once."""

NO_LAC: Final = -(1 << 63)
"""In the place of a LAC: none was told."""

STREAM_SHIFT: Final = 40
"""A streamed add's v3 transaction id is ``stream << 40 | entry id mod 2**40``; stream 0 is for single requests."""


class Dialect(IntEnum):
    """Which of the two protocols a frame is in."""

    V2 = 2
    V3 = 3


class Digest(IntEnum):
    """Digest kinds by their numbers in ledger metadata (the same as ``ledger.metadata.DigestType``)."""

    CRC32 = 1
    HMAC = 2
    CRC32C = 3
    DUMMY = 4


V3_STATUS: Final[dict[int, int]] = {
    0: 0,  # OK
    1: 402,  # NO_LEDGER
    2: 403,  # NO_ENTRY
    100: 404,  # BAD_REQUEST
    101: 501,  # IO_ERROR
    102: 502,  # UNAUTHORIZED
    103: 503,  # BAD_VERSION
    104: 504,  # FENCED
    105: 505,  # READ_ONLY
    106: 506,  # TOO_MANY_REQUESTS
    107: 507,  # UNKNOWN_STATE
}
"""Neutral status (the same numbers as v2's) to v3's; ``wire.status`` names them."""


class Run(NamedTuple):
    """Adds ``i0 .. i1 - 1`` of the arrays: one ledger, one key, strictly ascending entry ids (holes if E > Qw), one
    flag."""

    ledger_id: int
    master_key: bytes
    i0: int
    i1: int
    contiguous: bool
    """No holes: the ids are ``entry_ids[i0] .. entry_ids[i0] + i1 - i0 - 1``."""
    lac: int
    """The greatest LAC in the run's entries."""
    deferred: bool = False
    """Flagged DEFERRED_SYNC: to be answered when they are stored, durable or not (W11)."""
    recovery: bool = False
    """Flagged RECOVERY_ADD: they pass a fence, and a full disk."""


class Adds(NamedTuple):
    """What ``split_adds`` found in ``chunk[start:end]``."""

    used: int
    """Absolute position in the chunk: everything before it is dealt with; an unfinished frame begins there."""
    records: Buffer
    """Disk records of all plain adds, in order; the caller's ``out`` if one was given."""
    record_start: int
    """Where record 0 begins in ``records`` (0, or the caller's ``out_start``)."""
    record_ends: array[int]
    """array('q'): where each record ends in ``records``."""
    acks: bytes
    """The success replies (whole frames), each in its request's dialect, in order."""
    ack_ends: array[int]
    """array('q'): where each reply ends in ``acks``."""
    entry_ids: array[int]
    """array('q'): the entry id of every plain add."""
    runs: list[Run]
    slow: list[tuple[int, int]]
    """(start, end) in the chunk of every frame *body* that is no plain add: for the general path."""
    slow_after: list[int]
    """Parallel to ``slow``: that frame came after ``runs[: slow_after[k]]`` and before the others. No run spans a
    slow frame, so the order of a connection can be kept exactly."""
    v2: bool
    """The connection speaks v2 from here on (a v2 frame was seen, or ``v2_only`` was given): pass it next time."""
    full: bool
    """Stopped because ``out`` has no room for the next record: call again with another ``out`` from ``used``."""
    error: MalformedFrameError | None
    """An impossible length follows at ``used``: handle what precedes it, then close the connection."""


class ReplyRun(NamedTuple):
    """Replies to consecutive adds with one outcome."""

    stream: int
    """txn id >> 40 in v3; -1 in v2."""
    ledger_id: int
    first: int
    n: int
    """How many: entries ``first .. first + n - 1``."""
    status: int
    """Neutral: a value of ``wire.status.Status`` (0 is success)."""


class Replies(NamedTuple):
    """What ``split_add_replies`` found in ``chunk[start:end]``."""

    used: int
    runs: list[ReplyRun]
    slow: list[tuple[int, int]]
    """(start, end) of every frame body that is no reply to a streamed add: for the general path."""
    error: MalformedFrameError | None
    """An impossible length follows at ``used``: close the connection."""


class Reads(NamedTuple):
    """What ``split_reads`` found: plain reads in one dialect, in order. All arrays are parallel."""

    v2: bool
    ledger_ids: array[int]
    entry_ids: array[int]
    txns: array[int]
    """array('Q'): transaction ids; 0 in v2."""
    ends: array[int]
    """array('q'): where each frame ends in the chunk."""


class Answers(NamedTuple):
    """What ``answer_reads`` made."""

    frames: bytes
    n: int
    """How many replies there are in ``frames``."""
    largest: int
    """Bytes of the largest entry among them."""


class ReadReplies(NamedTuple):
    """What ``split_read_replies`` found: replies that hold an entry, in order. All arrays are parallel."""

    used: int
    """Absolute position in the chunk behind the last of them."""
    txns: array[int]
    """array('Q'): transaction ids; 0 in v2."""
    ledger_ids: array[int]
    entry_ids: array[int]
    lacs: array[int]
    """What the reply tells besides the entry; NO_LAC: nothing."""
    begins: array[int]
    """Where each entry begins in the chunk."""
    ends: array[int]


class Stop(IntEnum):
    """Why a walk over records or entries ended."""

    END = 0
    """Everything asked for is there."""
    ZERO = 1
    """A length of 0: end of block."""
    PARTIAL = 2
    """The next record (or entry) reaches past the end of the bytes given."""
    DAMAGED = 3
    """Impossible length, wrong crc or digest, or other ids than the ones asked for."""
    BUDGET = 4
    """The next one would exceed the size budget."""


class Packed(NamedTuple):
    """What ``pack_entries`` made."""

    body: bytes
    """Verified entries in the wire's batch form: [length u32][entry] ..."""
    n: int
    stop: Stop


class Entries(NamedTuple):
    """What ``split_entries`` found: verified payloads of consecutive entries."""

    payloads: list[bytes]
    lacs: array[int]
    """array('q'): LAC field of each."""
    lengths: array[int]
    """array('q'): length field of each (payload bytes of the ledger up to and including it)."""
    stop: Stop
    """END, PARTIAL or DAMAGED; what precedes it is good (L5)."""


class Scan(NamedTuple):
    """What ``scan_records`` found. All arrays are array('q') and parallel."""

    offsets: array[int]
    """Where each record begins in the buffer."""
    ledger_ids: array[int]
    entry_ids: array[int]
    """Negative ones are state records."""
    lacs: array[int]
    """LAC field of each entry; -1 for state records."""
    sizes: array[int]
    """Bytes of each *entry*; its record takes ``RECORD_HEADER`` more."""
    next: int
    """Where the walk stopped."""
    stop: Stop


class ScannedRun(NamedTuple):
    """Records ``i0 .. i1 - 1`` of the arrays: entries of one ledger with strictly ascending ids, or a state record."""

    ledger_id: int
    i0: int
    i1: int
    contiguous: bool
    """No holes: the ids are ``entry_ids[i0] .. entry_ids[i0] + i1 - i0 - 1``."""
    lac: int
    """The greatest LAC in the run's entries; -1 for a state record."""
    size: int
    """Bytes of the records."""


class LedgerRuns(NamedTuple):
    """What ``ledger_runs`` made of a scan. The arrays are array('q') and parallel."""

    places: array[int]
    """Where each record begins, as a place of the index."""
    entry_ids: array[int]
    runs: list[ScannedRun]
    """By ledger id; the records of one ledger are in the order of the scan."""


Payloads = Sequence[Buffer]
"""What ``encode_adds`` takes: one buffer for each entry."""
