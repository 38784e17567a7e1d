"""What an operator does with ledger directories while the bookie runs: look, add, empty, give up."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Any

from bookkeeper.bookie.config import BookieConfig
from bookkeeper.bookie.control.bookie_control import Says
from bookkeeper.bookie.identity.progress_publisher import ProgressPublisher
from bookkeeper.bookie.start.bookie_start import BookieStart
from bookkeeper.errors import IllegalOperationError
from bookkeeper.seams import Disk
from bookkeeper.storage.engine import Engine
from bookkeeper.volumes import Volume, Volumes
from bookkeeper.volumes.after_all import wait_until_done
from bookkeeper.volumes.disks.volume_list import VolumeEntry, VolumeState, share_of
from bookkeeper.volumes.mapped_volumes import changeable
from bookkeeper.volumes.start.volume_directories import refuse_filled
from bookkeeper.volumes.volume_drain import VolumeDrain

log = logging.getLogger(__name__)


class LedgerDirectories:
    """The ledger directories of one bookie. Runs on the loop's thread."""

    def __init__(
        self,
        volumes: Volumes,
        start: BookieStart,
        publisher: ProgressPublisher,
        config: BookieConfig,
        disk: Disk,
        highest: Callable[[], int],
    ) -> None:
        """
        Args:
            highest: the greatest ledger id that may be older than the disk.
        """
        self._volumes, self._start, self._publisher = volumes, start, publisher
        self._config, self._disk, self._highest = config, disk, highest
        self._drains: dict[int, VolumeDrain] = {}
        self._new_drain = asyncio.Event()
        self._changing = asyncio.Lock()
        """Held while a directory is added."""
        volumes.on_loss(self._on_loss)

    @property
    def in_use(self) -> list[str]:
        """Every directory with journal or ledgers."""
        pairs = [(each.config.journal_dir, each.config.ledger_dir) for each in self._volumes.serving]
        return list(dict.fromkeys(place for pair in pairs for place in pair))

    def rows(self) -> list[dict[str, Any]]:
        """Each directory with its state, ledgers, and bytes free and in all."""
        serving = {each.number: each for each in self._volumes.serving}
        return [self._row(each, serving.get(each.number)) for each in self._volumes.volume_list]

    def sentences(self) -> tuple[str, ...]:
        """What people should know: directories that are lost or being emptied."""
        said = [
            f"ledger directory {each.ledger_dir} is lost ({each.reason or 'no reason is known'}); on a disk that "
            "works, and emptied, it can be added again with `bk bookie add-directory`"
            for each in self._volumes.volume_list
            if each.state is VolumeState.LOST
        ]
        for number, drain in self._drains.items():
            left = self._volumes.ledger_count(number)
            place = self._entry(number).ledger_dir
            said.append(f"ledger directory {place} is being emptied; ledgers moved: {drain.moved}, left: {left}")
            said += [f"ledger {ledger} stays on {place}: {why}" for ledger, why in list(drain.waits_for.items())[:5]]
        if lost := len(self._volumes.placements.lost):
            said.append(f"ledgers that were on a lost disk, and are not whole here again yet: {lost}")
        return tuple(said)

    # -- commands -----------------------------------------------------------------------------------------

    async def add(self, ledger_dir: str, journal_dir: str) -> int:
        """Use an empty directory for ledgers from now on. Returns the volume's number.

        Raises:
            IllegalOperationError: it is in use, or does not exist; or the bookie has no map of several directories.
            CookieError: it is not empty, or another bookie's.
            OSError, StorageError: its disk cannot be used.
            MetadataError: the store does not answer; nothing was changed that matters.
        """
        volumes = changeable(self._volumes)
        async with self._changing:
            listed = volumes.volume_list
            known = listed.at(ledger_dir)
            if known is not None and known.state.serves:
                raise IllegalOperationError(f"{ledger_dir} is a ledger directory of this bookie already")
            for place in (ledger_dir, journal_dir):
                if not os.path.isabs(place) or not self._disk.exists(place):
                    raise IllegalOperationError(f"{place} does not exist: make the directory, on a disk of its own")
                if place in self.in_use or place == self._config.directory:
                    raise IllegalOperationError(f"{place} is in use by this bookie already")
                around = next((each for each in sorted(self.in_use) if place.startswith(f"{each}/")), None)
                if around is not None:
                    raise IllegalOperationError(
                        f"{place} lies in {around}, which this bookie uses: choose a directory on a disk of its own"
                    )
            self._start.refuse_owned([ledger_dir, journal_dir])
            listed = listed.with_new(ledger_dir, journal_dir)
            entry = listed.entries[-1]
            refuse_filled(self._disk, share_of(self._config.storage, entry, 1))
            await self._start.grow_cookie(listed, [ledger_dir, journal_dir])
            progress = await self._publisher.add_volume(entry.number, self._highest(), volumes)
            volume = await self._start.open_added(self._publisher, entry, progress)
            await wait_until_done(lambda done: volumes.members.add(volume, listed, done))
            log.warning(
                "ledger directory %s is used from now on; add it to ledger_dirs: the next start needs it", ledger_dir
            )
            return entry.number

    async def drain(self, ledger_dir: str, says: Says) -> int:
        """Move everything off a directory, and let it go; returns how many ledgers were moved. It goes on when
        nobody waits for it any more.

        Raises:
            IllegalOperationError: it is not in use, or the last one.
        """
        volumes, entry = changeable(self._volumes), self._serving(ledger_dir)
        self._refuse_last(entry)
        if entry.state is not VolumeState.DRAINING:
            await wait_until_done(lambda done: volumes.members.set_state(entry.number, VolumeState.DRAINING, done))
        drain = self._drains.get(entry.number)
        if drain is None:
            drain = self._drains[entry.number] = self._drain_of(entry.number)
            self._new_drain.set()
        while entry.number in self._drains:  # until the list has it as drained, durably
            await says(f"ledgers moved: {drain.moved}, left: {self._volumes.ledger_count(entry.number)}")
            await asyncio.sleep(0.5)
        if (now := self._entry(entry.number)).state is not VolumeState.DRAINED:
            raise IllegalOperationError(f"{ledger_dir} is {now.state.value} now: {now.reason}")
        return drain.moved

    async def lose(self, ledger_dir: str) -> int:
        """Give a directory up. Returns how many ledgers were on it.

        Raises:
            IllegalOperationError: it is not in use, or the last one.
        """
        entry = self._serving(ledger_dir)
        self._refuse_last(entry)
        count = self._volumes.ledger_count(entry.number)
        changeable(self._volumes).members.lose(entry.number, "an operator has given it up")
        return count

    # -- background ---------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Empty the directories that are to be emptied, until cancelled."""
        for entry in self._volumes.volume_list.serving:
            if entry.state is VolumeState.DRAINING:
                self._drains[entry.number] = self._drain_of(entry.number)
        begun: set[VolumeDrain] = set()
        async with asyncio.TaskGroup() as group:
            while True:
                self._new_drain.clear()
                for number, drain in self._drains.items():
                    if drain not in begun:
                        begun.add(drain)
                        group.create_task(self._empty(number, drain))
                await self._new_drain.wait()
                begun &= set(self._drains.values())

    async def _empty(self, number: int, drain: VolumeDrain) -> None:
        """Empty one directory. Others do not wait for it: a ledger that is not whole may keep it for long."""
        await drain.run()
        del self._drains[number]
        entry = self._entry(number)
        if entry.state is VolumeState.DRAINED:
            log.warning(
                "ledger directory %s is empty, and not used any more: take it out of ledger_dirs", entry.ledger_dir
            )

    def _drain_of(self, number: int) -> VolumeDrain:
        return VolumeDrain(changeable(self._volumes), number, self._config.storage.compaction_bytes_per_s)

    def _on_loss(self, ledger_dir: str, reason: str, ledgers: int) -> None:
        log.error(
            "ledger directory %s is lost: %s. Ledgers that were on it: %d. For them the bookie answers 'unknown', and "
            "copies them from other bookies once they are closed; it goes on with its other directories. On a disk "
            "that works, and emptied, the directory can be added again with `bk bookie add-directory`",
            ledger_dir,
            reason,
            ledgers,
        )

    # -- which directory ----------------------------------------------------------------------------------

    def _serving(self, ledger_dir: str) -> VolumeEntry:
        entry = changeable(self._volumes).volume_list.at(ledger_dir)
        if entry is None or not entry.state.serves:
            state = f"{entry.state.value} already" if entry is not None else "not a ledger directory of this bookie"
            raise IllegalOperationError(f"{ledger_dir} is {state}")
        return entry

    def _refuse_last(self, entry: VolumeEntry) -> None:
        if changeable(self._volumes).members.is_last(entry.number):
            raise IllegalOperationError(
                f"{entry.ledger_dir} is the last ledger directory that takes new ledgers: add another one first"
            )

    def _entry(self, number: int) -> VolumeEntry:
        return next(each for each in self._volumes.volume_list.entries if each.number == number)

    def _row(self, entry: VolumeEntry, volume: Volume | None) -> dict[str, Any]:
        row: dict[str, Any] = {
            "number": entry.number or None,
            "ledger_dir": entry.ledger_dir,
            "journal_dir": entry.journal_dir,
            "state": entry.state.value,
            "reason": entry.reason or None,
            "ledgers": self._volumes.ledger_count(entry.number),
        }
        if volume is None:
            return {**row, "disk": None, "free_bytes": None, "total_bytes": None}
        return {**row, **_disk_of(volume.engine)}


def _disk_of(engine: Engine) -> dict[str, Any]:
    """The columns of a directory whose disk is open."""
    try:
        space = engine.space()
    except OSError:
        return {"disk": engine.state.value, "free_bytes": None, "total_bytes": None}
    return {"disk": engine.state.value, "free_bytes": space.free, "total_bytes": space.total}
