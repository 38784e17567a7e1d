"""What a bookie whose disk knows less than its name may answer.

Fences that were on a lost disk are gone, and metadata say instead what they said: a recovery changes the state before
it fences. So for a regular add to a ledger that may be older than the disk
(:mod:`~bookkeeper.bookie.identity.disk_identity`) the metadata are read first, once in a life: the ledger must be
OPEN, and this bookie in its last fragment. Whoever writes to it otherwise has been fenced, and is told so. Adds that
wait for one read stay in order; what waits is charged to admission like everything in progress. Recovery adds are
exempt: they come with IN_RECOVERY, and re-replication with CLOSED.

Until the copies of a *suspect* are whole, "no such entry" is not said of it: unknown is. What is missing of a suspect
that is closed is copied from the other bookies (:mod:`~bookkeeper.bookie.identity.completion`).

A closed ledger stays closed to whoever it was closed against, so ``highest`` is kept for good. That costs nothing: new
ledgers have greater ids.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from bookkeeper.bookie.identity.completion import Completion
from bookkeeper.bookie.identity.disk_identity import DiskIdentity, write_disk_identity
from bookkeeper.errors import NoSuchLedgerError
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerState
from bookkeeper.meta import Metadata
from bookkeeper.rate_limited_log import RateLimitedLogger
from bookkeeper.seams import Disk
from bookkeeper.storage.engine import Engine
from bookkeeper.wire import Status

log = logging.getLogger(__name__)

PASS_S: Final = 60.0
"""Seconds between two looks at the suspects."""

READ_S: Final = 5.0
"""The longest an add waits for metadata; its client would give up then, too."""

READS: Final = 32
"""Reads at a time; further ledgers wait."""

Verdict = Callable[[Status], None]
"""OK: go on. FENCED, IO_ERROR: answer this."""


class StaleAdds:
    """One bookie's doubts about ledgers older than its disk. On the loop's thread."""

    def __init__(
        self,
        engine: Engine,
        metadata: Metadata,
        bookie: BookieId,
        disk: Disk,
        directory: str,
        disk_identity: DiskIdentity | None,
        completion: Completion,
    ) -> None:
        self._engine = engine
        self._metadata = metadata
        self._bookie = bookie
        self._disk, self._directory = disk, directory
        self._completion = completion
        self._disk_identity = disk_identity or DiskIdentity()
        self._suspects = set(self._disk_identity.suspects)
        self._vouched: set[LedgerId] = set()
        """Seen OPEN in this life, with this bookie in the last fragment."""
        self._waiting: dict[LedgerId, list[Verdict]] = {}
        self._reads = asyncio.Semaphore(READS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = RateLimitedLogger(log, lambda: asyncio.get_running_loop().time())
        engine.doubt(self._suspects)

    @property
    def suspects(self) -> int:
        """Ledgers of which this bookie cannot say what it had."""
        return len(self._suspects)

    @property
    def highest(self) -> LedgerId:
        """Ledgers up to this one may be older than the disk, or than a loss on it."""
        return self._disk_identity.highest

    def cover(self, highest: LedgerId) -> None:
        """Ledgers up to this one may have lost something here just now; durable when this returns.

        Raises:
            OSError
        """
        self._keep(self._disk_identity.with_highest(highest))

    # -- adds ---------------------------------------------------------------------------------------------

    def must_ask(self, ledger_id: LedgerId) -> bool:
        """A regular add to this ledger has to wait for :meth:`ask`."""
        return ledger_id <= self._disk_identity.highest and ledger_id not in self._vouched

    def ask(self, ledger_id: LedgerId, then: Verdict) -> None:
        """Read the ledger's metadata, unless that is under way; ``then`` in the order of these calls."""
        if (waiting := self._waiting.get(ledger_id)) is not None:
            waiting.append(then)
            return
        self._waiting[ledger_id] = [then]
        task = asyncio.get_running_loop().create_task(self._settle(ledger_id), name=f"first add to {ledger_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Whoever waits is told that nothing is known."""
        for task in list(self._tasks):
            task.cancel()
        for ledger_id in list(self._waiting):
            self._tell(ledger_id, Status.IO_ERROR)

    async def _settle(self, ledger_id: LedgerId) -> None:
        async with self._reads:
            status = await self._judge(ledger_id)
        if status is Status.OK:
            self._vouched.add(ledger_id)
        self._tell(ledger_id, status)

    async def _judge(self, ledger_id: LedgerId) -> Status:
        try:
            async with asyncio.timeout(READ_S):
                found = (await self._metadata.ledgers.read(ledger_id, fresh=True)).value
        except NoSuchLedgerError:
            return Status.FENCED
        except Exception as error:  # whatever it is, somebody waits for an answer
            told = "whether ledger %d is open cannot be told, its adds are refused: %s"
            self._log.warning(told, ledger_id, repr(error))
            return Status.IO_ERROR
        if found.state is LedgerState.OPEN and self._bookie in found.last_fragment.ensemble:
            return Status.OK
        return Status.FENCED

    def _tell(self, ledger_id: LedgerId, status: Status) -> None:
        for then in self._waiting.pop(ledger_id, ()):
            then(status)

    # -- suspects -----------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look at the suspects until there are none; no error ends it."""
        while self._suspects:
            try:
                await self.one_pass()
            except Exception:
                log.exception("this look at the ledgers older than the disk proved nothing")
            if self._suspects:
                await asyncio.sleep(PASS_S)

    async def one_pass(self) -> frozenset[LedgerId]:
        """The suspects that are left: not closed yet, or not whole here.

        Raises:
            MetadataError: the store cannot say.
            OSError: the file could not be written.
        """
        for ledger in sorted(self._suspects):
            if await self._completion.is_whole(ledger):
                self._suspects.discard(ledger)
        if len(self._suspects) < len(self._disk_identity.suspects):
            self._keep(DiskIdentity(self._disk_identity.highest, frozenset(self._suspects)))
            log.warning("%d ledgers are left of which this bookie may have lost entries", len(self._suspects))
        return frozenset(self._suspects)

    def _keep(self, disk_identity: DiskIdentity) -> None:
        if disk_identity != self._disk_identity:
            write_disk_identity(self._disk, self._directory, disk_identity, self._bookie)
            self._disk_identity = disk_identity
