"""Publishes in the metadata store how far the bookie's disk is; a start compares the disk with that record.

    look      read what was published of this disk, before anything on it is believed
    claim     take the record for this start: no earlier start can write it from now on, however late its write arrives
    opened    the directory knows this start, so the record names it, too. A start that ends before this leaves no
              trace: the next one does not take the directory for an old copy
    run       publish after each new journal file, and a few seconds after anything became durable. No add waits for
              it. While the store is away nothing is published
    places    with several ledger directories: publish where the file of placements ends, at once. The first add to a
              ledger waits for it, and no other add
    stopped   publish where the journal ended

Data that became durable after the last publication are not covered: at most 10 seconds while the store answers.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from bookkeeper.errors import (
    CookieError,
    KeyExistsError,
    MetadataConflictError,
    MetadataError,
    MetadataUnavailableError,
    NoSuchKeyError,
    in_words,
)
from bookkeeper.ids import BookieId
from bookkeeper.meta import Metadata, Versioned
from bookkeeper.meta.records.disks import DiskProgress, VolumeProgress
from bookkeeper.seams import Disk, Rng
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.base.results import PublishedProgress
from bookkeeper.storage.start.directory_id import ForeignDirectoryError, directory_id_of, is_unused
from bookkeeper.volumes import Volumes
from bookkeeper.volumes.disks.volume_list import ONLY
from bookkeeper.volumes.map.placement_log import PlacementLog

log = logging.getLogger(__name__)

PUBLISH_S: Final = 5.0
"""Seconds between two publications; half of the 10 s that may go unpublished, so that a slow store has time."""

GAP_S: Final = 1.0
"""Seconds between two writes at least, however fast journal files fill up."""

PLACES_S: Final = 2.0
"""Seconds that the first add to a ledger waits for the store at most, with several ledger directories. Then it is to be
sent again: what waits here takes room from others."""

LAST_WORD_S: Final = 2.0
"""Seconds that a stop waits for the store at most."""


class SupersededError(KeyExistsError):
    """Another process has started as this bookie since."""


class ProgressPublisher:
    """Publishes for one start of one bookie. Runs on the loop's thread."""

    def __init__(self, metadata: Metadata, bookie: BookieId, rng: Rng) -> None:
        self._metadata = metadata
        self._disks = metadata.disks
        self._bookie = bookie
        self._rng = rng
        self._found: Versioned[DiskProgress] | None = None
        self._boot = self._directory_id = 0
        self._volume_ids: dict[int, int] = {}
        """With several ledger directories: each volume's number and its directory's id."""
        self._telling = asyncio.Lock()
        self._places_wanted = False
        self._places: asyncio.Task[None] | None = None
        self._silent = False
        """The last publication failed, and the log says so already."""

    @property
    def record(self) -> DiskProgress | None:
        """The record as this start has read or written it last."""
        return self._found.value if self._found is not None else None

    # -- start --------------------------------------------------------------------------------------------

    async def read(self) -> DiskProgress | None:
        """Read the record. None: the bookie is new, or comes from a version without records.

        Raises:
            MetadataError: the store does not answer, or the record cannot be read.
        """
        self._found = await self._disks.read(self._bookie)
        return self.record

    async def claim(self, boot: int, disk: Disk, configs: Mapping[int, StorageConfig]) -> dict[int, PublishedProgress]:
        """Take the record for start ``boot``. Returns the progress that each volume's directory must have at least.

        A bookie that had one directory before has it as one of the volumes, with the progress of that time.

        Raises:
            SupersededError: a later start has taken the record.
            MetadataError: the store does not answer.
        """
        self._boot = boot
        here = {
            number: None if is_unused(disk, config) else directory_id_of(disk, config)
            for number, config in configs.items()
        }
        fresh = {number: self._rng.getrandbits(63) | 1 for number in configs}
        while True:
            before = self.record
            if before is not None and before.starting >= boot:
                raise SupersededError(
                    f"another process has started as bookie {self._bookie} (start {before.starting}, this is start "
                    f"{boot}): run one process per bookie"
                )
            if ONLY in configs:
                wanted = _claim_of_one(before, boot, here[ONLY], fresh[ONLY])
            else:
                wanted = _claim_of_many(before, boot, here, fresh)
            try:
                self._found = await self._disks.write(self._bookie, wanted, self._found)
            except (KeyExistsError, MetadataConflictError, NoSuchKeyError):
                await self.read()
                continue
            self._directory_id = wanted.directory_id
            if ONLY in configs:
                return {ONLY: _progress(wanted)}
            self._volume_ids = {each.number: each.directory_id for each in wanted.volumes}
            return {each.number: _progress(each) for each in wanted.volumes}

    async def add_volume(self, number: int, highest: int, volumes: Volumes) -> PublishedProgress:
        """Publish the id of a volume that is added while the bookie runs. Returns what its directory must know.

        Raises: as :meth:`opened`.
        """
        self._volume_ids[number] = self._rng.getrandbits(63) | 1
        await self._publish(volumes, highest)
        return PublishedProgress(directory_id=self._volume_ids[number])

    def volume_with(self, directory_id: int) -> int | None:
        """The volume whose files have this id; None: none of this bookie's."""
        return next((number for number, ours in self._volume_ids.items() if ours == directory_id), None)

    async def named(self, error: ForeignDirectoryError) -> CookieError:
        """The error, with the bookie to which the file belongs, if the metadata name one."""
        whose = await self._disks.holder_of(error.directory_id)
        return CookieError(f"{error}. The file belongs to bookie {whose}" if whose is not None else str(error))

    async def opened(self, volumes: Volumes, highest: int) -> None:
        """Publish that the directory knows this start, durably.

        Raises:
            SupersededError: a later start has taken the record.
            MetadataError: the store does not answer.
        """
        await self._publish(volumes, highest)
        if (places := volumes.placement_log) is not None:
            places.publish_with(lambda: self._publish_places(volumes, places))

    # -- running ------------------------------------------------------------------------------------------

    async def run(self, volumes: Volumes, highest: Callable[[], int], superseded: Callable[[str], None]) -> None:
        """Publish until cancelled. Errors of the store are logged, and the next round tries again."""
        due = asyncio.Event()
        volumes.on_new_journal_file(due.set)
        while True:
            try:
                async with asyncio.timeout(PUBLISH_S):
                    await due.wait()
            except TimeoutError:
                pass
            due.clear()
            try:
                if await self._publish(volumes, highest()):
                    await asyncio.sleep(GAP_S)
            except SupersededError as error:
                superseded(str(error))
                return
            except Exception as error:  # level-triggered: the next look tells what this one could not
                self._complain(error)

    def _publish_places(self, volumes: Volumes, places: PlacementLog) -> None:
        """Publish soon where the file of placements ends. One write for all that are asked for meanwhile."""
        self._places_wanted = True
        if self._places is None or self._places.done():
            self._places = asyncio.get_running_loop().create_task(self._publish_placements(volumes, places))

    async def _publish_placements(self, volumes: Volumes, places: PlacementLog) -> None:
        while self._places_wanted:
            self._places_wanted = False
            try:
                async with asyncio.timeout(PLACES_S):
                    await self._publish(volumes, -1)
            except TimeoutError:
                places.not_published(MetadataUnavailableError("the metadata store does not answer"))
            except SupersededError as error:
                places.not_published(error, final=True)
            except MetadataError as error:
                places.not_published(error)
            except Exception as error:
                log.error("bookie %s: an unexpected error; it cannot go on", self._bookie, exc_info=error)
                places.not_published(error, final=True)

    async def close(self) -> None:
        """End what is being published for those who wait. Idempotent."""
        if self._places is not None:
            self._places.cancel()
            await asyncio.gather(self._places, return_exceptions=True)

    async def stopped(self, volumes: Volumes, highest: int) -> None:
        """Publish for the last time. Gives up after ``LAST_WORD_S``."""
        try:
            async with asyncio.timeout(LAST_WORD_S):
                await self._publish(volumes, highest)
        except (MetadataError, TimeoutError) as error:
            log.warning(
                "bookie %s stops and could not publish the position of its disk (%s): the last seconds are not covered "
                "if its disk is restored from an older copy",
                self._bookie,
                in_words(error),
            )

    def _complain(self, error: Exception) -> None:
        if not self._silent:
            log.warning(
                "bookie %s cannot publish the position of its disk (%s): it goes on serving and tries again every %g s",
                self._bookie,
                in_words(error),
                PUBLISH_S,
            )
        self._silent = True

    async def _publish(self, volumes: Volumes, highest: int) -> bool:
        """Publish the progress if it has changed. Returns whether it had."""
        async with self._telling:
            while True:
                before = self.record
                assert before is not None, "it was claimed"
                wanted = self._wanted(volumes, max(highest, before.highest))
                changed = wanted != before
                if changed:
                    try:
                        self._found = await self._disks.write(self._bookie, wanted, self._found)
                    except (MetadataConflictError, NoSuchKeyError):
                        await self._settle()
                        continue
                    if self._silent:
                        log.info("bookie %s publishes the position of its disk again", self._bookie)
                    self._silent = False
                if volumes.placement_log is not None and wanted.placements is not None:
                    volumes.placement_log.published(wanted.placements)
                return changed

    def _wanted(self, volumes: Volumes, highest: int) -> DiskProgress:
        """What is to be published now."""
        file_id, sequence = volumes.positions.get(ONLY, (0, 0))
        return DiskProgress(
            directory_id=self._directory_id,
            starting=self._boot,
            boot=self._boot,
            sequence=sequence,
            file_id=file_id,
            highest=highest,
            volumes=self._volumes_of(volumes),
            placements=volumes.placement_log.end if volumes.placement_log is not None else None,
        )

    def _volumes_of(self, volumes: Volumes) -> tuple[VolumeProgress, ...]:
        """The progress of each volume that serves, or is about to."""
        positions, listed = volumes.positions, {each.number for each in volumes.volume_list if not each.state.serves}
        return tuple(
            VolumeProgress(number=number, directory_id=ours, boot=self._boot, sequence=position[1], file_id=position[0])
            if (position := positions.get(number)) is not None
            else VolumeProgress(number=number, directory_id=ours)
            for number, ours in sorted(self._volume_ids.items())
            if number not in listed
        )

    async def _settle(self) -> None:
        """Read the record again after a conflict: another start wrote it, or an own call that was cancelled did.

        Raises:
            SupersededError: a later start has taken the record.
            NoSuchKeyError: the bookie was forgotten, and its record was removed.
        """
        mine = self.record
        assert mine is not None, "it was claimed"
        found = await self._disks.read(self._bookie)
        if found is None:
            await self._metadata.cookies.read(self._bookie)
            self._found = await self._disks.write(self._bookie, mine, None)
        elif found.value.starting > self._boot:
            raise SupersededError(
                f"another process has started as bookie {self._bookie} (start {found.value.starting}, this is start "
                f"{self._boot}): this process ends; run one process per bookie"
            )
        else:
            self._found = found


