"""A bookie against a dict: ledgers are written, deleted, brought back and collected, entry logs are compacted, and the
power fails at any time. What lives or can be brought back is there, whole; what is gone for good goes, and stays away.

One seed is one life; ``make model LIVES=1000`` lives more of them. (The engine alone, at every operation of its disk:
tests/bookkeeper/storage/test_model.py.) The second half plants bugs, and sees that this finds them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection
from random import Random
from typing import Final

import pytest

from bookkeeper import wire
from bookkeeper.errors import BookKeeperError, NoSuchLedgerError
from bookkeeper.ids import EntryId, IdRanges, LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.deleted_ledgers import DeletedLedger, DeletedLedgers
from bookkeeper.wire import Status
from tests.bookkeeper.bookie.cluster import Cluster, run
from tests.bookkeeper.bookie.garbage.test_garbage_collector import KEY, ledger

GRACE_S: Final = 120
PROOF_S: Final = 30.0
"""Seconds between two passes that prove that a ledger is gone."""
STORAGE: Final = {
    "journal_file_bytes": 16 * 1024,
    "entry_log_bytes": 16 * 1024,
    "checkpoint_bytes": 16 * 1024,
    "reserve_bytes": 0,
    "major_compaction_ratio": 1.0,
    "compaction_bytes_per_s": 0,
}


def packet(ledger_id: int, entry_id: int) -> bytes:
    """An entry whose payload tells where it belongs."""
    head = ledger_id.to_bytes(8, "big") + entry_id.to_bytes(8, "big") + (-1).to_bytes(8, "big", signed=True)
    return head + bytes(16) + (b"%d/%d " % (ledger_id, entry_id)) * 80


class BookieAgainstADict:
    """Does what it is told to the bookie and to the model, and compares."""

    def __init__(self, cluster: Cluster, metadata: Metadata, rng: Random) -> None:
        self.cluster, self.ledgers, self.rng = cluster, metadata.ledgers, rng
        self.living: dict[LedgerId, int] = {}
        """Ledger -> how many entries of it were acknowledged."""
        self.deleted: dict[LedgerId, tuple[int, float]] = {}
        """The same of those that can be brought back, and when they were deleted."""
        self.gone: dict[LedgerId, int] = {}

    @property
    def now(self) -> float:
        return self.cluster.world.loop.time()

    async def create(self) -> None:
        ledger_id, _ = await self.ledgers.create(ledger())
        self.living[ledger_id] = 0

    async def add(self) -> None:
        """A few entries to one or two ledgers at the same time: they share an entry log."""
        some = self.rng.sample(sorted(self.living), min(len(self.living), 2))
        requests = []
        for ledger_id in some:
            first = self.living[ledger_id]
            count = self.rng.randrange(1, 9)
            requests += [
                wire.AddEntry(ledger_id, EntryId(at), KEY, packet(ledger_id, at)) for at in range(first, first + count)
            ]
            self.living[ledger_id] += count
        replies = await self.cluster.ask_all(requests)
        assert {reply.status for reply in replies} <= {Status.OK}, [reply.status for reply in replies]

    async def delete(self, grace_s: int) -> None:
        if self.living:
            ledger_id = self.rng.choice(sorted(self.living))
            await self.ledgers.delete(ledger_id, grace_s=grace_s)
            entries = self.living.pop(ledger_id)
            if grace_s:
                self.deleted[ledger_id] = (entries, self.now)
            else:
                self.gone[ledger_id] = entries

    async def undelete(self) -> None:
        """Bring one back; that fails only after its time."""
        if not self.deleted:
            return
        ledger_id = self.rng.choice(sorted(self.deleted))
        entries, since = self.deleted.pop(ledger_id)
        try:
            await self.ledgers.restore(ledger_id)
        except NoSuchLedgerError:
            assert self.now - since >= GRACE_S, f"ledger {ledger_id} was deleted {self.now - since} s ago"
            self.gone[ledger_id] = entries
        else:
            self.living[ledger_id] = entries
            await self.compare(ledger_id)

    async def compact(self) -> None:
        """Begin a compaction; what follows comes in between."""
        assert self.cluster.server is not None
        self.cluster.server.engine.compact(lambda error: None, major=True)
        await asyncio.sleep(self.rng.choice([0.0, 0.001, 0.003, 1.0]))

    async def crash(self) -> None:
        assert self.cluster.server is not None
        if self.rng.random() < 0.3:
            collecting = asyncio.ensure_future(self.cluster.node.run(self.cluster.server.collect_garbage()))
            await asyncio.sleep(self.rng.random() * 0.01)  # somewhere in the middle of a pass
            self.cluster.node.crash(power=True)
            collecting.cancel()
        else:
            self.cluster.node.crash(power=self.rng.random() < 0.8)
        await self.cluster.again()
        assert not self.cluster.server.engine.in_limbo, "a false alarm"

    async def garbage_pass(self) -> None:
        assert self.cluster.server is not None
        await self.cluster.server.collect_garbage()

    async def any_step(self) -> None:
        """Something, in the shares in which it does most harm."""
        chance = self.rng.randrange(100)
        if chance < 12 or not self.living:
            await self.create()
        elif chance < 45:
            await self.add()
        elif chance < 57:
            await self.delete(GRACE_S if self.rng.random() < 0.7 else 0)
        elif chance < 64:
            await self.undelete()
        elif chance < 76:
            await self.garbage_pass()
            await asyncio.sleep(self.rng.choice([1.0, PROOF_S, GRACE_S / 2]))
        elif chance < 84:
            await self.compact()
        elif chance < 92:
            await self.crash()
        else:
            await self.compare(self.rng.choice(sorted(self.living)))

    async def compare(self, *some: LedgerId) -> None:
        """Everything that was acknowledged of these is there, and nothing else of them."""
        wanted = [(each, at) for each in some for at in range(self.living[each])]
        replies = await self.cluster.ask_all([wire.ReadEntry(each, EntryId(at)) for each, at in wanted])
        for (each, at), reply in zip(wanted, replies, strict=True):
            assert reply.status is Status.OK, f"entry {at} of ledger {each}: {reply.status}"
            assert reply.entry == packet(each, at), f"entry {at} of ledger {each} is another"
        beyond = await self.cluster.ask_all([wire.ReadEntry(each, EntryId(self.living[each])) for each in some])
        assert {reply.status for reply in beyond} <= {Status.NO_ENTRY, Status.NO_LEDGER}

    def _seen_and_gone(self) -> list[LedgerId]:
        """Of a deleted ledger that never had an entry here this bookie knows nothing; its writer finds out."""
        return sorted(each for each, entries in self.gone.items() if entries)

    async def end(self) -> None:
        """Those that can be brought back are; then everything that is gone goes from the disk."""
        while self.deleted:
            await self.undelete()
        for _ in range(4):
            await asyncio.sleep(PROOF_S + 1)
            await self.garbage_pass()
        await self.compact()
        await asyncio.sleep(5)
        await self.compare(*sorted(self.living))
        server = self.cluster.server
        assert server is not None and not self.gone.keys() & set(server.engine.ledgers())
        requests = [wire.AddEntry(each, EntryId(10**6), KEY, packet(each, 10**6)) for each in self._seen_and_gone()]
        assert {reply.status for reply in await self.cluster.ask_all(requests)} <= {Status.FENCED}
        disk = self.cluster.node.disk
        size = sum(len(data) for path, data in disk.files().items() if path.endswith(".log"))
        least = sum(len(packet(each, 0)) * count for each, count in self.living.items())
        assert size < 2 * least + 100_000, f"{least} bytes live, the logs have {size}"


def live(seed: int, steps: int = 50) -> None:
    """One life; an error says which, and at which step."""

    async def main(cluster: Cluster) -> None:
        rng = Random(seed)
        cluster.metadata._wall_ms = cluster.world.node("client").seams.clock.wall_ms
        subject = BookieAgainstADict(cluster, await cluster.up(), rng)
        for step in range(steps):
            try:
                await subject.any_step()
            except BaseException as error:
                error.add_note(f"life {seed}, step {step}")
                raise
        await subject.end()

    run(
        main,
        seed=seed,
        storage=STORAGE,
        garbage_interval_s=10**6,
        garbage_grace_s=PROOF_S,
        garbage_shrink_max=1.0,
    )


@pytest.mark.rule("G1", "G3", "G8", "B1", "K17", "M6", "V4")
def test_a_bookie_against_a_dict() -> None:
    for seed in range(int(os.environ.get("LIVES", "40")) // 8):
        live(seed)


# -- planted bugs ---------------------------------------------------------------------------------------------


def records_are_not_looked_at(patch: pytest.MonkeyPatch) -> None:
    async def none(self: DeletedLedgers) -> AsyncIterator[LedgerId]:
        for _ in ():
            yield LedgerId(0)

    async def no(self: DeletedLedgers, ledger_id: LedgerId, *, fresh: bool = False) -> bool:
        return False

    patch.setattr(DeletedLedgers, "all", none)
    patch.setattr(DeletedLedgers, "has", no)


def the_grace_is_over_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DeletedLedger, "until_ms", property(lambda self: self.deleted_ms))


def ids_that_can_come_back_are_never_given_out(patch: pytest.MonkeyPatch) -> None:
    async def all_marked(self: DeletedLedgers, ledgers: Collection[LedgerId]) -> IdRanges:
        return await self._marks.near(ledgers)

    patch.setattr(DeletedLedgers, "without_restorable", all_marked)


PLANTED = [
    records_are_not_looked_at,
    the_grace_is_over_at_once,
    ids_that_can_come_back_are_never_given_out,
]


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, BookKeeperError)):
        for seed in range(40):
            live(seed)
