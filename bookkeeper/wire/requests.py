"""What a client can ask and a bookie can answer, whatever the dialect.

A request carries nothing of its frame; :class:`RequestHeader` does, and goes back into the reply. Decoders give
``(Header, request)``; :class:`RefusedFrame` where the frame is understood well enough to be answered with an error and
the connection goes on; and :exc:`~bookkeeper.errors.MalformedFrameError` where the connection must be closed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from bookkeeper.codec.shapes import Dialect
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.seams import Buffer
from bookkeeper.wire.status import Status

HIGH_PRIORITY: Final = 100
"""What Apache's clients put into the priority field; in v2 any priority above 0 is one flag."""


class Operation(IntEnum):
    """Operations, by their v3 numbers."""

    READ = 1
    ADD = 2
    RANGE_READ = 3
    RANGE_ADD = 4
    AUTH = 5
    WRITE_LAC = 6
    READ_LAC = 7
    BOOKIE_INFO = 8
    START_TLS = 9
    FORCE_LEDGER = 10
    LIST_ENTRIES = 11
    BATCH_READ = 12


Context = tuple[tuple[bytes, bytes], ...]
"""Pairs of text a client sends along for the logs, as they came but cut."""

CONTEXT_PAIRS: Final = 8
"""Pairs of a request's context that are kept."""

CONTEXT_TEXT: Final = 64
"""Bytes of a key or a value that are kept."""


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The envelope of a request, which its reply repeats."""

    dialect: Dialect
    op: Operation
    txn_id: int = 0
    """v3; 0 in v2, where replies are matched by operation and ids."""
    version: int = 2
    """v2: the request's, echoed. v3: 1 to 3; replies always say 3."""
    priority: int = 0
    context: Context = ()
    """v3, of requests: for the bookie's log (X38)."""


# -- requests --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddEntry:
    """Store one entry. The ids are those in the entry's own first 16 bytes; decoders see to that."""

    ledger_id: LedgerId
    entry_id: EntryId
    master_key: bytes
    entry: bytes
    """The whole stored entry: 32-byte header, digest, payload."""
    recovery: bool = False
    """Passes on a fenced ledger."""
    deferred_sync: bool = False
    """Answer before it is durable; v3 only."""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """Read one entry (id -1: the last one); with ``fence``, fence the ledger first.

    A long poll is a read with ``previous_lac`` and without ``fence``; v3 only, as are ``timeout_ms`` and ``piggyback``.
    """

    ledger_id: LedgerId
    entry_id: EntryId
    master_key: bytes | None = None
    fence: bool = False
    priority: int = 0
    previous_lac: int | None = None
    timeout_ms: int | None = None
    piggyback: bool = False

    @property
    def long_poll(self) -> bool:
        return self.previous_lac is not None and not self.fence


@dataclass(frozen=True, slots=True)
class BatchRead:
    """Read consecutive entries; v2 only. ``count_max <= 0``: no limit."""

    ledger_id: LedgerId
    first_entry: EntryId
    request_id: int
    count_max: int
    size_max: int
    master_key: bytes | None = None
    fence: bool = False
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ReadLac:
    """Explicit LAC and last entry; v3 only, as are the following ones up to ListEntries."""

    ledger_id: LedgerId


@dataclass(frozen=True, slots=True)
class WriteLac:
    """Store an explicit LAC. ``body`` is [ledger id][lac][digest]."""

    ledger_id: LedgerId
    lac: int
    master_key: bytes
    body: bytes


@dataclass(frozen=True, slots=True)
class ForceLedger:
    """Make durable what deferred adds have written."""

    ledger_id: LedgerId


@dataclass(frozen=True, slots=True)
class GetBookieInfo:
    """Disk space. ``requested``: bit 0 total, bit 1 free; 0 asks for nothing and gets OK."""

    requested: int = 3


def ledgers_held(start: int = 0) -> LedgerId:
    """Asked for the entries of this, a bookie of ours lists ledgers that it holds anything of, from the id ``start``
    (below 2**62) on: as many as fit into a frame, in order. Others have no such ledger."""
    return LedgerId(-2 * start - 1)