def _claim_of_one(before: DiskProgress | None, boot: int, here: int | None, fresh: int) -> DiskProgress:
    """What a start claims that has one volume. ``here``: the id in its files; None: it has no file."""
    if before is None:
        return DiskProgress(directory_id=here or fresh, starting=boot)
    if here is None and before.boot:  # the old disk is gone: what it had is in doubt
        return DiskProgress(directory_id=fresh, starting=boot)
    return replace(before, starting=boot)


def _claim_of_many(
    before: DiskProgress | None, boot: int, here: Mapping[int, int | None], fresh: Mapping[int, int]
) -> DiskProgress:
    """What a start claims that has a map: for each volume as :func:`_claimed`."""
    volumes = tuple(_claimed(before, number, here[number] or 0, fresh[number]) for number in sorted(here))
    if before is None:
        return DiskProgress(directory_id=volumes[0].directory_id, starting=boot, volumes=volumes)
    return replace(before, starting=boot, sequence=0, file_id=0, volumes=volumes)


def _claimed(before: DiskProgress | None, number: int, here: int, fresh: int) -> VolumeProgress:
    """What a start claims for one volume. ``here``: the id in the files of its directory; 0: there is none."""
    known = {each.number: each for each in before.volumes} if before is not None else {}
    if number in known and (here or not known[number].boot):
        return known[number]
    if number in known:  # what was here is gone: a first start was undone, or its loss is in doubt already
        return VolumeProgress(number=number, directory_id=fresh)
    if before is not None and not before.volumes and here == before.directory_id:
        return VolumeProgress(
            number=number, directory_id=here, boot=before.boot, sequence=before.sequence, file_id=before.file_id
        )
    return VolumeProgress(number=number, directory_id=here if before is None and here else fresh)


def _progress(of: VolumeProgress | DiskProgress) -> PublishedProgress:
    return PublishedProgress(directory_id=of.directory_id, boot=of.boot, sequence=of.sequence, file_id=of.file_id)
