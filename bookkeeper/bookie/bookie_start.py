"""What a start settles before the bookie serves: who it is, how often it has started, what its disk may have lost.

The order matters, and :mod:`bookkeeper.bookie.lifecycle` keeps it: each step may refuse the start, and what is written
before is undone or goes on at the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from dataclasses import replace

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.identity import checked_note
from bookkeeper.bookie.identity.bookie_identity import (
    IDENTITY,
    PENDING,
    BookieIdentity,
    read_identity,
    refuse_strangers,
    remove_files,
    settle_cookie,
    undo_first_start,
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
from bookkeeper.errors import (
    BookKeeperError,
    CookieError,
    KeyExistsError,
    MetadataFormatError,
    NoSuchKeyError,
    in_words,
)
from bookkeeper.ids import Address, BookieId, LedgerId, bookie_id
from bookkeeper.meta import Metadata
from bookkeeper.meta.records.cookies import Cookie
from bookkeeper.meta.records.disks import DiskRecord
from bookkeeper.meta.store import settled_create, update
from bookkeeper.seams import Seams
from bookkeeper.storage.directory_id import ForeignDirectoryError, is_unused
from bookkeeper.storage.durable_file import replace_file
from bookkeeper.storage.engine import Engine, EngineState

log = logging.getLogger(__name__)


class BookieStart:
    """One start of one bookie, until its disk is open."""

    def __init__(self, config: BookieConfig, seams: Seams, metadata: Metadata) -> None:
        self.config = config
        self.bookie_id: BookieId
        self.first_start = False
        self.boot = 0
        """The number of this start, counted in the metadata store."""
        self.known: DiskRecord | None = None
        """What is published about this bookie's disk."""
        self.disk_identity: DiskIdentity | None = None
        self.engine: Engine | None = None
        """The open disk; whoever fails from then on closes it."""
        self._seams = seams
        self._metadata = metadata
        self._identity: BookieIdentity | None = None
        self._chose_identity = False
        """Whether this start has written the identity into the directory."""

    # -- who it is ----------------------------------------------------------------------------------------

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
        """Raises: CookieError: a directory belongs to another bookie."""
        refuse_strangers(self._seams.disk, self._cookie, self._directories)

    async def settle_cookie(self) -> None:
        """Make or check the cookie. Writes the identity before the cookie, and only if nothing forbids the start."""
        disk = self._seams.disk
        for directory in self._directories:
            disk.make_directories(directory)
        assert self._identity is not None, "identified"
        identity = self._identity
        self.first_start = await settle_cookie(
            disk,
            self._metadata.cookies,
            self._cookie,
            self._directories,
            last_start=await self.last_start(),
            before=lambda: self._keep_identity(identity),
        )
        self._keep_identity(identity)

    def _keep_identity(self, identity: BookieIdentity) -> None:
        if read_identity(self._seams.disk, self.config.directory) is None:
            self._chose_identity = True
            write_identity(self._seams.disk, self.config.directory, identity)

    async def undo_first_start(self, close_engine: Callable[[], Awaitable[None]]) -> None:
        """Remove the cookie and identity of a first start that failed before the bookie served."""
        if not self._chose_identity:
            return
        disk, directory = self._seams.disk, self.config.directory
        try:
            if self.first_start:
                if self.engine is not None and self.engine.state is not EngineState.FAILED:
                    await close_engine()
                await undo_first_start(disk, self._metadata.cookies, self._cookie, self._directories)
            elif any(disk.exists(os.path.join(place, PENDING)) for place in self._directories):
                return  # whether the cookie was made is not known: the next start goes on from here
            remove_files(disk, [os.path.join(directory, name) for name in (OPENED, BIRTH, IDENTITY)])
        except (BookKeeperError, OSError) as error:
            log.warning(
                "bookie %s did not start, and its cookie could not be removed (%s): it stays a known bookie of the "
                "cluster until it is started again, or forgotten with bk bookies forget",
                self.bookie_id,
                in_words(error),
            )

    @property
    def _directories(self) -> list[str]:
        """The directories of the bookie's data."""
        return list(dict.fromkeys([self.config.storage.journal_dir, self.config.storage.ledger_dir]))

    @property
    def _cookie(self) -> Cookie:
        return Cookie(
            bookie_id=self.bookie_id,
            journal_dirs=(self.config.storage.journal_dir,),
            ledger_dirs=(self.config.storage.ledger_dir,),
            instance_id=self._metadata.instance_id,
        )

    # -- how often it has started -------------------------------------------------------------------------

    async def last_start(self) -> int:
        """The store's transaction in which the last start of this id was counted; 0 before the first."""
        store = self._metadata.store
        await store.sync(self._boot_path)
        try:
            return (await store.get(self._boot_path)).transaction
        except NoSuchKeyError:
            return 0

    @property
    def _boot_path(self) -> str:
        """The path in the store under which this bookie's starts are counted."""
        return self._metadata.own("boot", self.bookie_id)

    async def count(self) -> None:
        """Count this start: :attr:`boot` is a number that no earlier start of this bookie had."""
        store, path = self._metadata.store, self._boot_path
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

        self.boot = int((await update(store, path, following)).value)

    def _opened(self) -> int:
        """The number of the last start that had the disk open, as the directory says; 0 if it does not."""
        try:
            return int(checked_note.decode(self._seams.disk.read_file(os.path.join(self.config.directory, OPENED))))
        except (FileNotFoundError, ValueError):
            return 0

    # -- what its disk may have lost ----------------------------------------------------------------------

    async def settle_disk_identity(self, *, served_before: bool) -> None:
        """Read ``birth.json``. On empty storage, or if the file is gone or outdated, look at all ledgers instead."""
        disk, directory = self._seams.disk, self.config.directory
        seen, which = self.known.highest if self.known is not None else NO_LEDGER, "an empty disk"
        if disk.exists(os.path.join(directory, OPENED)):
            self._refuse_emptied()
            disk_identity, doubt = self._remembered_disk_identity()
            if doubt is None:
                self.disk_identity = disk_identity
                return
            log.error("bookie %s reads the metadata of all ledgers again, because %s", self.bookie_id, doubt)
            seen, which = (
                max(seen, (disk_identity or DiskIdentity()).highest),
                "a disk that has changed since its last start",
            )
        disk_identity = await survey(self._metadata, self.bookie_id, served_before=served_before)
        disk_identity = disk_identity.with_highest(LedgerId(seen))
        if disk_identity == DiskIdentity() and not disk.exists(os.path.join(directory, BIRTH)):
            return
        write_disk_identity(disk, directory, disk_identity, self.bookie_id)
        self.disk_identity = disk_identity
        if disk_identity.suspects:
            log.error(
                "bookie %s starts on %s, but %d ledgers name it: it may have lost entries of them. It answers "
                "'unknown' for what is missing until they are closed and whole here again",
                self.bookie_id,
                which,
                len(disk_identity.suspects),
            )

    def _refuse_emptied(self) -> None:
        """Refuse an empty ledger directory of a bookie that has served. Called before anything is written there."""
        if is_unused(self._seams.disk, self.config.storage):
            raise CookieError(
                f"{self.config.storage.ledger_dir} is empty, but {self.bookie_id} has served before: mount its disk; "
                "if that is lost, join with empty directories under another --bookie-id"
            )

    def _remembered_disk_identity(self) -> tuple[DiskIdentity | None, str | None]:
        """What ``birth.json`` says, and why it cannot be trusted; None if it can."""
        disk, directory, known = self._seams.disk, self.config.directory, self.known
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

    async def open_engine(self, publisher: ProgressPublisher) -> Engine:
        """Open the engine in a worker: replay may take long, and the loop must keep its session alive."""
        loop = asyncio.get_running_loop()
        known = await publisher.claim(self.boot, self._seams.disk, self.config.storage)
        if known.boot:
            known = replace(known, boot=max(known.boot, self._opened()))
        worker = self._seams.workers.worker(f"{self.bookie_id} open")
        try:
            engine = await worker.call(
                lambda: Engine.open(
                    self.config.storage,
                    self._seams.disk,
                    self._seams.workers,
                    boot=self.boot,
                    known=known,
                    monotonic=self._seams.clock.monotonic,
                    call_later=loop.call_later,
                )
            )
        except ForeignDirectoryError as error:
            raise await publisher.named(error) from error
        finally:
            worker.close()
        self.engine, report = engine, engine.report  # from here on whoever fails closes it
        if report.rebuilt or report.last_boot > self._opened():
            await self._doubt_rebuilt(engine)
        replace_file(self._seams.disk, os.path.join(self.config.directory, OPENED), checked_note.encode(str(self.boot)))
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
        return engine

    async def _doubt_rebuilt(self, engine: Engine) -> None:
        """Treat all present ledgers as older than the disk, because the index was built anew from the entry logs.

        A new index may have forgotten that a ledger is deleted: once its logs are gone, nothing else here says so. So
        adds to these ledgers wait for metadata. The mark is durable before the directory knows of this start: a later
        start finds a whole index and cannot tell how it was made.
        """
        highest = await newest(self._metadata, max(engine.ledgers(), default=NO_LEDGER))
        self.disk_identity = (self.disk_identity or DiskIdentity()).with_highest(highest)
        write_disk_identity(self._seams.disk, self.config.directory, self.disk_identity, self.bookie_id)
