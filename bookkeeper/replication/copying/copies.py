"""What one bookie holds of a ledger, by metadata. Repair works in these units. Pure.

A *copy* is the share of one fragment that one bookie holds, at one position of the ensemble: every entry whose write
set has this position (Q1), and nothing past the fragment's end (A6).

    A3  The last fragment of a ledger that is not closed has no end yet: its copies are left alone.
    A6  Nothing past the last id is copied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import LedgerMetadata, QuorumSpec


@dataclass(frozen=True, slots=True)
class Copy:
    """One bookie's share of one fragment."""

    first_entry: EntryId
    """The fragment's first entry, which names the fragment and never changes (M3)."""
    end: EntryId | None
    """The fragment's last entry (``first_entry - 1`` if it is empty). None: entries may still be added (A3)."""
    position: int
    """The bookie's position in the ensemble."""
    bookie: BookieId
    at_least: EntryId | None = None
    """Without an end: the last confirmed entry (``first_entry - 1`` if there is none); None: not known."""

    def __str__(self) -> str:
        return f"{self.span} on {self.bookie}"

    @property
    def span(self) -> str:
        """The entries of its fragment, for people."""
        if self.end is not None and self.end < self.first_entry:
            return f"the empty fragment at {self.first_entry}"
        return f"entries {self.first_entry}..{'?' if self.end is None else self.end}"

    @property
    def is_decided(self) -> bool:
        """Whether the fragment has an end."""
        return self.end is not None

    @property
    def bounded(self) -> Copy:
        """The part of this copy that must be there now: all of it, or what is known to be confirmed."""
        return self if self.is_decided else replace(self, end=self.at_least, at_least=None)

    def held(self, spec: QuorumSpec) -> int:
        """How many entries this copy has."""
        if self.end is None:
            return 0
        return spec.stripe_size(self.position, self.first_entry, self.end - self.first_entry + 1)

    def runs(self, spec: QuorumSpec, entries_max: int) -> Iterator[Sequence[int]]:
        """The entry ids of this copy in ascending runs of at most ``entries_max``. Ids of a run are consecutive unless
        the fragment is striped."""
        if self.end is None:
            return
        at = int(self.first_entry)
        if not spec.is_striped:
            while at <= self.end:
                stop = min(self.end + 1, at + entries_max)
                yield range(at, stop)
                at = stop
            return
        run: list[int] = []
        at = spec.next_held(self.position, at)
        while at <= self.end:
            run.append(at)
            if len(run) == entries_max:
                yield run
                run = []
            at = spec.next_held(self.position, at + 1)
        if run:
            yield run


@dataclass(frozen=True, slots=True)
class PartialCopy(Copy):
    """Some entries of a copy; its other entries are known to be there."""

    entries: tuple[range, ...] = ()

    @classmethod
    def of(cls, copy: Copy, entries: tuple[range, ...]) -> PartialCopy:
        """The part of ``copy`` that has ``entries``, which are ascending."""
        return cls(copy.first_entry, copy.end, copy.position, copy.bookie, entries=entries)

    def held(self, spec: QuorumSpec) -> int:
        """How many entries this part has."""
        return sum(map(len, self.entries))

    def runs(self, spec: QuorumSpec, entries_max: int) -> Iterator[Sequence[int]]:
        """The entry ids of this part in ascending runs, as :meth:`Copy.runs`."""
        if not spec.is_striped:
            for some in self.entries:
                for at in range(some.start, some.stop, entries_max):
                    yield range(at, min(some.stop, at + entries_max))
            return
        run: list[int] = []
        for entry in chain.from_iterable(self.entries):
            run.append(entry)
            if len(run) == entries_max:
                yield run
                run = []
        if run:
            yield run


def copies_of(metadata: LedgerMetadata, bookie: BookieId | None = None) -> list[Copy]:
    """All copies of a ledger, or those of one bookie, in the order of their entries."""
    found = []
    for index, fragment in enumerate(metadata.fragments):
        end = metadata.fragment_end(index)
        for position, member in enumerate(fragment.ensemble):
            if bookie is None or member == bookie:
                found.append(Copy(fragment.first_entry, end, position, member))
    return found


def copy_at(metadata: LedgerMetadata, first_entry: int, position: int) -> Copy | None:
    """The copy at this position of the fragment that begins at ``first_entry``; None if there is no such fragment."""
    for index, fragment in enumerate(metadata.fragments):
        if fragment.first_entry == first_entry:
            return Copy(fragment.first_entry, metadata.fragment_end(index), position, fragment.ensemble[position])
    return None
