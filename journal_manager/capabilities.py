"""What some backends can do besides the contract. A writer either has the methods of a capability or not.

sweeper = capability(writer, OrphanSweep)     # or an error that says that this backend has no such thing
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from journal_manager.errors import UnsupportedCapabilityError

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Orphan:
    """Something that a journal left behind, and that nothing refers to."""

    location: str
    purpose: str
    """What it was made for, in words."""
    age_s: float
    bytes: int
    """How much would be free; 0 if it is not known."""


@runtime_checkable
class OrphanSweep(Protocol):
    """Finds and removes what crashes left behind."""

    async def find_orphans(self, *, older_than_s: float = ...) -> tuple[Orphan, ...]:
        """What nothing refers to and nothing will, at least ``older_than_s`` seconds old. Removes nothing.

        Raises:
            JournalFencedError, JournalUnavailableError.
        """

    async def sweep_orphans(self, *, older_than_s: float = ...) -> tuple[Orphan, ...]:
        """Remove what ``find_orphans`` finds. Returns it. Raises the same."""


def capability(of: object, kind: type[C]) -> C:
    """``of``, if it has the methods of ``kind``.

    Raises:
        UnsupportedCapabilityError: it does not.
    """
    if not isinstance(of, kind):
        raise UnsupportedCapabilityError(f"{type(of).__name__} cannot do this: it has no {kind.__name__}")
    return of
