"""A small life of a bookie with three ledger directories, and what must be true after it was cut short."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from random import Random

from bookkeeper.errors import DataUnknownError
from bookkeeper.meta.records.disks import PlacementsEnd
from bookkeeper.storage.engine import Engine
from bookkeeper.volumes import MappedVolumes, Volume
from bookkeeper.volumes.disks.volume_list import VolumeList, VolumeState, read_volumes, share_of, write_volumes
from bookkeeper.volumes.start.placement_recall import open_mapped
from bookkeeper.volumes.volume_drain import VolumeDrain
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, Life, Truth, lid, read

DIRECTORY = "/bookie"
PLACES = ("/disk1", "/disk2", "/disk3")
SMALL = replace(CONFIG, inflight_bytes=3 * 65536, page_cache_pages=30)


Published = list[tuple[int, PlacementsEnd]]
"""Where the placements ended when that was published, and after how many operations of the disk."""


def open_volumes(
    disk: RecordingDisk, published: PlacementsEnd | None = None, ends: Published | None = None
) -> tuple[MappedVolumes, QueueWorkers]:
    """A start after a crash or a clean stop.

    Args:
        published: where the placements ended, as the metadata have it.
        ends: gets what this life publishes.
    """
    disk.locks.clear()
    workers = QueueWorkers()
    listed = read_volumes(disk, DIRECTORY)
    if listed is None:
        listed = VolumeList(7)
        for place in PLACES:
            listed = listed.with_new(place, place)
    volumes = []
    for entry in listed.serving:
        config = share_of(SMALL, entry, len(PLACES))
        volumes.append(Volume(entry.number, config, Engine.open(config, disk, workers)))
    boot = 1 if published is None else published.generation + 1
    door = open_mapped(disk, DIRECTORY, listed, volumes, workers.worker, _now, boot=boot, published=published)
    log = door.placement_log

    def publish() -> None:
        if ends is not None:
            ends.append((len(disk.ops) + 1, log.end))
        log.published(log.end)

    publish()
    log.publish_with(publish)
    return door, workers


def _now(_seconds: float, call: Callable[[], None]) -> None:
    call()


def volumes_life(disk: RecordingDisk, rng: Random, ends: Published) -> Truth:
    """Adds, fences and explicit LACs on ledgers that are spread; then a directory is emptied while they go on."""
    return asyncio.run(_life(disk, rng, ends))


async def _life(disk: RecordingDisk, rng: Random, ends: Published) -> Truth:
    volumes, workers = open_volumes(disk, ends=ends)
    life = Life(disk, opened=(volumes, workers))
    following = dict.fromkeys(range(1, 7), 0)

    def append(ledger_id: int) -> None:
        if not volumes.is_fenced(lid(ledger_id)):
            count, first = rng.randrange(1, 5), following[ledger_id]
            life.add(ledger_id, *range(first, first + count), size=rng.choice([60, 900]))
            following[ledger_id] += count

    def write(steps: int) -> None:
        for _ in range(steps):
            ledger_id, chance = rng.choice(sorted(following.keys() - life.truth.dropped.keys())), rng.random()
            if chance < 0.6:
                append(ledger_id)
            elif chance < 0.65:
                life.fence(rng.choice([6, 8, 9]))
            elif chance < 0.7:
                life.explicit_lac(ledger_id, following[ledger_id])
            elif chance < 0.73:
                life.checkpoint()
            elif chance < 0.75 and not life.truth.dropped:
                life.collect(5)
            else:
                workers.step()

    write(40)
    number = rng.choice([1, 2, 3])
    draining: list[BaseException | None] = []
    volumes.members.set_state(number, VolumeState.DRAINING, draining.append)
    drain = asyncio.get_running_loop().create_task(VolumeDrain(volumes, number, 0).run())
    turns = 0
    while not drain.done():
        await asyncio.sleep(0)
        turns += 1
        on_it = following.keys() & set(volumes.placements.ledgers_on(number)) - life.truth.dropped.keys()
        if turns < 60 and on_it and rng.random() < 0.3:
            append(min(on_it))  # the next to be moved, or the one that is
        elif turns < 60 and rng.random() < 0.2:
            write(1)
        workers.step()
    await drain
    write(10)
    workers.pump()
    if rng.random() < 0.5:
        volumes.close(lambda error: None)
        workers.pump()
    return life.truth


def lose_one(files: dict[str, bytes], number: int) -> dict[str, bytes] | None:
    """What a crash has left, and one volume's disk is gone for good; None: that volume is not in use."""
    disk = RecordingDisk(files)
    listed = read_volumes(disk, DIRECTORY)
    if listed is None or not any(each.number == number for each in listed.serving):
        return None
    place = next(each.ledger_dir for each in listed if each.number == number)
    write_volumes(disk, DIRECTORY, listed.with_state(number, VolumeState.LOST, "gone"))
    return {path: data for path, data in disk.files().items() if not path.startswith(f"{place}/")}


def denials(truth: Truth, at: int, volumes: MappedVolumes, workers: QueueWorkers) -> list[str]:
    """What is said falsely after a crash at operation ``at``, when a volume is lost (B5, B12)."""
    bad: list[str] = []
    for (ledger_id, entry_id), when in truth.acked.items():
        if when <= at and truth.dropped.get(ledger_id, at + 1) > at:
            answer = read(volumes, workers, ledger_id, entry_id)
            if answer != truth.sent[ledger_id, entry_id] and not isinstance(answer, DataUnknownError):
                bad.append(f"acked entry {ledger_id}/{entry_id}: {answer!r}")
    for ledger_id, when in truth.fenced.items():
        if when <= at and not volumes.is_fenced(lid(ledger_id)):
            bad.append(f"fence of {ledger_id} is gone")
    return bad
