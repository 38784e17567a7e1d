"""The fencing token: which writer's epoch it is.

An epoch is claimed by compare-and-set on the journal's own record and only rises. The store checks it on
every step that changes the journal, and it is handed to the application, whose own side effects it can
fence as well.
"""

from __future__ import annotations

from dataclasses import dataclass

from journal_manager.errors import JournalFencedError


@dataclass(frozen=True, slots=True, order=True)
class FencingToken:
    """The right to write, once given, until a higher epoch is claimed."""

    epoch: int
    """1 for the first writer that a journal ever had; never claimed twice."""

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
