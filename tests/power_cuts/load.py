"""Work for a bookie until its power is cut, and what it acknowledged of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from random import Random
from typing import Any, Final

from bookkeeper import wire
from bookkeeper.errors import BookieError
from bookkeeper.ids import EntryId, LedgerId
from bookkeeper.ledger import DigestType, Fragment, LedgerMetadata, LedgerState
from bookkeeper.ledger.quorum import QuorumSpec
from bookkeeper.meta import Metadata
from bookkeeper.wire import Status
from tests.power_cuts.machine import BOOKIE, Machine
from tests.power_cuts.promises import KEY, Ask, Promised, Promises, entry, explicit_lac

WRITERS: Final = 6
LEDGERS: Final = 12
"""How many live at a time."""
ENTRIES: Final = 3000
"""How many entries a ledger gets, so that no disk gets full."""
BETWEEN_PASSES_S: Final = 0.06
"""Longer than the grace between two garbage passes that prove a deletion."""


class Load:
    """Some writers, each with ledgers of its own, and one operator. They end when the bookie answers no more."""

    def __init__(self, promises: Promises, metadata: Metadata, machine: Machine, ask: Ask, rng: Random) -> None:
        self._promises, self._metadata, self._machine = promises, metadata, machine
        self._ask, self._rng = ask, rng
        self.over = False
        """Nobody answers, or is to be asked, any more."""
        self.under_way = asyncio.Event()
        """Something was acknowledged, or nobody answers."""
        self.wrong: list[str] = []
        """What was answered wrongly."""

    async def run(self) -> None:
        """Until it is over."""
        while len(self._living()) < LEDGERS:
            await self._create()
        workers = [self._write(number) for number in range(WRITERS)]
        await asyncio.gather(*workers, self._operate())

    def _living(self) -> list[LedgerId]:
        return [ledger_id for ledger_id, promised in self._promises.ledgers.items() if not promised.deleted]

    async def _create(self) -> None:
        metadata = LedgerMetadata(
            spec=QuorumSpec(ensemble_size=1, write_quorum=1, ack_quorum=1),
            state=LedgerState.OPEN,
            fragments=(Fragment(EntryId(0), (BOOKIE,)),),
            digest_type=DigestType.CRC32C,
            password=b"",
        )
        ledger_id, _ = await self._metadata.ledgers.create(metadata)
        self._promises.ledgers[ledger_id] = Promised()

    # -- writers ------------------------------------------------------------------------------------------

    async def _write(self, number: int) -> None:
        rng = Random(self._rng.random())
        while not self.over:
            mine = [ledger_id for ledger_id in self._living() if ledger_id % WRITERS == number]
            if not mine:
                await asyncio.sleep(0.01)
                continue
            ledger_id = rng.choice(mine)
            promised, chance = self._promises.ledgers[ledger_id], rng.random()
            try:
                if promised.sent > ENTRIES:
                    await self._read_back(ledger_id, promised, rng)
                elif promised.fence_asked:
                    await self._add(ledger_id, promised, rng.randrange(1, 5), recovery=True)
                elif chance < 0.80:
                    await self._add(ledger_id, promised, rng.choice([1, 1, 3, 20]))
                elif chance < 0.88:
                    await self._add(ledger_id, promised, rng.randrange(1, 9), deferred=True)
                    if rng.random() < 0.7:
                        await self._force(ledger_id, promised)
                elif chance < 0.93:
                    await self._explicit_lac(ledger_id, promised)
                elif chance < 0.96:
                    await self._read_back(ledger_id, promised, rng)
                elif chance < 0.98:
                    await self._fence(ledger_id, promised)
            except BookieError:
                self.over = True  # nobody knows what came of it
                self.under_way.set()

    async def _add(self, ledger_id: LedgerId, promised: Promised, count: int, **how: bool) -> None:
        """Some entries at once: the first that are not acknowledged, which were sent before, perhaps."""
        have = promised.acked | promised.deferred
        first = min(set(range(promised.sent + 1)) - have) if len(have) < promised.sent else promised.sent
        ids = [at for at in range(first, first + 4 * count) if at not in have][:count]
        promised.sent = max(promised.sent, ids[-1] + 1)
        kept = promised.deferred if how.get("deferred") else promised.acked
        await _all([self._add_one(ledger_id, at, kept, **how) for at in ids])

    async def _add_one(
        self, ledger_id: LedgerId, at: int, kept: set[int], *, deferred: bool = False, recovery: bool = False
    ) -> None:
        data = entry(ledger_id, at)
        how = {"recovery": recovery, "deferred_sync": deferred}
        reply = await self._ask(wire.AddEntry(ledger_id, EntryId(at), KEY, data, **how))
        if reply.status is Status.OK:
            kept.add(at)
            if not deferred:
                self.under_way.set()

    async def _force(self, ledger_id: LedgerId, promised: Promised) -> None:
        before = set(promised.deferred)
        if (await self._ask(wire.ForceLedger(ledger_id))).status is Status.OK:
            promised.acked |= before
            promised.deferred -= before

    async def _explicit_lac(self, ledger_id: LedgerId, promised: Promised) -> None:
        lac = max(promised.acked, default=-1)
        if lac > promised.lac and (await self._ask(explicit_lac(ledger_id, lac))).status is Status.OK:
            promised.lac = lac

    async def _fence(self, ledger_id: LedgerId, promised: Promised) -> None:
        """Its answer says that it is durable, also if there is no such entry."""
        promised.fence_asked = True
        request = wire.ReadEntry(ledger_id, EntryId(promised.sent), master_key=KEY, fence=True)
        promised.fenced = (await self._ask(request)).status in (Status.OK, Status.NO_ENTRY)

    async def _read_back(self, ledger_id: LedgerId, promised: Promised, rng: Random) -> None:
        if promised.acked:
            at = rng.choice(sorted(promised.acked))
            reply = await self._ask(wire.ReadEntry(ledger_id, EntryId(at)))
            good = bytes(reply.entry) == entry(ledger_id, at) if reply.status is Status.OK else True
            if not good or reply.status in (Status.NO_ENTRY, Status.NO_LEDGER):  # others: its disk has just gone
                self.wrong.append(f"entry {at} of ledger {ledger_id} is read back wrongly: {reply.status.name}")

    # -- the operator -------------------------------------------------------------------------------------

    async def _operate(self) -> None:
        """Ledgers are deleted, others come; what is deleted is collected, and logs are compacted."""
        while not self.over:
            ledgers = self._promises.ledgers
            written = [ledger_id for ledger_id in self._living() if len(ledgers[ledger_id].acked) > 20]
            for gone in self._rng.sample(written, min(len(written), 2)):
                ledgers[gone].deleted = True
                await self._metadata.ledgers.delete(gone)
                await self._create()
            for major in (False, True):  # two passes prove a deletion
                answer = await self._machine.command("gc", major=major)
                for collected in answer.get("dropped", ()):
                    ledgers[LedgerId(collected)].collected = True
                await asyncio.sleep(BETWEEN_PASSES_S)


async def _all(works: Sequence[Any]) -> None:
    """All of them to their ends, so that each acknowledgement counts; then the first error."""
    ended = await asyncio.gather(*works, return_exceptions=True)
    for error in ended:
        if isinstance(error, BaseException):
            raise error
