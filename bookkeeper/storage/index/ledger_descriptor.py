"""What a bookie knows of a ledger besides its entries, and the records that carry it.

    state record    an ordinary record (disk-format §1) whose entry id is one of the negative numbers below:
                    ledger id: i64 | kind: i64 | LAC: i64 | 0: i64 | body
        KEY             body = master key; precedes the ledger's first entry
        FENCED          body = master key
        FORCED          body empty
        EXPLICIT_LAC    LAC as given; body = length of the key: u8 | master key | the client's opaque bytes
        LIMBO           reserved
        DROPPED         body empty: the ledger is deleted

A key of another length than a client can make, and an explicit LAC whose body is longer than one that a client can
make, are refused before anything is recorded. Disks have them that were written when they were not: such a key is read
as none, so that the next request brings one; of such a LAC nothing is kept.

Each replays on its own (K31): a fence carries the key of a ledger that was never seen here. They travel in journal
groups like entries, and so into the entry logs: an index rebuilt from the logs keeps fences (B3, K19).
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from enum import IntEnum
from hmac import compare_digest
from itertools import chain
from struct import Struct

from bookkeeper.codec import ENTRY_HEADER, KEY_SIZE, LAC_BODY_MAX, record
from bookkeeper.errors import CorruptionError, UnauthorizedError
from bookkeeper.ids import LedgerId
from bookkeeper.seams import Buffer
from bookkeeper.storage.index.entry_index import LedgerIndex

_HEADER = Struct(">qqqq")
_ROW = Struct(">qBBqqqqqI")
_ROW_ENDS = Struct(">qBB24xq8xI")
"""Of a row what is needed to find the next one."""
_FEW, _MANY = 8, 64
"""After fewer rows of one length than the first number so many are taken one by one."""
_DIGEST_MAX = ENTRY_HEADER + 20
_FENCED, _EXPLICIT, _LIMBO, _DROPPED, _KEYED = 1, 2, 4, 8, 16
_NOT_DROPPED = bytes(flags for flags in range(256) if not flags & _DROPPED)


class StateRecordKind(IntEnum):
    """Entry ids of state records (Apache BookKeeper's numbers where it has them)."""

    KEY = -0x1000
    FENCED = -0x2000
    FORCED = -0x4000
    EXPLICIT_LAC = -0x8000
    LIMBO = -0x10000
    DROPPED = -0x20000


def state_record(ledger_id: int, kind: StateRecordKind, body: bytes = b"", lac: int = -1) -> bytes:
    """A whole record, ready for a group."""
    return record(_HEADER.pack(ledger_id, kind, lac, 0) + body)


@dataclass(slots=True, weakref_slot=True)
class LedgerDescriptor:
    """One ledger on this bookie. Owned by the loop's thread."""

    ledger_id: LedgerId
    key: bytes | None = field(default=None, repr=False)
    fenced: bool = False
    limbo: bool = False
    """Reserved: its data may be incomplete, negatives are unknown."""
    lac: int = -1
    """Greatest over entries and explicit LAC (B8)."""
    explicit_lac: int = -1
    explicit_blob: bytes | None = None
    first_entry: int = -1
    last_entry: int = -1
    size: int = 0
    """Bytes of entries taken, repeats included."""
    read_hint: int = 4096
    """How much to read for one entry: a guess from the last ones."""
    index: LedgerIndex = field(default_factory=LedgerIndex, compare=False)

    def check_key(self, key: bytes) -> None:
        """Compare ``key`` with the ledger's key; any key fits as long as none is known.

        Raises:
            UnauthorizedError: the ledger has another key.
        """
        if self.key is not None and not compare_digest(self.key, key):
            raise UnauthorizedError(f"ledger {self.ledger_id}: another master key")

    def learn_key(self, key: bytes) -> bool:
        """Take the key of a request that is accepted, unless one is known. Returns whether it is new."""
        if self.key is not None:
            return False
        self.key = key
        return True

    def note_entries(self, first: int, last: int, lac: int, size: int) -> None:
        """Entries from ``first`` to ``last`` came in ``size`` bytes."""
        if first < self.first_entry or self.first_entry < 0:
            self.first_entry = first
        if last > self.last_entry:
            self.last_entry = last
        if lac > self.lac:
            self.lac = lac
        self.size += size

    def raise_explicit_lac(self, lac: int, blob: bytes) -> None:
        if lac >= self.explicit_lac:
            self.explicit_lac, self.explicit_blob = lac, blob
        if lac > self.lac:
            self.lac = lac

    def encode(self) -> bytes:
        """The ledger's row of an index segment's states."""
        flags = (
            _FENCED * self.fenced
            | _EXPLICIT * (self.explicit_blob is not None)
            | _LIMBO * self.limbo
            | _KEYED * (self.key is not None)
        )
        key, blob = self.key or b"", self.explicit_blob or b""
        numbers = (self.lac, self.explicit_lac, self.first_entry, self.last_entry, self.size, len(blob))
        return _ROW.pack(self.ledger_id, flags, len(key), *numbers) + key + blob


def dropped_row(first: int, last: int | None = None) -> bytes:
    """The row of deleted ledgers, one or all from ``first`` to ``last``: nothing but that they are deleted. Of one, it
    is what programs of the first version write and read."""
    behind = -1 if last is None or last == first else last
    return _ROW.pack(first, _DROPPED, 0, -1, -1, -1, behind, 0, 0)


@dataclass(slots=True)
class StateRows:
    """Where the rows are in an index segment's states. Nothing is decoded."""

    ledger_ids: array[int]
    """Of the rows of ledgers, as they follow each other."""
    offsets: array[int]
    """Where each of those rows begins."""
    dropped: list[tuple[int, int]]
    """The rows of deleted ledgers: first and last id of each."""


def find_rows(data: bytes) -> StateRows:
    """The rows of an index segment's states.

    Raises:
        CorruptionError: cut short.
    """
    found = StateRows(array("q"), array("Q"), [])
    at = one_by_one = 0
    while at < len(data):
        if at + _ROW.size > len(data):
            raise CorruptionError("ledger states: cut short")
        ledger_id, flags, key_size, last, blob_size = _ROW_ENDS.unpack_from(data, at)
        size, count = _ROW.size + key_size + blob_size, 1
        if flags & _DROPPED:
            found.dropped.append((ledger_id, max(ledger_id, last)))
        elif one_by_one or (count := _alike(data, at, size)) < _FEW:
            one_by_one = one_by_one - 1 if one_by_one else _MANY
            found.ledger_ids.append(ledger_id)
            found.offsets.append(at)
            count = 1
        else:
            column = Struct(f">q{size - 8}x").iter_unpack(data[at : at + size * count])
            found.ledger_ids.extend(chain.from_iterable(column))
            found.offsets.extend(range(at, at + size * count, size))
        at += size * count
    if at != len(data):
        raise CorruptionError("ledger states: cut short")
    return found


def _alike(data: bytes, at: int, size: int) -> int:
    """How many rows of ledgers follow each other from ``at`` on that are all as long as the first, by the same sizes of
    key and body: nearly all are."""
    sizes = [(column, data[at + column : at + column + 1]) for column in (9, 50, 51, 52, 53)]
    count, some = 0, 2 * _FEW
    while True:
        rows = data[at + size * count : at + size * (count + some)]
        same = min(
            len(rows) // size,
            *(_begin(rows[column::size], value) for column, value in sizes),
            _begin(rows[8::size], _NOT_DROPPED),
        )
        count += same
        if same < some:
            return count
        some *= 4


def _begin(data: bytes, values: bytes) -> int:
    """With how many of these values the data begin."""
    return len(data) - len(data.lstrip(values))


def row_at(data: bytes, at: int) -> bytes:
    """The row that begins at ``at``, as :func:`find_rows` has found it."""
    _, _, key_size, _, blob_size = _ROW_ENDS.unpack_from(data, at)
    return data[at : at + _ROW.size + int(key_size) + int(blob_size)]


def decode_row(row: bytes) -> LedgerDescriptor:
    """The ledger of one row, without its index."""
    ledger_id, flags, key_size, lac, explicit, first, last, size, _ = _ROW.unpack_from(row)
    key_end = _ROW.size + key_size
    state = LedgerDescriptor(LedgerId(ledger_id), _known_key(row[_ROW.size : key_end]) if flags & _KEYED else None)
    state.fenced, state.limbo = bool(flags & _FENCED), bool(flags & _LIMBO)
    state.lac, state.first_entry, state.last_entry, state.size = lac, first, last, size
    if flags & _EXPLICIT and len(row) - key_end <= LAC_BODY_MAX:
        state.explicit_lac, state.explicit_blob = explicit, row[key_end:]
    return state


def apply_state(state: LedgerDescriptor, kind: int, entry: Buffer) -> None:
    """What a state record says, added to ``state``. Idempotent; kinds of later versions are passed over.

    The key is set if none is known; a record never takes a fence or a key away.
    """
    body = bytes(entry[ENTRY_HEADER:])
    if kind == StateRecordKind.FENCED:
        state.fenced = True
    elif kind == StateRecordKind.LIMBO:
        state.limbo = True
    elif kind == StateRecordKind.EXPLICIT_LAC and body:
        if (told := explicit_lac_in(entry)) is not None:
            state.raise_explicit_lac(*told)
        body = body[1 : 1 + body[0]]
    if kind in (StateRecordKind.KEY, StateRecordKind.FENCED, StateRecordKind.EXPLICIT_LAC) and state.key is None:
        state.key = _known_key(body)


def _known_key(stored: bytes) -> bytes | None:
    """The key in a record or a row; None if it is none that a client can bring."""
    return stored if len(stored) == KEY_SIZE else None


def explicit_lac_body(key: bytes, blob: bytes) -> bytes:
    """The body of an EXPLICIT_LAC record."""
    return bytes((len(key),)) + key + blob


def explicit_lac_in(entry: Buffer) -> tuple[int, bytes] | None:
    """LAC and client's bytes of an EXPLICIT_LAC record; None if nothing is kept of it."""
    if len(entry) <= ENTRY_HEADER:
        return None
    (_, _, lac, _) = _HEADER.unpack_from(entry)
    begin = ENTRY_HEADER + 1 + entry[ENTRY_HEADER]
    return (lac, bytes(entry[begin:])) if len(entry) - begin <= LAC_BODY_MAX else None


def same_payload(stored: Buffer, offered: Buffer) -> bool:
    """Whether two entries of one id are the same add (B6): LAC, and so the digest, may differ.

    A bookie does not know how long the digest is (0 to 20 bytes). With one LAC the digests must agree, too; with two,
    lengths and what surely is payload are compared.
    """
    one, other = bytes(stored), bytes(offered)  # views are compared byte by byte
    if len(one) != len(other) or one[24:32] != other[24:32]:
        return False
    return one[_DIGEST_MAX:] == other[_DIGEST_MAX:] and (one[16:24] != other[16:24] or one == other)
