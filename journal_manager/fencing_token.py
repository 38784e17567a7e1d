"""The fencing token: the epoch of a writer.

A writer claims an epoch by compare-and-set on the journal's node, and epochs only rise. The store checks the epoch on
every step that changes the journal. The application gets the token, too, and can fence its own side effects with it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class FencingToken:
    """The right to write until another writer claims a higher epoch."""

    epoch: int
    """1 for the first writer of a journal; no epoch is claimed twice."""

    owner: str
    """The name of the owner, for people."""
