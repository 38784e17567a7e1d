"""How a start treats the ledger directories of a bookie: the only one, or several with a map of which ledger is where.

They differ in what a start may find empty, in whether the cookie may grow, and in what is opened. Which of the two it
is, the configuration says; from then on nobody asks.
"""

from __future__ import annotations

import asyncio
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, ClassVar

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.errors import CookieError, StorageError, in_words
from bookkeeper.ids import BookieId
from bookkeeper.meta.records.disks import DiskProgress
from bookkeeper.seams import Seams
from bookkeeper.storage.base.config import StorageConfig
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.start.directory_id import is_unused
from bookkeeper.volumes import MappedVolumes, OneVolume, Volume, Volumes
from bookkeeper.volumes.after_all import wait_until_done
from bookkeeper.volumes.disks.volume_list import NAME, ONLY, VolumeList, VolumeState, share_of, write_volumes
from bookkeeper.volumes.start.placement_recall import open_mapped
from bookkeeper.volumes.start.volume_directories import (
    is_disk_failure,
    list_volumes,
    lost,
    refuse_emptied,
    without_failed,
)

log = logging.getLogger(__name__)

OpenEngine = Callable[[int, str], Coroutine[Any, Any, Engine]]
"""Opens the disk of one volume: its number, and the name of the worker that does it."""


class StartVolumes(ABC):
    """The ledger directories of one start."""

    may_grow: ClassVar[bool]
    """Whether the cookie may name directories that it did not name before."""

    def __init__(self, config: BookieConfig, seams: Seams, listed: VolumeList) -> None:
        self.listed = listed
        """The ledger directories and what has become of each."""
        self._config, self._seams = config, seams

    def configs(self) -> dict[int, StorageConfig]:
        """The settings of each volume that is opened."""
        serving = self.listed.serving
        return {each.number: share_of(self._config.storage, each, len(serving)) for each in serving}

    @property
    @abstractmethod
    def without_notes(self) -> str:
        """What this is where the bookie's own notes are missing, for people."""

    @abstractmethod
    def note_new(self) -> list[str] | None:
        """Called before the cookie of a bookie that has served is looked at. Returns the directories that are new, for
        the cookie to name; None: the cookie names the same as ever.

        Raises:
            CookieError, StorageError: a directory was emptied.
        """

    @abstractmethod
    def refuse_emptied(self, bookie: BookieId) -> None:
        """Refuse directories that are empty though the bookie has served. Called before anything is written there.

        Raises:
            CookieError: one is.
        """

    @abstractmethod
    async def open(
        self, open_engine: OpenEngine, configs: Mapping[int, StorageConfig], boot: int, published: DiskProgress | None
    ) -> Volumes:
        """Open the disks in workers: replay may take long, and the loop must keep its session alive.

        Args:
            published: what is published about the bookie's disks.
        """


def start_volumes(config: BookieConfig, seams: Seams, *, has_joined: bool, bookie: BookieId) -> StartVolumes:
    """Find out which ledger directories there are. Writes nothing.

    Args:
        has_joined: whether the bookie has served before, here.

    Raises:
        CookieError: a directory is missing.
        StorageError: no disk works.
    """
    disk = seams.disk
    if wanted := config.volume_directories:
        file_id = seams.rng.getrandbits(63) | 1
        listed = list_volumes(disk, config.directory, wanted, config.storage, file_id)
        if has_joined and all(each.state is VolumeState.NEW for each in listed.serving):
            raise CookieError(
                f"the ledger directories of {bookie} are empty, but it has served before: mount their disks; if they "
                "are lost, join with empty directories under another --bookie-id"
            )
        listed = without_failed(disk, listed, config.directory)
        for place, _ in wanted:
            entry = listed.at(place)
            if entry is not None and not entry.state.serves:
                log.warning(
                    "ledger directory %s is %s, and is not used: take it out of ledger_dirs; or empty it, and add it "
                    "again with `bk bookie add-directory`",
                    place,
                    entry.state.value,
                )
        return _ManyVolumes(config, seams, listed)
    if disk.exists(os.path.join(config.directory, NAME)):
        raise CookieError(
            f"the bookie in {config.directory} has several ledger directories: name them (ledger_dirs; bk bookie "
            "--ledger-dir, once for each)"
        )
    return only_volume(config, seams)


