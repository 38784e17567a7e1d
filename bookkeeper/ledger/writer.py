"""The writing half of a ledger, as a machine that touches nothing. (Signatures first; the machine follows.)"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bookkeeper.errors import BookKeeperError
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger.effects import WakeAt
from bookkeeper.ledger.metadata import LedgerMetadata
from bookkeeper.ledger.writer_effects import (
    ChangeEnsemble,
    ChangeFailure,
    CloseMetadata,
    Confirm,
    Effect,
    Encode,
    FailAdds,
    NoteMissing,
    PublishLac,
    Release,
    SendAdds,
    WatchLife,
    WriterConfig,
)

__all__ = [
    "ChangeEnsemble",
    "ChangeFailure",
    "CloseMetadata",
    "Confirm",
    "Effect",
    "Encode",
    "FailAdds",
    "LedgerWriter",
    "NoteMissing",
    "PublishLac",
    "Release",
    "SendAdds",
    "WakeAt",
    "WatchLife",
    "WriterConfig",
]


class LedgerWriter:
    """Appends to one ledger. ``metadata`` is as it was committed when the ledger was created."""

    last_add_confirmed: EntryId
    next_entry: EntryId
    """The id of the next append."""
    pending_bytes: int
    """Payload bytes appended and not confirmed (W12)."""
    confirmed_length: int
    """Payload bytes of entries 0 .. last_add_confirmed."""
    metadata: LedgerMetadata
    """As last committed or seen."""
    error: BookKeeperError | None
    """Why nothing can be appended any more; None while something can."""

    def __init__(self, metadata: LedgerMetadata, config: WriterConfig | None = None) -> None: ...

    @property
    def must_wait(self) -> bool:
        """Must callers wait for confirms before they append more (W12)? ``add`` itself never refuses."""
        raise NotImplementedError

    def add(self, sizes: Sequence[int], now: float) -> tuple[EntryId, list[Effect]]:
        """Append a run of payloads of these sizes in bytes; ``sizes`` must not be changed afterwards.

        Returns the first id. Raises what ended the handle (``error``).
        """
        raise NotImplementedError

    def on_acks(self, bookie: BookieId, first: int, count: int, now: float) -> list[Effect]:
        """``bookie`` has stored every entry of ``first .. first + count - 1`` that it holds."""
        raise NotImplementedError

    def on_ack_ids(self, bookie: BookieId, ids: Iterable[int], now: float) -> list[Effect]:
        """``bookie`` has stored exactly these entries (for E > Qw, where its ids have holes)."""
        raise NotImplementedError

    def on_bookie_failed(self, bookie: BookieId, error: BookKeeperError, now: float) -> list[Effect]:
        """An add failed on ``bookie``, or the connection to it was lost (also when nothing was in flight: W10b).

        A fenced or unauthorised reply ends the handle; anything else is this bookie's failure.
        """
        raise NotImplementedError

    def on_fenced(self, now: float) -> list[Effect]:
        """Some bookie of the ensemble said that the ledger is fenced (W9)."""
        raise NotImplementedError

    def on_ensemble_changed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """The change that was asked for is committed; ``metadata`` is what is stored."""
        raise NotImplementedError

    def on_change_failed(self, reason: ChangeFailure, now: float) -> list[Effect]:
        """The change that was asked for was not made, or the store says that the ledger is at its end."""
        raise NotImplementedError

    def on_spares_changed(self, now: float) -> list[Effect]:
        """A bookie appeared that may stand in."""
        raise NotImplementedError

    def on_bookie_returned(self, bookie: BookieId, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """``bookie`` answers again; ``metadata`` was read after that, after a sync (W10b)."""
        raise NotImplementedError

    def on_tick(self, now: float) -> list[Effect]:
        """Time has passed: deadlines, hung bookies, retries."""
        raise NotImplementedError

    def lac_to_publish(self) -> EntryId | None:
        """What an explicit last add confirmed should carry now; None if the next add will carry it anyway."""
        raise NotImplementedError

    def on_lac_published(self, lac: EntryId) -> None:
        """It was sent."""

    def close(self, now: float) -> list[Effect]:
        """Fail what is pending, then close at the last add confirmed (R13). Idempotent: later calls return [].

        Raises what ended the handle, if the ledger is not ours to close any more.
        """
        raise NotImplementedError

    def on_closed(self, metadata: LedgerMetadata, now: float) -> list[Effect]:
        """The ledger is closed as asked; ``metadata`` is what is stored."""
        raise NotImplementedError

    def on_close_failed(self, error: BookKeeperError, now: float) -> list[Effect]:
        """It could not be closed (fenced, closed with another end, store away); ``close`` may be tried again if
        the error is retryable."""
        raise NotImplementedError
