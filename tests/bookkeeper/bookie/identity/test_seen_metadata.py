"""What a bookie keeps of what it saw in the metadata store."""

from __future__ import annotations

import errno
import logging
from random import Random

import pytest

from bookkeeper.bookie.identity import checked_note
from bookkeeper.bookie.identity.seen_metadata import COUNTED, SEEN_TRANSACTION, SeenMetadata
from bookkeeper.errors import CookieError, MetadataRolledBackError
from bookkeeper.ids import BookieId
from bookkeeper.meta import Metadata, init_cluster_in
from bookkeeper.meta.stores.memory import MemoryCluster
from bookkeeper.real import system_seams
from bookkeeper.testing.world import Fault, SimDisk

B1 = BookieId("b1")


async def cluster() -> tuple[MemoryCluster, SimDisk]:
    found, disk = MemoryCluster(), SimDisk(Random(1))
    await init_cluster_in(found.connect(), system_seams())
    disk.make_directories("/bookie")
    return found, disk


async def start(found: MemoryCluster, disk: SimDisk) -> SeenMetadata:
    return SeenMetadata(await Metadata.over(found.connect(), system_seams()), disk, "/bookie", B1)


async def test_a_first_start_has_seen_nothing_and_a_later_one_what_was_remembered() -> None:
    found, disk = await cluster()
    first = await start(found, disk)
    await first.check()
    assert first.counter.count == 0
    await first.counter.count_up()
    first.remember()
    again = await start(found, disk)
    assert again.counter.count == first.counter.count > 0
    await again.check()


@pytest.mark.rule("M10")
@pytest.mark.parametrize("hidden", [False, True])
async def test_a_store_that_shows_less_than_was_seen_is_not_believed(hidden: bool) -> None:
    """``hidden``: its transactions have come past what was seen; what the bookie had counted there tells it."""
    found, disk = await cluster()
    first = await start(found, disk)
    backup = found.snapshot()
    await first.counter.count_up()
    first.remember()
    found.restore(backup)
    if hidden:
        found.transaction += 1 << 32
    with pytest.raises(MetadataRolledBackError, match=r"older|before"):
        await (await start(found, disk)).check()


@pytest.mark.parametrize("name", [SEEN_TRANSACTION, COUNTED])
async def test_a_damaged_file_is_named(name: str) -> None:
    found, disk = await cluster()
    file = disk.open(f"/bookie/{name}", create=True)
    file.pwrite(b"?", 0)
    with pytest.raises(CookieError, match=name):
        await (await start(found, disk)).check()


async def test_on_a_full_disk_the_older_note_stays_and_it_is_said(caplog: pytest.LogCaptureFixture) -> None:
    found, disk = await cluster()
    first = await start(found, disk)
    first.remember()
    before = disk.read_file(f"/bookie/{SEEN_TRANSACTION}")
    disk.faults.append(Fault(operation="pwrite", code=errno.ENOSPC, path=SEEN_TRANSACTION))
    await first.counter.count_up()
    with caplog.at_level(logging.WARNING):
        first.remember()
    assert disk.read_file(f"/bookie/{SEEN_TRANSACTION}") == before
    assert "the disk is full" in caplog.text


@pytest.mark.rule("M10")
@pytest.mark.parametrize("name", [SEEN_TRANSACTION, COUNTED])
async def test_a_flipped_bit_of_a_note_is_no_proof_against_the_metadata(name: str) -> None:
    """A greater number was believed: the bookie said that the metadata were older than they had been."""
    found, disk = await cluster()
    first = await start(found, disk)
    await first.counter.count_up()
    first.remember()
    whole = disk.read_file(f"/bookie/{name}")
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        disk.replace({f"/bookie/{name}": bytes(damaged)})
        with pytest.raises(CookieError, match=name):
            await (await start(found, disk)).check()


@pytest.mark.rule("M10")
async def test_notes_of_earlier_versions_are_believed() -> None:
    found, disk = await cluster()
    first = await start(found, disk)
    await first.counter.count_up()
    first.remember()
    for name in (SEEN_TRANSACTION, COUNTED):
        line, *_ = disk.read_file(f"/bookie/{name}").splitlines(keepends=True)
        disk.replace({f"/bookie/{name}": line})
    again = await start(found, disk)
    await again.check()
    assert again.counter.count == first.counter.count


@pytest.mark.rule("M10")
async def test_what_was_counted_in_another_copy_of_the_metadata_is_not_compared() -> None:
    """As before a move of the cluster, or before a loss that an operator has accepted."""
    found, disk = await cluster()
    first = await start(found, disk)
    await first.counter.count_up()
    first.remember()
    disk.replace({f"/bookie/{COUNTED}": checked_note.encode(f"{first.counter.count + 1000} another")})
    again = await start(found, disk)
    assert again.counter.count == 0
    await again.check()
