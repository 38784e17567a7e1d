"""What is done to the cluster, and when.

    the cluster    metadata (SQLite or ZooKeeper), eight bookies in four racks and autorecovery, each a process;
                   four writers
    first blow     a rack is lost: b7 and b8 are killed at once, and their directories deleted
    second         bookie b1 is killed and its directory deleted
    third          b2 is killed and its disk emptied; its cookie is removed, and it comes back under its old id
    fourth         the disk of b3 fills up
    fifth          b4 is taken out of service: the one thing that a person types
    sixth          fifty bits are flipped in the entry logs of b5 while it runs
    seventh        half of the ledgers are deleted; their space comes back

After each blow the story waits until the cluster has healed, and never asks for it. With ``sabotage`` there is no
autorecovery, and nothing is waited for in vain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final

from bookkeeper import Operator
from bookkeeper.amounts import counted
from bookkeeper.autorecovery.status import status_of
from bookkeeper.errors import BookKeeperError, NoSuchLedgerError
from bookkeeper.ids import BookieId
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.launchers.waiting import StalledError, until_async
from bookkeeper.meta.records.autorecovery import ClusterCheck
from examples.demo_heal.damage import flip_bits
from examples.demo_heal.verdict import Wholeness, judge_ledgers
from examples.demo_heal.view import HealView
from examples.demo_heal.watch import SMALL, ClusterWatch
from examples.demo_heal.writers import LedgerWriters
from examples.demo_kit.cluster import MIB, DemoCluster
from examples.demo_kit.story import DemoPlan, DemoStory
from examples.processes import Children

BOOKIES: Final = ("b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8")
RACKS: Final = {name: f"/rack{number // 2 + 1}" for number, name in enumerate(BOOKIES)}
RACK: Final = ("b7", "b8")
"""Those that are lost together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HealPlan(DemoPlan):
    """What a person may choose, and how long things take."""

    heal_s: float = 60.0
    """How long the cluster may take to heal after a blow before the story goes on without it."""
    delay_s: int = 3
    """How long a bookie may be away before its ledgers are repaired."""
    check_every_s: float = 5.0
    """Pause between two checks of every copy of every entry."""
    small_disk_bytes: int = 48 * MIB
    quiet_s: float = 12.0
    """Freed space is measured when it has not changed for so long."""
    bits: int = 50
    seed: int = 1


@dataclass(slots=True)
class HealFacts:
    """What was done, for the table and the last line."""

    racks: int = 0
    """Of two bookies each."""
    lost: int = 0
    """Bookies that were lost alone."""
    came_back: int = 0
    filled: int = 0
    retired: int = 0
    bits: int = 0
    deleted: int = 0
    before_bytes: int = 0
    """What all entry logs took before ledgers were deleted."""
    freed_bytes: int = 0
    repaired: int = 0
    copied_bytes: int = 0
    healed_s: dict[str, float] = field(default_factory=dict)
    """Seconds from each blow until nothing was missing any more."""


