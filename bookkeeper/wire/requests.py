"""What a client can ask and a bookie can answer, whatever the dialect.

A request says nothing of its frame. :class:`RequestHeader` does, and the reply repeats it. A decoder returns
``(header, request)``. It returns a :class:`RefusedFrame` where the bookie can answer with an error and the connection
goes on. It raises :exc:`~bookkeeper.errors.MalformedFrameError` where the connection must be closed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from bookkeeper.codec.shapes import Dialect
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.seams import Buffer
from bookkeeper.wire.status import Status

HIGH_PRIORITY: Final = 100
"""The priority that Apache's clients send. In v2 a flag stands for any priority above 0."""


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
"""Pairs of texts that a client sends along for the bookie's log, cut to the limits below."""

REQUEST_ID: Final = b"request_id"
"""The key under which a client names the operation to which a request belongs."""

CONTEXT_PAIRS: Final = 8
"""How many pairs of a request's context are kept."""

CONTEXT_TEXT: Final = 64
"""How many bytes of a key or a value are kept."""


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The envelope of a request, which its reply repeats."""

    dialect: Dialect
    op: Operation
    txn_id: int = 0
    """In v3 the number that matches the reply to its request. 0 in v2, where the operation and the ids do that."""
    version: int = 2
    """In v2 the reply repeats the version of its request. In v3 a request has 1 to 3, and a reply always 3."""
    priority: int = 0
    context: Context = ()
    """Of requests in v3: what the bookie's log quotes (X38)."""


# -- requests --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddEntry:
    """Store one entry. Decoders check that the ids are those in the entry's first 16 bytes."""

    ledger_id: LedgerId
    entry_id: EntryId
    master_key: bytes = field(repr=False)
    entry: bytes
    """The whole stored entry: 32-byte header, digest, payload."""
    recovery: bool = False
    """A recovery sends it: the bookie stores it also in a fenced ledger."""
    deferred_sync: bool = False
    """Answer before it is durable; v3 only."""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ReadEntry:
    """Read one entry; id -1 means the last one. With ``fence`` the bookie fences the ledger first.

    A read with ``previous_lac`` and without ``fence`` is a long poll. ``previous_lac``, ``timeout_ms`` and
    ``piggyback`` exist in v3 only.
    """

    ledger_id: LedgerId
    entry_id: EntryId
    master_key: bytes | None = field(default=None, repr=False)
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
    """Read consecutive entries; v2 only. With ``count_max`` 0 or less their number has no limit."""

    ledger_id: LedgerId
    first_entry: EntryId
    request_id: int
    count_max: int
    size_max: int
    master_key: bytes | None = field(default=None, repr=False)
    fence: bool = False
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ReadLac:
    """Read the explicit LAC and the last entry. This request and the next ones up to ListEntries exist in v3 only."""

    ledger_id: LedgerId


@dataclass(frozen=True, slots=True)
class WriteLac:
    """Store an explicit LAC. ``body`` is [ledger id][lac][digest]."""

    ledger_id: LedgerId
    lac: int
    master_key: bytes = field(repr=False)
    body: bytes


@dataclass(frozen=True, slots=True)
class ForceLedger:
    """Make durable what adds with deferred sync have written."""

    ledger_id: LedgerId


@dataclass(frozen=True, slots=True)
class GetBookieInfo:
    """Ask for disk space. In ``requested`` bit 0 asks for the total and bit 1 for what is free; 0 gets just OK."""

    requested: int = 3
    closed_ledger: LedgerId | None = None
    """Advice: this ledger is closed, no more adds to it are expected. Other bookies skip it."""


def ledgers_held(start: int = 0) -> LedgerId:
    """The ledger id whose entries stand for the ledgers that a bookie holds anything of.

    Asked for the entries of this id, a bookie of this package lists those ledgers in order, from the id ``start``
    (below 2**62) on, as many as fit into a frame. Other bookies answer that they have no such ledger.
    """
    return LedgerId(-2 * start - 1)


def ledgers_dropped(start: int = 0) -> LedgerId:
    """The same for ledgers whose entries the bookie has collected as garbage, and for ids that are never given out
    again."""
    return LedgerId(-2 * start - 2)


def requested_ledgers(ledger_id: LedgerId) -> tuple[int, bool]:
    """What a ledger id below 0 asks for: from which ledger on, and whether for collected ledgers."""
    return (-ledger_id - 1) // 2, bool((-ledger_id - 1) % 2)


@dataclass(frozen=True, slots=True)
class ListEntries:
    """Ask which entries of a ledger the bookie holds."""

    ledger_id: LedgerId


@dataclass(frozen=True, slots=True)
class Auth:
    """One token of an authentication exchange; both dialects."""

    plugin: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class StartTls:
    """Ask to go on in TLS. Always a v3 request, also on a connection that speaks v2 afterwards."""


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
    """The ids are those of the request, also -1. Only a successful piggyback long poll has the entry's own id."""

    status: Status
    ledger_id: LedgerId
    entry_id: EntryId
    entry: bytes | None = None
    max_lac: int | None = None
    """In v3 the LAC that this bookie knows; absent from replies to fencing reads."""
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
    """Groups of sequences, as :mod:`bookkeeper.wire.availability` encodes them."""


@dataclass(frozen=True, slots=True)
class AuthReply:
    """In v2 it has no status, which then is always OK: a bookie that refuses closes the connection."""

    status: Status
    plugin: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class StartTlsReply:
    status: Status


@dataclass(frozen=True, slots=True)
class BareReply:
    """A v3 reply without an inner message. It answers requests before authentication, refuses authentication or TLS,
    and answers unknown operations."""

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
    """A frame that the codec itself refuses: the bookie sends ``frame``, a whole reply, and the connection goes on."""

    header: RequestHeader
    status: Status
    frame: bytes


def failure(request: Request, status: Status) -> Reply:
    """The reply which says that ``request`` ended with ``status``."""
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


def too_large(reply: Reply) -> Reply:
    """The reply instead of one that does not fit into a frame."""
    match reply:
        case ReadReply():
            return ReadReply(Status.IO_ERROR, reply.ledger_id, reply.entry_id)
        case BatchReply():
            return BatchReply(Status.IO_ERROR, reply.ledger_id, reply.entry_id, reply.request_id)
        case LacReply():
            if reply.lac_body is not None:
                return LacReply(Status.OK, reply.ledger_id, reply.lac_body)
            return LacReply(Status.IO_ERROR, reply.ledger_id)
        case _:
            return reply
