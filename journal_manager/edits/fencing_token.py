"""The fencing token: the epoch of a writer.

A writer claims an epoch by compare-and-set on the journal's node, and epochs only rise. The store checks the epoch on
every step that changes the journal. The application gets the token, too, and can fence its own side effects with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from journal_manager.errors import JournalFencedError


@dataclass(frozen=True, slots=True, order=True)
class FencingToken:
    """The right to write until another writer claims a higher epoch."""

    epoch: int
    """1 for the first writer of a journal; no epoch is claimed twice."""

    owner: str
    """The name of the owner, for people."""

    def ensure_current(self, current: FencingToken) -> None:
        """Refuse a token that was overtaken.

        Raises:
            JournalFencedError: ``current`` is another claim than this one.
        """
        if current != self:
            raise fenced(self, current)


def fenced(token: FencingToken, by: FencingToken | None) -> JournalFencedError:
    """Make the error of a writer with ``token`` when ``by`` (None: unknown) has the journal."""
    who = f"epoch {by.epoch} of {by.owner}" if by is not None else "a later writer"
    return JournalFencedError(
        f"{who} has taken the journal over from epoch {token.epoch} of {token.owner}, which may write no more",
        epoch=token.epoch,
        by=by,
    )
