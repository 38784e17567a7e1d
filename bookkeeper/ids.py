"""Names of things. Distinct ids are distinct types: a swapped argument does not type-check."""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NewType

LedgerId = NewType("LedgerId", int)
"""Unique for ever in one cluster; never issued twice (M6). 0 <= id < 2**63."""

EntryId = NewType("EntryId", int)
"""Numbers the entries of one ledger from 0, without gaps."""

BookieId = NewType("BookieId", str)
"""A bookie's name in ensembles, cookies and registrations; by default its host:port."""

NO_ENTRY: Final = EntryId(-1)
"""Last add confirmed of a ledger in which nothing is confirmed; "the last entry" in a read request."""

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
            raise ValueError(f"expected HOST:PORT, got {text!r}")
        return cls(host.removeprefix("[").removesuffix("]"), int(port))


def bookie_id(text: str) -> BookieId:
    """``text`` as a bookie id, by the rules of Apache BookKeeper's BookieId.

    Raises:
        ValueError: a character that is not allowed, or the reserved word ``readonly``.
    """
    if not _BOOKIE_ID.fullmatch(text) or text.lower() == "readonly":
        raise ValueError(f"not a bookie id: {text!r} (letters, digits and :-_. are allowed; 'readonly' is reserved)")
    return BookieId(text)
