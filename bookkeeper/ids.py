"""Names of things. Distinct ids are distinct types: a swapped argument does not type-check."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from ipaddress import IPv6Address
from itertools import islice
from typing import Final, NamedTuple, NewType

LedgerId = NewType("LedgerId", int)
"""Unique for ever in one cluster; never issued twice (M6). 0 <= id < 2**63."""

EntryId = NewType("EntryId", int)
"""Numbers the entries of one ledger from 0, without gaps."""

BookieId = NewType("BookieId", str)
"""A bookie's name in ensembles, cookies and registrations; by default its host:port."""

NO_ENTRY: Final = EntryId(-1)
"""Last add confirmed of a ledger in which nothing is confirmed; "the last entry" in a read request."""

_INTERFACE_BITS: Final = 64
"""Of an IPv6 address the bits that a host chooses itself."""

_BOOKIE_ID = re.compile(r"[a-zA-Z0-9:-_.\-]+")


class Address(NamedTuple):
    """Where something listens."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @classmethod
    def parse(cls, text: str) -> Address:
        """``host:port`` or ``[ipv6]:port``.

        Raises:
            ValueError: the text has another shape, or the port is not in 0..65535.
        """
        host, colon, port = text.rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > 65535:
            limit = " (a port is at most 65535)" if port.isdecimal() and int(port) > 65535 else ""
            raise ValueError(f"expected HOST:PORT, got {text!r}{limit}")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


def counted_address(host: str) -> str:
    """Under which name a peer counts where something is limited for each address. An IPv6 host has its choice among
    the 2**64 addresses of its network, so the network counts (the first 64 bits); an IPv4 address in IPv6's form is the
    IPv4 address. A name, or what is no address, counts as it is.
    """
    if ":" not in host:
        return host
    try:
        address = IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return f"{IPv6Address(int(address) >> _INTERFACE_BITS << _INTERFACE_BITS)}/{128 - _INTERFACE_BITS}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``; of names that is known of ``localhost`` alone."""
    import ipaddress  # most starts need none of it

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_bookie_id(text: str) -> bool:
    """Whether ``text`` can be a bookie id; what others have written into the metadata need not be one (X29)."""
    return _BOOKIE_ID.fullmatch(text) is not None and text.lower() != "readonly"


def bookie_id(text: str) -> BookieId:
    """``text`` as a bookie id, by the rules of Apache BookKeeper's BookieId.

    Raises:
        ValueError: a character that is not allowed, or the reserved word ``readonly``.
    """
    if not is_bookie_id(text):
        raise ValueError(
            f"{text!r} is not a bookie id: letters, digits and :-_. are allowed, and 'readonly' is reserved"
        )
    return BookieId(text)


class IdRanges:
    """A set of ids that is small when they are neighbours. ``id in ranges``; iterating gives (first, last) of each run,
    rising; ``len`` counts the runs."""

    __slots__ = ("_firsts", "_lasts")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in ranges:
            self.add(first, last)

    def __repr__(self) -> str:
        return f"IdRanges({', '.join(f'{first}..{last}' for first, last in self)})"

    def add(self, first: int, last: int | None = None) -> None:
        """Add ``first`` to ``last``, by default one id."""
        last = first if last is None else last
        if last < first:
            raise ValueError(f"a range of ids from {first} to {last}")
        begin, end = bisect_left(self._lasts, first - 1), bisect_right(self._firsts, last + 1)
        if begin < end:
            first, last = min(first, self._firsts[begin]), max(last, self._lasts[end - 1])
        self._firsts[begin:end] = [first]
        self._lasts[begin:end] = [last]

    def discard(self, found: int) -> None:
        """Remove one id, if it is there."""
        if found not in self:
            return
        at = bisect_right(self._firsts, found) - 1
        first, last = self._firsts[at], self._lasts[at]
        parts = [part for part in ((first, found - 1), (found + 1, last)) if part[0] <= part[1]]
        self._firsts[at : at + 1] = [part[0] for part in parts]
        self._lasts[at : at + 1] = [part[1] for part in parts]

    def update(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Add all of them."""
        for first, last in ranges:
            self.add(first, last)

    def copy(self) -> IdRanges:
        other = IdRanges()
        other._firsts, other._lasts = list(self._firsts), list(self._lasts)
        return other

    def __contains__(self, found: object) -> bool:
        if not self._firsts or not isinstance(found, int):
            return False
        at = bisect_right(self._firsts, found) - 1
        return at >= 0 and found <= self._lasts[at]

    def covers(self, first: int, last: int) -> bool:
        """Are all of ``first`` to ``last`` in it?"""
        at = bisect_right(self._firsts, first) - 1
        return at >= 0 and last <= self._lasts[at]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(list(self._firsts), list(self._lasts), strict=True)

    def __len__(self) -> int:
        return len(self._firsts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IdRanges):
            return NotImplemented
        return self._firsts == other._firsts and self._lasts == other._lasts

    __hash__ = None  # type: ignore[assignment]  # it changes


def some_of(items: Collection[object], most: int) -> str:
    """The first ``most`` of these for people, and how many more there are: ``1, 2 and 7 more``."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(map(str, islice(items, most))) + more
