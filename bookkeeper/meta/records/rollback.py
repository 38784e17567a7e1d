"""Notices in a running process that the metadata were put back to an older state.

A store object remembers the highest transaction it has shown, and compares it in every new session. Two cases escape
this: transactions made since the restoration may have passed what the process saw, and ZooKeeper's numbers begin a new
epoch with every leader. So besides

* the record of the store's origin (lineage) is read again. ``bk metadata accept-rollback`` changes it, and processes
  that were connected before stop;
* a :class:`RollbackCounter` is a number that one process alone counts up. A store that shows a lower number has lost
  writes;
* after the session was in doubt, every open ledger handle reads its metadata again, and stops if they are older;
* before a ledger that existed is taken for deleted, all of this is checked (``Ledgers.check_deleted``), and a new id
  must be greater than those that this process was given.
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
    in_words,
)
from bookkeeper.meta.records import lineage as lineages
from bookkeeper.meta.records.lineage import Lineage
from bookkeeper.meta.records.paths import Paths
from bookkeeper.meta.store import MetadataStore, SessionState, get_or_none, once_more, settled_create, settled_set

CHECK_S: Final = 2.0
"""Seconds between two checks; after a restoration a process goes on for a few of them at most."""

QUICK_CHECK_S: Final = 0.25
"""Seconds between two checks of what this process already knows, which send no request to the store."""

BEACON_S: Final = 60.0
"""Seconds between two counts."""

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())


class RollbackCheck:
    """Checks that the metadata are those that this process knows, or later ones."""

    def __init__(self, store: MetadataStore, paths: Paths) -> None:
        self._store = store
        self._paths = paths
        self.lineage = Lineage()
        """The moves and accepted losses that the store named when this process began."""
        self.alarm: MetadataError | None = None
        """The error, once an older state was found; from then on every read and write of this process raises it."""
        self.counter: RollbackCounter | None = None
        """This process's own counter, if it has one."""

    async def check(self) -> None:
        """Check now.

        Raises:
            MetadataRolledBackError: the store shows an older state, or one that goes on from an older state.
            ClusterMovedError: the cluster has moved to another store.
            MetadataUnavailableError: the store does not answer.
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
                    "the metadata are not those with which this process began: they were put back to an older state, "
                    "or an operator has accepted such a state (bk metadata accept-rollback); start this process again"
                )
        except (MetadataRolledBackError, ClusterMovedError) as alarm:
            self.alarm = alarm
            raise

    async def check_fresh(self) -> None:
        """As :meth:`check`, after a sync, and also by transaction numbers and by this process's counter.

        For decisions that destroy data. If it passes, what was read before it is not older than anything seen."""
        await self._store.check_not_rolled_back(self._store.last_transaction)
        await self.check()
        if self.counter is not None:
            await self.counter.check()


class RollbackCounter:
    """A number in the store that one owner counts up. The owner may miss a count; a lower number means a rollback."""

    def __init__(self, store: MetadataStore, path: str, present: RollbackCheck) -> None:
        self._store = store
        self._path = path
        self._present = present
        self.count = 0
        """The number that the store must show at least."""

    async def check(self) -> None:
        """Check the number.

        Raises:
            MetadataRolledBackError: the store shows a lower number; the whole process stops trusting it.
            MetadataUnavailableError: the store does not answer."""
        await self._store.sync(self._path)
        shown = await self._read()
        if shown < self.count:
            self._present.alarm = alarm = MetadataRolledBackError(
                f"the metadata were put back to an older state: {self._path} was counted up to {self.count}, and shows "
                f"{shown}"
            )
            raise alarm
        self.count = shown

    async def count_up(self) -> None:
        """Count up by one. Raises: as :meth:`check`."""
        while True:
            await self.check()
            value = b"%d" % (self.count + 1)
            try:
                if self.count:
                    await settled_set(self._store, self._path, value, (await self._store.get(self._path)).version)
                else:
                    await settled_create(self._store, self._path, value, parents=True)
            except (KeyExistsError, NoSuchKeyError, MetadataConflictError):
                continue  # the value has changed since it was read; the check says what that means
            self.count += 1
            return

    async def run(self, counted: Callable[[], None]) -> None:
        """Count up again and again until an older state is found. ``counted`` is called to write each count down."""
        while True:
            try:
                await self.count_up()
                counted()
            except (MetadataRolledBackError, ClientClosedError):
                return
            except MetadataError as error:
                _log.info(
                    "%s was not counted up (%s): it is tried again in %g s", self._path, in_words(error), BEACON_S
                )
            await asyncio.sleep(BEACON_S)

    async def _read(self) -> int:
        found = await get_or_none(self._store, self._path)
        return int(found.value) if found is not None and found.value.isdigit() else 0


class RollbackWatch:
    """Checks again and again, and reports an older state once.

    Args:
        found: called once, with the error.
        doubted: called whenever the session was in doubt and the store answers again.
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
        """Check until an older state was found, or the store was closed."""
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
                    continue  # the store did not answer, which proves nothing
                except ClientClosedError:
                    return None
                if doubt:
                    doubt = False
                    self._doubted()
        finally:
            watch.close()

    async def _pause(self) -> None:
        for _ in range(round(CHECK_S / QUICK_CHECK_S)):
            if self._store.rolled_back is not None or self._present.alarm is not None:
                return
            await asyncio.sleep(QUICK_CHECK_S)