class HealStory(DemoStory[HealPlan, HealView, HealFacts, Wholeness]):
    """The whole of it."""

    def __init__(self, plan: HealPlan, children: Children, view: HealView) -> None:
        super().__init__(plan, children, view, HealFacts())
        self.cluster = DemoCluster(plan.directory, children, plan.metadata, plan.small_disk_bytes)
        self._watch: ClusterWatch
        self._writers: LedgerWriters

    # -- from the beginning to the end --------------------------------------------------------------------

    @property
    def blows(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (
            self._lose_a_rack,
            self._lose_b1,
            self._empty_b2,
            self._fill_b3,
            self._retire_b4,
            self._rot_b5,
            self._delete_half,
        )

    async def start(self) -> None:
        view, cluster = self.view, self.cluster
        view.waits("the metadata store and eight bookies start")
        cluster.racks = RACKS
        await self.start_bookies(BOOKIES, small=SMALL)
        self._watch = ClusterWatch(self.client, cluster, self.picture, view)
        disk = "on a small disk of its own" if cluster.has_small_disk else "(no file system of its own can be had)"
        view.happened(f"eight bookies are up, two in each of four racks, {SMALL} {disk}")
        if self.plan.sabotage:
            view.happened("SABOTAGE: autorecovery is not started")
        else:
            await cluster.start_autorecovery(self.plan.delay_s, self.plan.check_every_s)
            await cluster.until(self._is_audited, "autorecovery")
            view.happened(f"autorecovery is up: a bookie that is away counts as lost after {self.plan.delay_s} s")
        self._writers = LedgerWriters(self.client, count=4, per_ledger=50)
        self._watch.writers = self._writers
        self._writers.start()
        self.beside(self._watch.run(), "watch")
        view.happened("four writers write ledger after ledger, three copies of each entry")

    async def judge(self) -> Wholeness:
        view, writers = self.view, self._writers
        await writers.stop()
        view.happened(
            f"the writers have ended; {counted(writers.acknowledged, 'entry', 'is', 'are')} expected to read back"
        )
        if not self.plan.sabotage:
            view.waits("every ledger is checked once more, and what is missing is copied")
            await self._until(self._is_checked_anew(), self.plan.heal_s)
            await self._until(self._no_marks, self.plan.heal_s)
        await self._watch.look()
        self.facts.repaired, self.facts.copied_bytes = self.picture.repaired, self.picture.copied_bytes
        view.waits("every copy of every ledger is read and verified, then every acknowledged entry")
        return await judge_ledgers(self.client, writers.ledgers)

    # -- the blows ----------------------------------------------------------------------------------------

    async def _lose_a_rack(self) -> None:
        """Every entry has three copies in three racks, so that a rack takes one of them at most."""
        together = await self._copies_together()
        for name in RACK:
            self._watch.special[name] = "lost"
        await asyncio.gather(*(self.cluster.kill(name) for name in RACK))
        self.facts.racks += 1
        self.view.happened(
            f"a rack was lost: {' and '.join(RACK)} were killed at once and their directories deleted; "
            f"{counted(together, 'ledger')} had two copies of an entry there"
        )

        async def healed() -> bool:
            return all([await self._holds_nothing(name) for name in RACK]) and await self._no_marks()

        await self._heals("a rack", healed)

    async def _copies_together(self) -> int:
        """How many ledgers have entries with two copies in the rack that is to be lost."""
        found = 0
        async for _, metadata in Operator(self.client).all_metadata():
            if not isinstance(metadata, BookKeeperError):
                found += any(set(RACK) <= set(fragment.ensemble) for fragment in metadata.fragments)
        return found

    async def _lose_b1(self) -> None:
        self._watch.special["b1"] = "lost"
        await self.cluster.kill("b1")
        self.facts.lost += 1
        self.view.happened("b1 was killed and its directory deleted")
        await self._heals("b1", lambda: self._is_unnamed("b1"))

    async def _empty_b2(self) -> None:
        self._watch.special["b2"] = "emptied"
        await self.cluster.kill("b2")
        self.facts.lost += 1
        self.view.happened("b2 was killed, and its disk emptied")
        child = await self.cluster.start_bookie("b2")
        with suppress(StalledError):
            await child.until_ended()
        self.view.happened(f"b2 is refused with an empty disk: {child.last_words(1)}")
        cookies = self.client.metadata_store.cookies
        await cookies.delete(BookieId("b2"), (await cookies.read(BookieId("b2"))).version)
        await self.cluster.start_bookie("b2")
        await self.cluster.until(lambda: self._all_in(("b2",), "writable"), "b2", self.cluster.bookies["b2"])
        self._watch.special.pop("b2")
        self.facts.came_back += 1
        self.view.happened("its cookie was removed, for the disk is gone: b2 came back empty, under its old id")
        checked = self._is_checked_anew()

        async def healed() -> bool:
            return await checked() and await self._no_marks()

        await self._heals("b2", healed)

    async def _fill_b3(self) -> None:
        if self.cluster.has_small_disk:
            self.view.happened(f"the writers write much more, until the disk of {SMALL} is full")
            pace, size = self._writers.pace, self._writers.size
            self._writers.pace, self._writers.size = 25.0, 32768
            full = await self._until(lambda: self._all_in((SMALL,), "read-only"), self.plan.heal_s)
            self._writers.pace, self._writers.size = pace, size
        else:
            await self.cluster.pretend_full(SMALL)
            full = await self._until(lambda: self._all_in((SMALL,), "read-only"), self.plan.heal_s)
        if full:
            self.facts.filled += 1
            self.view.happened(f"{SMALL} has turned read-only by itself; it serves reads, and the writers go on")
        else:
            self.view.happened(f"{SMALL} did not turn read-only")

    async def _retire_b4(self) -> None:
        """Take b4 out of service: the one thing that a person types."""
        if self.plan.sabotage:  # too few bookies are left to take its place
            return
        cluster = self.cluster
        await cluster.stop("b4")
        await cluster.start_bookie("b4", read_only=True)
        await cluster.until(lambda: self._all_in(("b4",), "read-only"), "b4", cluster.bookies["b4"])
        self.view.happened("b4 is to go: it was started again as read-only; `bk bookies decommission b4` is typed")
        wait = ("--wait", str(self.plan.heal_s * stretch()))
        typed = asyncio.create_task(cluster.bk("bookies", "decommission", "b4", *wait), name="decommission")
        if await self._until(lambda: self._holds_nothing("b4"), self.plan.heal_s):
            await cluster.stop("b4")
            self.view.happened("no ledger names b4 any more: it was stopped")
        status, said = await typed
        if status:
            self.view.happened(f"b4 was not taken out of service: {said}")
            return
        self._watch.special["b4"] = "retired"
        self.facts.retired += 1
        self.view.happened(f"the command has ended: {said.splitlines()[-1]}")

    async def _rot_b5(self) -> None:
        logs = self.cluster.entry_logs("b5")
        flipped = await asyncio.to_thread(flip_bits, logs, self.plan.bits, Random(self.plan.seed))
        self.facts.bits = len(set(flipped))
        files = len({each.log for each in flipped})
        self.view.happened(f"{self.facts.bits} bits were flipped in {files} entry logs of b5, which runs")
        before = self.picture.repaired
        checked = self._is_checked_anew()

        async def healed() -> bool:
            return await checked() and await self._no_marks()

        if await self._heals("b5", healed):
            self.view.happened(f"{counted(self.picture.repaired - before, 'ledger', 'was', 'were')} repaired meanwhile")

    async def _delete_half(self) -> None:
        picture, writers = self.picture, self._writers
        before = sum([await self._watch.stored_by(name) for name in list(self.cluster.bookies)])
        closed = writers.closed()
        chosen = closed[::2]  # so that no entry log dies as a whole: only a compaction frees them
        for ledger in chosen:
            with suppress(NoSuchLedgerError):
                await self.client.delete_ledger(ledger)
            writers.forget(ledger)
            self.facts.deleted += 1
        self.facts.before_bytes = least = before
        self.view.happened(f"{counted(len(chosen), 'ledger')}, half of all, deleted; disks hold {before / 1e6:.0f} MB")
        self.view.waits("the bookies find out, and free the space")
        loop = asyncio.get_running_loop()
        began = changed = loop.time()
        quiet_s, limit_s = self.plan.quiet_s * stretch(), self.plan.heal_s * stretch()
        while loop.time() < changed + quiet_s and loop.time() < began + limit_s:
            await asyncio.sleep(1)
            now = sum([await self._watch.stored_by(name) for name in list(self.cluster.bookies)])
            if now < least - 100_000:
                least, changed = now, loop.time()
        self.facts.freed_bytes = before - least
        state = picture.bookies.get(SMALL)
        also = f"; {SMALL} is {state}" if state else ""
        self.view.happened(f"{self.facts.freed_bytes / 1e6:.0f} MB came back{also}")

    # -- what is waited for -------------------------------------------------------------------------------

    async def _heals(self, bookie: str, holds: Callable[[], Awaitable[bool]]) -> bool:
        """Wait until the cluster has healed. With ``sabotage`` nothing is waited for."""
        if self.plan.sabotage:
            return False
        loop = asyncio.get_running_loop()
        began = loop.time()
        self.view.waits("nobody does anything; the cluster heals itself")
        if not await self._until(holds, self.plan.heal_s):
            stuck = "; ".join(f"ledger {ledger}: {why}" for ledger, why in list(self.picture.stuck.items())[:3])
            self.view.happened(f"not healed after {self.plan.heal_s:.0f} s: {stuck or self.picture.auditing}")
            return False
        self.facts.healed_s[bookie] = loop.time() - began
        self.view.happened(
            f"healed {loop.time() - began:.1f} s later: {self.picture.copied_bytes / 1e6:.1f} MB copied so far"
        )
        return True

    async def _until(self, holds: Callable[[], Awaitable[bool]], limit_s: float) -> bool:
        """Ask again and again. Returns False if it does not hold within ``limit_s``, on a machine of usual speed."""

        async def asked() -> bool:
            with suppress(BookKeeperError):
                return await holds()
            return False

        try:
            return await until_async(asked, "it", quiet_s=limit_s)
        except StalledError:
            return False

    async def _all_in(self, names: tuple[str, ...], state: str) -> bool:
        bookies = self.client.metadata_store.bookies
        return set(names) <= set(await (bookies.writable() if state == "writable" else bookies.read_only()))

    async def _is_audited(self) -> bool:
        return (await status_of(self.client.metadata_store)).auditor is not None

    async def _holds_nothing(self, name: str) -> bool:
        """Whether no ledger's metadata name the bookie."""
        async for _ in Operator(self.client).ledgers_on(name):
            return False
        return True

    async def _is_unnamed(self, name: str) -> bool:
        """Whether no ledger's metadata name the bookie, and no mark is left."""
        return await self._holds_nothing(name) and await self._no_marks()

    async def _no_marks(self) -> bool:
        marks = self.client.metadata_store.under_replication
        async for _ in marks.ledgers():
            return False
        return True

    def _is_checked_anew(self) -> Callable[[], Awaitable[bool]]:
        """Whether a check of all ledgers has begun and ended since this call: the second one that ends has."""
        seen: set[int] = set()
        first: list[int | None] = []

        async def checked() -> bool:
            last = (await status_of(self.client.metadata_store)).checks[ClusterCheck.ALL_LEDGERS]
            if not first:
                first.append(last)
            if last is not None and last != first[0]:
                seen.add(last)
            return len(seen) >= 2

        return checked
