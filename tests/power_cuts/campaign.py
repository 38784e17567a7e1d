"""One cut after the other. A bookie lives on one volume for some cuts; then another one begins on an empty volume."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any, Final

from bookkeeper import real, wire
from bookkeeper.launchers.machine_speed import stretch
from bookkeeper.meta import Metadata, init_cluster
from bookkeeper.net.connection import connect_bookie
from tests.power_cuts.load import Load
from tests.power_cuts.machine import Machine
from tests.power_cuts.promises import Ask, Promises
from tests.power_cuts.volume import Flush, Volume, volume

CUTS_A_VOLUME: Final = 10
SHOWN: Final = 10
"""Problems of a volume that are told at once."""
START_S: Final = 60.0
"""Seconds within which a bookie serves."""
REPLY_S: Final = 20.0
LOAD_S: Final = (0.05, 3.0)
"""Between so many seconds a load lasts."""
STOP_S: Final = 0.3
"""Seconds within which the power goes after a bookie was asked to stop."""
AFTERGLOW_S: Final = 0.02
"""Seconds for which a process lives on without its disk at most: what it acknowledges then counts."""


class Moment(Enum):
    """What the bookie does when its power goes."""

    START = "starts"
    LOAD = "serves"
    STOP = "stops"


@dataclass
class Tally:
    """What came of all cuts."""

    cuts: Counter[tuple[str, Moment]] = field(default_factory=Counter)
    counts: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    """By volume: how many of which promises were looked at."""
    problems: list[str] = field(default_factory=list)

    def table(self) -> str:
        """As Markdown."""
        names = ("entries", "explicit LACs", "fences", "collected ledgers")
        lines = [
            f"| File system | {' | '.join(f'Cuts while it {moment.value}' for moment in Moment)} | Starts that were "
            "looked at | Entries read back | Explicit LACs | Fences | Collected ledgers |",
            "|---|" + "---|" * (len(Moment) + 1 + len(names)),
        ]
        total_cuts, total = Counter[Moment](), Counter[str]()
        for name, counts in self.counts.items():
            row = {moment: self.cuts[name, moment] for moment in Moment}
            total_cuts.update(row)
            total.update(counts)
            lines.append(_row(name, row, counts, names))
        lines.append(_row("all", total_cuts, total, names))
        return "\n".join(lines)


def _row(name: str, cuts: dict[Moment, int], counts: Counter[str], names: tuple[str, ...]) -> str:
    cells = [*(cuts[moment] for moment in Moment), counts["starts"], *(counts[each] for each in names)]
    return f"| {name} | " + " | ".join(f"{cell:,}" for cell in cells) + " |"


async def campaign(
    cuts: int,
    seed: int,
    kinds: list[tuple[str, str]],
    sabotage: str | None = None,
    *,
    of_volume: int = CUTS_A_VOLUME,
    tell: Callable[[str], None] = lambda line: None,
) -> Tally:
    """So many cuts, ``of_volume`` of each volume, which are of these kinds (file system, mount options) in turn. With
    a sabotage it ends with the first problem."""
    tally, number = Tally(), 0
    while sum(tally.cuts.values()) < cuts and not (sabotage and tally.problems):
        kind, options = kinds[number % len(kinds)]
        with volume(kind, options) as on, tempfile.TemporaryDirectory(prefix="bk-power-") as home:
            wanted = min(of_volume, cuts - sum(tally.cuts.values()))
            lives = Lives(
                on,
                Path(home),
                Random(seed + number),
                tally,
                per_ledger=bool(number // len(kinds) % 2),
                sabotage=sabotage,
            )
            began, before = time.monotonic(), len(tally.problems)
            await lives.run(wanted)
            took, found = time.monotonic() - began, tally.problems[before:]
        tell(f"volume {number} ({on}): {wanted} cuts in {took:.0f} s, {len(found)} problems")
        for problem in found[:SHOWN]:
            tell(problem)
        number += 1
    return tally


class Lives:
    """All lives of one bookie on one volume, and a last one in which nothing is cut."""

    def __init__(
        self, on: Volume, home: Path, rng: Random, tally: Tally, *, per_ledger: bool, sabotage: str | None
    ) -> None:
        self._volume, self._home, self._rng, self._tally = on, home, rng, tally
        self._name = f"{on}, a log per ledger" if per_ledger else str(on)
        self._ends_early = sabotage is not None
        self._machine = Machine(home, on.path, per_ledger=per_ledger, sabotage=sabotage)
        self._promises = Promises()
        self._since: list[str] = []
        """The cuts since promises were looked at."""
        self._start_s = 1.0
        """How long the last start took."""

    async def run(self, cuts: int) -> None:
        """Cut the power so often."""
        seams = real.system_seams()
        uri = f"sqlite:///{self._home}/metadata.db"
        await init_cluster(uri, seams)
        metadata = await Metadata.connect(uri, seams)
        try:
            moments = self._rng.choices(list(Moment), [2, 5, 1], k=cuts)
            for at, moment in enumerate(moments):
                flush = self._rng.choices(list(Flush), [1, 3])[0]
                await self._one(metadata, moment, flush)
                self._since.append(f"cut {at + 1} (it {moment.value}; {flush.name.lower()} flushed)")
                self._tally.cuts[self._name, moment] += 1
                if self._ends_early and self._tally.problems:
                    return
            await self._last(metadata)
        finally:
            await self._machine.kill()
            await metadata.close()

    async def _one(self, metadata: Metadata, moment: Moment, flush: Flush) -> None:
        """A life, and how it ends."""
        machine, rng = self._machine, self._rng
        self._volume.mount()
        await machine.start()
        if moment is Moment.START:
            await asyncio.sleep(rng.uniform(0.3, 1.1) * self._start_s)
            await self._cut(flush)
            return
        if not await self._serves():
            await self._cut(flush)
            return
        async with self._asking() as ask:
            await self._look(ask)
            load = Load(self._promises, metadata, machine, ask, rng)
            running = asyncio.create_task(load.run())
            await asyncio.wait_for(load.under_way.wait(), START_S * stretch())
            await asyncio.sleep(rng.uniform(*LOAD_S))
            if rng.random() < 0.5:
                self._volume.write_some(rng)
            if moment is Moment.STOP:
                machine.terminate()
                await asyncio.sleep(rng.uniform(0, STOP_S))
            await self._cut(flush)
            load.over = True
            await running
            for wrong in load.wrong:
                self._wrong(wrong)

    async def _last(self, metadata: Metadata) -> None:
        """Everything is looked at, and once more after a clean stop."""
        for _ in range(2):
            self._volume.mount()
            await self._machine.start()
            if await self._serves():
                async with self._asking() as ask:
                    await self._look(ask)
                self._machine.terminate()
                if (code := await self._machine.stopped()) != 0:
                    self._wrong(f"a clean stop ends with {code}")
            await self._machine.kill()
            self._volume.unmount()

    async def _serves(self) -> bool:
        began = time.monotonic()
        serves = await asyncio.wait_for(self._machine.serving(), START_S * stretch())
        self._start_s = time.monotonic() - began
        if not serves:
            self._wrong(f"it does not start: {' / '.join(self._machine.heard())[-600:]}")
        return serves

    @contextlib.asynccontextmanager
    async def _asking(self) -> AsyncIterator[Ask]:
        assert self._machine.address is not None
        connection = await connect_bookie(real.system_seams().net, self._machine.address, timeout_s=REPLY_S * stretch())

        async def ask(request: wire.Request) -> Any:
            return await connection.request(request, REPLY_S * stretch())

        try:
            yield ask
        finally:
            connection.close()

    async def _look(self, ask: Ask) -> None:
        """Whether everything holds, and the bookie has no doubts."""
        counts = self._tally.counts[self._name]
        counts["starts"] += 1
        for wrong in await self._promises.check(ask, counts):
            self._wrong(wrong)
        for said in self._machine.heard():
            self._wrong(f"it says: {said}")
        self._since.clear()

    def _wrong(self, what: str) -> None:
        self._tally.problems.append(f"{self._name}, after {', '.join(self._since) or 'a clean stop'}: {what}")

    async def _cut(self, flush: Flush) -> None:
        """Cut the power, and bring the volume back as far as to be mounted."""
        for said in self._machine.heard():
            self._wrong(f"it says: {said}")
        self._volume.cut(flush)
        await asyncio.sleep(self._rng.uniform(0, AFTERGLOW_S))
        await self._machine.kill()
        self._machine.deafen()
        self._promises.power_lost()
        self._volume.unmount()
