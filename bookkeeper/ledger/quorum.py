"""Quorum arithmetic: which bookies store an entry, and how many answers are enough.

An ensemble of E bookies takes turns: entry *n* goes to the Qw bookies that start at position ``n mod E``, its write
set, and counts as written once Qa of them say so (Q1).

    E=4 Qw=3 Qa=2     entry 0: b0 b1 b2
                      entry 1:    b1 b2 b3
                      entry 2: b0    b2 b3
                      entry 3: b0 b1    b3

Coverage is the mirror image (Q3). A property *covers* a write set when fewer than Qa of its bookies lack it. Those
cannot form an ack quorum any more, so that every entry that is or becomes written is on a bookie with the property.

    fencing                    must cover every write set of the ensemble
    a negative recovery read   must cover the entry's write set: Qw - Qa + 1 explicit negatives (Q4)

This is the only file in which quorum sizes are added, subtracted or compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeVar

from bookkeeper.ids import BookieId

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumSpec:
    """How a ledger is spread over bookies. Invariant (Q5): E >= Qw >= Qa >= 1.

    Raises:
        ValueError: the invariant does not hold.
    """

    ensemble_size: int
    write_quorum: int
    ack_quorum: int

    def __post_init__(self) -> None:
        if not self.ensemble_size >= self.write_quorum >= self.ack_quorum >= 1:
            raise ValueError(f"a ledger needs E >= Qw >= Qa >= 1, not {self}")

    def __str__(self) -> str:
        return f"E={self.ensemble_size} Qw={self.write_quorum} Qa={self.ack_quorum}"

    @property
    def is_striped(self) -> bool:
        """Does each bookie hold only some of the entries (E > Qw)?"""
        return self.ensemble_size > self.write_quorum

    # -- who stores an entry (Q1) -----------------------------------------------------------------------

    def positions(self, entry_id: int) -> tuple[int, ...]:
        """Indexes into the ensemble of an entry's write set, in order."""
        return tuple((entry_id + i) % self.ensemble_size for i in range(self.write_quorum))

    def write_set(self, entry_id: int, ensemble: Sequence[BookieId]) -> tuple[BookieId, ...]:
        """The Qw bookies that store an entry, in order."""
        assert len(ensemble) == self.ensemble_size
        return tuple(ensemble[p] for p in self.positions(entry_id))

    def holds(self, position: int, entry_id: int) -> bool:
        """Is the bookie at this position of the ensemble in the entry's write set?"""
        return (position - entry_id) % self.ensemble_size < self.write_quorum

    def stripe(self, position: int, first: int, count: int) -> Sequence[int]:
        """The entry ids of ``first .. first + count - 1`` that the bookie at ``position`` holds, rising.

        A ``range`` (nothing is built) when E == Qw.
        """
        ids = range(first, first + count)
        if not self.is_striped:
            return ids
        found: list[int] = []
        for behind in range(self.write_quorum):  # one in each turn of the ensemble
            found += ids[(position - behind - first) % self.ensemble_size :: self.ensemble_size]
        found.sort()
        return found

    def stripe_size(self, position: int, first: int, count: int) -> int:
        """``len(stripe(position, first, count))``, in constant time."""
        if not self.is_striped:
            return count
        size, quorum = self.ensemble_size, self.write_quorum
        whole, rest = divmod(count, size)
        held = whole * quorum
        if rest:  # of one turn of the ensemble it holds the entries begin .. last, and those a turn later
            last = (position - first) % size
            begin = last - quorum + 1
            held += max(0, min(last + 1, rest) - max(0, begin)) + max(0, rest - begin - size)
        return held

    def one_turn(self, first: int, stop: int | None = None) -> range:
        """The first entries of ``first .. stop - 1`` (None: without end) that have every write set between them: the
        others repeat theirs."""
        behind = first + self.ensemble_size
        return range(first, behind if stop is None else max(first, min(stop, behind)))

    def next_held(self, position: int, entry_id: int) -> int:
        """The lowest id not below ``entry_id`` that the bookie at ``position`` holds."""
        behind = (position - entry_id) % self.ensemble_size
        return entry_id if behind < self.write_quorum else entry_id + behind - self.write_quorum + 1

    def joined(self, position: int, runs: Sequence[tuple[int, int, T]]) -> list[tuple[int, int, T]]:
        """Runs ``(first, count, what)``, joined where the bookie at ``position`` holds no id between two that are the
        same. A busy bookie of a striped ledger answers in a run for every turn of the ensemble, so that hundreds of
        runs are looked at as columns, and one by one only where something is missing among them."""
        if len(runs) > 2 and (whole := self._whole(position, runs)) is not None:
            return [whole]
        size, quorum = self.ensemble_size, self.write_quorum
        found: list[tuple[int, int, T]] = []
        first, count, what = runs[0]
        for following, more, other in runs[1:]:
            end = first + count
            behind = (position - end) % size
            held = end if behind < quorum else end + behind - quorum + 1  # as :meth:`next_held`
            if following == held and other == what:
                count = following + more - first
            else:
                found.append((first, count, what))
                first, count, what = following, more, other
        found.append((first, count, what))
        return found

    def _whole(self, position: int, runs: Sequence[tuple[int, int, T]]) -> tuple[int, int, T] | None:
        """Three runs or more as one, if they are all that the bookie at ``position`` holds of one turn of the ensemble
        after the other; the first may have begun earlier, and the last may end earlier. None: look at each."""
        firsts, counts, whats = zip(*runs, strict=True)
        first, second, last = runs[0][0], runs[1][0], firsts[-1]
        between = counts[1:-1]
        if (
            whats.count(whats[0]) != len(whats)
            or between.count(self.write_quorum) != len(between)
            or firsts[1:] != tuple(range(second, last + 1, self.ensemble_size))
            or (position - second) % self.ensemble_size != self.write_quorum - 1  # where what it holds of a turn begins
            or self.next_held(position, first + counts[0]) != second
        ):
            return None
        return first, last + counts[-1] - first, whats[0]

    # -- when is an entry written, when is it not -------------------------------------------------------

    def is_acknowledged(self, acks: int) -> bool:
        """Do this many distinct bookies of an entry's write set make an ack quorum?"""
        return acks >= self.ack_quorum

    def ack_quorum_of(self, bookies: Sequence[BookieId]) -> Sequence[BookieId]:
        """The first of ``bookies`` that make an ack quorum of any entry between them: all of a striped ensemble."""
        return bookies if self.is_striped else bookies[: self.ack_quorum]

    def proves_absence(self, negatives: int) -> bool:
        """Do this many explicit negatives to fencing reads, from distinct bookies of an entry's write set, prove
        that no client ever got or ever will get an ack for it (Q4)?"""
        return negatives >= self.write_quorum - self.ack_quorum + 1

    def acknowledged_below(self, first: int, ends: Sequence[int]) -> int:
        """How far acks reach: the lowest id not below ``first`` that lacks an ack quorum.

        ``ends[p]`` says that the bookie at position ``p`` stored every entry it holds of ``first .. ends[p] - 1``
        (``ends[p] <= first``: none).
        """
        if self.ensemble_size == self.write_quorum:
            return max(first, sorted(ends)[-self.ack_quorum])
        lowest = self._unacknowledged(first, ends)
        for entry_id in range(first + 1, first + self.ensemble_size):
            if lowest <= entry_id:
                break  # the others are not below it
            lowest = min(lowest, self._unacknowledged(entry_id, ends))
        return lowest

    def _unacknowledged(self, entry_id: int, ends: Sequence[int]) -> int:
        """The lowest id, ``entry_id`` or a whole number of turns later, that lacks an ack quorum."""
        size = self.ensemble_size
        start = entry_id % size
        stop = start + self.write_quorum
        of_set = sorted(ends[start:stop] if stop <= size else (*ends[start:], *ends[: stop - size]))
        end = of_set[-self.ack_quorum]
        return entry_id - (entry_id - end) // size * size if end > entry_id else entry_id

    # -- coverage (Q3) ----------------------------------------------------------------------------------

    def covers(self, having: AbstractSet[BookieId], write_set: Iterable[BookieId]) -> bool:
        """Do so many of ``write_set`` have it that those without cannot form an ack quorum?"""
        return len(set(write_set) - having) < self.ack_quorum

    def covers_ensemble(self, having: AbstractSet[BookieId], ensemble: Sequence[BookieId]) -> bool:
        """Does it cover every write set of the ensemble?"""
        return all(self.covers(having, self.write_set(e, ensemble)) for e in range(self.ensemble_size))

    def can_acknowledge(self, alive: AbstractSet[BookieId], ensemble: Sequence[BookieId]) -> bool:
        """Could every entry find an ack quorum among the bookies ``alive``?"""
        turns = range(self.ensemble_size)
        return all(self.is_acknowledged(len(set(self.write_set(e, ensemble)) & alive)) for e in turns)
