"""What :class:`bookkeeper.ledger.write.LedgerWriter` asks its shell to do, and its settings.

A run is ``first .. first + count - 1``. The shell performs effects in the order in which they come, and never changes
them. The effects of every append are not frozen, because making a frozen one takes four times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.effects import WakeAt


@dataclass(slots=True)
class Encode:
    """Build the packets of a run, once (W8), and keep them until :class:`Release`.

    Each packet carries ``lac`` as its last add confirmed. The length in the first is ``length_before`` plus its size.
    """

    first: EntryId
    count: int
    lac: EntryId
    length_before: int


@dataclass(slots=True)
class SendAdds:
    """Send ``bookie``, at ``position`` of the ensemble, its share of the run: ``spec.stripe(position, first, count)``.

    Report ``on_acks``, ``on_bookie_failed`` or ``on_fenced``, but never while performing this effect.
    """

    bookie: BookieId
    first: EntryId
    count: int
    position: int


@dataclass(slots=True)
class Confirm:
    """Tell the callers of a run that it is durable (W1). Runs come in order and without gaps (W2).

    With deferred sync the run is only written, and not yet durable (W11)."""

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
    """Drop the packets up to and including ``upto``: they are never sent again."""

    upto: EntryId


@dataclass(frozen=True, slots=True)
class ChangeEnsemble:
    """Find stand-ins for ``failed`` and let them take over from ``first_entry`` on.

    Build the new metadata with :func:`bookkeeper.ledger.ensemble.replan` from the metadata *as stored now*, write
    them by compare-and-set, and plan again if that loses (W5). The writer confirms nothing until the shell reports one
    of these:

    * ``on_ensemble_changed(metadata)``: committed. Some of ``failed`` remain if there were too few stand-ins.
    * ``on_change_failed(NO_SPARE)``: there is no stand-in for any of them; nothing was written.
    * ``on_change_failed(STORE_AWAY)``: nothing was written *and nothing will be*. If the outcome of a write is unknown,
      report nothing and read the metadata until it is known (M8).
    * ``on_change_failed(CLOSED | IN_RECOVERY | DELETED)``: the stored metadata say so.

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
    """Drop this ledger's channel to ``bookie``, and report no reply to anything that was sent so far.

    Wait until the bookie answers again, over a new connection or the old one. Then read the metadata, after a sync of
    the store (W10b), and report ``on_bookie_returned``, or ``on_change_failed`` if the ledger is gone. This effect may
    come again for the same bookie. The watch ends when the bookie leaves the ensemble or the handle ends.
    """

    bookie: BookieId


@dataclass(slots=True)
class PublishLac:
    """On the next turn of the loop call ``lac_to_publish()``. If the result is not None, send it as an explicit last
    add confirmed (W16) to an ack quorum, the first of ``bookies``, and call ``on_lac_published``: whoever asks a
    covering set of bookies hears of it, and those who wait ask the first one first. Send it to the others a little
    later, if it ``is_final_lac`` then. Failures do not matter."""

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
class ForceDone:
    """Tell the callers of force ``number`` that what was acknowledged is durable on every bookie (W11)."""

    number: int


@dataclass(frozen=True, slots=True)
class ForceFailed:
    """Tell the callers of force ``number`` that a bookie failed to sync, or did not answer in time."""

    number: int
    error: BookKeeperError


@dataclass(frozen=True, slots=True)
class CloseFailed:
    """Tell the callers of close that it failed before the metadata were changed."""

    error: BookKeeperError


@dataclass(frozen=True, slots=True)
class ResumeCallers:
    """``must_wait`` has become false without a confirm: callers that wait for room may continue (W12)."""


@dataclass(frozen=True, slots=True)
class MarkMissing:
    """Note that ``bookie`` lacks its share of the confirmed entries ``first .. last`` (W14), and mark the ledger as
    under-replicated on it, at the latest when it is closed."""

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
    | MarkMissing
    | SendForce
    | ForceDone
    | ForceFailed
    | CloseFailed
    | ResumeCallers
    | WakeAt
)
