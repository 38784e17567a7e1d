"""Where entries live: in memory, or in index pages, each of which is waited for once."""

from __future__ import annotations

from array import array
from dataclasses import replace

import pytest

from bookkeeper.codec import crc32c
from bookkeeper.errors import CorruptionError, NoSuchEntryError
from bookkeeper.ids import EntryId
from bookkeeper.storage.base.results import AvailabilityRun, PackedEntries
from bookkeeper.storage.base.workers import StorageWorkers
from bookkeeper.storage.engine import Engine
from bookkeeper.storage.index.entry_index import Extent, PageCache
from bookkeeper.storage.index.ledger_descriptor import LedgerDescriptor
from bookkeeper.storage.ledgers.unknowns import Unknowns
from bookkeeper.storage.reads.entry_places import EntryPlaces, Held, PageMissing
from tests.bookkeeper.storage.recording_disk import QueueWorkers, RecordingDisk
from tests.bookkeeper.storage.workload import CONFIG, KEY, add, lid, make_entry, open_engine

ROOMY = replace(CONFIG, entry_log_bytes=1 << 20, journal_file_bytes=1 << 20, group_bytes=1 << 16)
SEGMENT = "/ledgers/0000000000000001.index"


@pytest.fixture
def disk() -> RecordingDisk:
    return RecordingDisk()


def settle(engine: Engine, workers: QueueWorkers, *, checkpoint: bool = False) -> None:
    if checkpoint:
        engine.checkpoint(lambda error: None)
    else:
        engine.when_durable(lambda error: None)
    workers.pump()


def one_page(disk: RecordingDisk, *places: int) -> tuple[EntryPlaces, LedgerDescriptor, QueueWorkers]:
    """Ledger 7 with these places, of entries 0, 1, ..., in one page of a segment; no page is in the cache."""
    page, threads = array("q", places), QueueWorkers()
    disk.open(SEGMENT, create=True).pwrite(page.tobytes(), 4096)
    known = EntryPlaces(disk, "/ledgers", PageCache(8), StorageWorkers(threads), Unknowns(None, []))
    ledger = LedgerDescriptor(lid(7), KEY)
    present = sum(place > 0 for place in places)
    ledger.index.add([Extent(7, 0, len(places), present, 1, 4096, crc32c(page.tobytes()))])
    return known, ledger, threads


def test_memory_comes_before_pages_and_a_zero_in_a_page_says_nothing(disk: RecordingDisk) -> None:
    known, ledger, _ = one_page(disk, 100, 0, 300)
    assert [known.find(ledger, entry_id) for entry_id in range(4)] == [100, 0, 300, 0]
    ledger.index.tail.put(2, 900)
    ledger.index.tail.put(3, 901)
    assert [known.find(ledger, entry_id) for entry_id in range(4)] == [100, 0, 900, 901]
    assert known.entries(ledger) == [AvailabilityRun(EntryId(0), 1), AvailabilityRun(EntryId(2), 2)]


def test_a_run_of_places_ends_at_the_first_hole_or_the_limit(disk: RecordingDisk) -> None:
    known, ledger, _ = one_page(disk, 100, 200, 300, 0, 500)
    assert list(known.run(ledger, 0, 9, {})) == [100, 200, 300]
    assert list(known.run(ledger, 1, 1, {})) == [200]
    assert list(known.run(ledger, 3, 9, {})) == []
    ledger.index.tail.extend(5, array("q", [600, 700]))
    assert list(known.run(ledger, 4, 9, {})) == [500, 600, 700], "from a page into memory"


@pytest.mark.rule("B13", "V1")
def test_a_page_that_would_be_waited_for_is_named_loaded_and_held(disk: RecordingDisk) -> None:
    known, ledger, threads = one_page(disk, 100, 200)
    disk.cached = False
    with pytest.raises(PageMissing) as missing:
        known.find(ledger, 1)
    got: list[Held] = []
    known.load(missing.value, {}, got.append, lambda error: pytest.fail(str(error)))
    assert not got
    threads.pump()
    known.pages = PageCache(0)
    assert known.find(ledger, 1, got[0]) == 200, "the cache may have dropped it"


