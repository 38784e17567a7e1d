"""A bookie tells the metadata store how far its disk is, and learns at its start how far it was.

    look      what is known of this disk (before anything in it is believed)
    claim     from now on no earlier life writes the record, however late its last write arrives
    opened    the directory knows this start: so may the record. A start that ends before this leaves no trace by which
              a later one would take its directory for an old copy
    run       after each new journal file, and a few seconds after anything became durable; no add waits for it, and
              while the store is away nothing is told
    stopped   where the journal ended

What became durable since the last word is not guarded: 10 seconds at the most while the store answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from bookkeeper.errors import (
    CookieError,
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    NoSuchKeyError,
    in_words,
)
from bookkeeper.ids import BookieId
from bookkeeper.meta import Metadata, Versioned
from bookkeeper.meta.records.disks import DiskRecord
from bookkeeper.seams import Disk, Rng
from bookkeeper.storage.config import StorageConfig
from bookkeeper.storage.directory_id import ForeignDirectoryError, directory_id_of, is_unused
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.results import PublishedProgress

log = logging.getLogger(__name__)

PUBLISH_S: Final = 5.0
"""Seconds between two looks at how far the disk is; half of the time that may be unknown, for the store's sake."""

GAP_S: Final = 1.0
"""Least time between two writes, however fast journal files fill up."""

LAST_WORD_S: Final = 2.0
"""The longest a stop waits for the store."""


class SupersededError(KeyExistsError):
    """Another process has started as this bookie since."""


class ProgressPublisher:
    """One life of one bookie. On the loop's thread."""

    def __init__(self, metadata: Metadata, bookie: BookieId, rng: Rng) -> None:
        self._metadata = metadata
        self._disks = metadata.disks
        self._bookie = bookie
        self._rng = rng
        self._found: Versioned[DiskRecord] | None = None
        self._boot = self._directory_id = 0
        self._silent = False
        """The store could not be told; said once."""

    @property
    def record(self) -> DiskRecord | None:
        """As this life has read or written it last."""
        return self._found.value if self._found is not None else None

    # -- start --------------------------------------------------------------------------------------------

    async def look(self) -> DiskRecord | None:
        """What is known; None of a bookie of before there were records, and of a new one.

        Raises:
            MetadataError: the store cannot say, or what it has cannot be read.
        """
        self._found = await self._disks.read(self._bookie)
        return self.record

    async def claim(self, boot: int, disk: Disk, config: StorageConfig) -> PublishedProgress:
        """Take the record for start ``boot``; what the directory has to know.

        Raises:
            SupersededError: a later start has.
            MetadataError: the store cannot say.
        """
        self._boot = boot
        unused = is_unused(disk, config)
        here = 0 if unused else directory_id_of(disk, config)
        fresh = self._rng.getrandbits(63) | 1
        while True:
            before = self.record
            if before is not None and before.starting >= boot:
                raise SupersededError(f"start {before.starting} of bookie {self._bookie} has begun, this is {boot}")
            if before is None:
                wanted = DiskRecord(directory_id=here or fresh, starting=boot)
            elif unused and before.boot:  # of a disk that is gone: what was on it is the newcomer's doubt
                wanted = DiskRecord(directory_id=fresh, starting=boot)
            else:
                wanted = replace(before, starting=boot)
            try:
                self._found = await self._disks.write(self._bookie, wanted, self._found)
            except (KeyExistsError, MetadataConflictError, NoSuchKeyError):
                await self.look()
                continue
            self._directory_id = wanted.directory_id
            return PublishedProgress(
                directory_id=wanted.directory_id, boot=wanted.boot, sequence=wanted.sequence, file_id=wanted.file_id
            )

    async def named(self, error: ForeignDirectoryError) -> CookieError:
        """The same, with the bookie whose file it is, as far as anybody knows."""
        whose = await self._disks.holder_of(error.directory_id)
        return CookieError(f"{error}. It is a file of bookie {whose}" if whose is not None else str(error))

    async def opened(self, engine: Engine, highest: int) -> None:
        """The directory knows this start, durably.

        Raises:
            SupersededError, MetadataError
        """
        await self._tell(engine, highest)

    # -- running ------------------------------------------------------------------------------------------

    async def run(self, engine: Engine, highest: Callable[[], int], superseded: Callable[[str], None]) -> None:
        """Tell the store how far the disk is, until cancelled; no error of the store ends it."""
        due = asyncio.Event()
        engine.on_new_journal_file(due.set)
        while True:
            try:
                async with asyncio.timeout(PUBLISH_S):
                    await due.wait()
            except TimeoutError:
                pass
            due.clear()
            try:
                if await self._tell(engine, highest()):
                    await asyncio.sleep(GAP_S)
            except SupersededError as error:
                superseded(str(error))
                return
            except Exception as error:  # level-triggered: the next look tells what this one could not
                self._complain(error)

    async def stopped(self, engine: Engine, highest: int) -> None:
        """The last word, if the store takes it at once."""
        try:
            async with asyncio.timeout(LAST_WORD_S):
                await self._tell(engine, highest)
        except (MetadataError, TimeoutError) as error:
            log.warning("bookie %s could not tell how far its disk is at its end: %s", self._bookie, in_words(error))

    def _complain(self, error: Exception) -> None:
        if not self._silent:
            log.warning("bookie %s cannot tell the metadata store how far its disk is: %r", self._bookie, error)
        self._silent = True

    async def _tell(self, engine: Engine, highest: int) -> bool:
        """False: there was nothing new."""
        while True:
            before = self.record
            assert before is not None, "it was claimed"
            file_id, sequence = engine.durable_position
            wanted = DiskRecord(
                directory_id=self._directory_id,
                starting=self._boot,
                boot=self._boot,
                sequence=sequence,
                file_id=file_id,
                highest=max(highest, before.highest),
            )
            if wanted == before:
                return False
            try:
                self._found = await self._disks.write(self._bookie, wanted, self._found)
            except (MetadataConflictError, NoSuchKeyError):
                await self._settle()
                continue
            if self._silent:
                log.info("bookie %s tells the metadata store again how far its disk is", self._bookie)
            self._silent = False
            return True

    async def _settle(self) -> None:
        """Somebody else wrote, or we did in a call that was cancelled.

        Raises:
            SupersededError: a later start did.
            NoSuchKeyError: the bookie was forgotten, and its record with it.
        """
        mine = self.record
        assert mine is not None, "it was claimed"
        found = await self._disks.read(self._bookie)
        if found is None:
            await self._metadata.cookies.read(self._bookie)
            self._found = await self._disks.write(self._bookie, mine, None)
        elif found.value.starting > self._boot:
            raise SupersededError(
                f"another process has started as bookie {self._bookie} (start {found.value.starting}, this is "
                f"{self._boot})"
            )
        else:
            self._found = found
