"""What a bookie has acknowledged, and what of it does not hold after a start. Knows no process and no file system."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from bookkeeper import wire
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.wire import Status

KEY: Final = b"k" * 20
OTHER_KEY: Final = b"o" * 20
AT_ONCE: Final = 500
"""Requests in flight while everything is read."""

Ask = Callable[[wire.Request], Awaitable[Any]]
"""Sends a request; returns its reply."""


def entry(ledger_id: int, entry_id: int) -> bytes:
    """The entry that has these ids, whenever and however often it is sent: 0.1 to 3 KB, some 40 KB."""
    size = (ledger_id * 7919 + entry_id * 104729) % 3000 + 100
    text = b"%d/%d " % (ledger_id, entry_id)
    if size % 61 == 0:
        size = 40_000
    head = ledger_id.to_bytes(8, "big") + entry_id.to_bytes(8, "big") + (-1).to_bytes(8, "big", signed=True)
    return head + bytes(16) + (text * (size // len(text) + 1))[:size]


@dataclass
class Promised:
    """What is known of one ledger."""

    sent: int = 0
    """Entries 0 to ``sent`` - 1 were sent, with whatever outcome."""
    acked: set[int] = field(default_factory=set)
    """Entries that have to be there."""
    deferred: set[int] = field(default_factory=set)
    """Entries that are there until the power fails, or for good with the next force."""
    key_known: bool = False
    fence_asked: bool = False
    fenced: bool = False
    lac: int = -1
    """The explicit LAC."""
    deleted: bool = False
    """Its metadata are deleted: the bookie may collect it at any time."""
    collected: bool = False
    """The bookie has said that it is collected."""


class Promises:
    """Everything that one bookie has acknowledged in all its lives."""

    def __init__(self) -> None:
        self.ledgers: dict[LedgerId, Promised] = {}

    def power_lost(self) -> None:
        """What was not promised may be gone."""
        for promised in self.ledgers.values():
            promised.deferred.clear()

    async def check(self, ask: Ask, counts: Counter[str]) -> list[str]:
        """What does not hold; ``counts`` gets how much was looked at."""
        wrong: list[str] = []
        for ledger_id, promised in self.ledgers.items():
            if promised.deleted or promised.collected:
                wrong += await self._check_deleted(ask, ledger_id, promised, counts)
                continue
            wrong += await self._check_entries(ask, ledger_id, promised, counts)
            wrong += await self._check_state(ask, ledger_id, promised, counts)
        return wrong

    async def _check_entries(
        self, ask: Ask, ledger_id: LedgerId, promised: Promised, counts: Counter[str]
    ) -> list[str]:
        wrong: list[str] = []
        counts["entries"] += len(promised.acked)
        nothing = (Status.NO_ENTRY,) if promised.acked else (Status.NO_ENTRY, Status.NO_LEDGER)
        for first in range(0, promised.sent + 1, AT_ONCE):
            some = range(first, min(first + AT_ONCE, promised.sent + 1))
            replies = await asyncio.gather(*(ask(wire.ReadEntry(ledger_id, EntryId(at))) for at in some))
            for at, reply in zip(some, replies, strict=True):
                name = f"entry {at} of ledger {ledger_id}"
                if reply.status is Status.OK and at == promised.sent:
                    wrong.append(f"{name} is there, and was never sent")
                elif reply.status is Status.OK and bytes(reply.entry) != entry(ledger_id, at):
                    wrong.append(f"{name} has other bytes")
                elif reply.status is not Status.OK and at in promised.acked:
                    wrong.append(f"{name} was acknowledged, and is answered with {reply.status.name}")
                elif reply.status is not Status.OK and reply.status not in nothing:
                    wrong.append(f"{name} was not acknowledged, and is answered with {reply.status.name}")
        return wrong

    async def _check_state(self, ask: Ask, ledger_id: LedgerId, promised: Promised, counts: Counter[str]) -> list[str]:
        wrong: list[str] = []
        beyond = EntryId(promised.sent + 1_000_000)
        if promised.acked:
            reply = await ask(wire.AddEntry(ledger_id, beyond, OTHER_KEY, entry(ledger_id, beyond)))
            if reply.status is not Status.UNAUTHORIZED:
                wrong.append(f"ledger {ledger_id} answers another key with {reply.status.name}")
        if promised.fenced:
            counts["fences"] += 1
            reply = await ask(wire.AddEntry(ledger_id, beyond, KEY, entry(ledger_id, beyond)))
            if reply.status is not Status.FENCED:
                wrong.append(f"ledger {ledger_id} is fenced, and answers an add with {reply.status.name}")
        if promised.lac >= 0:
            counts["explicit LACs"] += 1
            reply = await ask(wire.ReadLac(ledger_id))
            found = int.from_bytes(reply.lac_body[8:16], "big") if reply.lac_body else -1
            if found < promised.lac:
                wrong.append(f"ledger {ledger_id} has the explicit LAC {found}, and {promised.lac} was acknowledged")
        return wrong

    async def _check_deleted(
        self, ask: Ask, ledger_id: LedgerId, promised: Promised, counts: Counter[str]
    ) -> list[str]:
        """Until it is collected it may be there, and be written to."""
        reply = await ask(wire.ReadEntry(ledger_id, EntryId(max(promised.acked, default=0))))
        if reply.status is Status.OK and bytes(reply.entry) != entry(ledger_id, reply.entry_id):
            return [f"entry {reply.entry_id} of the deleted ledger {ledger_id} has other bytes"]
        if not promised.collected:
            return []
        counts["collected ledgers"] += 1
        wrong = []
        if reply.status is not Status.NO_LEDGER:
            wrong.append(f"ledger {ledger_id} was collected, and answers a read with {reply.status.name}")
        beyond = EntryId(promised.sent + 1_000_000)
        reply = await ask(wire.AddEntry(ledger_id, beyond, KEY, entry(ledger_id, beyond)))
        if reply.status is not Status.FENCED:
            wrong.append(f"ledger {ledger_id} was collected, and answers an add with {reply.status.name}")
        return wrong


def explicit_lac(ledger_id: LedgerId, lac: int) -> wire.WriteLac:
    """The request that stores it."""
    body = ledger_id.to_bytes(8, "big") + lac.to_bytes(8, "big") + bytes(8)
    return wire.WriteLac(ledger_id, lac, KEY, body)
