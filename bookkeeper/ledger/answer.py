"""What a bookie's reply *means*: yes, no, or nothing (Q2).

    positive   the entry, whose digest the caller has checked
    negative   no such entry, no such ledger: an explicit no, by a bookie that can tell
    unknown    everything else: time-out, lost connection, I/O error, limbo, too busy, unauthorised,
               bad digest, unparsable

Only an explicit no counts when absence has to be proved. No other module turns an error into one of the three: machines
get the class, never a code.
"""

from __future__ import annotations

from enum import Enum

from bookkeeper.errors import NoSuchEntryError, NoSuchLedgerError


class Answer(Enum):
    """The three classes of replies."""

    POSITIVE = "positive"
    NEGATIVE = "negative"
    UNKNOWN = "unknown"


def classify(error: BaseException | None) -> Answer:
    """The class of a reply. Without an error it is positive; the caller must have checked the digest by then."""
    if error is None:
        return Answer.POSITIVE
    return Answer.NEGATIVE if isinstance(error, NoSuchEntryError | NoSuchLedgerError) else Answer.UNKNOWN
