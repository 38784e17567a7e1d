"""Copies one bookie's share to another bookie: the shell around
:class:`~bookkeeper.replication.copying.fragment.FragmentCopy`.

It reads the entries that the machine names from the fragment's bookies (the one that is replaced is asked last), sends
the very bytes that were read to the target, reads them back, and swaps the bookies in the metadata. Each run of entries
has one task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, assert_never

from bookkeeper import codec
from bookkeeper.client.bookie_request import entry_of, failure_of, held_entries_of, request_reply
from bookkeeper.client.bookies.bookie_pool import ConnectionPurpose
from bookkeeper.client.ledger_view import LedgerView
from bookkeeper.client.read.entry_source import EntrySource, NoListener
from bookkeeper.client.services import ClientServices
from bookkeeper.client.tasks import Tasks
from bookkeeper.client.write.metadata_writes import STORE_AWAY, refresh_until_answered
from bookkeeper.client.write.recovery_adds import RecoveryAdds
from bookkeeper.errors import (
    BookKeeperError,
    DigestMismatchError,
    MalformedFrameError,
    MetadataConflictError,
    MetadataError,
    NoSuchLedgerError,
    in_words,
)
from bookkeeper.ids import BookieId, EntryId
from bookkeeper.ledger import Answer, DigestScheme, DigestType, LedgerMetadata, classify
from bookkeeper.meta.records.bookies import Incarnation
from bookkeeper.replication.config import CopyConfig
from bookkeeper.replication.copying import fragment as fragment_machine
from bookkeeper.replication.copying.copies import Copy
from bookkeeper.replication.copying.fragment import CopyFinished, CopyOutcome, FragmentCopy
from bookkeeper.replication.copying.repair_lock import holds_lock
from bookkeeper.replication.copying.throttle import Throttle
from bookkeeper.wire import BatchRead, BatchReply, ForceLedger, ListEntries, ReadEntry
from bookkeeper.wire.availability import HeldEntries

_log = logging.getLogger(__name__)

_SINGLES: Final = 64
"""Single reads of one run in flight."""


@dataclass(slots=True, kw_only=True)
class RepairContext:
    """What all repairs of one caller share: the client's services, limits, and callbacks."""

    services: ClientServices
    config: CopyConfig = field(default_factory=CopyConfig)
    throttle: Throttle = field(default_factory=Throttle)
    on_copied: Callable[[int, int], None] = lambda entries, size: None
    """Called with (entries, bytes) of each run that a target has acknowledged."""
    locked: bool = False
    """Whether the caller holds the locks of the ledgers it repairs. If a lock is lost, nothing is swapped in: a Java
    bookie that is the target may have dropped as surplus what was verified."""
    tells_nothing: set[BookieId] = field(default_factory=set)
    """Bookies that did not answer which entries they hold; they are not asked again."""
    adds: dict[BookieId, RecoveryAdds] = field(default_factory=dict)
    """What sends entries to each target: one window for all ledgers that are repaired at a time."""

    def adds_to(self, target: BookieId) -> RecoveryAdds:
        """What sends entries to ``target``; made at the first call."""
        if target not in self.adds:
            self.adds[target] = RecoveryAdds(self.services, target)
        return self.adds[target]


@dataclass(frozen=True, slots=True)
class RepairResult:
    """How the repair of one copy ended."""

    copy: Copy
    target: BookieId
    outcome: CopyOutcome
    entries: int
    """How many entries were sent to the target."""
    size: int
    """Bytes that were sent to the target, headers included."""
    found: int
    """With COMPLETED: how many entries the bookie held before. They were read back."""
    error: BookKeeperError | None = None
    """Why it FAILED. Nothing was swapped; with MetadataUnavailableError this is not known."""
    target_at_fault: bool = False
    """It FAILED because of the target; another target may succeed."""


def digest_of(metadata: LedgerMetadata) -> DigestScheme:
    """The digest and key of a ledger, as its metadata have them."""
    return DigestScheme(metadata.digest_type or DigestType.CRC32, metadata.password or b"")


