"""New ledger ids, from the generators that Java clients use, too. A cluster never issues an id twice.

* Short: the number in the name of an ephemeral sequential value under ``idgen`` (flat: under the root itself).
* Long: high-order bits from the greatest ``idgen-long/HOB-%010d``, low ones as above below it. Long ids come once
  ``idgen-long`` exists or the short ones are used up.

If a creation gets no answer, its number is skipped; the value goes when the session ends.

Who makes one ledger after the other gets ids ahead: they are taken side by side, so that the store sees one request for
many. An id that was taken ahead and is never asked for is skipped, too. So a ledger may have a smaller id than one that
another client made before it.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

from bookkeeper.errors import (
    ClientClosedError,
    IdsUsedUpError,
    MetadataError,
)
from bookkeeper.ids import LedgerId
from bookkeeper.meta.records.layout import SHORT_MAX, Layout
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import OUTCOME_UNKNOWN, Delete, MetadataStore, Version, Watch, ensure_created

AHEAD_MAX: Final = 64
"""Ids that are taken ahead at most."""

ROW_S: Final = 1.0
"""Who asks again within so many seconds asks in a row."""

ROW_MIN: Final = 4
"""Ids in a row before any is taken ahead; then as many as were asked for since."""

HOB_KEPT: Final = 3
_HOB = re.compile(r"HOB-(\d{10})")


def high_halves(names: Iterable[str]) -> list[int]:
    """The high 32 bits of long ids, by the names below the generator of long ids."""
    return [int(found[1]) for name in names if (found := _HOB.fullmatch(name))]


class LedgerIds:
    """The id generator of a cluster."""

    def __init__(self, store: MetadataStore, paths: Paths, layout: Layout) -> None:
        self._store = store
        self._paths = paths
        self._short_only = layout in (Layout.FLAT, Layout.LEGACY_HIERARCHICAL)
        self._short_parent = paths.root if layout is Layout.FLAT else paths.id_generator
        self._watch: Watch | None = None
        self._doubts = 0
        self._known = False
        self._long = False
        self._used: list[str] = []
        """Values that are deleted at the end of this turn."""
        self._forgetting: set[asyncio.Task[None]] = set()
        self._row = 0
        """Ids that were asked for in a row."""
        self._asked_at = float("-inf")
        self._ahead: deque[LedgerId] = deque()
        """Taken, and not given yet."""
        self._taking: asyncio.Task[None] | None = None
        self.greatest = LedgerId(-1)
        """The greatest id that this process has taken; -1 before the first."""

    async def next(self) -> LedgerId:
        """A new id for a ledger. It may have been taken a while ago: others may have greater ones by now.

        Raises:
            IdsUsedUpError: a flat or legacy cluster has used all of its ids.
            MetadataUnavailableError: the store does not answer.
        """
        now = asyncio.get_running_loop().time()
        self._row = self._row + 1 if now - self._asked_at < ROW_S else 1
        self._asked_at = now
        new = self._ahead.popleft() if self._ahead else None
        if self.takes_ahead and self._taking is None and len(self._ahead) <= self._wanted // 2:
            self._taking = asyncio.get_running_loop().create_task(self._take(self._wanted - len(self._ahead)))
        return await self.generate() if new is None else new

    @property
    def takes_ahead(self) -> bool:
        """Whether ids are asked for in a row. Layouts with short ids alone count other values, too, and run out."""
        return self._wanted > 0 and not self._short_only

    @property
    def _wanted(self) -> int:
        return min(self._row - ROW_MIN, AHEAD_MAX)

    async def generate(self) -> LedgerId:
        """An id that is taken now: greater than every id that anybody took before. Raises: as :meth:`next`."""
        new = await self._generate()
        self.greatest = max(self.greatest, new)
        return new

    async def _take(self, count: int) -> None:
        try:
            taken = await self._together(count)
            if taken is None:
                each = await asyncio.gather(*(self.generate() for _ in range(count)), return_exceptions=True)
                taken = [new for new in each if isinstance(new, int)]  # errors meet who asks next
            self._ahead.extend(sorted(taken))
        finally:
            self._taking = None

    async def _together(self, count: int) -> list[LedgerId] | None:
        """Short ids, taken by one request; None: they have to be taken one by one."""
        prefix = f"{self._short_parent}/ID-"
        try:
            if await self._long_ids_in_use():
                return None
            paths = await self._store.create_numbered(prefix, count)
        except (MetadataError, ClientClosedError):  # after a lost reply the numbers may be taken; there are others
            return None
        for path in paths:
            self._forget_soon(path)
        taken = [LedgerId(number) for path in paths if 0 <= (number := int(path[len(prefix) :])) < SHORT_MAX]
        self.greatest = max((self.greatest, *taken))
        return taken

    async def _generate(self) -> LedgerId:
        if self._short_only:
            number = await self._number_below(self._short_parent)
            if not 0 <= number < SHORT_MAX:
                raise IdsUsedUpError(
                    "this cluster's layout has no ledger ids left: make a new cluster with a hierarchical layout"
                )
            return LedgerId(number)
        if not await self._long_ids_in_use():
            number = await self._number_below(self._short_parent)
            if 0 <= number < SHORT_MAX:
                return LedgerId(number)
            await ensure_created(self._store, self._paths.long_id_generator)
        return await self._next_long()

    async def _long_ids_in_use(self) -> bool:
        """Whether the cluster gives out long ids already. Read once; a watch notices when a client begins with them.

        A short id that is taken a moment too late does no harm: no long id equals it.
        """
        if self._watch is None:
            self._watch = self._store.watch(self._paths.long_id_generator, self._doubt)
        if not self._known:
            doubts = self._doubts
            self._long = await self._store.exists(self._paths.long_id_generator) is not None
            self._known = doubts == self._doubts
        return self._long

    def _doubt(self) -> None:
        self._doubts += 1
        self._known = False

    async def _next_long(self) -> LedgerId:
        while True:
            highs = sorted(high_halves(await self._store.children(self._paths.long_id_generator)))
            if not highs:
                await ensure_created(self._store, self._paths.long_ids(1))
                continue
            low = await self._number_below(self._paths.long_ids(highs[-1]))
            if 0 <= low < SHORT_MAX:
                return LedgerId(highs[-1] << 32 | low)
            await ensure_created(self._store, self._paths.long_ids(highs[-1] + 1))
            for high in highs[: -(HOB_KEPT - 1)]:
                await self._forget(self._paths.long_ids(high))

    async def _number_below(self, parent: str) -> int:
        prefix = f"{parent}/ID-"
        while True:
            try:
                path, _ = await self._store.create(prefix, ephemeral=True, sequential=True, parents=True)
            except OUTCOME_UNKNOWN:  # the number may be taken; there are others
                await self._store.sync(parent)
                continue
            self._forget_soon(path)
            return int(path[len(prefix) :])

    def _forget_soon(self, path: str) -> None:
        """Delete the value, without waiting: the number is used up, and the value goes with the session anyway. Those
        of one turn of the loop are deleted together."""
        self._used.append(path)
        if len(self._used) == 1:
            task = asyncio.get_running_loop().create_task(self._forget_used())
            self._forgetting.add(task)
            task.add_done_callback(self._forgetting.discard)

    async def _forget_used(self) -> None:
        used, self._used = self._used, []
        for begin in range(0, len(used), AHEAD_MAX):
            some = used[begin : begin + AHEAD_MAX]
            if len(some) == 1 or not await self._forget_together(some):
                for path in some:
                    await self._forget(path)

    async def _forget_together(self, paths: Sequence[str]) -> bool:
        """False: nothing was deleted, because one of them is gone already."""
        try:
            await self._store.multi([Delete(path, Version(0)) for path in paths])
        except (*OUTCOME_UNKNOWN, ClientClosedError):
            return True  # whether they were deleted is not known, and does not matter
        except MetadataError:
            return False
        return True

    async def _forget(self, path: str) -> None:
        try:
            await self._store.delete(path, Version(0))
        except (MetadataError, ClientClosedError):
            pass
