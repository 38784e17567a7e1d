"""Drain: moves every ledger off some bookies.

The bookies may be up or gone for good. A pass reads the metadata of every ledger and repairs those that name a drained
bookie, a few at a time. Passes go on until one finds nothing, or makes no progress.

    * The last fragment of a ledger that is not closed is left to its writer. A read-only or dead bookie refuses the
      next append, and the writer changes the ensemble by itself. With ``recover_open``, a ledger whose last fragment
      has not moved for a grace period is recovered, which ends its writer.
    * A mark in the list of under-replicated ledgers is removed only after the ledger was found whole.
    * All progress is in the metadata: a drain that was cut short is simply begun again. No ledger holds up another.
      What cannot be moved is reported with its reason.
    * Every pass looks at everything anew.
    * Deleted ledgers that can still be brought back are not moved: the report names them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from bookkeeper.client.bookkeeper import BookKeeper
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.ledgers.ledger_recovery import recover
from bookkeeper.client.operators import Operator, no_bookie
from bookkeeper.errors import BookKeeperError, IllegalOperationError, NoSuchLedgerError
from bookkeeper.ids import BookieId, EntryId, LedgerId
from bookkeeper.ledger import LedgerMetadata, LedgerState
from bookkeeper.replication.config import DrainConfig
from bookkeeper.replication.copying.copies import Copy, copies_of
from bookkeeper.replication.copying.fragment import CopyOutcome
from bookkeeper.replication.copying.repair import RepairContext, digest_of
from bookkeeper.replication.copying.repair_lock import repair_lock
from bookkeeper.replication.copying.replace import replace_copy
from bookkeeper.replication.copying.throttle import Throttle
from bookkeeper.replication.decommissioning.deleted_copies import DeletedCopies, deleted_copies
from bookkeeper.replication.repairs.tidy import TidyResult, tidy_marks

_log = logging.getLogger(__name__)

WRITABLE_PASSES_MAX: Final = 3
"""Passes at most while a drained bookie is writable: under load they would never end."""


@dataclass(frozen=True, slots=True)
class MovedCopy:
    """One copy that was moved to another bookie."""

    ledger_id: LedgerId
    first_entry: EntryId
    old: BookieId
    new: BookieId
    entries: int
    size: int
    """Bytes that were sent."""


@dataclass(frozen=True, slots=True)
class StuckLedger:
    """One ledger, or one copy of it, that could not be moved, and why."""

    ledger_id: LedgerId
    reason: str
    copy: Copy | None = None

    def __str__(self) -> str:
        what = f", {self.copy}" if self.copy is not None else ""
        return f"ledger {self.ledger_id}{what}: {self.reason}"


@dataclass(slots=True)
class DrainReport:
    """The result of a drain."""

    bookies: tuple[BookieId, ...]
    moved: list[MovedCopy] = field(default_factory=list)
    recovered: list[LedgerId] = field(default_factory=list)
    """Ledgers that the drain has recovered and closed (``recover_open``)."""
    stuck: list[StuckLedger] = field(default_factory=list)
    """Ledgers and copies that still name the bookies after the last pass, with the reasons."""
    marks: list[TidyResult] = field(default_factory=list)
    """What became of the marks of under-replicated ledgers that name the bookies or ledgers that were moved."""
    passes: int = 0
    deleted: list[DeletedCopies] = field(default_factory=list)
    """Deleted ledgers that can still be brought back, and that name the bookies. Nothing of them is moved."""

    @property
    def is_complete(self) -> bool:
        """Whether no ledger names the bookies any more."""
        return not self.stuck


@dataclass(slots=True)
class DrainProgress:
    """The progress of a drain. Entries and ledgers are those of the present pass."""

    ledgers: int = 0
    ledgers_done: int = 0
    entries: int = 0
    entries_done: int = 0
    bytes_sent: int = 0
    """Bytes copied since the drain began."""
    stuck: int = 0


@dataclass(frozen=True, slots=True)
class LedgerShare:
    """What a drained bookie holds of one ledger, by metadata."""

    ledger_id: LedgerId
    metadata: LedgerMetadata
    copies: tuple[Copy, ...]

    @property
    def entries(self) -> int:
        return sum(copy.held(self.metadata.spec) for copy in self.copies)

    @property
    def size_guess(self) -> int:
        """Estimated bytes, as if all entries of the ledger were equally large; 0 while it is not closed."""
        every = self.metadata.last_entry + 1
        return self.metadata.length * self.entries // every if every else 0


async def shares_of(client: BookKeeper, bookies: Sequence[str]) -> tuple[list[LedgerShare], list[StuckLedger]]:
    """The shares that have to move, and the ledgers whose metadata cannot be read.

    Raises: MetadataError.
    """
    shares: list[LedgerShare] = []
    unreadable: list[StuckLedger] = []
    names = [BookieId(bookie) for bookie in bookies]
    async for ledger_id, found in Operator(client).all_metadata():
        if isinstance(found, BookKeeperError):
            unreadable.append(StuckLedger(ledger_id, f"its metadata cannot be read: {found}"))
            continue
        copies = [copy for bookie in names for copy in copies_of(found, bookie)]
        if copies:
            shares.append(LedgerShare(ledger_id, found, tuple(copies)))
    return shares, unreadable


async def cannot_move(
    client: BookKeeper, bookies: Sequence[str], shares: Sequence[LedgerShare], config: DrainConfig
) -> list[StuckLedger]:
    """The copies among ``shares`` whose place no bookie can take, by the bookies that are writable now.

    Raises:
        IllegalOperationError: as :func:`drain`, but for bookies that are writable: they may be made read-only first.
        MetadataError.
    """
    names = tuple(dict.fromkeys(BookieId(bookie) for bookie in bookies))
    await _check_request(client, names, replace(config, while_writable=True))
    only = set(map(BookieId, config.targets))
    takers = {taker for taker in await Operator(client).writable_bookies() if taker not in names}
    takers = takers & only if only else takers
    stuck: list[StuckLedger] = []
    for share in shares:
        taken: Counter[EntryId] = Counter()
        for copy in (copy for copy in share.copies if copy.is_decided):
            ensemble = share.metadata.fragment_of(copy.first_entry).ensemble
            free = takers - set(ensemble)
            taken[copy.first_entry] += 1
            if taken[copy.first_entry] > len(free):
                able = ", ".join(sorted(takers)) or "none"
                reason = (
                    f"no bookie can take its place: writable and allowed are {able}, and the fragment has "
                    f"{', '.join(ensemble)}"
                )
                stuck.append(StuckLedger(share.ledger_id, reason, copy))
    return stuck


async def drain(
    client: BookKeeper,
    bookies: Sequence[str],
    config: DrainConfig | None = None,
    on_progress: Callable[[DrainProgress], None] = lambda progress: None,
) -> DrainReport:
    """Move every ledger off ``bookies``. The report says what was moved and what was not.

    Raises:
        IllegalOperationError: a bookie is not known; it is writable and ``while_writable`` is not set; a target is
            itself drained, or not writable. Nothing was done.
        MetadataError: the ledgers cannot be listed. What was moved until then stays moved.
    """
    config = config or DrainConfig()
    names = tuple(dict.fromkeys(BookieId(bookie) for bookie in bookies))
    await _check_request(client, names, config)
    return await _Drain(client, names, config, on_progress).run()


async def _check_request(client: BookKeeper, names: Sequence[BookieId], config: DrainConfig) -> None:
    operator = Operator(client)
    known, writable = await operator.all_bookies(), await operator.writable_bookies()
    if not names:
        raise IllegalOperationError("no bookie was named")
    for name in names:
        if name not in known and not (await shares_of(client, [name]))[0]:
            raise no_bookie(name, known)
        if name in writable and not config.while_writable:
            raise IllegalOperationError(
                f"{name} is writable: writers would go on putting entries there. Make it read-only with `bk bookies "
                f"read-only {name}`, or stop it; or drain it with --while-writable, and once more afterwards"
            )
    for target in config.targets:
        if target in names or target not in writable:
            why = "is itself drained" if target in names else "is not writable"
            raise IllegalOperationError(f"{target} cannot take what is moved: it {why}")


class _Drain:
    """The work of one call of :func:`drain`."""

    def __init__(
        self,
        client: BookKeeper,
        names: tuple[BookieId, ...],
        config: DrainConfig,
        on_progress: Callable[[DrainProgress], None],
    ) -> None:
        self._client = client
        self._services = client.services
        self._names = names
        self._config = config
        self._on_progress = on_progress
        self._progress = DrainProgress()
        self._context = RepairContext(
            services=client.services,
            config=config.copy,
            throttle=Throttle(config.bytes_per_s),
            on_copied=self._copied,
            locked=True,
        )
        self._report = DrainReport(names)
        self._undecided_since: dict[tuple[LedgerId, EntryId], float] = {}
        """When the last fragment of each open ledger was first seen to name a drained bookie."""

    def _copied(self, entries: int, size: int) -> None:
        self._progress.entries_done += entries
        self._progress.bytes_sent += size
        self._on_progress(self._progress)

    async def run(self) -> DrainReport:
        report = self._report
        while True:
            before = len(report.moved) + len(report.recovered)
            left = await self._pass()
            report.passes += 1
            if not left:
                break
            if report.passes >= WRITABLE_PASSES_MAX and await self._some_are_writable():
                await self._mark_rest_stuck()
                break
            idle = len(report.moved) + len(report.recovered) == before
            # with nothing stuck others were faster (OVERTAKEN): whom they chose only another pass can tell
            if idle and report.stuck and not await self._wait_for_grace():
                break
        touched = {moved.ledger_id for moved in report.moved}
        report.marks = await tidy_marks(self._context, self._names, touched, self._config.owner)
        report.deleted = await deleted_copies(self._client, self._names)
        return report

    async def _pass(self) -> bool:
        """Look at every ledger once, and move what can be moved. Returns whether there was anything to move."""
        shares, unreadable = await shares_of(self._client, self._names)
        self._report.stuck = list(unreadable)
        progress = self._progress
        progress.ledgers, progress.ledgers_done = len(shares), 0
        progress.entries, progress.entries_done = sum(share.entries for share in shares), 0
        progress.stuck = len(unreadable)
        self._on_progress(progress)
        waiting = deque(share.ledger_id for share in shares)

        async def work() -> None:
            while waiting:
                await self._one(waiting.popleft())
                progress.ledgers_done += 1
                progress.stuck = len(self._report.stuck)
                self._on_progress(progress)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._config.parallel, len(waiting))):
                group.create_task(work())
        return bool(shares)

    async def _some_are_writable(self) -> bool:
        return not set(self._names).isdisjoint(await self._services.metadata.bookies.writable())

    async def _mark_rest_stuck(self) -> None:
        """Report the fragments that still name a drained bookie, because new ones go on appearing."""
        shares, self._report.stuck = await shares_of(self._client, self._names)
        for share in shares:
            self._mark_stuck(
                share.ledger_id, "it names a drained bookie that is writable; new fragments may name it again"
            )

    async def _wait_for_grace(self) -> bool:
        """Wait until the next open ledger may be recovered. Returns False if there is none."""
        if not self._config.recover_open:
            return False
        now, grace_s = asyncio.get_running_loop().time(), self._config.grace_ms / 1000
        due = [since + grace_s - now for since in self._undecided_since.values()]
        waiting = [seconds for seconds in due if seconds > 0]
        if not waiting:
            return False
        await asyncio.sleep(min(waiting))
        return True

    # -- one ledger ---------------------------------------------------------------------------------------

    async def _one(self, ledger_id: LedgerId) -> None:
        """Move one ledger. Whatever happens, the others go on."""
        try:
            async with repair_lock(self._services.metadata, ledger_id, self._config.owner) as holder:
                if holder is not None:
                    self._mark_stuck(ledger_id, f"{holder} repairs it now and holds its lock")
                    return
                await self._move(ledger_id)
        except NoSuchLedgerError:
            return
        except BookKeeperError as error:
            self._mark_stuck(ledger_id, _reason(error))

    def _mark_stuck(self, ledger_id: LedgerId, reason: str, copy: Copy | None = None) -> None:
        self._report.stuck.append(StuckLedger(ledger_id, reason, copy))

    async def _move(self, ledger_id: LedgerId) -> None:
        record = await LedgerView.read(self._services.metadata.ledgers, ledger_id)
        await self._decide(record)
        for name in self._names:
            for copy in copies_of(record.metadata, name):
                if not copy.is_decided:
                    self._mark_stuck(ledger_id, self._undecided_reason(record.metadata), copy)
                elif await self._replace(record, copy) is CopyOutcome.GONE:
                    return

    async def _decide(self, record: LedgerView) -> None:
        """Recover an open ledger, if that is wanted and its grace period is over."""
        last = record.metadata.last_fragment
        if record.metadata.is_closed or not set(last.ensemble) & set(self._names):
            return
        now = asyncio.get_running_loop().time()
        since = self._undecided_since.setdefault((record.ledger_id, last.first_entry), now)
        if not self._config.recover_open or now - since < self._config.grace_ms / 1000:
            return
        await recover(self._services, record, digest_of(record.metadata))
        await record.refresh()
        self._report.recovered.append(record.ledger_id)

    def _undecided_reason(self, metadata: LedgerMetadata) -> str:
        state = "open" if metadata.state is LedgerState.OPEN else "in recovery"
        if self._config.recover_open:
            return f"it is {state}, and its grace period is not over"
        return f"it is {state}: its writer moves it with the next append; without a writer it has to be recovered"

    async def _replace(self, record: LedgerView, copy: Copy) -> CopyOutcome:
        only = tuple(map(BookieId, self._config.targets))
        try:
            copied = await replace_copy(self._context, record, copy, self._names, only)
        except NoSuchLedgerError:
            return CopyOutcome.GONE
        except BookKeeperError as error:
            self._mark_stuck(record.ledger_id, _reason(error), copy)
            return CopyOutcome.FAILED
        self._progress.entries_done += copied.found
        match copied.outcome:
            case CopyOutcome.FAILED:
                assert copied.error is not None
                self._mark_stuck(record.ledger_id, _reason(copied.error), copy)
            case CopyOutcome.SWAPPED:
                self._report.moved.append(
                    MovedCopy(
                        record.ledger_id, copy.first_entry, copy.bookie, copied.target, copied.entries, copied.size
                    )
                )
            case _:
                pass
        return copied.outcome


def _reason(error: BookKeeperError) -> str:
    return str(error) or type(error).__name__
