"""Noticing, while a process runs, that the metadata are in an older state than it has seen.

The store remembers the highest transaction that it has shown, and its own sessions compare with that. Two things
escape this: transactions that were made since the restoration may have come past what a process saw, and ZooKeeper's
numbers begin a new epoch with every leader. So besides

* the record of where the contents come from (lineage.py) is read again: who lets a cluster go on from an older state
  (``bk metadata accept-rollback``) leaves a sign there, and whoever was connected before it ends;
* a :class:`RollbackCounter` is a number that one process alone counts up: a store that shows a lower one has lost it;
* after the session was in doubt, whoever holds a ledger looks at its metadata again, and ends if they are older;
* before a ledger that was there is believed deleted, all of this is asked (``Ledgers.check_gone``), and a new
  id must be greater than those that this process was given.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from bookkeeper.errors import (
    ClientClosedError,
    ClusterMovedError,
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataRolledBackError,
    NoSuchKeyError,
)
from bookkeeper.meta.records import lineage as lineages
from bookkeeper.meta.records.lineage import Lineage
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore, SessionState, once_more, settled_create, settled_set

LOOK_S: Final = 2.0
"""Between two looks: who goes on after a restoration does so for a few of these at most."""

GLANCE_S: Final = 0.25
"""Between two glances at what the store, or somebody here, has found by itself, which ask nothing of it."""

BEACON_S: Final = 60.0
"""Between two counts."""

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())


class RollbackCheck:
    """Are the metadata what they were, or later?"""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self._paths = paths
        self.lineage = Lineage()
        """The moves from store to store, and the accepted losses, that led to what this process saw at its start."""
        self.alarm: MetadataError | None = None
        """Once found, it stays: whoever reads or writes here believes nothing any more."""
        self.counter: RollbackCounter | None = None
        """This process's own count, if it has one."""

    async def check(self) -> None:
        """Look now.

        Raises:
            MetadataRolledBackError: an older state, or one that comes from an older one.
            ClusterMovedError: the cluster is elsewhere by now.
            MetadataUnavailableError: the store does not tell.
        """
        if self.alarm is not None:
            raise once_more(self.alarm)
        try:
            if self._store.rolled_back is not None:
                raise once_more(self._store.rolled_back)
            now = await lineages.read(self._store, self._paths)
            if self._store.rolled_back is not None:
                raise once_more(self._store.rolled_back)
            if now != self.lineage:
                raise MetadataRolledBackError(
                    "the metadata come from elsewhere than they did when this process began: they were put back to an "
                    "older state, or somebody has let the cluster go on from one (bk metadata accept-rollback); start "
                    "this process again"
                )
        except (MetadataRolledBackError, ClusterMovedError) as alarm:
            self.alarm = alarm
            raise

    async def check_fresh(self) -> None:
        """The same after a sync, and compared with what was seen before by number, and with what this process has
        counted: for decisions that destroy. What was read before this is not older than anything that was seen."""
        await self._store.check_not_rolled_back(self._store.last_transaction)
        await self.check()
        if self.counter is not None:
            await self.counter.check()


class RollbackCounter:
    """A number in the store that one owner counts up. Whoever counts may miss one; a lower one was never there."""

    def __init__(self, store: MetadataStore, path: str, present: RollbackCheck) -> None:
        self._store = store
        self._path = path
        self._present = present
        self.count = 0
        """What the store must show at least."""

    async def check(self) -> None:
        """Raises: MetadataRolledBackError: what is stored is older, which concerns the whole process;
        MetadataUnavailableError."""
        await self._store.sync(self._path)
        shown = await self._read()
        if shown < self.count:
            self._present.alarm = alarm = MetadataRolledBackError(
                f"{self._path} was counted up to {self.count} and shows {shown}: the metadata were put back to an "
                "older state"
            )
            raise alarm
        self.count = shown

    async def count_up(self) -> None:
        """Raises: as :meth:`check`."""
        while True:
            await self.check()
            value = b"%d" % (self.count + 1)
            try:
                if self.count:
                    await settled_set(self._store, self._path, value, (await self._store.get(self._path)).version)
                else:
                    await settled_create(self._store, self._path, value, parents=True)
            except (KeyExistsError, NoSuchKeyError, MetadataConflictError):
                continue  # another since it was read, and the check tells what that means
            self.count += 1
            return

    async def run(self, counted: Callable[[], None]) -> None:
        """Count on, so that what is lost since the last time is little, and tell ``counted`` to write it down. Until an
        older state is found."""
        while True:
            try:
                await self.count_up()
                counted()
            except (MetadataRolledBackError, ClientClosedError):
                return
            except MetadataError as error:
                _log.info("%s was not counted up: %s", self._path, error)
            await asyncio.sleep(BEACON_S)

    async def _read(self) -> int:
        try:
            value = (await self._store.get(self._path)).value
        except NoSuchKeyError:
            return 0
        return int(value) if value.isdigit() else 0


class RollbackWatch:
    """Looks again and again, and tells once.

    Args:
        found: told the error, once.
        doubted: told whenever the session was in doubt and the store answers again.
    """

    def __init__(
        self,
        store: MetadataStore,
        present: RollbackCheck,
        found: Callable[[MetadataError], None],
        doubted: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._present = present
        self._found = found
        self._doubted = doubted

    async def run(self) -> None:
        """Until something was found, or the store was closed."""
        doubt = False

        def changed(state: SessionState) -> None:
            nonlocal doubt
            doubt = doubt or state is SessionState.CONNECTED

        watch = self._store.on_session(changed)
        try:
            while True:
                await self._pause()
                try:
                    await self._present.check()
                except (MetadataRolledBackError, ClusterMovedError) as alarm:
                    _log.critical("%s", alarm)
                    return self._found(alarm)
                except MetadataError:
                    continue  # no answer, which is another matter
                except ClientClosedError:
                    return None
                if doubt:
                    doubt = False
                    self._doubted()
        finally:
            watch.close()

    async def _pause(self) -> None:
        for _ in range(round(LOOK_S / GLANCE_S)):
            if self._store.rolled_back is not None or self._present.alarm is not None:
                return
            await asyncio.sleep(GLANCE_S)