@pytest.mark.rule("K19", "B5")
@pytest.mark.parametrize("cached", [True, False])
def test_a_damaged_page_makes_every_negative_unknown(disk: RecordingDisk, cached: bool) -> None:
    known, ledger, threads = one_page(disk, 100, 200)
    disk.names[SEGMENT].data[4097] ^= 1
    disk.cached = cached
    failed: list[BaseException | None] = []
    try:
        known.find(ledger, 1)
    except PageMissing as missing:
        known.load(missing, {}, lambda held: pytest.fail("it is damaged"), failed.append)
        threads.pump()
    except CorruptionError as error:
        failed.append(error)
    assert isinstance(failed[0], CorruptionError) and known.unknowns.has(99)


def test_segments_that_are_released_are_handed_back_open_and_read_no_more(disk: RecordingDisk) -> None:
    known, ledger, _ = one_page(disk, 100)
    assert list(known.open_files()) == []
    known.find(ledger, 0)
    (file,) = known.open_files()
    assert known.release_segments([1, 2]) == [file] and list(known.open_files()) == []


# -- through the engine ---------------------------------------------------------------------------------------


def overlapping(disk: RecordingDisk, copies: int) -> tuple[Engine, QueueWorkers]:
    """Entries 0..8 of ledger 1 but 4; index pages of ``copies`` segments over each other, room in memory for one."""
    engine, workers = open_engine(disk, replace(ROOMY, page_cache_pages=1, index_segments=8))
    for entry_id in (0, 1, 2, 3, 5, 6, 7, 8):
        add(engine, 1, entry_id, lac=-1)
    settle(engine, workers, checkpoint=True)
    for _ in range(copies - 1):
        for entry_id in (1, 7):
            engine.append_entry(lid(1), KEY, make_entry(1, entry_id, lac=0), recovery=True)
        settle(engine, workers, checkpoint=True)
    disk.cached = False
    return engine, workers


def run_down(workers: QueueWorkers, most: int) -> None:
    for _ in range(most):
        workers.step()
    assert not workers.jobs, f"still at work after {most} jobs"


@pytest.mark.rule("V1", "B13")
@pytest.mark.parametrize("copies", [1, 2, 4])
def test_a_read_ends_though_the_pages_it_needs_do_not_fit_into_the_cache(disk: RecordingDisk, copies: int) -> None:
    engine, workers = overlapping(disk, copies)
    got: list[bytes | BaseException] = []
    engine.read(lid(1), EntryId(2), got.append)
    engine.read(lid(1), EntryId(4), got.append)
    run_down(workers, 2 * copies + 1)  # each page once a read, and the record
    assert sorted(map(type, got), key=str) == [NoSuchEntryError, bytes] and make_entry(1, 2, lac=-1) in got
    batch: list[PackedEntries | BaseException] = []
    engine.read_batch(lid(1), EntryId(2), 0, 1000, batch.append)
    run_down(workers, copies + 1)
    (packed,) = batch
    assert isinstance(packed, PackedEntries) and packed.count >= 1
    engine.read_batch(lid(1), EntryId(4), 0, 1000, batch.append)
    run_down(workers, copies)
    assert isinstance(batch[1], NoSuchEntryError)


@pytest.mark.rule("V1", "B13")
def test_reads_that_push_each_others_pages_out_all_end(disk: RecordingDisk) -> None:
    engine, workers = overlapping(disk, 3)
    got: list[bytes | BaseException] = []
    for _ in range(5):
        for entry_id in (0, 2, 3, 4, 5, 6):
            engine.read(lid(1), EntryId(entry_id), got.append)
    run_down(workers, 30 * 4)
    assert len(got) == 30 and sum(isinstance(answer, NoSuchEntryError) for answer in got) == 5
