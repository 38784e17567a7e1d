"""What a start settles before the bookie serves: who it is, how often it has started, what its disk may have lost.

The order matters, and :mod:`bookkeeper.bookie.lifecycle` keeps it: each step may refuse the start, and what is written
before is undone or goes on at the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final

from bookkeeper.amounts import counted
from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.identity import checked_note
from bookkeeper.bookie.identity.bookie_identity import (
    PENDING,
    BookieIdentity,
    read_identity,
    refuse_strangers,
    settle_cookie,
    settle_grown_cookie,
    write_identity,
)
from bookkeeper.bookie.identity.disk_identity import (
    BIRTH,
    NO_LEDGER,
    DiskIdentity,
    newest,
    read_disk_identity,
    survey,
    write_disk_identity,
)
from bookkeeper.bookie.identity.progress_publisher import ProgressPublisher
from bookkeeper.bookie.identity.state_files import OPENED
from bookkeeper.bookie.identity.undone_start import finish_undoing, forget_notes, undo_first_start
from bookkeeper.bookie.start.start_volumes import only_volume, start_volumes
from bookkeeper.errors import (
    BookKeeperError,
    CookieError,
    KeyExistsError,
    MetadataConflictError,
    MetadataFormatError,
    MetadataUnavailableError,
    SessionExpiredError,
    in_words,
)
from bookkeeper.ids import Address, BookieId, LedgerId, bookie_id
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.cookies import Cookie
from bookkeeper.meta.records.disks import DiskProgress
from bookkeeper.meta.store import LOST_MAX, OUTCOME_UNKNOWN, get_or_none, settled_create
from bookkeeper.seams import Seams
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.durable_file import replace_file
from bookkeeper.storage.base.results import PublishedProgress
from bookkeeper.storage.engine import Engine, EngineState
from bookkeeper.storage.start.directory_id import ForeignDirectoryError
from bookkeeper.volumes import Volume, Volumes
from bookkeeper.volumes.disks.volume_list import VolumeEntry, VolumeList, VolumeState, share_of
from bookkeeper.volumes.start.volume_directories import refuse_filled

log = logging.getLogger(__name__)

STORE_LOST: Final = (MetadataUnavailableError, SessionExpiredError)
"""The metadata store gave no answer. A start that ends so was not refused: it is repeated, and goes on from here."""


class BookieStart:
    """One start of one bookie, until its disk is open."""

    def __init__(self, config: BookieConfig, seams: Seams, metadata: Metadata) -> None:
        self.config = config
        self.bookie_id: BookieId
        self.first_start = False
        self.boot = 0
        """The number of this start, counted in the metadata store."""
        self.known: DiskProgress | None = None
        """What is published about this bookie's disk."""
        self.disk_identity: DiskIdentity | None = None
        self.engine: Volumes | None = None
        """The open volumes; a start that fails later closes them."""
        self.volumes = only_volume(config, seams)
        """The ledger directories, as far as they are known."""
        self.seams = seams
        self.metadata = metadata
        self._identity: BookieIdentity | None = None
        self._chose_identity = False
        """Whether this start has written the identity into the directory."""

    # -- who it is ----------------------------------------------------------------------------------------

    async def finish_undoing(self) -> None:
        """Go on with the undoing of an earlier first start, if it was cut short. Before the identity is read.

        Raises: as :func:`~bookkeeper.bookie.identity.undone_start.finish_undoing`.
        """
        config, metadata = self.config, self.metadata
        places, disk = config.data_directories, self.seams.disk
        await finish_undoing(disk, metadata.cookies, metadata.instance_id, places, config.directory)

    def identify(self, identity: BookieIdentity | None, address: Address, port: int) -> None:
        """Determine the bookie's identity. On a first start it is not written yet, because the start may be refused."""
        config = self.config
        if identity is None:
            name = config.bookie_id or str(address)
            identity = BookieIdentity(bookie_id(name), port)
        elif config.bookie_id is not None and config.bookie_id != identity.bookie_id:
            raise CookieError(
                f"{config.directory} belongs to bookie {identity.bookie_id}, not to {config.bookie_id}; "
                "start each bookie with its own directories and its own id"
            )
        self.bookie_id = identity.bookie_id
        self._identity = identity

    def refuse_strangers(self) -> None:
        """Find out which ledger directories there are, and refuse those of others. Writes nothing.

        Raises:
            CookieError: a directory belongs to another bookie, or is missing.
            StorageError: no disk works.
        """
        self.volumes = start_volumes(self.config, self.seams, has_joined=self._has_joined(), bookie=self.bookie_id)
        refuse_strangers(self.seams.disk, self._cookie, self._directories, growing=self.volumes.may_grow)

    async def settle_cookie(self) -> None:
        """Make or check the cookie. Writes the identity before the cookie, and only if nothing forbids the start."""
        disk = self.seams.disk
        for directory in self._directories:
            disk.make_directories(directory)
        assert self._identity is not None, "identified"
        identity = self._identity
        new = self.volumes.note_new() if self._has_joined() else None
        if new is not None:
            await settle_grown_cookie(disk, self.metadata.cookies, self._cookie, self._directories, new)
            return
        self.first_start = await settle_cookie(
            disk,
            self.metadata.cookies,
            self._cookie,
            self._directories,
            last_start=await self.last_start(),
            before=lambda: self._keep_identity(identity),
        )
        self._keep_identity(identity)

    def _has_joined(self) -> bool:
        """Whether the bookie has served before, here."""
        return self.seams.disk.exists(os.path.join(self.config.directory, OPENED))

    def _keep_identity(self, identity: BookieIdentity) -> None:
        if read_identity(self.seams.disk, self.config.directory) is None:
            self._chose_identity = True
            write_identity(self.seams.disk, self.config.directory, identity)

    async def undo_first_start(self, error: Exception, close_engine: Callable[[], Awaitable[None]]) -> None:
        """Remove the cookie and identity of a first start that was refused before the bookie served.

        One that lost the store stays as far as it came: it is going to be repeated.
        """
        if not self._chose_identity or isinstance(error, STORE_LOST):
            return
        disk, directory = self.seams.disk, self.config.directory
        try:
            if self.first_start:
                if self.engine is not None and self.engine.state is not EngineState.FAILED:
                    await close_engine()
                await undo_first_start(disk, self.metadata.cookies, self._cookie, self._directories, directory)
                forget_notes(disk, directory)  # also if the cookie is not the one that was made
            elif any(disk.exists(os.path.join(place, PENDING)) for place in self._directories):
                return  # whether the cookie was made is not known: the next start goes on from here
            else:
                forget_notes(disk, directory)
        except (BookKeeperError, OSError) as failure:
            log.warning(
                "bookie %s did not start, and its cookie could not be removed (%s): it stays a known bookie of the "
                "cluster until it is started again, or forgotten with bk bookies forget",
                self.bookie_id,
                in_words(failure),
            )

    @property
    def _directories(self) -> list[str]:
        """The directories of the bookie's data, as far as their disks work."""
        return list(dict.fromkeys(place for pair in self._pairs for place in reversed(pair)))

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        """Each ledger directory with that of its journal."""
        return [(each.ledger_dir, each.journal_dir) for each in self.volumes.listed.serving]

    @property
    def _cookie(self) -> Cookie:
        return Cookie(
            bookie_id=self.bookie_id,
            journal_dirs=tuple(dict.fromkeys(journal_dir for _, journal_dir in self._pairs)),
            ledger_dirs=tuple(ledger_dir for ledger_dir, _ in self._pairs),
            instance_id=self.metadata.instance_id,
        )

    # -- how often it has started -------------------------------------------------------------------------

    async def last_start(self) -> int:
        """The store's transaction in which the last start of this id was counted; 0 before the first."""
        found = await get_or_none(self.metadata.store, self._boot_path, fresh=True)
        return found.transaction if found is not None else 0

    @property
    def _boot_path(self) -> str:
        """The path in the store under which this bookie's starts are counted."""
        return self.metadata.own("boot", self.bookie_id)

    async def count(self) -> None:
        """Count this start: :attr:`boot` is a number that no earlier start of this bookie had."""
        store, path = self.metadata.store, self._boot_path
        if await store.exists(path) is None:
            with contextlib.suppress(KeyExistsError):
                await settled_create(store, path, b"0", parents=True)

        known = self.known
        least = max(self._opened(), known.starting if known is not None else 0)

        def following(value: bytes) -> bytes:
            try:
                return b"%d" % (max(int(value), least) + 1)
            except ValueError as error:
                raise MetadataFormatError(f"{path} is not a number") from error

        for _ in range(LOST_MAX):
            found = await store.get(path)
            value = following(found.value)
            try:
                await store.set(path, value, found.version, created_txn=found.created_txn)
            except (MetadataConflictError, *OUTCOME_UNKNOWN):  # then this number may be another process's
                await store.sync(path)
                continue
            self.boot = int(value)
            return
        raise MetadataUnavailableError(f"{path} could not be updated in {LOST_MAX} attempts: start the bookie again")

    def _opened(self) -> int:
        """The number of the last start that had the disk open, as the directory says; 0 if it does not."""
        try:
            return int(checked_note.decode(self.seams.disk.read_file(os.path.join(self.config.directory, OPENED))))
        except (FileNotFoundError, ValueError):
            return 0

    # -- what its disk may have lost ----------------------------------------------------------------------

    async def settle_disk_identity(self, *, served_before: bool) -> None:
        """Read ``birth.json``. On empty storage, or if the file is gone or outdated, look at all ledgers instead."""
        disk, directory = self.seams.disk, self.config.directory
        seen = self.known.highest if self.known is not None else NO_LEDGER
        which = self.volumes.without_notes
        if disk.exists(os.path.join(directory, OPENED)):
            self.volumes.refuse_emptied(self.bookie_id)
            disk_identity, doubt = self._remembered_disk_identity()
            if doubt is None:
                self.disk_identity = disk_identity
                return
            log.error("bookie %s reads the metadata of all ledgers again, because %s", self.bookie_id, doubt)
            seen, which = (
                max(seen, (disk_identity or DiskIdentity()).highest),
                "a disk that has changed since its last start",
            )
        disk_identity = await survey(self.metadata, self.bookie_id, served_before=served_before)
        disk_identity = disk_identity.with_highest(LedgerId(seen))
        if disk_identity == DiskIdentity() and not disk.exists(os.path.join(directory, BIRTH)):
            return
        write_disk_identity(disk, directory, disk_identity, self.bookie_id)
        self.disk_identity = disk_identity
        if disk_identity.doubted:
            log.error(
                "bookie %s starts on %s, but %s it: that is in doubt, because entries may be lost here. It "
                "answers 'unknown' for what is missing until a ledger is closed and whole here again",
                self.bookie_id,
                which,
                counted(len(disk_identity.doubted), "ledger", "names", "name"),
            )

    def _remembered_disk_identity(self) -> tuple[DiskIdentity | None, str | None]:
        """What ``birth.json`` says, and why it cannot be trusted; None if it can."""
        disk, directory, known = self.seams.disk, self.config.directory, self.known
        try:
            disk_identity = read_disk_identity(disk, directory, self.bookie_id)
        except CookieError as error:
            return None, str(error)
        if known is not None and self._opened() < known.boot:
            return (
                disk_identity,
                f"{directory} was put back from an older copy, or its file {OPENED} is missing or damaged",
            )
        if known is not None and (disk_identity or DiskIdentity()).highest < known.highest:
            return disk_identity, f"{os.path.join(directory, BIRTH)} is missing or was put back from an older copy"
        return disk_identity, None

    async def open_volumes(self, publisher: ProgressPublisher) -> Volumes:
        """Open the disks in workers: replay may take long, and the loop must keep its session alive."""
        configs, volumes = self.volumes.configs(), self.volumes
        published = {each.number for each in publisher.record.volumes} if publisher.record is not None else set()
        for each in volumes.listed.serving:
            if each.state is VolumeState.NEW and each.number not in published:
                refuse_filled(self.seams.disk, configs[each.number])
        known = await publisher.claim(self.boot, self.seams.disk, configs)

        def open_engine(number: int, worker: str) -> Coroutine[Any, Any, Engine]:
            return self._open_engine(publisher, configs[number], known[number], worker)

        opened = await volumes.open(open_engine, configs, self.boot, publisher.record)
        self.engine, report = opened, opened.report  # from here on whoever fails closes it
        if report.rebuilt or report.last_boot > self._opened():
            await self._doubt_rebuilt(opened)
        replace_file(self.seams.disk, os.path.join(self.config.directory, OPENED), checked_note.encode(str(self.boot)))
        if report.limbo_reason:
            log.error(
                "bookie %s may have lost acknowledged data: %s. For every ledger that names it, it refuses adds and "
                "answers 'unknown' for missing entries, until the ledger is closed and whole here again. "
                "`bk ledger recover` closes a ledger, `bk bookies drain` moves its data to other bookies",
                self.bookie_id,
                report.limbo_reason,
            )
        for place in report.quarantined:
            log.error("bookie %s found damage and set it aside: %s", self.bookie_id, place)
        return opened

    async def _open_engine(
        self, publisher: ProgressPublisher, config: StorageConfig, known: PublishedProgress, name: str
    ) -> Engine:
        loop = asyncio.get_running_loop()
        if known.boot:
            known = replace(known, boot=max(known.boot, self._opened()))
        worker = self.seams.workers.worker(f"{self.bookie_id} {name}")
        try:
            return await worker.call(
                lambda: Engine.open(
                    config,
                    self.seams.disk,
                    self.seams.workers,
                    boot=self.boot,
                    known=known,
                    monotonic=self.seams.clock.monotonic,
                    call_later=loop.call_later,
                )
            )
        except ForeignDirectoryError as error:
            raise self._exchanged(publisher, error) or await publisher.named(error) from error
        finally:
            worker.close()

    # -- several ledger directories -----------------------------------------------------------------------

    def _exchanged(self, publisher: ProgressPublisher, error: ForeignDirectoryError) -> CookieError | None:
        """What to say if the file is this bookie's own, of another of its directories."""
        number = publisher.volume_with(error.directory_id)
        entry = next((each for each in self.volumes.listed if each.number == number), None)
        if entry is None:
            return None
        return CookieError(
            f"{error.path} belongs to {entry.ledger_dir}, another ledger directory of this bookie: mount each disk "
            "where it was; nothing was changed here"
        )

    def refuse_owned(self, directories: Sequence[str]) -> None:
        """Refuse directories of other bookies. Raises: CookieError: one is."""
        refuse_strangers(self.seams.disk, self._cookie, directories, growing=True)

    async def open_added(self, publisher: ProgressPublisher, entry: VolumeEntry, known: PublishedProgress) -> Volume:
        """Open a volume that is added while the bookie runs; its directories are there, and empty."""
        config = share_of(self.config.storage, entry, max(len(self.config.ledger_dirs), 1))
        return Volume(entry.number, config, await self._open_engine(publisher, config, known, f"open {entry.number}"))

    async def grow_cookie(self, listed: VolumeList, new: list[str]) -> None:
        """Let the cookie name the directories of this list. Raises: as :func:`settle_grown_cookie`."""
        self.volumes.listed = listed
        await settle_grown_cookie(self.seams.disk, self.metadata.cookies, self._cookie, self._directories, new)

    async def _doubt_rebuilt(self, engine: Volumes) -> None:
        """Treat all present ledgers as older than the disk, because the index was built anew from the entry logs.

        A new index may have forgotten that a ledger is deleted, if more than one segment was damaged: once its logs are
        gone, nothing else here says so. So adds to these ledgers wait for metadata. The mark is durable before the
        directory knows of this start: a later start finds a whole index and cannot tell how it was made.
        """
        highest = await newest(self.metadata, max(engine.ledgers(), default=NO_LEDGER))
        self.disk_identity = (self.disk_identity or DiskIdentity()).with_highest(highest)
        write_disk_identity(self.seams.disk, self.config.directory, self.disk_identity, self.bookie_id)
