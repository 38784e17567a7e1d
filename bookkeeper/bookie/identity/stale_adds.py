"""Checks regular adds to ledgers that are older than the bookie's disk.

A bookie that lost its disk has lost the fences on it. The metadata can stand in for them: a recovery changes a
ledger's state before it fences. So before the first regular add to a ledger that may be older than the disk
(:mod:`~bookkeeper.bookie.identity.disk_identity`), the bookie reads the ledger's metadata, once per start. The ledger
must be OPEN, and this bookie must be in its last fragment. Otherwise the writer has been fenced, and the bookie
answers that. Adds that wait for one read stay in order, and count in admission like all requests in progress. Recovery
adds are exempt: recovery writes to ledgers IN_RECOVERY, and re-replication to CLOSED ones.

While a ledger is in *doubt*, the bookie never answers "no such entry" for it, but "unknown". What is missing of one
that is closed is copied from the other bookies (:mod:`~bookkeeper.bookie.identity.completion`).

The mark ``highest`` is kept for good, because a fenced writer may come back at any time. That costs nothing: new
ledgers have greater ids.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from bookkeeper.amounts import counted
from bookkeeper.bookie.identity.completion import Completion
from bookkeeper.bookie.identity.disk_identity import DiskIdentity, write_disk_identity
from bookkeeper.errors import NoSuchLedgerError, in_words
from bookkeeper.ids import BookieId, LedgerId
from bookkeeper.ledger import LedgerState
from bookkeeper.meta import Metadata
from bookkeeper.rate_limited_log import RateLimitedLogger
from bookkeeper.seams import Disk
from bookkeeper.volumes import Volumes
from bookkeeper.wire import Status

log = logging.getLogger(__name__)

PASS_S: Final = 60.0
"""Seconds between two passes over the ledgers in doubt."""

READ_S: Final = 5.0
"""Seconds that an add waits for metadata at most; its client gives up after the same time."""

READS: Final = 32
"""Reads of metadata at a time; further ledgers wait."""

Verdict = Callable[[Status], None]
"""Called with OK (store the add), or with FENCED or IO_ERROR (answer the add with this)."""


class StaleAdds:
    """Decides which adds to ledgers older than the disk one bookie takes. Runs on the loop's thread."""

    def __init__(
        self,
        engine: Volumes,
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
        self._doubted = set(self._disk_identity.doubted)
        self._vouched: set[LedgerId] = set()
        """Ledgers that this start has seen OPEN, with this bookie in the last fragment."""
        self._waiting: dict[LedgerId, list[Verdict]] = {}
        self._reads = asyncio.Semaphore(READS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._log = RateLimitedLogger(log, lambda: asyncio.get_running_loop().time())
        engine.doubt(self._doubted)

    @property
    def doubted(self) -> int:
        """How many ledgers are in doubt: what this bookie had of them is not known."""
        return len(self._doubted)

    @property
    def highest(self) -> LedgerId:
        """The greatest ledger id that may be older than the disk, or than a loss on it."""
        return self._disk_identity.highest

    def cover(self, highest: LedgerId) -> None:
        """Raise :attr:`highest` to ``highest``, because a loss was just found. Durable when this returns.

        Raises:
            OSError: the file could not be written.
        """
        self._keep(self._disk_identity.with_highest(highest))

    # -- adds ---------------------------------------------------------------------------------------------

    def must_verify(self, ledger_id: LedgerId) -> bool:
        """Whether a regular add to this ledger has to wait for :meth:`verify`."""
        return ledger_id <= self._disk_identity.highest and ledger_id not in self._vouched

    def verify(self, ledger_id: LedgerId, then: Verdict) -> None:
        """Read the ledger's metadata, unless a read is under way, then call ``then`` with the verdict.

        Calls for one ledger are answered in their order.
        """
        if (waiting := self._waiting.get(ledger_id)) is not None:
            waiting.append(then)
            return
        self._waiting[ledger_id] = [then]
        task = asyncio.get_running_loop().create_task(self._settle(ledger_id), name=f"first add to {ledger_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Cancel the reads. Adds that wait are answered with IO_ERROR."""
        for task in list(self._tasks):
            task.cancel()
        for ledger_id in list(self._waiting):
            self._notify(ledger_id, Status.IO_ERROR)

    async def _settle(self, ledger_id: LedgerId) -> None:
        async with self._reads:
            status = await self._judge(ledger_id)
        if status is Status.OK:
            self._vouched.add(ledger_id)
        self._notify(ledger_id, status)

    async def _judge(self, ledger_id: LedgerId) -> Status:
        try:
            async with asyncio.timeout(READ_S):
                found = (await self._metadata.ledgers.read(ledger_id, fresh=True)).value
        except NoSuchLedgerError:
            return Status.FENCED
        except Exception as error:  # whatever it is, somebody waits for an answer
            text = "bookie %s refuses adds to ledger %d: it cannot read whether the ledger is open (%s)"
            self._log.warning(text, self._bookie, ledger_id, in_words(error))
            return Status.IO_ERROR
        if found.state is LedgerState.OPEN and self._bookie in found.last_fragment.ensemble:
            return Status.OK
        return Status.FENCED

    def _notify(self, ledger_id: LedgerId, status: Status) -> None:
        for then in self._waiting.pop(ledger_id, ()):
            then(status)

    # -- ledgers in doubt ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Make passes until no ledger is in doubt. Errors are logged, and the next pass tries again."""
        while self._doubted:
            try:
                await self.one_pass()
            except Exception:
                log.exception(
                    "bookie %s could not check the ledgers in doubt: it tries again in %g s",
                    self._bookie,
                    PASS_S,
                )
            if self._doubted:
                await asyncio.sleep(PASS_S)

    async def one_pass(self) -> frozenset[LedgerId]:
        """Check every ledger in doubt once. Returns those that are left: not closed yet, or not whole here.

        Raises:
            MetadataError: the store does not answer.
            OSError: the file could not be written.
        """
        for ledger in sorted(self._doubted):
            if await self._completion.is_whole(ledger):
                self._doubted.discard(ledger)
        if len(self._doubted) < len(self._disk_identity.doubted):
            self._keep(DiskIdentity(self._disk_identity.highest, frozenset(self._doubted)))
            log.info("bookie %s: %s in doubt still", self._bookie, counted(len(self._doubted), "ledger", "is", "are"))
        return frozenset(self._doubted)

    def _keep(self, disk_identity: DiskIdentity) -> None:
        if disk_identity != self._disk_identity:
            write_disk_identity(self._disk, self._directory, disk_identity, self._bookie)
            self._disk_identity = disk_identity
