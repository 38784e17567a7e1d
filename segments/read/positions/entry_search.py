"""Finds the entry of a segment that holds the first record at or above a number, by halving (pure).

The shell reads the entry that ``probe`` names and reports the greatest number in it. The numbers do not fall from
entry to entry. An entry may have none: it holds no user record, or records without a transaction id.

    probe -> entry      the entry to look at next; None: the search is over, ``found`` tells
    on_entry(entry, n)  n >= target: the record is in this entry or before it
                        n <  target: it is behind it
                        none:        the entries behind it are looked at, one by one, until one has a number
"""

from __future__ import annotations


class EntrySearch:
    """A search for ``target`` in the entries ``low .. high``."""

    __slots__ = ("_end", "_low", "_middle", "_walk", "found", "target")

    def __init__(self, target: int, low: int, high: int) -> None:
        self.target = target
        self._low = low
        """The record is in no entry before this one."""
        self._end = high + 1
        """If the record is in an entry from here on, ``found`` is the first of them."""
        self._middle: int | None = None
        """Where the present halving began to look."""
        self._walk = low
        self.found: int | None = None
        """The first entry known so far that has a number at or above the target; None: none has, as far as is known."""

    @property
    def probe(self) -> int | None:
        """The entry to look at next; None when the search is over."""
        if self._low >= self._end:
            return None
        if self._middle is None:
            self._middle = self._walk = (self._low + self._end) // 2
        return self._walk

    def on_entry(self, entry: int, greatest: int | None) -> None:
        """Take the greatest number in the entry that ``probe`` named; None if it has none."""
        middle = self._middle
        assert middle is not None and entry == self._walk, f"entry {entry} was not asked for"
        if greatest is None:
            self._walk += 1
            if self._walk < self._end:
                return
            self._end = middle
        elif greatest >= self.target:
            self.found, self._end = entry, middle
        else:
            self._low = entry + 1
        self._middle = None

    def validate_state(self) -> None:
        """What must hold between any two calls. For tests."""
        assert self.found is None or self._end <= self.found, "an entry before the found one would be passed"
        if self._middle is not None:
            assert self._low <= self._middle <= self._walk < self._end
