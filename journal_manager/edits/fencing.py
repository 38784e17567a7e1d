"""A writer whose epoch was overtaken is refused."""

from __future__ import annotations

from journal_manager.errors import JournalFencedError
from journal_manager.fencing_token import FencingToken


def require_current(token: FencingToken, current: FencingToken) -> None:
    """Refuse a token that was overtaken.

    Raises:
        JournalFencedError: ``current`` is another claim than ``token``.
    """
    if current != token:
        raise fenced(token, current)


def fenced(token: FencingToken, by: FencingToken | None) -> JournalFencedError:
    """Make the error of a writer with ``token`` when ``by`` (None: unknown) has the journal."""
    who = f"epoch {by.epoch} of {by.owner}" if by is not None else "a later writer"
    return JournalFencedError(
        f"{who} has taken the journal over from epoch {token.epoch} of {token.owner}, which may write no more",
        epoch=token.epoch,
        by=by,
    )