def only_volume(config: BookieConfig, seams: Seams) -> StartVolumes:
    """The one directory that the configuration names."""
    return _SingleVolume(config, seams, VolumeList.of_one(config.storage.ledger_dir, config.storage.journal_dir))


class _SingleVolume(StartVolumes):
    may_grow = False
    without_notes = "an empty disk"

    def note_new(self) -> None:
        return None

    def refuse_emptied(self, bookie: BookieId) -> None:
        if is_unused(self._seams.disk, self._config.storage):
            raise CookieError(
                f"{self._config.storage.ledger_dir} is empty, but {bookie} has served before: mount its disk; if that "
                "is lost, join with empty directories under another --bookie-id"
            )

    async def open(
        self, open_engine: OpenEngine, configs: Mapping[int, StorageConfig], boot: int, published: DiskProgress | None
    ) -> Volumes:
        return OneVolume(await open_engine(ONLY, "open"), configs[ONLY])


class _ManyVolumes(StartVolumes):
    may_grow = True

    @property
    def without_notes(self) -> str:
        used = any(each.state is not VolumeState.NEW for each in self.listed)
        return "ledger directories without the bookie's own notes" if used else "an empty disk"

    def note_new(self) -> list[str]:
        disk, directory = self._seams.disk, self._config.directory
        refuse_emptied(disk, self.listed, self._config.storage, directory)
        write_volumes(disk, directory, self.listed)  # first: it says which directories may be empty
        new = [each for each in self.listed.serving if each.state is VolumeState.NEW]
        return [place for each in new for place in (each.ledger_dir, each.journal_dir)]

    def refuse_emptied(self, bookie: BookieId) -> None:
        pass  # :meth:`note_new` has looked at each

    async def open(
        self, open_engine: OpenEngine, configs: Mapping[int, StorageConfig], boot: int, published: DiskProgress | None
    ) -> Volumes:
        """All at the same time. A volume whose disk does not work is lost."""
        listed = self.listed
        begun = [open_engine(number, f"open {number}") for number in configs]
        volumes: list[Volume] = []
        problems: list[BaseException] = []
        for entry, found in zip(listed.serving, await asyncio.gather(*begun, return_exceptions=True), strict=True):
            if isinstance(found, Engine):
                volumes.append(Volume(entry.number, configs[entry.number], found))
            elif is_disk_failure(found) and not problems:
                try:
                    listed = lost(listed, entry, found)
                except StorageError as error:
                    problems.append(error)
            else:
                problems.append(found)
        try:
            if problems:
                raise problems[0]
            opened = await self._mapped(listed, volumes, boot, published)
        except BaseException:
            for volume in volumes:
                await _closed(volume.engine)
            raise
        self.listed = opened.volume_list
        opened.share_dropped(_shared)
        return opened

    async def _mapped(
        self, listed: VolumeList, volumes: list[Volume], boot: int, published: DiskProgress | None
    ) -> MappedVolumes:
        loop, workers = asyncio.get_running_loop(), self._seams.workers
        worker = workers.worker("open")
        ends = published.placements if published is not None else None
        try:
            directory, disk, how = self._config.directory, self._seams.disk, (workers.worker, loop.call_later)
            return await worker.call(
                lambda: open_mapped(disk, directory, listed, volumes, *how, boot=boot, published=ends)
            )
        finally:
            worker.close()


def _shared(error: BaseException | None) -> None:
    if error is not None:
        log.warning(
            "not every ledger directory has the list of deleted ledgers yet (%s); the next start writes it again",
            in_words(error),
        )


async def _closed(engine: Engine) -> None:
    """Close a disk that is not going to serve; nobody needs to know how that ends."""
    await wait_until_done(lambda done: engine.close(lambda _error: done(None)))
