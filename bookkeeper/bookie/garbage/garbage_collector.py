"""The garbage collector: passes that find deleted ledgers and drop their data. The shell around ``GarbageProof``."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Sequence
from contextlib import suppress

from bookkeeper.amounts import counted
from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.garbage.garbage_proof import GarbageProof
from bookkeeper.bookie.identity import checked_note
from bookkeeper.bookie.identity.seen_metadata import SeenMetadata
from bookkeeper.bookie.identity.state_files import KEPT
from bookkeeper.errors import BookKeeperError, MetadataFormatError, NoSuchKeyError, NoSuchLedgerError, in_words
from bookkeeper.ids import LedgerId
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.deleted_ledgers import READS
from bookkeeper.metrics import Metrics
from bookkeeper.seams import Seams
from bookkeeper.storage.base.durable_file import replace_file
from bookkeeper.volumes import Volumes

log = logging.getLogger(__name__)


class GarbageCollector:
    """Collects the deleted ledgers of one bookie."""

    def __init__(
        self,
        engine: Volumes,
        metadata: Metadata,
        config: BookieConfig,
        seams: Seams,
        metrics: Metrics,
        seen: SeenMetadata,
    ) -> None:
        self._engine = engine
        self._seen = seen
        self._metadata = metadata
        self._config = config
        self._seams = seams
        self._proof = GarbageProof(config.garbage_grace_s, config.garbage_shrink_max)
        self._failed = metrics.counter(
            "garbage_passes_failed_total", "Garbage passes that failed; a failed pass drops nothing."
        )
        self._last_good: float | None = None
        self._passed_at: float | None = None
        """When this bookie last wrote down for how long it has kept ledgers after an accepted loss."""
        self.kept = 0
        """How many ledgers that metadata do not know are kept after an accepted loss."""
        self.restorable = 0
        """How many deleted ledgers are kept here because they can be brought back."""
        self._wall_ms, self._began = seams.clock.wall_ms(), seams.clock.monotonic()
        self._over_since: dict[LedgerId, float] = {}
        """Since which pass the grace of a deleted ledger is over, by every clock there is."""
        self._until: dict[LedgerId, int] = {}
        """When the grace of each deleted ledger is over, by the store's clock in milliseconds, as it was read."""
        self._unfinished = False
        """Whether ledgers were dropped whose space the disk could not free yet."""

    @property
    def age_s(self) -> float | None:
        """Seconds since the last pass that succeeded; None before the first."""
        return None if self._last_good is None else self._seams.clock.monotonic() - self._last_good

    @property
    def waiting(self) -> tuple[int, float]:
        """How many ledgers a later pass drops, and in how many seconds the first of them; see
        :meth:`GarbageProof.waiting`."""
        return self._proof.waiting(self._seams.clock.monotonic())

    async def run(self) -> None:
        """Make passes until cancelled. Errors are logged, and the next pass tries again."""
        while True:
            await asyncio.sleep(self._config.garbage_interval_s)
            try:
                await self.one_pass()
            except BookKeeperError as error:  # metadata or the disk: foreseen, and said in words
                self._failed.add()
                log.error(
                    "a garbage pass failed and dropped nothing (%s); the next one comes in %g s",
                    in_words(error),
                    self._config.garbage_interval_s,
                )
            except Exception:
                self._failed.add()
                log.exception(
                    "a garbage pass failed and dropped nothing; the next one comes in %g s",
                    self._config.garbage_interval_s,
                )
            self._compact()

    def _compact(self) -> None:
        """Begin a compaction of entry logs if it is time for one. It goes on beside the passes."""
        try:
            self._engine.compactor.run_if_due(_compacted)
        except Exception:
            log.exception(
                "a compaction could not begin; the next one is tried in %g s", self._config.garbage_interval_s
            )

    async def log_report(self) -> list[dict[str, object]]:
        """For each entry log what lives in it, and what a compaction would win: see :meth:`Compactor.rows`."""
        got: asyncio.Future[list[dict[str, object]] | BaseException] = asyncio.get_running_loop().create_future()

        def on_rows(rows: list[dict[str, object]] | BaseException) -> None:
            if not got.done():
                got.set_result(rows)

        self._engine.compactor.rows(on_rows)
        rows = await got
        if isinstance(rows, BaseException):
            raise rows
        return rows

    async def one_pass(self) -> set[LedgerId]:
        """Drop the ledgers that are provably deleted. Returns their ids.

        Raises:
            MetadataError: the pass failed; nothing was dropped.
        """
        local = sorted(self._engine.ledgers())  # before the listing: who is created later is in the listing
        await self._metadata.present.check_fresh()
        listed = {ledger async for ledger in self._metadata.ledgers.list()}
        restorable = {ledger async for ledger in self._metadata.ledgers.restorable.all()}
        await self._seen.counter.count_up()  # after the listings: what they showed is not older than what was counted
        self._seen.remember()
        restorable -= await self._grace_expired(restorable)
        candidates = self._proof.candidates(local, listed)
        self.restorable = len(restorable.intersection(candidates))
        absent = [ledger for ledger in candidates if ledger not in restorable and await self._is_gone(ledger)]
        absent = await self._collectable(absent)
        dead = self._proof.confirmed(absent, self._seams.clock.monotonic())
        dead = await self._marked(dead)
        if dead or self._unfinished:
            await self._drop(dead)
        self._last_good = self._seams.clock.monotonic()
        return dead

    async def _marked(self, dead: set[LedgerId]) -> set[LedgerId]:
        """The ledgers of ``dead`` that are still gone now that their ids are marked: whoever deleted them may have left
        no marks, and until there is one a ledger can be made, or put back, under its id. Raises: MetadataError."""
        some, gone = sorted(dead), set[LedgerId]()
        for at in range(0, len(some), READS):
            chunk = some[at : at + READS]
            for ledger, is_gone in zip(chunk, await asyncio.gather(*map(self._mark, chunk)), strict=True):
                if is_gone:
                    gone.add(ledger)
                else:
                    log.warning("ledger %d has come back while it was to be dropped: its data are kept", ledger)
        return gone

    async def _mark(self, ledger: LedgerId) -> bool:
        """Mark the id of a ledger that is gone. Returns whether it still is then, and cannot be brought back."""
        ledgers = self._metadata.ledgers
        path = ledgers.path(ledger)
        if not await ledgers.deleted.add(ledger, path) or await ledgers.restorable.has(ledger):
            return False
        return await self._metadata.store.exists(path) is None

    async def _grace_expired(self, restorable: set[LedgerId]) -> set[LedgerId]:
        """Remove the records of deleted ledgers that nobody may bring back any more. Returns these ledgers.

        A record is gone for good, so a clock that is wrong for a while must not end a grace. It is over when the
        store's clock, the wall clock here, and what that said when this began with the monotonic time since say so, on
        two passes that are ``garbage_grace_s`` apart.
        """
        records = self._metadata.ledgers.restorable
        self._until = {ledger: until for ledger, until in self._until.items() if ledger in restorable}
        await self._read_new(sorted(restorable - self._until.keys()))
        if not self._until:
            self._over_since = {}
            return set()
        at, now = self._seams.clock.monotonic(), min(await records.now_ms(), self._here_ms())
        over = [ledger for ledger, until in self._until.items() if until <= now]
        self._over_since = {ledger: self._over_since.get(ledger, at) for ledger in over}
        ripe = [ledger for ledger, since in self._over_since.items() if 0 < at - since >= self._config.garbage_grace_s]
        gone = await records.remove_expired(ripe, now)
        for ledger in ripe:  # those that stay were deleted anew since they were read
            del self._until[ledger]
            del self._over_since[ledger]
        return gone

    def _here_ms(self) -> int:
        """The wall clock here, which a step does not put on."""
        clock = self._seams.clock
        return min(clock.wall_ms(), self._wall_ms + int(1000 * (clock.monotonic() - self._began)))

    async def _read_new(self, ledgers: Sequence[LedgerId]) -> None:
        async def restorable_until_ms(ledger: LedgerId) -> int | None:
            try:
                return (await self._metadata.ledgers.restorable.read(ledger)).until_ms
            except NoSuchKeyError:
                return None
            except MetadataFormatError as error:
                log.error("%s: the data of the ledger are kept", in_words(error))
                return None

        for at in range(0, len(ledgers), READS):
            some = ledgers[at : at + READS]
            for ledger, end in zip(some, await asyncio.gather(*map(restorable_until_ms, some)), strict=True):
                if end is not None:
                    self._until[ledger] = end

    async def _is_gone(self, ledger: LedgerId) -> bool:
        """Whether the ledger is neither there nor can be brought back, read after a sync."""
        ledgers = self._metadata.ledgers
        try:
            await ledgers.read(ledger, fresh=True)
        except NoSuchLedgerError:
            pass
        except MetadataFormatError:
            log.error("the metadata of ledger %d cannot be read: its data are kept", ledger)
            return False
        else:
            return False
        if await ledgers.restorable.has(ledger):
            return False
        return await self._metadata.store.exists(ledgers.path(ledger)) is None  # it was not brought back in between

    async def _collectable(self, absent: list[LedgerId]) -> list[LedgerId]:
        """The ledgers of ``absent`` that may go. After an accepted loss of metadata, ledgers that the loss may concern
        are kept for ``keep_s`` seconds, unless somebody has deleted them since. Only time in which this bookie runs
        counts, from pass to pass."""
        last = self._metadata.lineage.copies[-1:]
        loss = last[0].loss if last else None
        self.kept = 0
        if loss is None:
            return absent
        path, now = os.path.join(self._config.directory, KEPT), self._seams.clock.monotonic()
        name, passed = last[0].id, 0.0
        if self._seams.disk.exists(path):
            with suppress(ValueError):  # a damaged note: the time begins anew
                noted = checked_note.decode(self._seams.disk.read_file(path)).split()
                if len(noted) == 2 and noted[0] == name and noted[1].isdecimal():
                    passed = float(noted[1])
        passed += now - (self._passed_at if self._passed_at is not None else now)
        self._passed_at = now
        if passed >= loss.keep_s:
            return absent
        try:
            replace_file(self._seams.disk, path, checked_note.encode(f"{name} {int(passed)}"))
        except OSError as error:  # the time that is not noted is waited again: nothing is dropped too soon
            log.warning("how long ledgers are kept already could not be noted: %s", in_words(error))
        going = []
        for ledger in absent:
            if ledger > loss.highest or await self._metadata.ledgers.deleted.has(ledger):
                going.append(ledger)
        self.kept = len(absent) - len(going)
        return going

    @property
    def refused(self) -> str | None:
        """Why nothing is collected until the next start: the metadata show an older state. None if all is well."""
        alarm = self._metadata.present.alarm
        return None if alarm is None else str(alarm)

    async def _drop(self, dead: set[LedgerId]) -> None:
        """Raises: MetadataError: nothing was dropped."""
        never_again = await self._metadata.ledgers.never_again(sorted(dead))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def collected(error: BaseException | None) -> None:
            if not done.done():
                done.set_result(None) if error is None else done.set_exception(error)

        self._unfinished = True
        self._engine.collect(frozenset(dead), collected, never_again=never_again)
        await done
        self._unfinished = False
        log.info("dropped %s", counted(len(dead), "deleted ledger"))


def _compacted(error: BaseException | None) -> None:
    if error is not None:
        log.warning("%s; nothing is lost, and the next compaction goes on", error)
