"""What must hold where ledgers are deleted and brought back, watched from outside.

    G8  the record of a deleted ledger stays for its grace time, and while a ledger is there, or can be brought back, no
        bookie drops it

A ledger whose record went by itself is gone for good: nobody owes anything about it any more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable
from typing import Any, Final

from bookkeeper.ids import LedgerId
from bookkeeper.meta.records.deleted_ledgers import DeletedLedger
from bookkeeper.storage.base.results import Done
from bookkeeper.volumes import Volumes

_RECORD: Final = re.compile(r"/ledgers-py/deleted/ledgers/([0-9a-f]+)/([0-9a-f]{4})/([0-9a-f]{4})")


def deleted_ledger(path: str) -> int | None:
    """The ledger whose record of deletion lies here; None: this is no such record."""
    found = _RECORD.fullmatch(path)
    if found is None:
        return None
    high, middle, rest = (int(part, 16) for part in found.groups())
    return high << 26 | middle << 13 | rest


class DeletionMonitor:
    """A part of :class:`tests.simulation.watch.monitor.Monitor`."""

    def __init__(self, problem: Callable[[str, object], None], count: Callable[[str, int], None]) -> None:
        self._problem, self._count = problem, count
        self.restorable: dict[int, int] = {}
        """Deleted ledgers that can be brought back -> until when at least, by the store's clock."""
        self.gone: set[int] = set()
        """Ledgers that nobody can bring back any more."""

    def on_record(self, ledger: int, record: DeletedLedger | None, is_there: bool, now_ms: int) -> None:
        """The record of a deleted ledger was written, or removed.

        Args:
            record: what it says now; None: it was removed.
            is_there: whether the ledger's metadata are in their place.
            now_ms: the store's clock.
        """
        if record is not None:
            self._count("ledgers deleted", ledger not in self.restorable)
            self.restorable[ledger] = record.until_ms
            return
        until_ms = self.restorable.pop(ledger, None)
        if is_there:
            self._count("ledgers brought back", 1)
            return
        self.gone.add(ledger)
        self._count("ledgers gone for good", 1)
        if until_ms is not None and now_ms < until_ms:
            self._problem("G8", f"ledger {ledger} cannot be brought back any more, {until_ms - now_ms} ms too early")

    def watch(self, name: str, storage: Volumes) -> None:
        """From a bookie's start on: what it drops is gone for good."""
        door: Any = storage
        collect = door.collect

        def watched(
            dead: Container[LedgerId] | Callable[[LedgerId], bool],
            callback: Done,
            *,
            never_again: Iterable[tuple[int, int]] = (),
        ) -> None:
            is_dead = dead if callable(dead) else dead.__contains__
            dropped = [ledger for ledger in storage.ledgers() if is_dead(ledger)]
            self._count("ledgers dropped by a bookie", len(dropped))
            if wrong := sorted(set(dropped) - self.gone):
                self._problem("G8", f"{name} drops ledgers {wrong}, which are there or can be brought back")
            collect(dead, callback, never_again=never_again)

        door.collect = watched
