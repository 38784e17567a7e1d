"""Whose epoch it is.

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
    """1 for the first writer a journal ever had; never claimed twice."""

    owner: str
    """A name for people: who claimed it."""

    def ensure_current(self, current: FencingToken) -> None:
        """Refuse a token that was overtaken.

        Raises:
            JournalFencedError: ``current`` is another claim than this one.
        """
        if current != self:
            raise fenced(self, current)


def fenced(token: FencingToken, by: FencingToken | None) -> JournalFencedError:
    """The error a writer with ``token`` gets when ``by`` (unknown if None) has the journal."""
    who = f"epoch {by.epoch} of {by.owner}" if by is not None else "a later writer"
    return JournalFencedError(f"epoch {token.epoch} of {token.owner} was fenced by {who}", epoch=token.epoch, by=by)
