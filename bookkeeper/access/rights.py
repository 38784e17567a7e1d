"""What may be done with a resource."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from bookkeeper.errors import ConfigError


class Right(StrEnum):
    """What a grant may give. No right includes another one."""

    APPEND = "append"
    """Add entries, make them durable, tell the last add confirmed."""
    READ = "read"
    """Read entries, list them, wait for them."""
    RECOVER = "recover"
    """Fence a ledger and recover it: its writer ends."""
    REPAIR = "repair"
    """Copy entries between bookies: the auditor, its workers, drains, and bookies that complete themselves."""
    CREATE = "create"
    """Make a stream, a journal or a file, where a server of ours does so on request."""
    DELETE = "delete"
    """Delete one, there."""
    HOLD = "hold"
    """Put holds on a stream, which keep its records from retention, and change or release one's own."""
    ADMINISTER = "administer"
    """Orders to servers, and whatever else is no user's business."""


EVERY_RIGHT: Final = frozenset(Right)


def parse_rights(text: str) -> frozenset[Right]:
    """The rights in a list such as ``append,read``.

    Raises:
        ConfigError: the list is empty, or has a word that is no right; the text names the word and all rights.
    """
    return rights_of(word.strip() for word in text.split(","))


def rights_of(words: Iterable[str]) -> frozenset[Right]:
    """The rights with these names.

    Raises:
        ConfigError: there is none, or a word is no right.
    """
    known = {right.value: right for right in Right}
    found = set()
    for word in words:
        if word not in known:
            raise ConfigError(f'"{word}" is no right; the rights are {", ".join(known)}')
        found.add(known[word])
    if not found:
        raise ConfigError(f"at least one right is needed; the rights are {', '.join(known)}")
    return frozenset(found)
