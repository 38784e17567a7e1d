"""What :class:`bookkeeper.ledger.writer.LedgerWriter` asks its shell to do, and the numbers it works with.

Runs are ``first .. first + count - 1``. Effects must be performed in the order in which they come, and never changed.
Those of every append are not frozen: making a frozen one takes four times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from bookkeeper.errors import BookKeeperError, require_range
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.effects import WakeAt


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterConfig:
    """Limits of one writer. ``stall_ms`` and ``trail_bytes_max``: a bookie beyond them counts as failed (W15)."""

    deferred_sync: bool = False
    """Bookies acknowledge before an entry is durable; ``force`` makes it so, and only that moves the last add
    confirmed (W11)."""
    add_timeout_ms: int = 30_000
    """An append that finds no ack quorum within it ends the handle (V1, W6)."""
    force_timeout_ms: int = 15_000
    """A ``force`` that some bookie did not answer within it fails (W11)."""
    stall_ms: int = 500
    """No progress for so long while others progress."""
    trail_bytes_max: int = 32 << 20
    """Payload bytes confirmed without a bookie that should have stored them."""
    pending_bytes_max: int = 64 << 20
    """Payload bytes appended and not confirmed, beyond which callers must wait (W12)."""
    pending_entries_max: int = 100_000
    change_retry_ms: int = 1_000
    """How long after a failed ensemble change another is tried, besides when a bookie appears."""

    def __post_init__(self) -> None:
        require_range(self, "add_timeout_ms", "force_timeout_ms", "stall_ms", "change_retry_ms", above=0)
        require_range(self, "trail_bytes_max", "pending_bytes_max", "pending_entries_max", above=0)


@dataclass(slots=True)
class Encode:
    """Build the packets of a run, once (W8), and keep them until :class:`Release`.

    Each carries ``lac`` as its last add confirmed; the length of its first is ``length_before`` plus its own size.
    """

    first: EntryId
    count: int
    lac: EntryId
    length_before: int


@dataclass(slots=True)
class SendAdds:
    """Send ``bookie``, at ``position`` of the ensemble, those packets of the run that it holds:
    ``spec.stripe(position, first, count)``.

    Report back with ``on_acks``/``on_ack_ids``, ``on_bookie_failed``, or ``on_fenced``, never inside this call.
    """

    bookie: BookieId
    first: EntryId
    count: int
    position: int


@dataclass(slots=True)
class Confirm:
    """Tell the callers of a run that it is durable (W1). Runs come in order and without gaps (W2).

    With deferred sync: that it is written, and not yet durable (W11)."""

    first: EntryId
    count: int


@dataclass(frozen=True, slots=True)
class FailAdds:
    """Tell the callers of a run that its outcome is unknown (W7). Nothing is confirmed after this (W6)."""

    first: EntryId
    count: int
    error: BookKeeperError


@dataclass(slots=True)
class Release:
    """Packets up to and including ``upto`` are never sent again and may be dropped."""

    upto: EntryId


@dataclass(frozen=True, slots=True)
class ChangeEnsemble:
    """Find stand-ins for ``failed`` and let them take over from ``first_entry`` on.

    Build the new metadata with :func:`bookkeeper.ledger.ensemble_change.replan` from the metadata *as stored now*,
    write it by compare-and-set, and re-plan if that loses (W5). Confirms are held until one of these is reported:

    * ``on_ensemble_changed(metadata)``: committed. Some of ``failed`` may remain, where stand-ins were too few.
    * ``on_change_failed(NO_SPARE)``: there is no stand-in for any of them, nothing was written.
    * ``on_change_failed(STORE_AWAY)``: nothing was written *and nothing will be*. With an outcome that is unknown
      do not report: re-read until it is known (M8).
    * ``on_change_failed(CLOSED | IN_RECOVERY | DELETED)``: what the store says.

    ``keep``: the members that stay in their places. ``attempt`` counts this writer's changes from 1.
    """

    failed: tuple[BookieId, ...]
    keep: tuple[BookieId, ...]
    first_entry: EntryId
    attempt: int


class ChangeFailure(Enum):
    """Why an ensemble change was not made."""

    NO_SPARE = "no spare bookie"
    STORE_AWAY = "the metadata store cannot be reached"
    CLOSED = "the ledger is closed"
    IN_RECOVERY = "the ledger is being recovered"
    DELETED = "the ledger is deleted"


@dataclass(frozen=True, slots=True)
class WatchIncarnation:
    """Drop what connects this ledger to ``bookie``; report no reply to anything that was sent so far.

    Watch for it to answer again, under a new connection or the old one. Then re-read the metadata, after a sync of
    the store (W10b), and report ``on_bookie_returned``; or ``on_change_failed`` if the ledger is gone. May come
    again for the same bookie; ends when the bookie leaves the ensemble or the handle ends.
    """

    bookie: BookieId


@dataclass(frozen=True, slots=True)
class PublishLac:
    """On the next turn of the loop ask ``lac_to_publish()``; if it is not None send it to ``bookies`` as an explicit
    last add confirmed (W16). Failures do not matter. Call ``on_lac_published`` when it was sent."""

    lac: EntryId
    bookies: tuple[BookieId, ...]


@dataclass(frozen=True, slots=True)
class CloseMetadata:
    """Close the ledger by compare-and-set (``LedgerMetadata.close``); report ``on_closed`` or ``on_close_failed``."""

    last_entry: EntryId
    length: int


@dataclass(frozen=True, slots=True)
class SendForce:
    """Ask ``bookie`` to make durable what it has of this ledger, on the connection on which it acknowledged it.

    Report ``on_forced`` or ``on_force_failed`` with the same ``number``. ``after_s``: wait so many seconds first, for
    the bookie has just refused it.
    """

    bookie: BookieId
    number: int
    after_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Forced:
    """Tell those who wait for force ``number``: what was acknowledged is durable on every bookie (W11)."""

    number: int


@dataclass(frozen=True, slots=True)
class ForceFailed:
    """Tell those who wait for force ``number`` that a bookie could not, or did not answer in time."""

    number: int
    error: BookKeeperError


@dataclass(frozen=True, slots=True)
class CloseFailed:
    """Tell those who wait for the close that it failed before metadata were touched."""

    error: BookKeeperError


@dataclass(frozen=True, slots=True)
class MoreRoom:
    """``must_wait`` has become false without a confirm: whoever waits for room may go on (W12)."""


@dataclass(frozen=True, slots=True)
class NoteMissing:
    """``bookie`` lacks its share of the confirmed entries ``first .. last`` (W14); at close, mark the ledger
    under-replicated on it."""

    bookie: BookieId
    first: EntryId
    last: EntryId


Effect = (
    Encode
    | SendAdds
    | Confirm
    | FailAdds
    | Release
    | ChangeEnsemble
    | WatchIncarnation
    | PublishLac
    | CloseMetadata
    | NoteMissing
    | SendForce
    | Forced
    | ForceFailed
    | CloseFailed
    | MoreRoom
    | WakeAt
)
