"""The owners of ledgers in memory, twelve bytes for each ledger: there may be millions. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Set
from typing import Final

from bookkeeper.access import Resource

RECENT_MAX: Final = 4096
"""At least so many new ledgers are kept in a dict before they are merged into the sorted arrays."""


class OwnerMap:
    """The owners of ledgers."""

    def __init__(self) -> None:
        self._ids = array("q")
        """Ascending."""
        self._owners = array("I")
        """The owner's number of each, an index into ``_names``."""
        self._recent: dict[int, int] = {}
        """Newer than the arrays: ledger -> the owner's number."""
        self._names: list[Resource] = []
        self._numbers: dict[Resource, int] = {}

    def __len__(self) -> int:
        """How many ledgers have an owner; one with a new owner may count twice until the next merge."""
        return len(self._ids) + len(self._recent)

    def get(self, ledger_id: int) -> Resource | None:
        """The owner of a ledger; None: none is known."""
        number = self._recent.get(ledger_id)
        if number is None:
            at = bisect_left(self._ids, ledger_id)
            if at == len(self._ids) or self._ids[at] != ledger_id:
                return None
            number = self._owners[at]
        return self._names[number]

    def put(self, ledger_id: int, owner: Resource) -> None:
        """The ledger has this owner from now on."""
        self._recent[ledger_id] = self._number(owner)
        if len(self._recent) > RECENT_MAX + len(self._ids) // 8:
            self._merge()

    def copy(self) -> OwnerMap:
        """What is known now, for another thread."""
        self._merge()
        other = OwnerMap()
        other._ids, other._owners = self._ids[:], self._owners[:]
        other._names, other._numbers = list(self._names), dict(self._numbers)
        return other

    def unwanted(self, wanted: Callable[[int], bool]) -> list[tuple[int, Resource]]:
        """The ledgers that are not wanted, with their owners."""
        self._merge()
        pairs = zip(self._ids, self._owners, strict=True)
        return [(ledger, self._names[number]) for ledger, number in pairs if not wanted(ledger)]

    def forget(self, ledgers: Set[int]) -> None:
        """Forget these ledgers."""
        self._merge()
        kept = [at for at, ledger in enumerate(self._ids) if ledger not in ledgers]
        self._owners = array("I", (self._owners[at] for at in kept))
        self._ids = array("q", (self._ids[at] for at in kept))

    def by_owner(self) -> dict[Resource, array[int]]:
        """The ledgers of each owner, ascending."""
        self._merge()
        found: dict[Resource, array[int]] = {}
        for ledger, number in zip(self._ids, self._owners, strict=True):
            found.setdefault(self._names[number], array("q")).append(ledger)
        return found

    def _number(self, owner: Resource) -> int:
        if (number := self._numbers.get(owner)) is None:
            number = self._numbers[owner] = len(self._names)
            self._names.append(owner)
        return number

    def _merge(self) -> None:
        if not self._recent:
            return
        recent, self._recent = sorted(self._recent.items()), {}
        if not self._ids or recent[0][0] > self._ids[-1]:  # new ledgers have greater ids
            self._ids.extend(ledger for ledger, _ in recent)
            self._owners.extend(number for _, number in recent)
            return
        both = dict(zip(self._ids, self._owners, strict=True))
        both.update(recent)
        self._ids, self._owners = array("q", sorted(both)), array("I")
        self._owners.extend(both[ledger] for ledger in self._ids)