def ledgers_dropped(start: int = 0) -> LedgerId:
    """The same of ledgers that it has collected, and of ids that are not given out again."""
    return LedgerId(-2 * start - 2)


def asked_ledgers(ledger_id: LedgerId) -> tuple[int, bool]:
    """The reverse, for an id below 0: from where on, and whether those that were collected."""
    return (-ledger_id - 1) // 2, bool((-ledger_id - 1) % 2)


@dataclass(frozen=True, slots=True)
class ListEntries:
    """Which entries of a ledger the bookie holds."""

    ledger_id: LedgerId


@dataclass(frozen=True, slots=True)
class Auth:
    """One token of an authentication exchange; both dialects."""

    plugin: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class StartTls:
    """Go on in TLS; always v3, also before a v2 conversation."""


Request = (
    AddEntry | ReadEntry | BatchRead | ReadLac | WriteLac | ForceLedger | GetBookieInfo | ListEntries | Auth | StartTls
)


# -- replies ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddReply:
    status: Status
    ledger_id: LedgerId
    entry_id: EntryId


@dataclass(frozen=True, slots=True)
class ReadReply:
    """Ids are the request's (also -1); only a successful piggyback long poll answers with the entry's id."""

    status: Status
    ledger_id: LedgerId
    entry_id: EntryId
    entry: bytes | None = None
    max_lac: int | None = None
    """v3: the LAC this bookie knows; not on fence reads."""
    lac_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class BatchReply:
    status: Status
    ledger_id: LedgerId
    entry_id: EntryId
    request_id: int
    body: Buffer = b""
    """[length u32][entry] ..., as ``codec.pack_entries`` makes and ``codec.split_entries`` reads."""


@dataclass(frozen=True, slots=True)
class LacReply:
    status: Status
    ledger_id: LedgerId
    lac_body: bytes | None = None
    last_entry: bytes | None = None


@dataclass(frozen=True, slots=True)
class WriteLacReply:
    status: Status
    ledger_id: LedgerId


@dataclass(frozen=True, slots=True)
class ForceReply:
    status: Status
    ledger_id: LedgerId


@dataclass(frozen=True, slots=True)
class InfoReply:
    status: Status
    total: int | None = None
    free: int | None = None


@dataclass(frozen=True, slots=True)
class ListReply:
    status: Status
    ledger_id: LedgerId
    availability: bytes | None = None
    """Encoded as ``bookkeeper-formats`` 1.11: groups of sequences."""


@dataclass(frozen=True, slots=True)
class AuthReply:
    """v2 has no status: always OK there (a refusal closes the connection)."""

    status: Status
    plugin: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class StartTlsReply:
    status: Status


@dataclass(frozen=True, slots=True)
class BareReply:
    """A v3 reply without an inner message: unauthenticated, refused authentication or TLS, unknown operation."""

    status: Status


Reply = (
    AddReply
    | ReadReply
    | BatchReply
    | LacReply
    | WriteLacReply
    | ForceReply
    | InfoReply
    | ListReply
    | AuthReply
    | StartTlsReply
    | BareReply
)


@dataclass(frozen=True, slots=True)
class RefusedFrame:
    """A frame the codec itself refuses: send ``frame`` (a whole reply frame) and go on with the connection."""

    header: RequestHeader
    status: Status
    frame: bytes


def failure(request: Request, status: Status) -> Reply:
    """The reply that says ``request`` ended in ``status``."""
    match request:
        case AddEntry():
            return AddReply(status, request.ledger_id, request.entry_id)
        case ReadEntry():
            return ReadReply(status, request.ledger_id, request.entry_id)
        case BatchRead():
            return BatchReply(status, request.ledger_id, request.first_entry, request.request_id)
        case ReadLac():
            return LacReply(status, request.ledger_id)
        case WriteLac():
            return WriteLacReply(status, request.ledger_id)
        case ForceLedger():
            return ForceReply(status, request.ledger_id)
        case GetBookieInfo():
            return InfoReply(status)
        case ListEntries():
            return ListReply(status, request.ledger_id)
        case Auth() | StartTls():
            return BareReply(status)
