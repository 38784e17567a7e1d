"""Work for compaction in a simulated bookie: ledgers that come and go on its disk, beside those of the cluster's users.

Nobody else knows of them: their ids are out of the way, and no metadata name them. They are written, written again
with another LAC, and collected, while logs are compacted at short intervals. What was written last must be read, and
what was collected must not come back.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from random import Random
from typing import Final

from bookkeeper.errors import BookKeeperError, StorageError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.storage.engine import Engine

LITTER: Final = 1 << 40
"""Ledger ids from here on are litter."""
KEY: Final = b"l" * 20
_SIZE: Final = 400


def make_litter(ledger: int, entry: int, lac: int) -> bytes:
    """An entry that is different each time."""
    return struct.pack(">qqqq", ledger, entry, lac, _SIZE) + bytes(20) + b"%d/%d".ljust(_SIZE, b".") % (ledger, entry)


class Litter:
    """Of one life of a bookie."""

    def __init__(
        self, engine: Engine, rng: Random, problem: Callable[[str, object], None], count: Callable[[str], None]
    ) -> None:
        """
        Args:
            problem: told what does not hold, with its rule.
            count: told what has happened.
        """
        self._engine, self._rng, self._problem, self._count = engine, rng, problem, count
        known = [ledger for ledger in engine.ledgers() if ledger >= LITTER]
        self._next = max([LITTER, *known, *(last for _, last in engine.dropped if last >= LITTER)]) + 1
        self._living: dict[int, dict[int, bytes]] = {}
        """Ledger -> what was written last as each of its entries."""
        self._collected: set[int] = set()
        self._old = known

    async def run(self) -> None:
        """Until the bookie's end."""
        while True:
            await asyncio.sleep(self._rng.uniform(0.02, 0.15))
            try:
                self._one_round()
            except (BookKeeperError, StorageError):
                await asyncio.sleep(0.3)  # a full disk, or one that has failed
            self._check()

    def _one_round(self) -> None:
        rng, engine = self._rng, self._engine
        self._write(self._new_ledger() if len(self._living) < 4 else rng.choice(sorted(self._living)))
        engine.start_writing()
        if rng.random() < 0.15:
            going = {ledger for ledger in self._living if rng.random() < 0.6} | set(self._old)
            self._old = []
            for ledger in going & self._living.keys():
                del self._living[ledger]
            self._collected |= going
            engine.collect(frozenset(map(LedgerId, going)), lambda error: None)
        engine.compactor.run_if_due(
            lambda error: self._count("compactions" if error is None else "compactions that an error ended")
        )

    def _new_ledger(self) -> int:
        ledger, self._next = self._next, self._next + 1
        self._living[ledger] = {}
        return ledger

    def _write(self, ledger: int) -> None:
        entries = self._living[ledger]
        again = bool(entries) and self._rng.random() < 0.5
        entry = self._rng.choice(sorted(entries)) if again else len(entries)
        data = make_litter(ledger, entry, self._rng.randrange(0, 1 << 30))
        self._engine.append_entry(LedgerId(ledger), KEY, data, recovery=True)
        entries[entry] = data

    def _check(self) -> None:
        """What was written last is read, and what was collected is gone."""
        if back := self._collected.intersection(self._engine.ledgers()):
            self._problem("M6", f"ledgers {sorted(back)} are back after they were collected")
        for ledger, entries in self._living.items():
            for entry, data in entries.items():
                self._engine.read(LedgerId(ledger), EntryId(entry), self._compare(ledger, entry, data))

    def _compare(self, ledger: int, entry: int, data: bytes) -> Callable[[bytes | BaseException], None]:
        def got(answer: bytes | BaseException) -> None:
            current = self._living.get(ledger, {}).get(entry)
            if isinstance(answer, bytes) and answer != data and current is data:
                self._problem("G3", f"entry {entry} of ledger {ledger} is read as it was before it was written again")

        return got