async def held_by(services: ClientServices, tasks: Tasks, bookie: BookieId, record: LedgerView) -> HeldEntries:
    """Ask a bookie which entries of a ledger it holds.

    Raises: BookKeeperError: it does not say, which proves nothing.
    """
    request, what = ListEntries(record.ledger_id), f"entries of ledger {record.ledger_id} on {bookie}"
    reply = await request_reply(services, tasks, bookie, request, use=ConnectionPurpose.LAC)
    error = failure_of(reply, what)
    if error is not None:
        if classify(error) is Answer.NEGATIVE:
            return HeldEntries()
        raise error
    return held_entries_of(reply, what)


async def copy_fragment(context: RepairContext, record: LedgerView, copy: Copy, target: BookieId) -> RepairResult:
    """Copy ``copy`` to ``target`` and swap ``target`` in. If ``target`` is already in place, complete its copy.

    Foreseen failures are not raised but returned, see :class:`RepairResult`. The last fragment of a ledger that is not
    closed FAILED with LedgerFencedError.
    """
    return await _RepairShell(context, record, copy, target).run()


class _RepairShell:
    """One attempt to copy one share to one target."""

    def __init__(self, context: RepairContext, record: LedgerView, copy: Copy, target: BookieId) -> None:
        metadata = record.metadata
        self._context = context
        self._services = context.services
        self._record = record
        self._planned = record.versioned
        """The metadata that the machine was told last; a swap names their version."""
        self._digest = digest_of(metadata)
        self._loop = asyncio.get_running_loop()
        self._tasks = Tasks(f"repair of ledger {record.ledger_id}, {copy}", on_error=self._end_with)
        self._source = EntrySource(self._services, record, self._digest, self._tasks, NoListener())
        self._source.last_resort = frozenset([copy.bookie])
        entries = metadata.last_entry + 1
        self._incarnation: Incarnation | None = None
        """The target's incarnation when the copy was begun."""
        self._machine = FragmentCopy(
            metadata,
            copy,
            target,
            throttle=context.throttle,
            config=context.config,
            entry_bytes=metadata.length // entries + self._digest.overhead if entries else 1024,
        )
        self._entries: dict[int, list[bytes]] = {}
        """The entries of each run as they were read, by the run's first entry."""
        self._timer: asyncio.TimerHandle | None = None
        self._done: asyncio.Future[CopyFinished] = self._loop.create_future()

    async def run(self) -> RepairResult:
        try:
            end = await self._bring()
        except GeneratorExit:  # its loop has gone: nothing can be awaited
            raise
        except BaseException:
            await self._close()
            raise
        await self._close()
        machine = self._machine
        return RepairResult(
            machine.copy,
            machine.target,
            end.outcome,
            machine.copied_entries,
            machine.copied_bytes,
            max(0, machine.verified_entries - machine.copied_entries),
            end.error,
            end.target_at_fault,
        )

    async def _bring(self) -> CopyFinished:
        try:
            self._incarnation = await self._services.metadata.bookies.incarnation(self._machine.target)
        except BookKeeperError as error:
            return CopyFinished(CopyOutcome.FAILED, error)
        self._perform(self._machine.start(self._loop.time()))
        return await self._done

    async def _close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._tasks.close()

    def _end_with(self, error: BaseException) -> None:
        if not self._done.done():
            self._done.set_exception(error)

    # -- effects ------------------------------------------------------------------------------------------

    def _perform(self, effects: Iterable[fragment_machine.Effect]) -> None:
        for effect in effects:
            match effect:
                case fragment_machine.SurveyTarget():
                    self._tasks.start(self._survey(effect.target), "survey")
                case fragment_machine.ReadRun(entries):
                    self._step(partial(self._read, entries), entries, self._machine.on_read_failed)
                case fragment_machine.WriteRun(target, entries):
                    self._step(partial(self._write, target, entries), entries, self._machine.on_write_failed)
                case fragment_machine.VerifyRun(target, entries):
                    self._entries.pop(entries[0], None)
                    self._step(partial(self._verify, target, entries), entries, self._machine.on_verify_failed)
                case fragment_machine.SwapBookie():
                    self._tasks.start(self._swap(effect), "swap")
                case fragment_machine.ConfirmTarget(target):
                    self._tasks.start(self._confirm(target), "confirming")
                case fragment_machine.WakeAt():
                    if self._timer is not None:
                        self._timer.cancel()
                    self._timer = self._loop.call_at(effect.time, self._on_time)
                case fragment_machine.CopyFinished():
                    if not self._done.done():
                        self._done.set_result(effect)
                case _:
                    assert_never(effect)

    def _on_time(self) -> None:
        self._timer = None
        self._perform(self._machine.on_tick(self._loop.time()))

    def _step(
        self,
        work: Callable[[], Coroutine[Any, Any, list[fragment_machine.Effect]]],
        entries: Sequence[int],
        failed: Callable[[int, BookKeeperError, float], list[fragment_machine.Effect]],
    ) -> None:
        """Perform one step of a run and report the result to the machine."""

        async def step() -> None:
            try:
                effects = await work()
            except BookKeeperError as error:
                effects = failed(entries[0], error, self._loop.time())
            self._perform(effects)

        self._tasks.start(step(), f"entries {entries[0]}..{entries[-1]}")

    # -- asking the target what it has ----------------------------------------------------------------------

    async def _survey(self, target: BookieId) -> None:
        held: HeldEntries | None = None
        if target not in self._context.tells_nothing:
            try:
                held_entries_of = await held_by(self._services, self._tasks, target, self._record)
                await self._force(target)
                held = held_entries_of
            except BookKeeperError as error:
                _log.info(
                    "%s does not say which entries of ledger %d it holds durably (%s): all of them are sent",
                    target,
                    self._record.ledger_id,
                    in_words(error),
                )
                self._context.tells_nothing.add(target)
        self._perform(self._machine.on_surveyed(held, self._loop.time()))

    async def _force(self, target: BookieId) -> None:
        """What the target has listed is durable when this returns. A bookie of ours promises that with the list; one of
        Apache's lists what is still on its way to the disk. Raises: BookKeeperError: it does not say so."""
        ledger_id = self._record.ledger_id
        reply = await request_reply(
            self._services, self._tasks, target, ForceLedger(ledger_id), use=ConnectionPurpose.LAC
        )
        if (error := failure_of(reply, f"forcing ledger {ledger_id} on {target}")) is not None:
            raise error

    # -- one run ------------------------------------------------------------------------------------------

    async def _read(self, entries: Sequence[int]) -> list[fragment_machine.Effect]:
        first, most = entries[0], 2 * self._context.config.run_bytes
        ensemble = self._record.metadata.fragment_of(first).ensemble
        if isinstance(entries, range) and self._source.batches.asks_any(ensemble):
            found = await self._source.read(first, len(entries), whole=True, bytes_max=most)
        else:
            found = []
            for at in range(0, len(entries), _SINGLES):
                some = [self._source.read(entry, whole=True) for entry in entries[at : at + _SINGLES]]
                found += [entry for run in await _all(some) for entry in run]
                if sum(map(len, found)) >= most:
                    break
        self._entries[first] = found
        return self._machine.on_read(first, sum(map(len, found)), self._loop.time(), len(found))

    async def _write(self, target: BookieId, entries: Sequence[int]) -> list[fragment_machine.Effect]:
        """Send the entries as recovery adds without priority: repair is not more urgent than present writes."""
        first, ledger_id = entries[0], self._record.ledger_id
        packets = self._entries[first]
        adds = self._context.adds_to(target)
        await adds.send(self._tasks, ledger_id, entries, packets, self._digest.master_key)
        self._context.on_copied(len(packets), sum(map(len, packets)))
        return self._machine.on_written(first, self._loop.time())

    async def _verify(self, target: BookieId, entries: Sequence[int]) -> list[fragment_machine.Effect]:
        at = 0
        while at < len(entries):
            batch = isinstance(entries, range) and len(entries) - at > 1 and self._source.batches.asks_batches(target)
            at += await (
                self._verify_batch(target, entries[at:]) if batch else self._verify_singles(target, entries[at:])
            )
        return self._machine.on_verified(entries[0], self._loop.time())

    async def _verify_batch(self, target: BookieId, entries: Sequence[int]) -> int:
        """How many entries were good, from the first on."""
        ledger_id, first = self._record.ledger_id, EntryId(entries[0])
        what = f"reading back entries from {first} of ledger {ledger_id} on {target}"
        request = BatchRead(ledger_id, first, 0, len(entries), self._services.config.batch_read_bytes)
        reply = await request_reply(self._services, self._tasks, target, request, use=ConnectionPurpose.BATCH)
        if (error := failure_of(reply, what)) is not None:
            if self._source.batches.on_failed(target, error):
                return await self._verify_singles(target, entries[:1])
            raise error
        if not isinstance(reply, BatchReply):
            raise MalformedFrameError(f"{what}: the bookie sent a reply of the wrong kind ({type(reply).__name__})")
        self._source.batches.on_answered(target)
        digest, body = self._digest, reply.body
        found = codec.split_entries(body, 0, len(body), ledger_id, first, digest.digest_type, digest.mac_key)
        if not found.payloads:
            raise DigestMismatchError(f"{what}: digests or ids do not match")
        return len(found.payloads)

    async def _verify_singles(self, target: BookieId, entries: Sequence[int]) -> int:
        ledger_id, some = self._record.ledger_id, entries[:_SINGLES]
        reads = [
            request_reply(self._services, self._tasks, target, ReadEntry(ledger_id, EntryId(entry))) for entry in some
        ]
        for entry, reply in zip(some, await _all(reads), strict=True):
            what = f"reading back entry {entry} of ledger {ledger_id} on {target}"
            entry_of(reply, self._digest, ledger_id, entry, what)
        return len(some)

    # -- the swap -----------------------------------------------------------------------------------------

    async def _swap(self, swap: fragment_machine.SwapBookie) -> None:
        """Swap by compare-and-set. The write holds only for the very ledger that was copied, and for the incarnation of
        the target to which it was copied. Whatever the result, the metadata that are stored then decide."""
        assert self._planned.value is swap.over, "the machine plans over what it was told last"
        try:
            try:
                if self._context.locked and not await holds_lock(self._services.metadata, self._record.ledger_id):
                    raise MetadataError(
                        f"this repair has lost the lock of ledger {self._record.ledger_id}, as its session expired: "
                        "begin again"
                    )
                incarnation = await self._services.metadata.bookies.incarnation(swap.new)
                if incarnation != self._incarnation:
                    self._incarnation = incarnation
                    self._perform(self._machine.on_target_restarted(self._loop.time()))
                    return
                new = swap.over.swap_bookie(swap.first_entry, swap.old, swap.new)
                await self._record.write(new, self._planned, same_creation=True, only_if=incarnation.conditions)
            except MetadataConflictError:
                await self._record.refresh()
            except STORE_AWAY:
                what = (
                    f": it is not known whether {swap.new} was swapped in, because the metadata store does not answer "
                    "({}); repair it again"
                )
                await refresh_until_answered(self._services, self._record, what)
        except NoSuchLedgerError:
            effects = self._machine.on_gone(self._loop.time())
        except BookKeeperError as error:
            effects = self._machine.on_store_failed(error, self._loop.time())
        else:
            self._planned = self._record.versioned
            effects = self._machine.on_stored(self._planned.value, self._loop.time())
        self._perform(effects)

    async def _confirm(self, target: BookieId) -> None:
        """Find out whether the bookie in place was started since the copy began."""
        try:
            incarnation = await self._services.metadata.bookies.incarnation(target)
        except BookKeeperError as error:
            effects = self._machine.on_store_failed(error, self._loop.time())
        else:
            reborn, self._incarnation = incarnation != self._incarnation, incarnation
            effects = self._machine.on_target_restarted(self._loop.time()) if reborn else self._machine.on_confirmed()
        self._perform(effects)


async def _all(futures: Sequence[asyncio.Future[Any]]) -> list[Any]:
    """The results in order. If one fails, the others are cancelled."""
    try:
        return list(await asyncio.gather(*futures))
    except BaseException:
        for future in futures:
            if not future.cancel() and not future.cancelled():
                future.exception()
        raise
